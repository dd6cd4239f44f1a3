//! How real programs begin to speak: captured by `bench/greetings.py`, read here, and by TShark.

#[path = "../skip/mod.rs"]
mod skip;

use fullpipe_flow::capture::segment::ApplicationProtocol;
use fullpipe_flow::capture::{self, Unpack};
use fullpipe_flow::connection::{Connection, Greeting, Token};
use fullpipe_flow::{Analysis, Analyzer, Config, Intake, Sorted};
use fullpipe_model::units::Bytes;
use skip::skip;
use std::path::{Path, PathBuf};
use std::process::Command;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/greetings/captures")
}

fn path(name: &str) -> PathBuf {
    folder().join(format!("{name}.pcap.gz"))
}

fn analysis(name: &str) -> Analysis {
    let mut analyzer = Analyzer::new(Config::default());
    let file = Unpack::new(std::fs::File::open(path(name)).unwrap()).unwrap();
    capture::read(file, |packet| {
        analyzer.push_packet(&packet);
    })
    .unwrap();
    analyzer.finish()
}

/// The connection of a capture that carried most.
fn connection(name: &str) -> Connection {
    let all = analysis(name).connections.into_iter().map(|one| one.connection);
    all.max_by_key(|one| one.client_to_server.payload + one.server_to_client.payload).unwrap()
}

fn greeting(name: &str) -> Greeting {
    *connection(name).greeting.unwrap()
}

fn words(token: Option<Token>) -> String {
    token.map_or(String::new(), |token| token.to_string())
}

/// The version that a program printed when the captures were made.
fn printed(program: &str) -> String {
    let text = std::fs::read_to_string(folder().join("programs.json")).unwrap();
    let all: serde_json::Value = serde_json::from_str(&text).unwrap();
    all[program].as_str().unwrap().to_owned()
}

#[test]
fn ssh_names_both_programs() {
    let said = greeting("openssh");
    let program = printed("openssh");
    assert_eq!(words(said.client_program), program);
    assert_eq!(words(said.server_program), program);
    assert_eq!(words(said.protocol_version), "2.0");
}

#[test]
fn http_names_both_programs_and_the_host() {
    let said = greeting("curl-http1");
    assert_eq!(words(said.client_program), printed("curl"));
    assert_eq!(words(said.server_program), printed("nginx"));
    assert_eq!(said.server_name.as_deref(), Some("127.0.0.1:8080"));
    assert_eq!((words(said.method), words(said.protocol_version)), ("GET".into(), "1.1".into()));
}

#[test]
fn http2_in_clear_text_shows_settings_and_grpc() {
    let plain = connection("curl-http2");
    assert_eq!(plain.protocol, Some(ApplicationProtocol::Http2));
    let grpc = connection("node-grpc");
    assert_eq!(grpc.protocol, Some(ApplicationProtocol::Grpc));
    // What the client of `bench/greetings.py` asks for, and nginx's `http2_body_preread_size`.
    let windows = grpc.greeting.unwrap().stream_windows;
    assert_eq!(windows, [Some(Bytes::new(1 << 20)), Some(Bytes::new(1 << 16))]);
}

#[test]
fn databases_and_daemons_name_their_versions() {
    let plain = connection("postgresql");
    assert_eq!(plain.protocol, Some(ApplicationProtocol::Postgresql));
    let said = plain.greeting.unwrap();
    assert_eq!(words(said.client_program), "psql");
    assert_eq!(words(said.server_program), printed("postgresql"));
    assert_eq!(words(said.protocol_version), "3.0");
    let encrypted = connection("postgresql-tls");
    assert_eq!(encrypted.protocol, Some(ApplicationProtocol::Postgresql));
    let said = encrypted.greeting.unwrap();
    assert_eq!(said.server_name.as_deref(), Some("db.example.test"));
    assert_eq!(words(said.tls_version), "1.3");
    assert_eq!(words(greeting("rsync").protocol_version), printed("rsync"));
}

/// A packet's bytes are read by the thread that reads the capture, or handed to another: the result
/// is the same.
#[test]
fn what_is_handed_over_says_the_same() {
    for name in names() {
        let config = Config::default();
        let (mut intake, mut analyzer) = (Intake::new(&config), Analyzer::new(config));
        let file = Unpack::new(std::fs::File::open(path(&name)).unwrap()).unwrap();
        capture::read(file, |packet| match intake.sort(&packet) {
            Some(Sorted::Headers(headers, bytes, _)) => {
                let (arrival, words) = headers.read(bytes).unwrap();
                analyzer.track(&arrival, words);
            }
            Some(Sorted::Segment(arrival, words)) => _ = analyzer.track(&arrival, words),
            None => {}
        })
        .unwrap();
        let handed = analyzer.finish().connections.into_iter();
        let handed: Vec<_> = handed.map(|one| one.connection.greeting).collect();
        let read = analysis(&name).connections.into_iter();
        let read: Vec<_> = read.map(|one| one.connection.greeting).collect();
        assert!(read.iter().any(Option::is_some), "{name}: somebody says something");
        assert_eq!(handed, read, "{name}");
    }
}

fn names() -> Vec<String> {
    let files = std::fs::read_dir(folder()).unwrap().flatten();
    let names = files.map(|file| file.file_name().into_string().unwrap());
    let mut names: Vec<String> =
        names.filter_map(|name| name.strip_suffix(".pcap.gz").map(str::to_owned)).collect();
    names.sort();
    assert!(names.len() >= 10, "{names:?}");
    names
}

/// What TShark reads: of each field the first value that it gives anywhere in the capture.
fn tshark(name: &str, fields: &[&str]) -> Option<Vec<String>> {
    let decode = ["2222,ssh", "8443,tls", "8080,http", "8081,http2", "5433,pgsql"];
    let decode = decode.iter().flat_map(|one| ["-d".to_owned(), format!("tcp.port=={one}")]);
    let output = Command::new("tshark")
        .args(["-n", "-T", "fields", "-E", "separator=|", "-E", "aggregator=,"])
        .args(decode)
        .args(fields.iter().flat_map(|field| ["-e", field]))
        .arg("-r")
        .arg(path(name))
        .output()
        .ok()?;
    let table = String::from_utf8(output.stdout).unwrap();
    let mut found = vec![String::new(); fields.len()];
    for row in table.lines() {
        for (to, cell) in found.iter_mut().zip(row.split('|')) {
            if to.is_empty() {
                *to = cell.to_owned();
            }
        }
    }
    Some(found)
}

#[test]
fn tshark_reads_the_same() {
    let fields = [
        "tls.handshake.extensions_server_name",
        "tls.handshake.extensions_alpn_str",
        "ssh.protocol",
        "http.host",
        "http.user_agent",
        "http.server",
        "http.request.method",
    ];
    let mut compared = 0;
    for name in names() {
        let Some(theirs) = tshark(&name, &fields) else {
            return skip("tshark_reads_the_same", "tshark is not installed");
        };
        let said = greeting(&name);
        let [server_name, offered, ssh, host, agent, server, method] = &theirs[..] else {
            panic!()
        };
        let asked = if server_name.is_empty() { host } else { server_name };
        assert_eq!(said.server_name.as_deref().unwrap_or_default(), asked, "{name}");
        assert_eq!(&words(said.alpn_offered), offered, "{name}");
        assert_eq!(&words(said.method), method, "{name}");
        if !ssh.is_empty() {
            let version = words(said.client_program);
            assert!(ssh.starts_with(&format!("SSH-2.0-{version}")), "{name}: {ssh}");
        }
        if !agent.is_empty() {
            assert_eq!(&words(said.client_program), agent, "{name}");
            assert_eq!(&words(said.server_program), server, "{name}");
        }
        compared += theirs.iter().filter(|cell| !cell.is_empty()).count();
        let version = tshark_tls_version(&name);
        assert_eq!(words(said.tls_version), version, "{name}");
        compared += usize::from(!version.is_empty());
    }
    assert!(compared >= 19, "{compared} values compared");
}

/// The version that TShark reads in the server's answer.
fn tshark_tls_version(name: &str) -> String {
    let output = Command::new("tshark")
        .args(["-n", "-d", "tcp.port==8443,tls", "-d", "tcp.port==5433,pgsql"])
        .args(["-Y", "tls.handshake.type == 2", "-T", "fields", "-E", "separator=|"])
        .args(["-e", "tls.handshake.extensions.supported_version", "-e", "tls.handshake.version"])
        .arg("-r")
        .arg(path(name))
        .output()
        .unwrap();
    let table = String::from_utf8(output.stdout).unwrap();
    let Some((new, old)) = table.lines().next().and_then(|row| row.split_once('|')) else {
        return String::new();
    };
    match if new.is_empty() { old } else { new } {
        "0x0304" => "1.3".into(),
        "0x0303" => "1.2".into(),
        other => panic!("{name}: {other}"),
    }
}

/// The server chose it in clear text, as TLS 1.2 does.
#[test]
fn the_choice_of_tls_1_2_is_read() {
    assert_eq!(words(greeting("curl-tls12-h2").alpn_chosen), "h2");
    assert_eq!(words(greeting("curl-tls12-http1").alpn_chosen), "http/1.1");
    let hidden = greeting("curl-tls13-h2");
    assert_eq!(
        (words(hidden.alpn_chosen), words(hidden.tls_version)),
        (String::new(), "1.3".into())
    );
    assert!(hidden.may_have_http2() && !greeting("curl-tls12-http1").may_have_http2());
}
