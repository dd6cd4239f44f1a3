//! `fullpipe get` from outside: its words, its exit codes, and a kill in the middle.

use std::fs;
use std::path::Path;
use std::thread::JoinHandle;

use fullpipe_model::units::{Bytes, Duration};
use fullpipe_transfer::{Server, ServerOptions, Stop, content};
use nix::sys::signal::Signal;

use crate::Case;
use crate::program::{Program, until};
use crate::relay::{PATIENCE, refusing};

pub const CASES: &[Case] = &[
    ("a_killed_download_continues", &[], a_killed_download_continues),
    ("a_file_arrives_and_is_told_in_words_and_json", &[], words_and_json),
    ("every_bad_end_has_its_exit_code", &[], exit_codes),
    ("a_server_that_starts_late_is_waited_for", &[], a_server_that_starts_late),
    ("auto_shares_a_file_that_one_connection_is_slow_for", &[], auto_shares_a_file),
];

/// Our server of a folder, which ends when it is dropped.
pub struct Serving {
    base: String,
    stop: Stop,
    thread: Option<JoinHandle<()>>,
}

impl Serving {
    pub fn start(options: ServerOptions) -> Serving {
        let server = Server::bind(options).unwrap();
        let (base, stop) = (format!("http://{}", server.local_addr()), Stop::new());
        let stops = stop.clone();
        let thread = std::thread::spawn(move || {
            server.run(&stops).unwrap();
        });
        Serving { base, stop, thread: Some(thread) }
    }

    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.stop.stop();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A file of generated content in a folder of its own.
fn site(size: u64) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), generated(size)).unwrap();
    folder
}

fn generated(size: u64) -> Vec<u8> {
    let mut all = Vec::new();
    while (all.len() as u64) < size {
        let done = all.len() as u64;
        all.extend_from_slice(&content::at(Bytes::new(done), Bytes::new(size - done)));
    }
    all
}

fn serving_at(folder: &Path, rate: Option<&str>) -> Serving {
    let write_rate = rate.map(|rate| rate.parse().unwrap());
    Serving::start(ServerOptions {
        directory: Some(folder.into()),
        write_rate,
        ..Default::default()
    })
}

/// Killed with SIGKILL after its first record, and with SIGINT after that: the third run has every
/// byte right and fetches less than all.
fn a_killed_download_continues() {
    const SIZE: u64 = 60_000_000;
    let (folder, program) = (site(SIZE), Program::new());
    let server = serving_at(folder.path(), Some("100mbit")); // 4.8 s
    let url = server.url("/file");
    let record = program.work().join("file.part.json");
    let mut running = program.start(&mut program.command(&["get", "-s", &url]));
    until("there is a record", Duration::from_secs(60), || record.exists());
    running.kill_9();
    assert_eq!(running.end().code, None);
    let first = fs::read(&record).unwrap();

    let running = program.start(&mut program.command(&["get", "-s", &url]));
    let part = program.work().join("file.part");
    let before = fs::read(&part).unwrap().len();
    let grows = || fs::metadata(&part).is_ok_and(|now| now.len() as usize > before);
    until("more arrives", Duration::from_secs(60), grows);
    running.signal(Signal::SIGINT);
    let interrupted = running.end();
    assert_eq!(interrupted.code, Some(130), "{interrupted:?}");
    assert!(fs::read(&record).unwrap() != first, "the record is of the second run");
    assert!(!program.work().join("file").exists());

    let finished = program.run(&["get", "--json", &url]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let got = &finished.json()["files"][0];
    let fetched = got["fetched_bytes"].as_u64().unwrap();
    assert!(fetched > 0 && fetched < SIZE, "{got}");
    assert_eq!(got["status"], 206);
    assert!(fs::read(program.work().join("file")).unwrap() == generated(SIZE), "wrong bytes");
    let left: Vec<_> = fs::read_dir(program.work()).unwrap().collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

fn words_and_json() {
    let (program, server) = (Program::new(), Serving::start(ServerOptions::default()));
    let url = server.url("/bytes/1MB");
    let told = program.run(&["get", &url]);
    assert_eq!((told.code, told.err.as_str()), (Some(0), ""), "{told:?}");
    for part in ["1MB: 1 MB in ", "HTTP/1.1 from 127.0.0.1", "first byte"] {
        assert!(told.out.contains(part), "{part}: {told:?}");
    }
    assert!(fs::read(program.work().join("1MB")).unwrap() == generated(1_000_000));

    let format = "%{http_code} %{size_download} %{filename_effective}\\n";
    let written = program.run(&["get", "-s", "-w", format, &server.url("/bytes/7")]);
    assert_eq!((written.code, written.out.as_str()), (Some(0), "200 7 7\n"), "{written:?}");

    let piped = program.run(&["get", "-s", "-o", "-", &server.url("/bytes/10")]);
    assert_eq!(piped.code, Some(0), "{piped:?}");
    assert!(piped.out.as_bytes() == String::from_utf8_lossy(&generated(10)).as_bytes());

    let finished = program.run(&["get", "--json", "-P", "..", &url, &server.url("/bytes/5")]);
    let document = finished.json();
    assert_eq!(document["files"][1]["file"], "../5", "{document}");
    assert_eq!(document["files"][0]["file_bytes"], 1_000_000);
    assert!(document["files"][0]["timing"]["starttransfer_us"].as_u64().unwrap() > 0);
}

fn exit_codes() {
    let (program, server) = (Program::new(), Serving::start(ServerOptions::default()));
    let url = server.url("/bytes/10");
    let (zeros, nothing) = ("0".repeat(64), server.url("/nothing"));
    for (arguments, code, says) in [
        (&["ftp://a/b"][..], 2, "neither http nor https"),
        (&["--limit-rate", "fast", &url], 2, "no rate"),
        (&["-o", "x", &url, &url], 2, "one -o for several URLs"),
        (&["-w", "%{speed}", &url], 2, "is unknown here"),
        (&["--sha256", "abc", &url], 2, "64 hexadecimal digits"),
        (&["--sha256", &zeros, &url], 4, "SHA-256 is"),
        (&["--retry", "0", &nothing], 1, "404 Not Found"),
        (&["-o", "missing/x", &url], 1, "make its directory first"),
        (&["--retry", "0", &nothing, &url], 1, "not all URLs arrived"),
    ] {
        let finished = program.run(&[&["get"], arguments].concat());
        assert_eq!(finished.code, Some(code), "{finished:?}");
        assert!(finished.err.contains(says), "{says}: {finished:?}");
    }
    assert!(program.work().join("10").exists(), "the second URL arrived");
}

/// The server writes slowly to each connection: two bring twice as much as one. The bound is that
/// of the law, with room for a busy machine: what one connection would need.
fn auto_shares_a_file() {
    const SIZE: u64 = 40_000_000;
    let (folder, program) = (site(SIZE), Program::new());
    let server = serving_at(folder.path(), Some("40mbit")); // 8 s by one
    let arguments = ["get", "--json", "--connections", "auto", &server.url("/file")];
    let finished = program.run(&arguments);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(fs::read(program.work().join("file")).unwrap() == generated(SIZE), "wrong bytes");
    let document = finished.json();
    let steps = document["files"][0]["steps"].as_array().unwrap();
    // A server that writes slowly is either seen as the limit, or measured to bring more.
    let reasons: Vec<_> = steps.iter().map(|step| step["reason"].as_str().unwrap()).collect();
    match reasons.first() {
        Some(&"diagnosis") => assert_eq!(reasons.len(), 1, "{document}"),
        _ => assert!(reasons.contains(&"pays"), "{document}"),
    }
}

fn a_server_that_starts_late() {
    let (program, (socket, address)) = (Program::new(), refusing());
    let url = format!("http://{address}/file");
    let told = program.run(&["get", "-s", &url]);
    assert!(told.code == Some(1) && told.err.contains("Connection refused"), "{told:?}");
    let words = ["get", "--retry", "99", "--retry-connrefused", "-o", "-", &url];
    let waiting = program.start(&mut program.command(&words));
    until("a refused connection is tried again", PATIENCE, || {
        waiting.err().contains("trying again")
    });
    let listener = std::net::TcpListener::from(socket);
    nix::sys::socket::listen(&listener, nix::sys::socket::Backlog::new(8).unwrap()).unwrap();
    let (mut user, _) = listener.accept().unwrap();
    // An answer before its question is no HTTP.
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        std::io::Read::read_exact(&mut user, &mut byte).unwrap();
        request.push(byte[0]);
    }
    let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nlate";
    std::io::Write::write_all(&mut user, answer).unwrap();
    let got = waiting.end();
    assert!(got.code == Some(0) && got.out == "late", "{got:?}");
}
