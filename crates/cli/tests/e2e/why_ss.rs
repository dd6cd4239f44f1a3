//! A log of `ss -tin` says what the samples of the same sockets say that were taken meanwhile.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::Case;
use crate::need::Need;
use crate::program::Program;
use crate::why::{World, until_carried};
use crate::why_causes::{CAUSES, Planted};
use fullpipe_model::units::Duration;

const NEEDS: &[Need] = &[Need::Root, Need::Program("python3"), Need::Program("ss")];

pub const CASES: &[Case] =
    &[("a_log_of_ss_says_what_samples_of_the_same_time_say", NEEDS, as_samples)];

/// Limits that the kernel counts, and what plants them.
const COUNTED: [(&str, &str); 3] = [
    ("a small tcp_rmem", "receive_window"),
    ("SO_SNDBUF", "send_buffer"),
    ("an application that writes little", "sender_application"),
];
/// Looks half a second apart, between which nothing else is done.
const LOG: &str = "for n in 1 2 3 4 5 6 7; do date +%s.%N; ss -tin; sleep 0.5; done";

fn as_samples() {
    let program = Program::new();
    for (name, limit) in COUNTED {
        let planted = CAUSES.iter().find(|planted| planted.name == name).unwrap();
        told_alike(&program, planted, limit);
    }
}

/// Looks and samples of one transfer have the same limit, and nearly the same shares of what the
/// kernel counts.
fn told_alike(program: &Program, planted: &Planted, limit: &str) {
    let world = World::new(planted.scenario);
    let _peers = world.transfer(planted.sender, planted.receiver);
    until_carried(&world, Duration::from_secs(10));
    let words = ["why", "--json", "--namespaces", "own", "--for", "3s", "--record", "same.jsonl"];
    let mut why = program.command(&words);
    world.server.start_in(&mut why).unwrap();
    let why = program.start(&mut why);
    let mut log = program.command_by(&["sh", "-c", LOG]);
    world.server.start_in(&mut log).unwrap();
    let log = program.start(&mut log).end();
    let why = why.end();
    assert_eq!((log.code, why.code), (Some(0), Some(0)), "{log:?} {why:?}");
    let file = program.file("ss.log", &log.out);
    let analysed = program.run(&["analyze", "--json", file]);
    assert_eq!(analysed.code, Some(0), "{analysed:?}");
    let document = analysed.json();
    let [found] = &document["connections"].as_array().unwrap()[..] else { panic!("{document:#}") };
    assert_eq!(found["limits"][0]["limit"], limit, "{}: {found:#}", planted.name);
    assert!(found["warnings"].to_string().contains("socket_log"), "{found:#}");
    let [by_looks, by_samples] =
        [shares(&found["limits"]), shares(&why.json()["connections"][0]["limits"])];
    let of = |all: &BTreeMap<String, f64>| all.get(limit).copied().unwrap_or_default();
    let [looks, samples] = [of(&by_looks), of(&by_samples)];
    eprintln!("{}: {limit} {looks:.3} by looks, {samples:.3} by samples", planted.name);
    assert!((looks - samples).abs() < 0.15, "{by_looks:?} {by_samples:?}");
    let text = program.run(&["analyze", file]);
    assert!(text.out.contains("a log of ss has looks"), "{text:?}");
    let page = program.run(&["report", "--data", file]).json();
    assert_eq!(page["kind"], "samples");
}

fn shares(limits: &Value) -> BTreeMap<String, f64> {
    let limits = limits.as_array().unwrap().iter();
    limits
        .map(|one| (one["limit"].as_str().unwrap().to_owned(), one["share"].as_f64().unwrap()))
        .collect()
}
