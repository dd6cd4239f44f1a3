//! `fullpipe doctor`: what it says works is what works, whoever asks.

use crate::Case;
use crate::need::Need;
use crate::program::{Finished, Program, User};
use crate::remains::{Machine, assert_nothing_left};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

pub const CASES: &[Case] = &[
    ("root_can_do_what_the_trials_do", &[Need::Root], root_can_do_what_the_trials_do),
    ("an_ordinary_user_is_told_what_it_takes", &[Need::OrdinaryUser], of_an_ordinary_user),
    ("without_namespaces_the_rest_is_told", &[Need::OrdinaryUser], without_namespaces),
];

/// Each ability by its name.
fn abilities(finished: &Finished) -> BTreeMap<String, Value> {
    assert_eq!((finished.code, finished.err.as_str()), (Some(0), ""), "{finished:?}");
    let document = finished.json();
    let all = document["abilities"].as_array().unwrap();
    let named: BTreeMap<String, Value> =
        all.iter().map(|one| (one["name"].as_str().unwrap().to_owned(), one.clone())).collect();
    assert_eq!(named.len(), all.len(), "two of one name");
    for one in all {
        assert_ne!(one["found"], "", "{one}");
        assert_ne!(one["commands"], "", "{one}");
        assert!(one["works"] == false || one["advice"].is_null(), "{one}");
    }
    named
}

fn works(abilities: &BTreeMap<String, Value>, name: &str) -> bool {
    abilities[name]["works"].as_bool().unwrap()
}

/// The trials of `lab`, `why` and `link` run as root here; it changes nothing and leaves nothing.
fn root_can_do_what_the_trials_do() {
    let program = Program::new();
    let before = Machine::look();
    let found = abilities(&program.run(&["doctor", "--json"]));
    for name in ["namespaces", "veth", "sockets", "other_processes", "settings", "packets"] {
        assert!(works(&found, name), "{}", found[name]);
    }
    assert_nothing_left(&program, &BTreeSet::new(), &[], &before);
    // For a person: one line each, and what does not work once more, with what it takes.
    let text = program.run(&["doctor"]).out;
    for (name, one) in &found {
        let told = text.matches(&name.replace('_', " ")).count();
        assert!(told >= if one["works"] == true { 1 } else { 2 }, "{name}: {text}");
    }
}

fn of_an_ordinary_user() {
    let found = abilities(&Program::of(User::Ordinary).run(&["doctor", "--json"]));
    for name in ["settings", "window_agent", "other_processes", "packets"] {
        assert!(!works(&found, name), "{}", found[name]);
        let advice = found[name]["advice"].as_str().unwrap();
        assert!(advice.contains("root"), "{name}: {advice}");
    }
    assert!(works(&found, "sockets"), "{}", found["sockets"]);
}

/// A user namespace that forbids further ones, and whose root has no capabilities.
fn without_namespaces() {
    let program = Program::of(User::Ordinary);
    let script = "echo 0 > /proc/sys/user/max_user_namespaces && \
                  exec setpriv --bounding-set=-all --securebits=+noroot \"$0\" doctor --json";
    let binary = program.binary().to_str().unwrap();
    let mut command = program.command_by(&["unshare", "-Ur", "sh", "-c", script, binary]);
    let finished = program.start(command.env("XDG_RUNTIME_DIR", program.tmp())).end();
    let found = abilities(&finished);
    assert!(!works(&found, "namespaces"), "{}", found["namespaces"]);
    let advice = found["namespaces"]["advice"].as_str().unwrap();
    assert!(advice.contains("sudo sysctl -w user.max_user_namespaces=10000"), "{advice}");
    assert!(!found.contains_key("tun"), "it cannot be tried");
    assert!(works(&found, "sockets"), "{}", found["sockets"]);
}
