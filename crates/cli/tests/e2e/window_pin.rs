//! A constant congestion window on real connections: between two namespaces, over an emulated path.

use crate::Case;
use crate::need::Need;
use crate::program::{Finished, Program, User, until};
use fullpipe_model::units::Duration;
use serde_json::Value;
use std::path::Path;

const NEEDS: &[Need] = &[Need::WindowAgent, Need::Program("iperf3")];

pub const CASES: &[Case] = &[
    ("loss_does_not_change_a_constant_window", NEEDS, loss_does_not_change_a_constant_window),
    ("it_ends_with_its_process", &[Need::WindowAgent], it_ends_with_its_process),
    ("what_cannot_be_pinned_is_refused", &[Need::WindowAgent], what_cannot_be_pinned_is_refused),
    ("pinning_needs_a_privilege", &[Need::OrdinaryUser], pinning_needs_a_privilege),
];

const SEGMENTS: f64 = 100.0;
/// Ethernet's, with timestamps.
const MSS: f64 = 1448.0;
const RTT: f64 = 0.04;

/// What iperf3 says of two seconds behind a path with this loss. `client`: iperf3's and what stands
/// before it, to which more options are added.
fn sends(program: &Program, loss: &str, client: &str) -> (Value, Finished) {
    let client = format!("{client} -c {{server}} -J -t 2 -i 0.1");
    let path = ["--rtt", "40ms", "--rate", "200mbit", "--loss", loss, "--seed", "1"];
    let server = ["--quiet", "--server", "iperf3 -s", "--", "sh", "-c", &client];
    let finished = program.run(&[&["link"], &path[..], &server[..]].concat());
    assert_eq!(finished.code, Some(0), "{finished:?}");
    (serde_json::from_str(&finished.out).unwrap(), finished)
}

fn rate(report: &Value) -> f64 {
    report["end"]["sum_received"]["bits_per_second"].as_f64().unwrap()
}

/// The congestion window of each tenth of a second, in segments.
fn windows(report: &Value) -> Vec<f64> {
    let intervals = report["intervals"].as_array().unwrap();
    let of = |interval: &Value| interval["streams"][0]["snd_cwnd"].as_f64().unwrap() / MSS;
    intervals.iter().map(of).collect()
}

fn loss_does_not_change_a_constant_window() {
    let program = Program::new();
    let binary = program.binary().display();
    let pinned = format!("{binary} window pin-cwnd --segments 100 --json -- iperf3");
    // A window in a round trip; what is in flight at the end may count once more.
    let most = 8.0 * SEGMENTS * MSS / RTT;
    for loss in ["0%", "1%"] {
        let (report, finished) = sends(&program, loss, &pinned);
        let (rate, windows) = (rate(&report), windows(&report));
        eprintln!("{loss}: {rate:.0} of {most:.0} bit/s");
        assert!(rate <= most * 1.05, "{loss}: {rate} > {most}");
        // A third for the receiver's window at the start, what is sent again, and a busy machine.
        assert!(rate >= most * 0.66, "{loss}: {rate} < {most}");
        assert!(windows.len() >= 15, "{report}");
        assert!(windows.iter().all(|window| *window == SEGMENTS), "{loss}: {windows:?}");
        let lost = report["end"]["sum_sent"]["retransmits"].as_u64().unwrap();
        assert_eq!(lost > 0, loss == "1%", "{lost}");
        let told = finished.err.lines().find(|line| line.starts_with("{\"congestion_control\""));
        let told: Value = serde_json::from_str(told.unwrap()).unwrap();
        // iperf3's control connection is one, too.
        assert_eq!((&told["connections"], &told["refusals"]), (&2.into(), &0.into()), "{told}");
    }
    // So does a window that answers to loss: CUBIC, which falls to less than half of it
    // (Mathis: 1.22 / sqrt(0.01) is 12 segments).
    let (report, _) = sends(&program, "1%", "iperf3 -C cubic");
    let windows = windows(&report);
    let later = &windows[windows.len() / 2..];
    let mean = later.iter().sum::<f64>() / later.len() as f64;
    assert!(mean < SEGMENTS / 2.0, "{windows:?}");
}

/// Whether a congestion control of this process is there.
fn is_there(id: u32) -> bool {
    let all = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
    let own = format!("fp_pin_{id}");
    all.unwrap().split_whitespace().any(|name| {
        let end = name.strip_prefix(&own);
        end.is_some_and(|end| end.len() == 1 && end.chars().all(char::is_alphabetic))
    })
}

fn it_ends_with_its_process() {
    let program = Program::new();
    let wait = Duration::from_secs(30);
    let start = |name: &str| {
        program.start(&mut program.command_by(&["mkfifo", name])).end();
        let script =
            format!("echo > {name}.started; read line < {name}; echo > {name}.done; exit 7");
        let words = ["window", "pin-cwnd", "--segments", "20", "--", "sh", "-c", &script];
        let running = program.start(&mut program.command(&words));
        until("it runs", wait, || program.work().join(format!("{name}.started")).exists());
        running
    };
    let go = |name: &str| {
        std::fs::write(program.work().join(name), "go\n").unwrap();
        let done = program.work().join(format!("{name}.done"));
        until("the program ends by itself", wait, || done.exists());
    };
    let (ends, mut killed) = (start("ends"), start("killed"));
    let ids = [ends.id(), killed.id()];
    assert_eq!(ids.map(is_there), [true, true], "two live side by side");
    go("ends");
    let finished = ends.end();
    assert_eq!(finished.code, Some(7), "{finished:?}");
    assert!(finished.err.contains("No TCP connection was established"), "{finished:?}");
    assert_eq!(ids.map(is_there), [false, true]);
    let id = killed.id();
    let child = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap();
    killed.kill_9();
    until("the congestion control is gone", wait, || !is_there(id));
    // The program goes on, and ends when it is told to.
    assert!(Path::new("/proc").join(child.trim()).exists());
    go("killed");
    killed.end();
}

fn what_cannot_be_pinned_is_refused() {
    let program = Program::new();
    let run = |words: &[&str]| program.run(&[&["window", "pin-cwnd"], words].concat());
    for (words, code, told) in [
        (&["--segments", "0", "--", "true"][..], 2, "not within 1 and 1000000"),
        (&["--segments", "1000001", "--", "true"], 2, "not within 1 and 1000000"),
        (&["--segments", "many", "--", "true"], 2, "not a number of segments"),
        (&["--", "true"], 2, "--segments"),
        (&["--segments", "10"], 2, "--cgroup"),
        (&["--segments", "10", "--cgroup", "/tmp"], 4, "name a folder of cgroup v2"),
        (&["--segments", "10", "--", "/nowhere/program"], 3, "start /nowhere/program"),
    ] {
        let finished = run(words);
        assert_eq!(finished.code, Some(code), "{words:?}: {finished:?}");
        assert!(finished.err.contains(told), "{words:?}: {finished:?}");
    }
}

fn pinning_needs_a_privilege() {
    let program = Program::of(User::Ordinary);
    let finished = program.run(&["window", "pin-cwnd", "--segments", "10", "--", "true"]);
    assert_eq!(finished.code, Some(3), "{finished:?}");
    assert!(finished.err.contains("it needs root"), "{finished:?}");
}
