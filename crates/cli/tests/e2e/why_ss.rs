//! A log of `ss -tinm` says what the samples of the same sockets say that were taken meanwhile, and
//! results of iperf3 and ndt7 are read by the program.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::Case;
use crate::need::Need;
use crate::program::{Program, User};
use crate::why::{World, until_carried};
use crate::why_causes::{CAUSES, Planted};
use fullpipe_model::units::Duration;

const NEEDS: &[Need] = &[Need::Root, Need::Program("python3"), Need::Program("ss")];

pub const CASES: &[Case] = &[
    ("a_log_of_ss_says_what_samples_of_the_same_time_say", NEEDS, as_samples),
    (
        "a_result_of_iperf3_names_what_it_was_asked",
        &[Need::OrdinaryUser, Need::Program("iperf3")],
        iperf3,
    ),
    ("results_of_other_programs_are_read_or_refused", &[], results),
];

/// Limits that the kernel counts, and what plants them.
const COUNTED: [(&str, &str); 3] = [
    ("a small tcp_rmem", "receive_window"),
    ("SO_SNDBUF", "send_buffer"),
    ("an application that writes little", "sender_application"),
];
/// Looks half a second apart, between which nothing else is done.
const LOG: &str = "for n in 1 2 3 4 5 6 7; do date +%s.%N; ss -tinm; sleep 0.5; done";

fn as_samples() {
    let program = Program::new();
    for (name, limit) in COUNTED {
        let planted = CAUSES.iter().find(|planted| planted.name == name).unwrap();
        // A machine that is busy with something else keeps a reader or a writer waiting.
        let told = told_alike(&program, planted, limit).or_else(|why| {
            eprintln!("{name}: once more, as the machine was perhaps busy: {why}");
            told_alike(&program, planted, limit)
        });
        assert_eq!(told, Ok(()), "{name}");
    }
}

/// Looks and samples of one transfer have the same limit, and nearly the same shares of what the
/// kernel counts.
fn told_alike(program: &Program, planted: &Planted, limit: &str) -> Result<(), String> {
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
    assert!(found["warnings"].to_string().contains("socket_log"), "{found:#}");
    let text = program.run(&["analyze", file]);
    assert!(text.out.contains("a log of ss has looks"), "{text:?}");
    let page = program.run(&["report", "--data", file]).json();
    assert_eq!(page["kind"], "samples");
    let answer = why.json();
    let by_why = &answer["connections"][0]["limits"];
    let [looks, samples] = [shares(&found["limits"]), shares(by_why)];
    let [first, other] = [&found["limits"], by_why].map(|all| all[0]["limit"].as_str().unwrap());
    let [by_looks, by_samples] = [counted(&looks, limit), counted(&samples, limit)];
    eprintln!("{}: {limit} {by_looks:.3} by looks, {by_samples:.3} by samples", planted.name);
    let is_same = first == limit || first == other;
    if is_same && (by_looks - by_samples).abs() < 0.15 {
        return Ok(());
    }
    Err(format!("{looks:?} {samples:?}"))
}

/// The share of what one counter of the kernel has: whose the window is, it does not know.
fn counted(shares: &BTreeMap<String, f64>, limit: &str) -> f64 {
    let other = if limit == "receive_window" { "receiver_application" } else { "" };
    [limit, other].iter().filter_map(|name| shares.get(*name)).sum()
}

fn shares(limits: &Value) -> BTreeMap<String, f64> {
    let limits = limits.as_array().unwrap().iter();
    limits
        .map(|one| (one["limit"].as_str().unwrap().to_owned(), one["share"].as_f64().unwrap()))
        .collect()
}

/// A sender that keeps to a rate, as a plain user, behind a link that an ordinary user may make.
fn iperf3() {
    let program = Program::of(User::Ordinary);
    let link = ["link", "--rate", "100mbit", "--rtt", "10ms", "--server", "iperf3 -s -1"];
    let words = [&link[..], &["--", "iperf3", "-c", "{server}", "-t", "3", "-b", "10M", "-J"]];
    let test = program.run(&words.concat());
    assert_eq!(test.code, Some(0), "{test:?}");
    let file = program.file("result", &test.out);
    let analysed = program.run(&["analyze", "--json", file]);
    assert_eq!(analysed.code, Some(0), "{analysed:?}");
    let document = analysed.json();
    let found = &document["connections"][0];
    assert_eq!(found["limits"][0]["limit"], "sender_application", "{found:#}");
    assert_eq!(found["warnings"], serde_json::json!(["no_packets", "iperf3_result"]));
    let text = program.run(&["analyze", file]);
    assert!(text.out.contains("iperf3 prints the mean"), "{text:?}");
    let page = program.run(&["report", "--data", file]).json();
    assert_eq!(page["kind"], "samples");
}

/// Files of the fuzz targets' corpus, in both languages, and JSON of something else.
fn results() {
    let program = Program::new();
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/tool_result");
    let ndt7 = format!("{corpus}/ndt7");
    let analysed = program.run(&["analyze", "--json", &ndt7]);
    assert_eq!(analysed.code, Some(0), "{analysed:?}");
    let document = analysed.json();
    let [upload, download] = [0, 1].map(|at| &document["connections"][at]);
    let [upload, download] = if download["warnings"].to_string().contains("receiver") {
        [download, upload]
    } else {
        [upload, download]
    };
    assert_eq!(download["limits"][0]["limit"], "receive_window", "{download:#}");
    assert_eq!(
        upload["warnings"],
        serde_json::json!(["no_packets", "ndt7_result", "receiver_log"])
    );
    let client = program.run(&["analyze", "--json", &format!("{corpus}/ndt7-client")]);
    assert_eq!(client.code, Some(0), "{client:?}");
    let other = program.file("other.json", "{\"some\": \"thing\"}\n");
    let refused = program.run(&["analyze", other]);
    assert_eq!(refused.code, Some(4), "{refused:?}");
    assert!(refused.err.contains("no result of iperf3 --json, of ndt7"), "{refused:?}");
    let chinese = program.run(&["--language", "zh", "analyze", other]);
    assert!(chinese.err.contains("能读取的 JSON 只有这些"), "{chinese:?}");
    let failed = program.file("failed.json", "{\"start\": {}, \"error\": \"unable to connect\"}");
    let refused = program.run(&["analyze", failed]);
    assert!(refused.err.contains("its test failed: unable to connect"), "{refused:?}");
}
