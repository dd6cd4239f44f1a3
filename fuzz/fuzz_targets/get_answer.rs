//! What a downloader reads that others wrote: answers of servers and of proxies, and the record of
//! an earlier run. The bytes are sent to `get` over loopback; the first of them choose the way.
#![no_main]

use fullpipe_model::units::Duration;
use fullpipe_transfer::{Connections, Diagnosis, GetOptions, GetRequest, Stop, Target, get};
use libfuzzer_sys::fuzz_target;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener};
use std::path::Path;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU8, Ordering};

static FOLDER: LazyLock<tempfile::TempDir> = LazyLock::new(|| tempfile::tempdir().unwrap());

/// A run listens at the next of 256 loopback addresses: each has ports of its own, so the thousands
/// of closed connections that wait a minute at one address (TIME-WAIT) leave no run without a port.
fn next_address() -> Ipv4Addr {
    static RUNS: AtomicU8 = AtomicU8::new(0);
    Ipv4Addr::new(127, 0, 1, RUNS.fetch_add(1, Ordering::Relaxed))
}

/// How the download goes: by which proxy, by which protocol, and how much of the bytes is the
/// record and the file of an earlier run.
struct Way {
    flags: u8,
    record: usize,
    part: usize,
}

fuzz_target!(|bytes: &[u8]| {
    let [flags, record, part, rest @ ..] = bytes else { return };
    let way = Way { flags: *flags, record: usize::from(*record), part: usize::from(*part) };
    let (record, rest) = rest.split_at(way.record.min(rest.len()));
    let (part, answer) = rest.split_at(way.part.min(rest.len()));
    let target = FOLDER.path().join("file");
    begin(&target, record, part);
    let listener = TcpListener::bind((next_address(), 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let server = {
        let answer = answer.to_vec();
        std::thread::spawn(move || {
            while let Ok((mut client, _)) = listener.accept() {
                // The request is of no interest, but a close before it is read would be a reset.
                let _ = client.set_read_timeout(Some(std::time::Duration::from_millis(20)));
                let mut request = [0; 4096];
                let count = client.read(&mut request).unwrap_or(0);
                if request[..count].starts_with(b"END") {
                    return;
                }
                let _ = client.write_all(&answer);
                let _ = client.shutdown(Shutdown::Write);
                while client.read(&mut request).is_ok_and(|count| count > 0) {}
            }
        })
    };
    fetch(&way, &address.to_string(), &target);
    // Ends the server.
    if let Ok(mut last) = std::net::TcpStream::connect(address) {
        let _ = last.write_all(b"END");
        let _ = last.shutdown(Shutdown::Write);
        server.join().unwrap();
    }
});

fn begin(target: &Path, record: &[u8], part: &[u8]) {
    let _ = std::fs::remove_file(target);
    let beside = |suffix: &str| target.with_file_name(format!("file{suffix}"));
    std::fs::write(beside(".part"), part).unwrap();
    std::fs::write(beside(".part.json"), record).unwrap();
}

fn fetch(way: &Way, address: &str, target: &Path) {
    let proxy = match way.flags & 3 {
        1 => Some(address.to_string()),
        2 => Some(format!("socks5h://{address}")),
        3 => Some(format!("socks5h://user:password@{address}")),
        _ => None,
    };
    let scheme = if way.flags & 4 != 0 && proxy.is_some() { "https" } else { "http" };
    let url = match proxy {
        Some(_) => format!("{scheme}://server.invalid/file"),
        None => format!("http://{address}/file"),
    };
    let silence = Duration::from_millis(50);
    let options = GetOptions {
        redirects: 2,
        retries: 0,
        connect_timeout: silence,
        read_timeout: silence,
        max_time: Some(silence.saturating_mul(4)),
        connections: Connections::Fixed(if way.flags & 8 != 0 { 2 } else { 1 }),
        http2_prior_knowledge: way.flags & 16 != 0,
        http_proxy: proxy.clone(),
        https_proxy: proxy,
        insecure: true,
        ..GetOptions::default()
    };
    let request = GetRequest { url, target: Target::File(target.into()), options };
    match get(&request, &Diagnosis::default(), &Stop::new(), &mut |_| {}) {
        // What has the final name is as long as it was said to be.
        Ok(got) => assert_eq!(std::fs::metadata(target).unwrap().len(), got.file.get()),
        Err(error) => {
            assert!(!error.to_string().is_empty());
            assert!(!target.exists(), "a failed download has no final name: {error}");
        }
    }
}
