//! `fullpipe why URL`: a download of our own is followed from its first byte, by the engine of
//! `get`; and an article's slow server, found and mended.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Sender, channel};

use fullpipe_lab::SERVER_ADDRESS;
use fullpipe_model::units::Duration;
use nix::sys::signal::Signal;
use serde_json::Value;

use crate::Case;
use crate::need::Need;
use crate::program::{Finished, Program, User, until};
use crate::why::{Process, World, until_carried};

pub const CASES: &[Case] = &[
    (
        "a_url_is_followed_from_its_first_byte",
        &[Need::Root, Need::Program("python3")],
        a_url_is_followed_from_its_first_byte,
    ),
    ("a_server_that_thinks_is_waited_for", &[Need::Root], a_server_that_thinks_is_waited_for),
    ("ctrl_c_before_the_first_byte_is_heard", &[Need::Root], ctrl_c_before_the_first_byte_is_heard),
    (
        "https_needs_no_other_program",
        &[Need::Root, Need::Program("python3"), Need::Program("openssl")],
        https_needs_no_other_program,
    ),
    (
        "a_small_send_buffer_is_found_and_mended",
        &[Need::Root, Need::Program("python3"), Need::Program("ip")],
        a_small_send_buffer_is_found_and_mended,
    ),
];

/// Serves the files of its folder at port 8080; with an argument by TLS.
const SITE: &str = r#"
import http.server, ssl, sys
print('ready', flush=True)
server = http.server.ThreadingHTTPServer(('', 8080), http.server.SimpleHTTPRequestHandler)
if len(sys.argv) > 1:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain('cert.pem', 'key.pem')
    server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
"#;

/// A world of 50 Mbit/s and 20 ms with a site in it that has a large file.
fn site(folder: &Path, options: &[&str]) -> (World, Process) {
    let world = World::new(["", "", "rate = \"50mbit\"\nrtt = \"20ms\"\nqueue = \"250kB\""]);
    std::fs::File::create(folder.join("big")).unwrap().set_len(1 << 32).unwrap();
    let mut command = Command::new("python3");
    command.args(["-c", SITE]).args(options).current_dir(folder);
    let server = Process::start(&world.server, command);
    (world, server)
}

/// `why` with these arguments at the client's host.
fn why(world: &World, program: &Program, arguments: &[&str]) -> Finished {
    let words = ["why", "--for", "2s", "--json", "--namespaces", "own"];
    let mut command = program.command(&[&words, arguments].concat());
    for name in ["http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"] {
        command.env_remove(name);
    }
    world.client.start_in(&mut command).unwrap();
    program.start(&mut command).end()
}

/// The answer as soon as the server listens.
fn answered(world: &World, program: &Program, arguments: &[&str]) -> Value {
    let mut finished = why(world, program, arguments);
    until("the server listens", Duration::from_secs(30), || {
        if finished.code != Some(0) {
            finished = why(world, program, arguments);
        }
        finished.code == Some(0)
    });
    finished.json()
}

/// The link of [`site`] limits what this host receives.
fn is_link(document: &Value) {
    let first = &document["connections"][0];
    let said = (first["role"].as_str(), first["limit"].as_str());
    assert_eq!(said, (Some("receiver"), Some("link")), "{document:#}");
    let goodput = first["goodput_bps"].as_f64().unwrap();
    assert!((30e6..=50e6).contains(&goodput), "{goodput}");
}

/// The packets of the connection say the same, from its handshake on.
fn by_packets(document: &Value) {
    let seen = &document["packets"];
    assert_eq!(seen["limits"][0]["limit"], "link", "{seen:#}");
    assert_eq!(seen["client"], document["connections"][0]["local"], "{seen:#}");
    // The path takes 20 ms, and at most a full queue of 250 kB longer: 40 ms at 50 Mbit/s.
    let handshake = seen["handshake_rtt_us"].as_u64().unwrap();
    assert!((20_000..100_000).contains(&handshake), "{handshake}");
    let goodput = seen["server_to_client"]["goodput_bps"].as_f64().unwrap();
    assert!((25e6..=50e6).contains(&goodput), "{goodput}");
}

fn a_url_is_followed_from_its_first_byte() {
    let program = Program::new();
    let (world, _server) = site(&program.work(), &[]);
    let url = format!("http://{SERVER_ADDRESS}:8080/big");
    let document = answered(&world, &program, &[&url]);
    is_link(&document);
    by_packets(&document);
    let mut command = program.command(&["why", "--for", "1s", "--namespaces", "own", &url]);
    world.client.start_in(&mut command).unwrap();
    let text = program.start(&mut command).end();
    assert!(text.out.contains("\nby its packets\n"), "{text:?}");
    let missing = why(&world, &program, &[&format!("http://{SERVER_ADDRESS}:8080/none")]);
    assert_eq!(missing.code, Some(1), "{missing:?}");
    assert!(missing.err.contains("404"), "{missing:?}");
}

/// Answers each request after a while, with 3 MB; in the middle of that, `asked` is told.
fn thinking_server(thinks: std::time::Duration, asked: Sender<()>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { continue };
            let mut request = [0; 4096];
            let Ok(1..) = stream.read(&mut request) else { continue };
            std::thread::sleep(thinks / 2);
            let _ = asked.send(());
            std::thread::sleep(thinks / 2);
            let head = "HTTP/1.1 200 OK\r\nContent-Length: 3000000\r\n\r\n";
            let _ = stream.write_all(head.as_bytes());
            let _ = stream.write_all(&vec![b'x'; 3_000_000]);
        }
    });
    address
}

/// What nobody waits for longer than for a large file: the first byte. It is the server's, by the
/// packets as root, and by the times of the download without; `get` says so, too.
fn a_server_that_thinks_is_waited_for() {
    let thinks = std::time::Duration::from_millis(1500);
    let url = format!("http://{}/", thinking_server(thinks, channel().0));
    let claim = "the server took 1.5";
    let program = Program::new();
    let told = |program: &Program, words: &[&str]| {
        let mut command = program.command(words);
        command.env_remove("http_proxy").env_remove("all_proxy").env_remove("ALL_PROXY");
        program.start(&mut command).end()
    };
    let document = told(&program, &["why", "--for", "1s", "--json", &url]).json();
    let first = &document["packets"]["account"]["parts"][0];
    assert_eq!(first["cause"], "server_thinks", "{document}");
    let time = first["time_us"].as_u64().unwrap();
    assert!((1_400_000..1_700_000).contains(&time), "{first}");
    assert!(document["timing"]["starttransfer_us"].as_u64().unwrap() >= 1_500_000, "{document}");
    let text = told(&program, &["why", "--for", "1s", &url]);
    assert_eq!(text.code, Some(0), "{text:?}");
    assert!(text.out.lines().next().unwrap().contains(claim), "{text:?}");
    assert!(text.out.contains("who must act: the server: its program"), "{text:?}");
    let got = told(&program, &["get", &url, "--output", "file"]);
    assert!(got.out.contains(claim), "{got:?}");
    let user = Program::of(User::Ordinary);
    let text = told(&user, &["why", "--for", "1s", &url]);
    assert!(text.out.lines().next().unwrap().contains(claim), "{text:?}");
    assert!(text.err.contains("run as root"), "{text:?}");
}

/// Nobody waits for a server that hangs: what was seen until then is told, at once.
fn ctrl_c_before_the_first_byte_is_heard() {
    let (asked, is_asked) = channel();
    let address = thinking_server(std::time::Duration::from_secs(2), asked);
    let program = Program::new();
    let mut command = program.command(&["why", &format!("http://{address}/")]);
    command.env_remove("http_proxy").env_remove("all_proxy").env_remove("ALL_PROXY");
    let running = program.start(&mut command);
    is_asked.recv_timeout(std::time::Duration::from_secs(30)).unwrap();
    running.signal(Signal::SIGINT);
    let ended = running.end();
    assert_eq!(ended.code, Some(130), "{ended:?}");
    assert!(ended.out.contains("the server had the request and did not answer"), "{ended:?}");
    assert!(!ended.out.contains("by its packets"), "it did not wait for the answer: {ended:?}");
}

fn https_needs_no_other_program() {
    let program = Program::new();
    let folder = program.work();
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"])
        .args(["-days", "2", "-subj", "/CN=test", "-addext", "basicConstraints=critical,CA:FALSE"])
        .args(["-addext", &format!("subjectAltName=IP:{SERVER_ADDRESS}")])
        .args(["-keyout", "key.pem", "-out", "cert.pem"])
        .current_dir(&folder)
        .stderr(Stdio::null())
        .status();
    assert!(made.unwrap().success());
    let (world, _server) = site(&folder, &["tls"]);
    let url = format!("https://{SERVER_ADDRESS}:8080/big");
    let certificate = folder.join("cert.pem");
    let certificate = certificate.to_str().unwrap();
    is_link(&answered(&world, &program, &["--cacert", certificate, &url]));
    let distrusted = why(&world, &program, &[&url]);
    assert_eq!(distrusted.code, Some(1), "{distrusted:?}");
    assert!(distrusted.err.contains("certificate"), "{distrusted:?}");
}

/// The story's file.
const STORY_BYTES: usize = 22_000_000;

/// Sends [`STORY_BYTES`] to whoever connects first; with an argument it sets SO_SNDBUF to that.
const STORY_SERVER: &str = r#"
import socket, sys
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
if sys.argv[2:]: s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, int(sys.argv[2]))
s.bind(('', 5001)); s.listen(1); print('ready', flush=True)
s.accept()[0].sendall(b'x' * int(sys.argv[1]))
"#;

/// Receives all of it, and says how many bytes came in how many seconds.
const STORY_CLIENT: &str = r#"
import socket, sys, time
s = socket.create_connection((sys.argv[1], 5001))
start, got = time.monotonic(), 0
while data := s.recv(1 << 18): got += len(data)
print(got, time.monotonic() - start)
"#;

/// The download's time, and what `why` says meanwhile at the server if it is asked.
fn download(world: &World, program: &Program, server: &[&str], asks: bool) -> (f64, Option<Value>) {
    let mut command = Command::new("python3");
    command.args(["-c", STORY_SERVER, &STORY_BYTES.to_string()]).args(server);
    let _server = Process::start(&world.server, command);
    let mut command = Command::new("python3");
    command.args(["-c", STORY_CLIENT, &SERVER_ADDRESS.to_string()]).stdout(Stdio::piped());
    world.client.start_in(&mut command).unwrap();
    let mut client = command.spawn().unwrap();
    let document = asks.then(|| {
        until_carried(world, Duration::from_secs(20));
        let words = ["why", "--json", "--namespaces", "own", "--for", "2500ms"];
        let mut command = program.command(&words);
        world.server.start_in(&mut command).unwrap();
        program.start(&mut command).end().json()
    });
    let mut said = String::new();
    client.stdout.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(client.wait().unwrap().success());
    let (bytes, seconds) = said.trim().split_once(' ').unwrap();
    assert_eq!(bytes, STORY_BYTES.to_string());
    (seconds.parse().unwrap(), document)
}

/// An article's story: 22 MB over 100 Mbit/s and 20 ms took 25 s from a server that set SO_SNDBUF
/// to 16 KiB, and 2.8 s with its advice.
fn a_small_send_buffer_is_found_and_mended() {
    let program = Program::new();
    let world = World::new(["", "", "rate = \"100mbit\"\nrtt = \"20ms\"\nqueue = \"250kB\""]);
    // The article's server made no super-packets. With them one alone is larger than the buffer,
    // and the kernel lets it pass as a whole, so that 64 KiB are in flight.
    let mut command = Command::new("ip");
    command.args(["link", "set", "dev", "wan0", "gso_max_segs", "1"]);
    world.server.start_in(&mut command).unwrap();
    assert!(command.status().unwrap().success(), "{command:?}");
    let (slow, document) = download(&world, &program, &["16384"], true);
    let document = document.unwrap();
    let first = &document["connections"][0];
    let said = (first["limit"].as_str(), first["acts"].as_str());
    assert_eq!(said, (Some("send_buffer"), Some("here")), "{document:#}");
    let causes: Vec<&str> = first["causes"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|one| one["sub_cause"].as_str())
        .collect();
    assert_eq!(causes.first(), Some(&"send_buffer_frozen"), "{document:#}");
    let remedy = first["causes"][0]["remedy"].as_str().unwrap();
    assert!(remedy.contains("SO_SNDBUF"), "{remedy}");
    // The remedy: the application leaves the buffer to the kernel.
    let (fast, _) = download(&world, &program, &[], false);
    eprintln!("{slow:.2} s, then {fast:.2} s: {:.1} times faster", slow / fast);
    assert!(slow >= 8.0 * fast, "{slow} s, then {fast} s");
    // Laws: the kernel doubles what was asked for, no more than that can be in flight, and the link
    // carries its rate.
    let bits = STORY_BYTES as f64 * 8.0;
    assert!(bits / slow <= 2.0 * 16_384.0 * 8.0 / 0.020 * 1.05, "{slow}");
    assert!(bits / fast <= 100e6, "{fast}");
}
