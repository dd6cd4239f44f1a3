//! Memory grows with the open connections, not with all connections. This test is alone in its
//! process, because the kernel reports the peak memory of all children of a process together.
#![allow(clippy::print_stdout, reason = "the memory measured is shown")]

#[path = "../../flow/tests/path/mod.rs"]
mod path;
#[path = "../../flow/tests/short/mod.rs"]
mod short;

use fullpipe_flow::capture::write::{file_header, record_header};
use fullpipe_model::units::Instant;
use nix::sys::resource::{UsageWho, getrusage};
use short::short;
use std::io::{BufWriter, Write};
use std::process::{ChildStdin, Command, Stdio};

/// Connections in all, and how many begin in a second of the capture.
const CONNECTIONS: u32 = 100_000;
const A_SECOND: u32 = 100;
/// How long late packets of a closed connection still belong to it: 2 MSL.
const LINGER: u32 = 240;
/// The most memory of an open connection, and of a process without any: the program itself and
/// queued rounds.
const EACH: u64 = 2048 + 64;
const WITHOUT: u64 = 48 << 20;

fn write(stdin: ChildStdin) -> std::io::Result<()> {
    let mut out = BufWriter::new(stdin);
    out.write_all(&file_header(128))?;
    for index in 0..CONNECTIONS {
        let begins = u64::from(index) * 1_000_000_000 / u64::from(A_SECOND);
        for packet in short(index, 1_700_000_000_000_000_000 + begins, 100_000) {
            out.write_all(&record_header(
                Instant::from_nanos(packet.at),
                packet.bytes.len() as u32,
                packet.wire as u32,
            ))?;
            out.write_all(&packet.bytes)?;
        }
    }
    out.flush()
}

#[test]
fn connections_stream_through_the_memory_of_those_that_are_open() {
    for threads in ["1", "2"] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_fullpipe"))
            .args(["analyze", "-", "--csv", "--threads", threads])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take().unwrap();
        let ended = std::thread::scope(|scope| {
            scope.spawn(move || write(stdin).unwrap());
            child.wait_with_output().unwrap()
        });
        assert!(ended.status.success());
        let lines = ended.stdout.iter().filter(|byte| **byte == b'\n').count();
        assert_eq!(
            lines,
            2 * CONNECTIONS as usize + 1,
            "two rows a connection, behind the columns' names"
        );
        let most = getrusage(UsageWho::RUSAGE_CHILDREN).unwrap().max_rss() as u64 * 1024;
        println!("{threads} threads: {most} bytes for {CONNECTIONS} connections");
        let law = WITHOUT + EACH * u64::from(A_SECOND * LINGER);
        assert!(law < EACH * u64::from(CONNECTIONS), "the test could not fail");
        assert!(most <= law, "{most} bytes, by the law {law}");
    }
}
