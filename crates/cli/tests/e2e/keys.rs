//! `analyze --keys`: what HTTP/2 says inside TLS, of a real upload by curl to a real nginx.

use crate::Case;
use crate::need::Need;
use crate::program::Program;
use serde_json::Value;

pub const CASES: &[Case] = &[(
    "nginx_grants_curl_a_window_of_a_chosen_size",
    &[
        Need::Root,
        Need::Program("nginx"),
        Need::Program("curl"),
        Need::Program("openssl"),
        Need::Program("dumpcap"),
    ],
    nginx_grants_curl_a_window_of_a_chosen_size,
)];

/// What nginx grants a stream: its buffer, where it passes an upload on as it comes.
const WINDOW: u64 = 128 << 10;
/// Twenty windows over 80 ms: 1.6 s that are waited.
const SIZE: u64 = 20 * WINDOW;

const NGINX: &str = "daemon off; pid WORK/nginx.pid; error_log WORK/error.log; user root;
events {}
http {
  access_log off; client_max_body_size 0;
  client_body_temp_path WORK/body; proxy_temp_path WORK/proxy;
  server { listen 8443 ssl http2; ssl_certificate WORK/cert.pem; ssl_certificate_key WORK/key.pem;
    client_body_buffer_size 128k; proxy_request_buffering off; proxy_http_version 1.1;
    location / { proxy_pass http://unix:WORK/behind.sock; } }
  server { listen unix:WORK/behind.sock; client_max_body_size 0;
    location / { root WORK; dav_methods PUT; create_full_put_path on; } }
}
";

/// The upload, captured whole at its sender, with the keys beside it.
const CLIENT: &str = "dumpcap -q -i any -w all.pcapng 2>/dev/null & capture=$!
until [ -s all.pcapng ]; do sleep 0.05; done; sleep 0.3
SSLKEYLOGFILE=all.keys curl -sk --http2 -o /dev/null -T source https://$1:8443/arrived; code=$?
sleep 0.4; kill -INT $capture; wait $capture; exit $code
";

/// The one connection of a capture that carries most.
fn largest(program: &Program, arguments: &[&str]) -> Value {
    let all = [&["analyze", "all.pcapng", "--json"], arguments].concat();
    let mut found = program.run(&all).json();
    let connections = found["connections"].as_array_mut().unwrap();
    let payload = |one: &Value| one["client_to_server"]["payload_bytes"].as_u64();
    connections.sort_by_key(payload);
    connections.pop().unwrap()
}

fn nginx_grants_curl_a_window_of_a_chosen_size() {
    let program = Program::new();
    let work = program.work();
    let folder = work.to_str().unwrap();
    std::fs::write(work.join("nginx.conf"), NGINX.replace("WORK", folder)).unwrap();
    std::fs::write(work.join("client.sh"), CLIENT).unwrap();
    std::fs::write(work.join("source"), vec![7; SIZE as usize]).unwrap();
    let mut made = program.command_by(&[
        "sh",
        "-c",
        "openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=example.net -days 2 -keyout key.pem \
         -out cert.pem 2>/dev/null",
    ]);
    assert!(made.status().unwrap().success(), "a certificate");
    let server = format!("nginx -c {folder}/nginx.conf");
    let path = ["link", "--rtt", "80ms", "--rate", "200mbit", "--server", &server];
    let sent = program.run(&[&path[..], &["--", "bash", "client.sh", "{server}"]].concat());
    assert_eq!(sent.code, Some(0), "{sent:?}");
    assert_eq!(std::fs::metadata(work.join("arrived")).unwrap().len(), SIZE);

    let found = largest(&program, &["--keys", "all.keys"]);
    let http2 = &found["client_to_server"]["http2"];
    assert_eq!(http2["data_bytes"], SIZE, "{http2}");
    assert_eq!(http2["worst"][0]["window_bytes"], WINDOW, "{http2}");
    let cause = &found["sub_causes"][0];
    assert_eq!(cause["sub_cause"], "application_window", "{cause}");
    assert_eq!(cause["amount_bytes"], WINDOW, "{cause}");
    let claim = cause["claim"].as_str().unwrap();
    assert!(claim.contains("stream 1 waited"), "{claim}");
    assert!(claim.contains("for its window of 131,072 bytes"), "{claim}");

    // A window update is what a wait ended with, and no question of somebody.
    let account = &found["account"];
    assert!(account["requests"].as_u64().is_some_and(|asked| asked <= 2), "{account}");
    let held = http2["held_us"].as_u64().unwrap();
    assert!(held > 1_000_000, "{http2}");
    let part = account["parts"].as_array().unwrap().iter().find(|part| {
        part["cause"] == "application_window" && part["owner"] == "server_application"
    });
    let part = part.and_then(|part| part["time_us"].as_u64()).unwrap_or_default();
    assert!(part * 10 >= held * 9, "{part} of {held}: {account}");

    // Without keys nobody can name the stream.
    let unknown = largest(&program, &[]);
    assert!(unknown["client_to_server"]["http2"].is_null(), "{unknown}");
}
