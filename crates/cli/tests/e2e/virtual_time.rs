//! The virtual engine from outside: the same run twice gives the same bytes, its times depend only
//! on the path, and a failing guest is reported and leaves nothing behind.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use nix::sys::signal::Signal;

use crate::Case;
use crate::need::Need;
use crate::program::{Program, Row, User, same_files, scenario, until};
use crate::remains;
use fullpipe_model::units::Duration;

pub const CASES: &[Case] = &[
    (
        "ten_scenarios_run_twice_are_the_same_bytes",
        &[Need::GuestKernel],
        ten_scenarios_run_twice_are_the_same_bytes,
    ),
    ("times_are_the_paths_alone", &[Need::GuestKernel], times_are_the_paths_alone),
    (
        "an_ordinary_user_has_it_too",
        &[Need::GuestKernel, Need::OrdinaryUser],
        an_ordinary_user_has_it_too,
    ),
    ("a_guest_that_dies_is_quoted", &[], a_guest_that_dies_is_quoted),
    ("an_interrupt_ends_the_guest", &[], an_interrupt_ends_the_guest),
    ("a_guest_that_hangs_is_ended", &[], a_guest_that_hangs_is_ended),
    ("a_guest_that_panics_is_quoted", &[Need::GuestKernel], a_guest_that_panics_is_quoted),
    ("a_guest_without_memory_says_so", &[Need::GuestKernel], a_guest_without_memory_says_so),
    ("without_a_kernel_it_says_how_to_get_one", &[], without_a_kernel_it_says_how_to_get_one),
];

const TEN: &str = r#"
[[cases]]
name = "plain"
[[cases]]
name = "loss"
link.loss = "1%"
[[cases]]
name = "other-seed"
link.loss = "1%"
link.seed = 2
[[cases]]
name = "short-queue"
link.queue = "20packets"
[[cases]]
name = "reno"
hosts.server.congestion_control = "reno"
link.loss = "0.5%"
[[cases]]
name = "bbr"
hosts.server.congestion_control = "bbr"
[[cases]]
name = "small-receive-buffer"
hosts.client.sysctl = { "net.ipv4.tcp_rmem" = "4096 16384 16384" }
[[cases]]
name = "small-send-buffer"
hosts.server.sysctl = { "net.ipv4.tcp_wmem" = "4096 16384 16384" }
[[cases]]
name = "slow-writer"
transfer.write_rate = "2MB/s"
[[cases]]
name = "fast-and-far"
link.rate = "10gbit"
link.rtt = "40ms"
"#;

fn rows(program: &Program, scenario: &str, out: &str) -> Vec<Row> {
    program.rows(&[scenario, "--engine", "virtual", "--keep-captures", "--out", out])
}

fn ten_scenarios_run_twice_are_the_same_bytes() {
    let program = Program::new();
    let scenario =
        program.file("ten.toml", scenario("ten", ["100mbit", "10ms"], "size = \"1MB\"", TEN));
    let rows = [rows(&program, scenario, "first"), rows(&program, scenario, "second")];
    let [first, second] = ["first", "second"].map(|out| program.work().join(out));
    let first = same_files([&first, &second]);
    let captures = first
        .keys()
        .filter(|path| path.extension().is_some_and(|extension| extension == "pcap"))
        .count();
    assert_eq!((rows[0].len(), captures), (10, 20));
    for (a, b) in rows[0].iter().zip(&rows[1]) {
        assert_eq!(a.0, b.0);
        assert_eq!(a.text("engine"), "virtual");
    }
    // The comparison can see a difference: another seed loses other packets.
    let capture = |case: &str| {
        first.iter().find(|(path, _)| path.to_str().unwrap().contains(case)).unwrap().1
    };
    assert_ne!(capture("-loss/client.pcap"), capture("-other-seed/client.pcap"));
}

fn times_are_the_paths_alone() {
    let program = Program::new();
    let text =
        "name = \"exact\"\n[link]\nrtt = \"50ms\"\nrate = \"1gbit\"\n[transfer]\nsize = \"20kB\"\n";
    let row = rows(&program, program.file("exact.toml", text), "out").remove(0);
    // SYN and SYN-ACK, 60 bytes each at 1 Gbit/s, are 0.96 us; the rest is what the guest's timers
    // add.
    let over = row.number("handshake_rtt_us") - 50_000.0;
    eprintln!("handshake {over} us above the path's delay, kernel {}", row.text("kernel"));
    assert!((0.0..=8.0).contains(&over), "{over} us");
    assert!(row.quiet() && row.number("link_late_max_us") <= 8.0, "{:?}", row.notes());
}

fn an_ordinary_user_has_it_too() {
    let program = Program::of(User::Ordinary);
    // The kernels of whoever runs the tests, where that user can read them.
    let cache = program.work().join("cache/fullpipe/kernels");
    fs::create_dir_all(&cache).unwrap();
    // Those that are built: a build beside the trial may be changing the rest.
    for kernel in fullpipe_lab::Kernel::cached().unwrap() {
        let from = kernel.path.parent().unwrap();
        assert!(Command::new("cp").arg("-r").arg(from).arg(&cache).status().unwrap().success());
    }
    if nix::unistd::geteuid().is_root() {
        // What another user owns is not executed.
        let place = program.work().join("cache");
        assert!(
            Command::new("chown").args(["-R", "1000:1000"]).arg(place).status().unwrap().success()
        );
    }
    let scenario =
        program.file("small.toml", "[link]\nrtt = \"10ms\"\n[transfer]\nsize = \"100kB\"\n");
    let mut command = program.command(&["lab", "run", scenario, "--engine", "virtual", "--json"]);
    let finished = program.start(command.env("XDG_CACHE_HOME", program.work().join("cache"))).end();
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert_eq!(finished.json()["rows"][0]["engine"], "virtual");
}

/// A kernel that is none: a script in a cache of its own.
fn false_kernel(program: &Program, script: &str) -> Command {
    let folder = program.work().join("cache/fullpipe/kernels/6.12.0-false");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("release"), "6.12.0\n").unwrap();
    let kernel = folder.join("linux");
    fs::write(&kernel, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&kernel, fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = program.command(&["lab", "run", "quick", "--engine", "virtual"]);
    command.env("XDG_CACHE_HOME", program.work().join("cache"));
    command
}

fn a_guest_that_dies_is_quoted() {
    let program = Program::new();
    let mut command =
        false_kernel(&program, "echo booting; echo 'Kernel panic - not syncing: of a trial'");
    let finished = program.start(&mut command).end();
    assert_eq!(finished.code, Some(1), "{finished:?}");
    assert!(
        finished.err.contains("quick/") && finished.err.contains("Kernel panic"),
        "{finished:?}"
    );
    assert_eq!(program.scratch(), Vec::<PathBuf>::new());
}

fn an_interrupt_ends_the_guest() {
    let program = Program::new();
    let ready = program.work().join("ready");
    // It ignores what can be ignored, as a guest that hangs does.
    let script =
        format!("trap '' INT TERM HUP; : > {}; while :; do /bin/sleep 1; done", ready.display());
    let running = program.start(&mut false_kernel(&program, &script));
    until("the guest runs", Duration::from_secs(20), || ready.exists());
    running.signal(Signal::SIGINT);
    let finished = running.end();
    assert_eq!(finished.code, Some(130), "{finished:?}");
    assert_eq!((remains::processes(&program), program.scratch()), (Vec::new(), Vec::new()));
}

fn a_guest_that_hangs_is_ended() {
    let program = Program::new();
    let mut command =
        false_kernel(&program, "echo booted; trap '' TERM; while :; do /bin/sleep 1; done");
    let finished = program.start(command.args(["--guest-stall", "1s"])).end();
    assert_eq!(finished.code, Some(1), "{finished:?}");
    assert!(
        finished.err.contains("has not moved for 1 s") && finished.err.contains("booted"),
        "{finished:?}"
    );
    assert_eq!((remains::processes(&program), program.scratch()), (Vec::new(), Vec::new()));
}

/// 16 MiB are not enough for the kernel itself. Most of the three guests panic; one may hang.
fn a_guest_that_panics_is_quoted() {
    let program = Program::new();
    let bounds = ["--guest-memory", "16MiB", "--guest-stall", "5s"];
    let words = [&["lab", "run", "quick", "--engine", "virtual"][..], &bounds].concat();
    let finished = program.run(&words);
    assert_eq!(finished.code, Some(1), "{finished:?}");
    assert!(
        finished.err.contains("ended without a result; its console's last lines"),
        "{finished:?}"
    );
    assert!(finished.took < Duration::from_secs(60), "{finished:?}");
    assert_eq!((remains::processes(&program), program.scratch()), (Vec::new(), Vec::new()));
}

/// A reader that lets 200 MB pile up in a machine of 96 MiB.
fn a_guest_without_memory_says_so() {
    let program = Program::new();
    let buffer = "200000000 200000000 200000000";
    let text = format!(
        "[hosts.server]\nsysctl = {{ \"net.ipv4.tcp_wmem\" = \"{buffer}\" }}\n[hosts.client]\nsysctl = {{ \
         \"net.ipv4.tcp_rmem\" = \"{buffer}\" }}\n[link]\nrate = \"1gbit\"\nrtt = \"2ms\"\n[transfer]\n\
         duration = \"5s\"\nread_rate = \"1mbit\"\n"
    );
    let scenario = program.file("piling.toml", text);
    let arguments = [
        "lab",
        "run",
        scenario,
        "--engine",
        "virtual",
        "--guest-memory",
        "96MiB",
        "--guest-stall",
        "20s",
    ];
    let finished = program.run(&arguments);
    assert_eq!(finished.code, Some(1), "{finished:?}");
    assert!(finished.err.contains("ran out; give it more with --guest-memory"), "{finished:?}");
    assert!(finished.err.contains("Out of memory: Killed process"), "{finished:?}");
    assert_eq!((remains::processes(&program), program.scratch()), (Vec::new(), Vec::new()));
}

fn without_a_kernel_it_says_how_to_get_one() {
    let program = Program::new();
    let mut command = program.command(&["lab", "run", "quick", "--engine", "virtual"]);
    let finished = program.start(command.env("XDG_CACHE_HOME", program.work())).end();
    assert_eq!(finished.code, Some(3), "{finished:?}");
    assert!(finished.err.contains("fullpipe lab kernel build"), "{finished:?}");
}
