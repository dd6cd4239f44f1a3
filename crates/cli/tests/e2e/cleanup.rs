//! However a run ends, it leaves nothing behind.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use fullpipe_kernel::host::clock;
use fullpipe_model::units::Duration;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::Case;
use crate::need::Need;
use crate::program::{Program, Running, User, until};
use crate::remains::{
    Machine, PATIENCE, assert_nothing_left, namespaces, process_inside, processes,
};

pub const CASES: &[Case] = &[
    ("kill_9_twenty_times_leaves_nothing", &[Need::Root], || kill_9(User::Own, 20)),
    ("sigint_ends_it_with_130", &[], || interrupt(Signal::SIGINT)),
    ("sigterm_ends_it_with_130", &[], || interrupt(Signal::SIGTERM)),
    ("two_runs_at_once_do_not_see_each_other", &[], two_runs_at_once_do_not_see_each_other),
    ("a_killed_worker_is_told", &[Need::Root], a_killed_worker_is_told),
    ("the_next_run_cleans_up_by_itself", &[Need::Root], the_next_run_cleans_up_by_itself),
];

/// Light for the machine, and long enough to be killed at any step. Two rows, so that one can be
/// complete.
const SCENARIO: &str = "\
name = \"short\"
[link]
rate = \"50mbit\"
rtt = \"10ms\"
[transfer]
duration = \"700ms\"
[[cases]]
name = \"one\"
[[cases]]
name = \"two\"
hosts.client.sysctl = { \"net.ipv4.tcp_rmem\" = \"4096 65536 65536\" }
";
/// What the whole of it takes, about.
const LENGTH: Duration = Duration::from_millis(1900);
/// Long enough that whatever happens in its middle is not its end.
const LONG: &str = "[link]\nrate = \"50mbit\"\nrtt = \"10ms\"\n[transfer]\nduration = \"30s\"\n";

/// Seed of the points at which runs are killed; printed, and another may be given.
fn seed() -> u64 {
    let seed = std::env::var("FULLPIPE_TEST_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok())
        .unwrap_or(20_261_121);
    eprintln!("FULLPIPE_TEST_SEED={seed}");
    seed
}

/// SplitMix64 (Steele, Lea, Flood 2014): enough to spread points in time.
fn draw(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Kills the supervisor `rounds` times, each time at another point, and cleans up with
/// `fullpipe lab clean`.
pub fn kill_9(user: User, rounds: u32) {
    let machine = Machine::look();
    let mut random = seed();
    let (mut alive, mut with_namespaces) = (0, 0);
    for round in 0..rounds {
        let program = Program::of(user);
        program.file("short.toml", SCENARIO);
        // The point in time is the thing under test.
        let point = Duration::from_nanos(draw(&mut random) % LENGTH.as_nanos());
        let started = clock::now();
        let mut running = program.start(&mut program.command(&[
            "lab",
            "run",
            "./short.toml",
            "--out",
            "results",
        ]));
        until("its point", LENGTH.saturating_mul(2), || {
            clock::now().since(started) >= point || running.has_ended()
        });
        let seen = namespaces(processes(&program));
        with_namespaces += u32::from(!seen.is_empty());
        running.kill_9();
        let id = running.id();
        let killed = running.end();
        alive += u32::from(killed.code.is_none());
        eprintln!(
            "round {round}: killed after {point}: exit {:?}, {} namespaces",
            killed.code,
            seen.len()
        );
        // What dies a little later than its supervisor still holds the journal, and what is held is
        // left alone. The kernel takes away the mark of a process that dies before its files.
        until("its processes are gone", PATIENCE, || processes(&program).is_empty());
        until("its journal is let go", PATIENCE, || {
            let cleaned = program.run(&["lab", "clean"]);
            assert_eq!(cleaned.code, Some(0), "round {round}: {cleaned:?}");
            program.scratch().is_empty()
        });
        assert_nothing_left(&program, &seen, &[id], &machine);
        assert_results_true(&program.work().join("results"));
    }
    // The others had ended by themselves: points reach to the very end.
    assert!(alive > rounds / 2, "only {alive} of {rounds} runs were still there to be killed");
    assert!(
        with_namespaces > rounds / 2,
        "only {with_namespaces} of {rounds} runs were killed while they had namespaces"
    );
}

/// Every folder with its final name is complete and has its row; `part-` marks one that is not.
fn assert_results_true(results: &Path) {
    let rows = fs::read_to_string(results.join("rows.jsonl")).unwrap_or_default();
    let mut complete = 0;
    for entry in fs::read_dir(results).into_iter().flatten() {
        let path = entry.unwrap().path();
        let is_part = entry_name(&path).starts_with("part-");
        if !path.is_dir() || is_part {
            continue;
        }
        complete += 1;
        for name in ["scenario.json", "transfer.json", "link.json", "verdict.json"] {
            let text = fs::read(path.join(name))
                .unwrap_or_else(|error| panic!("{name} of {}: {error}", path.display()));
            serde_json::from_slice::<serde_json::Value>(&text).unwrap();
        }
    }
    let rows = rows.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    // The row is added right after its folder got its name: between the two a kill may fall. A run
    // that failed, as on a busy machine, is a row alone.
    let rows = rows.filter(|row| !row["error"].is_string()).count();
    assert!(rows == complete || rows + 1 == complete, "{complete} complete folders, {rows} rows");
}

fn entry_name(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

/// A run in the middle of its transfer, and the namespaces that it has.
fn in_the_middle(program: &Program) -> (Running, BTreeSet<String>) {
    program.file("long.toml", LONG);
    let running =
        program.start(&mut program.command(&["lab", "run", "./long.toml", "--out", "results"]));
    // The capture grows once data flows.
    until("data flows", Duration::from_secs(30), || {
        let captures =
            program.scratch().into_iter().map(|folder| folder.join("to-client.egress.pcap"));
        captures.filter_map(|path| fs::metadata(path).ok()).any(|file| file.len() > 100_000)
    });
    let seen = namespaces(processes(program));
    (running, seen)
}

fn interrupt(signal: Signal) {
    let machine = Machine::look();
    let program = Program::new();
    let (running, seen) = in_the_middle(&program);
    assert!(seen.len() >= 3, "two hosts and an empty one of the supervisor, seen: {seen:?}");
    let sent = clock::now();
    running.signal(signal);
    let id = running.id();
    let finished = running.end();
    let took = clock::now().since(sent);
    eprintln!("{signal}: ended after {took}");
    assert_eq!(finished.code, Some(130), "{finished:?}");
    assert!(took < Duration::from_secs(3), "it took {took} to end");
    assert_eq!(finished.out, "");
    assert_nothing_left(&program, &seen, &[id], &machine);
    let folders =
        fs::read_dir(program.work().join("results")).unwrap().map(|entry| entry.unwrap().path());
    assert_eq!(folders.filter(|path| path.is_dir()).count(), 0, "half of a result is left");
}

fn two_runs_at_once_do_not_see_each_other() {
    let machine = Machine::look();
    let programs = [("20mbit", 20e6), ("50mbit", 50e6)].map(|(rate, nominal)| {
        let program = Program::new();
        program.file(
            "own.toml",
            format!("[link]\nrate = \"{rate}\"\nrtt = \"10ms\"\n[transfer]\nduration = \"2s\"\n"),
        );
        (program, nominal)
    });
    let runs = programs.each_ref().map(|(program, _)| {
        let arguments = ["lab", "run", "./own.toml", "--json", "--out", "results"];
        program.start(&mut program.command(&arguments))
    });
    // Both are there at once, each with namespaces of its own.
    let mut seen = [BTreeSet::new(), BTreeSet::new()];
    until("both run at once", Duration::from_secs(30), || {
        seen = programs.each_ref().map(|(program, _)| namespaces(processes(program)));
        seen.iter().all(|namespaces| namespaces.len() >= 3)
    });
    assert!(seen[0].is_disjoint(&seen[1]), "they share a namespace: {seen:?}");
    let ids = runs.each_ref().map(Running::id);
    for (run, (_, nominal)) in runs.into_iter().zip(&programs) {
        let finished = run.end();
        assert_eq!((finished.code, finished.err.as_str()), (Some(0), ""), "{finished:?}");
        let goodput = finished.json()["rows"][0]["goodput_bps"].as_f64().unwrap();
        assert!(
            (0.8 * nominal..=nominal * 1.02).contains(&goodput),
            "{goodput} bit/s over a link of {nominal}"
        );
    }
    for ((program, _), seen) in programs.iter().zip(&seen) {
        assert_nothing_left(program, seen, &ids, &machine);
    }
}

fn a_killed_worker_is_told() {
    let machine = Machine::look();
    for inner in [1, 2] {
        let program = Program::new();
        let (running, seen) = in_the_middle(&program);
        let process = process_inside(&program, inner).expect("a run has an init and a worker");
        kill(Pid::from_raw(process as i32), Signal::SIGKILL).unwrap();
        let id = running.id();
        let finished = running.end();
        assert_eq!(finished.code, Some(1), "{finished:?}");
        assert!(finished.err.contains("killed by SIGKILL"), "{finished:?}");
        assert_nothing_left(&program, &seen, &[id], &machine);
    }
}

fn the_next_run_cleans_up_by_itself() {
    let machine = Machine::look();
    let program = Program::new();
    let (mut running, seen) = in_the_middle(&program);
    running.kill_9();
    let id = running.id();
    running.end();
    assert_eq!(program.scratch().len(), 1, "a killed run leaves its scratch directory to the next");
    program.file("short.toml", SCENARIO);
    let next = program.run(&["lab", "run", "./short.toml", "--json", "--out", "next"]);
    assert_eq!(next.code, Some(0), "{next:?}");
    assert_eq!(next.json()["rows"].as_array().unwrap().len(), 2);
    assert_nothing_left(&program, &seen, &[id], &machine);
}
