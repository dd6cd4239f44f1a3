//! `fullpipe link -- CMD`: data that the command has sent arrives, even after the command has
//! ended.

use std::io::Read;
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};

use fullpipe_model::units::Duration;

use crate::Case;
use crate::need::Need;
use crate::program::Program;

const NFT: Need = Need::Program("nft");
const BASH: Need = Need::Program("bash");

pub const CASES: &[Case] = &[
    ("the_end_of_an_upload_arrives", &[BASH, NFT], the_end_of_an_upload_arrives),
    ("a_long_upload_arrives_byte_for_byte", &[BASH, NFT], a_long_upload_arrives_byte_for_byte),
    (
        "a_server_has_time_for_what_it_was_sent",
        &[BASH, Need::Program("python3")],
        a_server_has_time,
    ),
    ("what_did_not_arrive_is_told", &[BASH, NFT], what_did_not_arrive_is_told),
    (
        "processes_left_behind_do_not_hold_the_link",
        &[BASH, NFT],
        processes_left_behind_do_not_hold_the_link,
    ),
];

/// A service on this machine's loopback that reads each connection to its end; gives what it has
/// read, or the error.
fn sink() -> (u16, Receiver<std::io::Result<Vec<u8>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (tell, told) = channel();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut bytes = Vec::new();
            let read = stream.read_to_end(&mut bytes);
            if tell.send(read.map(|_| bytes)).is_err() {
                return;
            }
        }
    });
    (port, told)
}

const SOON: std::time::Duration = std::time::Duration::from_secs(20);

fn the_end_of_an_upload_arrives() {
    let (port, told) = sink();
    let program = Program::new();
    let line = format!("head -c 20000 /dev/zero > /dev/tcp/$FULLPIPE_SERVER/{port}");
    for rtt in ["1ms", "20ms", "100ms"] {
        for number in 0..5 {
            let finished = program
                .run(&["link", "-q", "--rtt", rtt, "--rate", "50mbit", "--", "bash", "-c", &line]);
            assert_eq!(
                (finished.code, finished.err.as_str()),
                (Some(0), ""),
                "{rtt}, number {number}: {finished:?}"
            );
            let bytes = told.recv_timeout(SOON).unwrap().unwrap();
            assert_eq!(bytes.len(), 20_000, "{rtt}, number {number}");
        }
    }
}

fn a_long_upload_arrives_byte_for_byte() {
    let (port, told) = sink();
    let program = Program::new();
    let sent: Vec<u8> = (0..5_000_000u32).flat_map(u32::to_be_bytes).collect();
    let file = program.file("sent", &sent);
    let line = format!("cat {file} > /dev/tcp/$FULLPIPE_SERVER/{port}");
    let path = ["--rtt", "50ms", "--rate", "200mbit", "--up-loss", "0.1%"];
    let finished =
        program.run(&[&["link", "-q"], &path[..], &["--", "bash", "-c", &line]].concat());
    assert_eq!((finished.code, finished.err.as_str()), (Some(0), ""), "{finished:?}");
    let bytes = told.recv_timeout(SOON).unwrap().unwrap();
    assert_eq!(bytes.len(), sent.len());
    assert!(bytes == sent, "20 MB arrived, but not the same");
}

/// A server that takes its time after it has closed its sockets, like programs that then write what
/// they received.
fn a_server_has_time() {
    let program = Program::new();
    let server = "exec python3 -c '
import socket, time
listener = socket.create_server((\"0.0.0.0\", 8000))
connection, _ = listener.accept()
listener.close()
count = 0
while data := connection.recv(65536): count += len(data)
connection.close()
time.sleep(0.3)
open(\"count\", \"w\").write(str(count))
'";
    let line = "head -c 200000 /dev/zero > /dev/tcp/$FULLPIPE_SERVER/8000";
    let words =
        ["--rtt", "100ms", "--rate", "10mbit", "--server", server, "--", "bash", "-c", line];
    let finished = program.run(&[&["link", "-q"], &words[..]].concat());
    assert_eq!((finished.code, finished.err.as_str()), (Some(0), ""), "{finished:?}");
    assert_eq!(std::fs::read_to_string(program.work().join("count")).unwrap(), "200000");
}

fn what_did_not_arrive_is_told() {
    let (port, _told) = sink();
    let program = Program::new();
    let run = |end: &str| {
        let line = format!("head -c 40000 /dev/zero > /dev/tcp/$FULLPIPE_SERVER/{port}; {end}");
        // A packet takes 120 ms: for 50 ms nothing arrives.
        let path = ["--rate", "100kbit", "--linger", "50ms"];
        program.run(&[&["link"], &path[..], &["--", "bash", "-c", &line]].concat())
    };
    let finished = run("exit 0");
    assert_eq!(finished.code, Some(1), "{finished:?}");
    assert!(
        finished.err.contains("1 connections ended before their data had arrived"),
        "{finished:?}"
    );
    // The command's own code says more.
    assert_eq!(run("exit 7").code, Some(7));
}

fn processes_left_behind_do_not_hold_the_link() {
    let (port, _told) = sink();
    let program = Program::new();
    let line =
        format!("(exec 3<>/dev/tcp/$FULLPIPE_SERVER/{port}; echo open; exec sleep 60) | head -n 1");
    let line = format!("exec 4< <({line}; sleep 60); read -u 4 word; echo $word");
    let finished =
        program.run(&["link", "--linger", "300ms", "--rtt", "10ms", "--", "bash", "-c", &line]);
    assert_eq!((finished.code, finished.out.as_str()), (Some(0), "open\n"), "{finished:?}");
    assert!(
        finished.err.contains("1 connections of processes that the command left behind"),
        "{finished:?}"
    );
    assert!(finished.took < Duration::from_secs(30), "{finished:?}");
}
