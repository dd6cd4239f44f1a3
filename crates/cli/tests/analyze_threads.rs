//! The output for a capture is the same, byte for byte, with any number of threads: for interleaved
//! connections with loss, reordering and duplicates, among packets that must be opened in order
//! (VLAN, fragments) or are not TCP.

#[path = "../../flow/tests/path/mod.rs"]
mod path;

use fullpipe_flow::capture::write::{file_header, record_header};
use fullpipe_model::units::Instant;
use path::Path;
use std::io::Write;
use std::process::{Command, Stdio};

const SERVER: ([u8; 4], u16) = ([192, 0, 2, 1], 443);

/// A packet: when, its bytes from Ethernet's header on, and its length on the wire.
type Packet = (u64, Vec<u8>, usize);

fn ethernet(at: u64, tagged: bool, ip: &[u8], payload: usize) -> Packet {
    let before = if tagged { &[0, 1, 0x81, 0, 0, 7, 8, 0][..] } else { &[0, 1, 8, 0][..] };
    let bytes = [&[0; 10], before, ip].concat();
    (at, bytes.clone(), bytes.len() + payload)
}

/// A segment of eight bytes in two fragments, the last first; and a datagram, and a packet that the
/// capture cut.
fn oddities(at: u64, client: ([u8; 4], u16)) -> Vec<Packet> {
    let mut seen = path::Seen::plain(at, true, (path::ACK, 77, 1, 8));
    seen.ip_id = 7;
    let whole = [path::headers(&seen, client, SERVER), vec![0; 12]].concat();
    let (head, tail) = whole.split_at(20 + 24);
    let fragment = |offset: [u8; 2], data: &[u8]| {
        let total = (20 + data.len() as u16).to_be_bytes();
        [&whole[..2], &total, &whole[4..6], &offset, &whole[8..20], data].concat()
    };
    let datagram = [&whole[..9], &[17], &whole[10..]].concat();
    let pieces =
        [fragment([0, 3], tail), fragment([0x20, 0], &head[20..]), datagram, whole[..30].to_vec()];
    pieces.iter().map(|ip| ethernet(at, false, ip, 0)).collect()
}

fn capture(seed: u64) -> Vec<u8> {
    let milli = 1_000_000;
    let mut all = Vec::new();
    for index in 0..30_u64 {
        let path = Path {
            bytes: [3_000, 30_000, 250_000][index as usize % 3],
            rtt: [3, 30, 80][(index / 3) as usize % 3] * milli,
            loss: [0.0, 0.02][index as usize % 2],
            ack_loss: 0.002,
            reorder: 0.01,
            duplicate: 0.002,
            seed: seed * 1000 + index,
            start: 1_700_000_000_000_000_000 + index * 90 * milli,
            ..Path::default()
        };
        let client = ([10, 0, seed as u8, index as u8], 40_000 + index as u16);
        let tagged = index % 5 == 4;
        let seen = path::run(&path).at_sender;
        all.extend(seen.iter().map(|seen| {
            ethernet(seen.at, tagged, &path::headers(seen, client, SERVER), seen.length as usize)
        }));
        all.extend(oddities(path.start + 50 * milli, client));
    }
    all.sort_by_key(|(at, ..)| *at);
    let mut file = file_header(128);
    // The last word is the link type: Ethernet.
    let last = file.len() - 4;
    file[last..].copy_from_slice(&[1, 0, 0, 0]);
    let mut file = file.to_vec();
    for (at, bytes, wire) in &all {
        file.extend(record_header(Instant::from_nanos(*at), bytes.len() as u32, *wire as u32));
        file.extend(bytes);
    }
    file
}

/// What is printed for a capture on standard input.
fn told(capture: &[u8], arguments: &[&str]) -> String {
    let mut child = Command::new(env!("CARGO_BIN_EXE_fullpipe"))
        .args(["analyze", "-"])
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let ended = std::thread::scope(|scope| {
        scope.spawn(move || stdin.write_all(capture).unwrap());
        child.wait_with_output().unwrap()
    });
    assert!(ended.status.success());
    String::from_utf8(ended.stdout).unwrap()
}

#[test]
fn the_answer_is_the_same_with_one_two_and_four_threads() {
    for seed in 1..=4 {
        let capture = capture(seed);
        for arguments in
            [&["--json"][..], &["--csv"], &["--jsonl"], &["--json", "--filter", "port 40004"], &[]]
        {
            let one = told(&capture, arguments);
            assert!(one.lines().count() > 5, "{one}");
            for threads in ["2", "4"] {
                let several = told(&capture, &[arguments, &["--threads", threads]].concat());
                assert!(several == one, "seed {seed}, {arguments:?}, {threads} threads differ");
            }
        }
    }
}

#[test]
fn what_must_be_opened_in_order_is_counted() {
    let json: serde_json::Value =
        serde_json::from_str(&told(&capture(1), &["--json", "--threads", "2"])).unwrap();
    // Of each connection's two fragments the second makes a segment.
    assert_eq!(
        (&json["fragments"], &json["not_tcp"], &json["cut"]),
        (&30.into(), &30.into(), &30.into())
    );
    assert_eq!(json["connections"].as_array().unwrap().len(), 30);
}
