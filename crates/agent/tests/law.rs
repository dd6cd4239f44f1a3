//! The law in C, which the BPF program is made of, answers as the law in Rust, which is tested on
//! thousands of paths: the same looks through both, and equal windows, rooms and phases.

#![allow(clippy::print_stderr, reason = "a skip is told to whoever reads the test's output")]

use fullpipe_model::tune::window_control::{Look, Phase, Settings, WindowControl};
use fullpipe_model::units::{Bytes, Duration, Instant, Window};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

const CONNECTIONS: usize = 2000;

fn window(bytes: u64) -> Window {
    Window::new(Bytes::new(bytes))
}

/// A look, the nanoseconds before it, and its round trip in microseconds.
type Step = (u64, Look);

/// Looks as a connection has them, and some that none has: the two must agree on both.
fn any_step() -> impl Strategy<Value = Step> {
    let span = prop_oneof![
        8 => 0..2_000_000u64,
        4 => 0..200_000_000u64,
        1 => 0..7_000_000_000u64,
        1 => Just(5_000_000_000_000u64),
    ];
    let arrived = prop_oneof![4 => 0..200_000u32, 2 => 0..20_000_000u32, 1 => any::<u32>()];
    let rtt = prop_oneof![4 => 20_000..30_000u64, 2 => 0..400_000u64, 1 => any::<u64>()];
    let bytes = || prop_oneof![4 => 0..1u64 << 22, 1 => 0..1u64 << 31];
    let beyond = prop_oneof![2 => Just(0u64), 2 => 0..1u64 << 22, 1 => any::<u64>()];
    // Of MTUs of 576, 1500, 9000 and 65536, and any.
    let segment = prop_oneof![
        4 => prop::sample::select(vec![524, 1448, 8948, 65_483]),
        1 => 0..100_000u64,
        1 => any::<u64>(),
    ];
    (span, arrived.clone(), arrived, beyond, bytes(), rtt, bytes(), segment).prop_map(
        |(span, received, copied, beyond, promised, rtt, own, segment)| {
            let rtt = Duration::from_micros(rtt % (u64::MAX / 1000));
            let out_of_order = Bytes::new(beyond);
            let (promised, own) = (window(promised), window(own));
            let segment = Bytes::new(segment);
            (span, Look { received, copied, out_of_order, promised, rtt, own, segment })
        },
    )
}

fn any_settings() -> impl Strategy<Value = Settings> {
    let size = || prop_oneof![0..1u64 << 20, 0..1u64 << 32];
    let drawn = (size(), 0..10_000u64, size(), size(), size(), size(), 0..1000u32).prop_map(
        |(threshold, time, step, least, most, keep, hold_round_trips)| Settings {
            threshold: Bytes::new(threshold),
            threshold_time: Duration::from_micros(time),
            step: Bytes::new(step),
            least: window(least),
            most: window(most),
            keep: window(keep),
            hold_round_trips,
        },
    );
    prop_oneof![Just(Settings::default()), drawn]
}

/// Steps whose sequence numbers go on from one to the next, and whose queue is read now and then.
fn any_connection() -> impl Strategy<Value = (Settings, Vec<Step>)> {
    let steps = prop::collection::vec((any_step(), 0..4u32), 2..200);
    (any_settings(), any::<u32>(), any::<bool>(), steps).prop_map(
        |(settings, first, is_fast, steps)| {
            let (mut received, mut copied) = (first, first);
            let follow = |((span, look), part): (Step, u32)| {
                received = received.wrapping_add(look.received);
                let queue = received.wrapping_sub(copied);
                let read = if is_fast { queue } else { queue / 4 * part };
                copied = copied.wrapping_add(read);
                (span, Look { received, copied, ..look })
            };
            (settings, steps.into_iter().map(follow).collect())
        },
    )
}

/// The C program, built with the machine's compiler.
fn program(folder: &tempfile::TempDir) -> PathBuf {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/law.c");
    let program = folder.path().join("law");
    let words = ["-O1", "-Wall", "-Werror", source, "-o"];
    let built = Command::new("cc").args(words).arg(&program).status().unwrap();
    assert!(built.success(), "{source} does not build");
    program
}

fn line(text: &mut String, now: Instant, look: &Look) {
    let Look { received, copied, out_of_order, promised, rtt, own, segment } = look;
    let (promised, own) = (promised.bytes().get(), own.bytes().get());
    let (out_of_order, segment) = (out_of_order.get(), segment.get());
    let now = now.since(Instant::ZERO).as_nanos();
    let rtt = rtt.as_micros();
    writeln!(text, "{now} {received} {copied} {out_of_order} {promised} {rtt} {own} {segment}")
        .unwrap();
}

/// What C is asked, and what Rust answers.
fn both(connections: &[(Settings, Vec<Step>)]) -> (String, String) {
    let (mut asked, mut answered) = (String::new(), String::new());
    for (set, steps) in connections {
        let numbers = [
            set.threshold.get(),
            set.threshold_time.as_micros(),
            set.step.get(),
            set.least.bytes().get(),
            set.most.bytes().get(),
            set.keep.bytes().get(),
            u64::from(set.hold_round_trips),
            steps.len() as u64,
        ];
        writeln!(asked, "{}", numbers.map(|number| number.to_string()).join(" ")).unwrap();
        let mut now = Instant::ZERO + Duration::from_secs(1);
        line(&mut asked, now, &steps[0].1);
        let mut law = WindowControl::new(*set, now, &steps[0].1);
        for (span, look) in steps {
            now = now + Duration::from_nanos(*span);
            line(&mut asked, now, look);
            let grant = law.acknowledge(now, look);
            let phase = match law.phase() {
                Phase::Start => 0,
                Phase::Hold => 1,
                Phase::Steady => 2,
            };
            let window = grant.window.bytes().get();
            writeln!(answered, "{window} {} {phase}", grant.room.get()).unwrap();
        }
    }
    (asked, answered)
}

#[test]
fn c_and_rust_answer_alike() {
    let is_there = Command::new("cc").arg("--version").stdout(Stdio::null()).status().is_ok();
    if !is_there {
        assert!(std::env::var_os("FULLPIPE_NO_SKIP").is_none(), "cc is missing: install gcc");
        eprintln!("SKIPPED: c_and_rust_answer_alike: cc is missing");
        return;
    }
    let mut runner = TestRunner::deterministic();
    let drawn = |_| any_connection().new_tree(&mut runner).unwrap().current();
    let connections: Vec<_> = (0..CONNECTIONS).map(drawn).collect();
    let (asked, answered) = both(&connections);
    // All that the law does is among what is compared.
    for phase in [" 0\n", " 1\n", " 2\n"] {
        assert!(answered.matches(phase).count() > 1000, "phase{phase}is hardly tried");
    }
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(program(&folder));
    let mut running = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = running.stdin.take().unwrap();
    let writer = std::thread::spawn(move || input.write_all(asked.as_bytes()));
    let output = running.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(output.status.success(), "{:?}", output.status);
    let c = String::from_utf8(output.stdout).unwrap();
    for (number, (c, rust)) in c.lines().zip(answered.lines()).enumerate() {
        assert_eq!(c, rust, "look {number}: window, room, phase");
    }
    assert_eq!(c.lines().count(), answered.lines().count());
}
