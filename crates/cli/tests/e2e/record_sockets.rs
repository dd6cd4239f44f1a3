//! `fullpipe record --sockets` and `fullpipe why --at`: what was kept is answered later.

use std::fs;

use fullpipe_model::units::Duration;
use nix::sys::signal::Signal;

use crate::Case;
use crate::need::Need;
use crate::program::{Finished, Program, Running, until};
use crate::why::World;
use crate::why_causes::{GREEDY, Peer};

const NEEDS: &[Need] = &[Need::Root, Need::Program("python3")];

pub const CASES: &[Case] = &[
    ("what_sockets_did_is_answered_later", NEEDS, what_sockets_did_is_answered_later),
    ("kill_9_leaves_whole_parts_alone", &[Need::Root], kill_9_leaves_whole_parts_alone),
    ("a_full_disk_costs_the_oldest", &[Need::Root], a_full_disk_costs_the_oldest),
    ("what_makes_no_sense_is_refused", &[], what_makes_no_sense_is_refused),
];

const PATIENCE: Duration = Duration::from_secs(30);

fn names(program: &Program) -> Vec<String> {
    let entries = fs::read_dir(program.work().join("ring")).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

fn started(program: &Program) -> Running {
    let mut command = program.command(&["record", "--sockets", "--ring", "ring", "--size", "5MB"]);
    let running = program.start(&mut command);
    until("it records", PATIENCE, || running.err().contains("Ctrl-C ends it"));
    running
}

/// A receiver that froze its buffer is named by what was kept, with the cause that only its host
/// can know, as `why` names it while it lives; the samples are a recording as any other.
fn what_sockets_did_is_answered_later() {
    const SOL_SOCKET: i32 = 1;
    const SO_RCVBUF: i32 = 8;
    const FROZEN: Peer = Peer { options: &[(SOL_SOCKET, SO_RCVBUF, 100_000)], ..GREEDY };
    let world = World::new(["", "", "rate = \"200mbit\"\nrtt = \"40ms\"\nqueue = \"2MB\""]);
    let program = Program::new();
    let _peers = world.transfer(GREEDY, FROZEN);
    crate::why::until_carried(&world, PATIENCE);
    let record =
        ["record", "--sockets", "--ring", "ring", "--size", "5MB", "--for", "9s", "--json"];
    let recorded = program.run(&record);
    assert_eq!(recorded.code, Some(0), "{recorded:?}");
    assert_eq!(recorded.json()["parts"], names(&program).len(), "{recorded:?}");
    let at = ["why", "--at", "-9s", "--for", "9s", "--ring", "ring", "--port", "5001"];
    let told = program.run(&[&at[..], &["--json", "--record", "then.jsonl"]].concat());
    assert_eq!(told.code, Some(0), "{told:?}");
    let then = told.json();
    let connection = &then["connections"][0];
    assert_eq!(connection["limit"], "receive_window", "{then:#}");
    let frozen = |connection: &serde_json::Value| {
        let causes = connection["causes"].as_array().unwrap();
        causes.iter().any(|cause| cause["sub_cause"] == "receive_buffer_frozen")
    };
    let live = program.run(&["why", "--port", "5001", "--for", "2s", "--json"]).json();
    let live = &live["connections"][0];
    for key in ["limit", "acts", "local", "remote", "role", "uid"] {
        assert_eq!(connection[key], live[key], "{key}: {then:#} {live:#}");
    }
    assert_eq!(frozen(connection), frozen(live), "{then:#} {live:#}");
    assert_eq!(connection["process"]["name"], live["process"]["name"], "{then:#}");
    let watched = connection["time_us"].as_u64().unwrap();
    assert!((5_000_000..9_500_000).contains(&watched), "{then:#}");
    let ground = &then["recorded"];
    assert!(ground["lost_us"].as_u64().unwrap() > 4_000_000, "{ground:#}");
    assert!(ground["unreadable"].as_array().unwrap().is_empty(), "{ground:#}");
    // Samples a second apart are told as such by whoever reads them.
    let again = program.run(&["analyze", "then.jsonl", "--json"]).json();
    assert_eq!(again["connections"][0]["limits"][0]["limit"], "receive_window", "{again:#}");
    shown_by_the_others(&program, connection);
    // For people: a sentence, in each language, with what is missing of an hour.
    let words = [&at[..2], &["-1h", "--for", "1h", "--ring", "ring", "--port", "5001"]].concat();
    let hour = program.run(&words);
    assert!(hour.out.contains("receive window"), "{hour:?}");
    assert!(hour.err.contains("the recorder did not run"), "{hour:?}");
    let chinese = program.run(&[&words[..], &["--language", "zh"]].concat());
    assert!(chinese.err.contains("记录程序当时没有运行"), "{chinese:?}");
    let other = program.run(&["why", "--at", "-9s", "--ring", "ring", "--port", "5002"]);
    assert!(other.out.contains("No connection that was asked about"), "{other:?}");
    let before = program.run(&["why", "--at", "-3h", "--ring", "ring"]);
    assert_eq!(before.code, Some(1), "{before:?}");
    assert!(before.err.contains("nothing was recorded from"), "{before:?}");
}

/// The same time as a picture, as a report and as rows of a fleet: the same ends, the same limit.
fn shown_by_the_others(program: &Program, connection: &serde_json::Value) {
    let at = ["--at", "-9s", "--for", "9s", "--ring", "ring"];
    let top = program.run(&[&["top", "--once", "--port", "5001"], &at[..]].concat());
    assert_eq!(top.code, Some(0), "{top:?}");
    for part in ["local", "remote"].map(|end| connection[end].as_str().unwrap()) {
        assert!(top.out.contains(part), "{part}: {top:?}");
    }
    assert!(top.out.contains("receive window") && top.out.contains("9 s from 2"), "{top:?}");
    let report = ["report", "--data", "--filter", "port 5001"];
    let drawn = program.run(&[&report[..], &at].concat());
    assert_eq!(drawn.code, Some(0), "{drawn:?}");
    let page = drawn.json();
    assert_eq!(page["connections"][0]["facts"]["limits"][0]["limit"], "receive_window", "{page:#}");
    assert!(page["connections"][0]["trace"].is_object(), "{page:#}");
    let none = program.run(&["report", "--data", "--at", "-3h", "--ring", "ring"]);
    assert_eq!(none.code, Some(1), "{none:?}");
    assert!(none.err.contains("report: nothing was recorded from"), "{none:?}");
    let refused = program.run(&["top", "--once", "--at", "-9s", "--interval", "2s"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    let rows = ["analyze", "ring", "--rows", "workloads", "--parquet", "rows"];
    let told = program.run(&rows);
    assert_eq!(told.code, Some(0), "{told:?}");
    let days = fs::read_dir(program.work().join("rows")).unwrap();
    let days =
        days.filter(|day| day.as_ref().unwrap().file_name().to_string_lossy().starts_with("day="));
    assert!(days.count() >= 1 && told.err.contains("captures"), "{told:?}");
    let again = program.run(&[&rows[..], &["--resume"]].concat());
    assert_eq!((again.code, again.err == told.err), (Some(0), true), "{again:?}");
}

/// Whoever is killed leaves whole parts and nothing else, and the next one goes on.
fn kill_9_leaves_whole_parts_alone() {
    let program = Program::new();
    let running = started(&program);
    let held = program.run(&["record", "--sockets", "--ring", "ring", "--size", "5MB"]);
    assert_eq!(held.code, Some(1), "{held:?}");
    assert!(held.err.contains("another recorder writes there"), "{held:?}");
    running.signal(Signal::SIGTERM);
    let ended = running.end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let first = names(&program);
    assert!(first.len() <= 1 && first.iter().all(|name| name.starts_with("sockets-")), "{first:?}");
    let mut running = started(&program);
    running.kill_9();
    assert_eq!(names(&program), first, "the part in memory is lost, and nothing is left of it");
    let last = started(&program);
    last.signal(Signal::SIGINT);
    assert_eq!(last.end().code, Some(0));
    assert!(names(&program).len() >= first.len());
}

/// On a disk that others filled, it makes room by the oldest of its own, and says so.
fn a_full_disk_costs_the_oldest() {
    const SCRIPT: &str = "set -e; mkdir -m 700 disk; mount -t tmpfs -o size=256k tmpfs disk\n\
        record() { \"$BINARY\" record --sockets --ring disk/ring --size 5MB --for $1; }\n\
        record 5s; ls disk/ring > before; dd if=/dev/zero of=disk/other bs=4k 2> /dev/null || true\n\
        record 2s; ls disk/ring > after";
    let program = Program::new();
    let mut command = std::process::Command::new("unshare");
    command.args(["--mount", "sh", "-c", SCRIPT]).env("BINARY", program.binary());
    command.current_dir(program.work()).env("LC_ALL", "C.UTF-8");
    let finished: Finished = program.start(&mut command).end();
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert_eq!(finished.err.matches("the disk is full").count(), 1, "{finished:?}");
    let [before, after] =
        ["before", "after"].map(|name| fs::read_to_string(program.work().join(name)).unwrap());
    assert_eq!((before.lines().count(), after.lines().count()), (1, 1), "{before} {after}");
    assert_ne!(before, after);
}

fn what_makes_no_sense_is_refused() {
    let program = Program::new();
    for (code, words) in [
        (2, &["record", "--sockets", "--port", "80"][..]),
        (2, &["record", "--sockets", "--", "true"]),
        (2, &["why", "--ring", "ring"]),
        (2, &["why", "--at", "noon"]),
        (2, &["why", "--at", "2999-01-01T00:00:00Z"]),
        (2, &["why", "--at", "-1h", "--for", "2h"]),
        (2, &["why", "--for", "20m"]),
        (4, &["why", "--at", "-1h", "--ring", "no-such-folder"]),
        (4, &["why", "--at", "-1h", "--ring", "."]),
        (1, &["record", "--sockets", "--ring", "/proc/self/ring"]),
    ] {
        let refused = program.run(words);
        assert_eq!(refused.code, Some(code), "{words:?}: {refused:?}");
        assert!(refused.err.lines().count() == 1 && refused.out.is_empty(), "{refused:?}");
    }
}
