//! `tcpdump -w - | fullpipe analyze -`, ended with Ctrl-C: what was read is reported.

use fullpipe_flow::capture::write;
use fullpipe_model::units::Instant;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};

/// More than a pipe holds: once it is written, the program is reading, and Ctrl-C asks it for a
/// report.
const PACKETS: u32 = 4_000;

/// SYNs of 40 bytes of raw IPv4, each of a separate connection.
fn capture() -> Vec<u8> {
    let mut file = write::file_header(65_535).to_vec();
    for number in 0..PACKETS {
        let [_, _, high, low] = number.to_be_bytes();
        let ip = [0x45, 0, 0, 40, 0, 0, 0x40, 0, 64, 6, 0, 0, 192, 0, high, low, 198, 51, 100, 2];
        let tcp = [0x9c, 0x40, 0, 80, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, 2, 0xff, 0xff, 0, 0, 0, 0];
        file.extend(write::record_header(Instant::from_nanos(u64::from(number) * 1_000), 40, 40));
        file.extend([&ip[..], &tcp].concat());
    }
    file
}

struct Running {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: ChildStdout,
    stderr: BufReader<ChildStderr>,
}

impl Running {
    /// The program with all of a capture written into its pipe, which stays open.
    fn fed(arguments: &[&str], bytes: &[u8]) -> Self {
        // Whoever runs the tests in the background of a script has them ignore Ctrl-C.
        let mut child = Command::new("/usr/bin/env")
            .args(["--default-signal=INT", env!("CARGO_BIN_EXE_fullpipe"), "analyze", "-"])
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(bytes).unwrap();
        let (stdout, stderr) =
            (child.stdout.take().unwrap(), BufReader::new(child.stderr.take().unwrap()));
        Running { child, stdin: Some(stdin), stdout, stderr }
    }

    fn ctrl_c(&self) {
        kill(Pid::from_raw(self.child.id() as i32), Signal::SIGINT).unwrap();
    }

    /// Waits for the first line on standard error.
    fn first_remark(&mut self) -> String {
        let mut line = String::new();
        self.stderr.read_line(&mut line).unwrap();
        line
    }

    /// Its exit code and what it printed.
    fn ended(mut self) -> (Option<i32>, String) {
        let mut out = String::new();
        self.stdout.read_to_string(&mut out).unwrap();
        (self.child.wait().unwrap().code(), out)
    }
}

#[test]
fn one_ctrl_c_reports_what_was_read_also_where_the_other_end_stays() {
    for (closes, threads, behind) in
        [(true, "1", 0), (true, "2", 0), (false, "1", 0), (false, "2", 9)]
    {
        // With bytes of a packet that never becomes whole: that is no fault of an interrupted
        // capture.
        let bytes = [&capture()[..], &vec![0; behind]].concat();
        let mut running = Running::fed(&["--csv", "--threads", threads], &bytes);
        running.ctrl_c();
        // Before the pipe closes: whether a program that sees both at once says so is not told.
        let remark = running.first_remark();
        assert!(remark.contains("interrupted"), "{remark}");
        if closes {
            running.stdin = None;
        }
        let (code, out) = running.ended();
        assert_eq!(code, Some(0), "closes {closes}, {threads} threads");
        let rows = out.lines().skip(1).count() as u32;
        assert!(rows >= PACKETS, "closes {closes}, {threads} threads: {rows} rows");
    }
}

#[test]
fn the_second_ctrl_c_ends_the_program() {
    let mut running = Running::fed(&[], &capture());
    running.ctrl_c();
    running.first_remark();
    running.ctrl_c();
    let (code, out) = running.ended();
    // Between the two the second does what Ctrl-C does everywhere: a shell says 130 too.
    assert!(matches!(code, Some(130) | None), "{code:?}");
    assert_eq!(out, "");
}

#[test]
fn a_pipe_that_nothing_came_through_is_told_as_interrupted() {
    let mut running = Running::fed(&[], &capture()[..0]);
    // Nothing says when it reads: so it is asked until it has seen it, once more after that would
    // end it.
    let status = format!("/proc/{}/status", running.child.id());
    let catches = || {
        let status = std::fs::read_to_string(&status).unwrap();
        let caught =
            status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap().trim().to_owned();
        u64::from_str_radix(&caught, 16).unwrap() & 1 << (Signal::SIGINT as u64 - 1) != 0
    };
    while !catches() {
        std::thread::yield_now();
    }
    running.ctrl_c();
    running.first_remark();
    running.stdin = None;
    assert!(running.first_remark().contains("before any packet arrived"));
    assert_eq!(running.ended().0, Some(130));
}
