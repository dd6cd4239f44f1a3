//! `fullpipe record HOST`: both ends record, if the far one allows it, and answer together.

use std::fs;

use fullpipe_lab::SERVER_ADDRESS;
use fullpipe_model::units::Duration;
use nix::sys::signal::Signal;

use crate::Case;
use crate::need::Need;
use crate::path_test::{daemon_address, key, serve};
use crate::program::{Finished, Program, Running, until};
use crate::why::World;
use crate::why_causes::GREEDY;

const NEEDS: &[Need] = &[Need::Root, Need::Program("python3")];

pub const CASES: &[Case] = &[
    ("both_ends_say_where_it_was_lost", NEEDS, both_ends_say_where_it_was_lost),
    ("a_far_end_that_does_not_allow_it_refuses", NEEDS, a_far_end_that_does_not_allow_it_refuses),
    ("an_end_that_is_gone_is_told", NEEDS, an_end_that_is_gone_is_told),
    ("without_the_privilege_it_is_not_allowed", &[Need::OrdinaryUser], without_the_privilege),
];

/// A path that loses packets on their way to the client.
fn world() -> World {
    let link = "rate = \"50mbit\"\nrtt = \"30ms\"\nqueue = \"500kB\"\nloss = \"0.5%\"";
    World::new(["", "", link])
}

/// A daemon at the server's host, and the public keys of both.
fn far_end(world: &World, program: &Program, words: &[&str]) -> (Running, String) {
    let server = key(program, "server.key");
    let client = key(program, "client.key");
    program.file("clients", format!("{client} the client\n"));
    let listen = format!("{SERVER_ADDRESS}:5606");
    let keys = ["serve", "--listen", &listen, "--key", "server.key", "--allow-key", "clients"];
    let mut command = program.command(&[&keys, words].concat());
    world.server.start_in(&mut command).unwrap();
    let daemon = program.start(&mut command);
    daemon_address(&daemon);
    (daemon, server)
}

fn start(world: &World, program: &Program, server: &str, words: &[&str]) -> Running {
    let host = SERVER_ADDRESS.to_string();
    let keys = ["record", &host, "--key", "client.key", "--server-key", server];
    let mut command = program.command(&[&keys, words].concat());
    world.client.start_in(&mut command).unwrap();
    program.start(&mut command)
}

/// Waits until a daemon records: it has a packet socket then, the only one at its host.
fn records(daemon: &Running) {
    until("the daemon records", Duration::from_secs(30), || {
        let sockets = fs::read_to_string(format!("/proc/{}/net/packet", daemon.id()));
        sockets.unwrap_or_default().lines().count() > 1
    });
}

fn ended(daemon: Running) -> Finished {
    daemon.signal(Signal::SIGTERM);
    daemon.end()
}

/// What was lost between the two hosts is counted, on the side where it was; nothing is dropped,
/// and the control connection is not in the files.
fn both_ends_say_where_it_was_lost() {
    let (world, program) = (world(), Program::new());
    let (daemon, server) = far_end(&world, &program, &["--allow-record"]);
    let _peers = world.transfer(GREEDY, GREEDY);
    let words = ["--port", "5001", "--for", "4s", "--json"];
    let finished = start(&world, &program, &server, &words).end();
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let document = finished.json();
    assert_eq!((&document["near"]["dropped"], &document["far"]["dropped"]), (&0.into(), &0.into()));
    let [pair] = &document["both"].as_array().unwrap()[..] else { panic!("{document:#}") };
    let [connection] = &pair["paired"]["connections"].as_array().unwrap()[..] else {
        panic!("{pair:#}")
    };
    // A segment in 200, of some thousands.
    let lost = connection["to_client"]["lost"]["segments"].as_u64().unwrap();
    assert!(lost > 0, "{connection:#}");
    for name in ["recording.near.pcapng", "recording.far.pcapng"] {
        let analyzed = program.run(&["analyze", name, "--json"]);
        assert_eq!(analyzed.code, Some(0), "{name}: {analyzed:?}");
        assert_eq!(analyzed.json()["connections"].as_array().unwrap().len(), 1, "{name}");
    }
    let far = fs::metadata(program.work().join("recording.far.pcapng")).unwrap().len();
    assert_eq!(document["far"]["size_bytes"], far);
    let words = ["--port", "5001", "--for", "3s", "-o", "again.pcapng"];
    let told = start(&world, &program, &server, &words).end();
    assert_eq!(told.code, Some(0), "{told:?}");
    assert!(told.out.contains("1 connection passed both"), "{told:?}");
    assert!(told.err.contains("again.far.pcapng"), "{told:?}");
    let idle = start(&world, &program, &server, &["--port", "5002", "--for", "1s"]).end();
    assert_eq!(idle.code, Some(1), "{idle:?}");
    assert!(idle.err.contains("no TCP packet between the two hosts"), "{idle:?}");
    assert_eq!(ended(daemon).code, Some(130));
}

fn a_far_end_that_does_not_allow_it_refuses() {
    let (world, program) = (world(), Program::new());
    let (daemon, server) = far_end(&world, &program, &[]);
    let refused = start(&world, &program, &server, &["--for", "1s"]).end();
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.err.contains("serve --allow-record"), "{refused:?}");
    assert_eq!(ended(daemon).code, Some(130));
    let (daemon, server) = far_end_again(&world, &program);
    let long = start(&world, &program, &server, &["--for", "11m"]).end();
    assert_eq!(long.code, Some(1), "{long:?}");
    assert!(long.err.contains("600 s are possible"), "{long:?}");
    // One at a time.
    let _peers = world.transfer(GREEDY, GREEDY);
    let first = start(&world, &program, &server, &["--port", "5001", "--for", "5m"]);
    records(&daemon);
    let second = start(&world, &program, &server, &["--for", "1s", "-o", "x.pcapng"]).end();
    assert_eq!(second.code, Some(1), "{second:?}");
    assert!(second.err.contains("another recording goes on"), "{second:?}");
    first.signal(Signal::SIGINT);
    let first = first.end();
    assert_eq!(first.code, Some(130), "{first:?}");
    assert!(program.work().join("recording.far.pcapng").exists(), "what there was is kept");
    assert_eq!(ended(daemon).code, Some(130));
}

/// With the keys that are there.
fn far_end_again(world: &World, program: &Program) -> (Running, String) {
    for file in ["server.key", "client.key"] {
        fs::remove_file(program.work().join(file)).unwrap();
    }
    far_end(world, program, &["--allow-record"])
}

fn an_end_that_is_gone_is_told() {
    let (world, program) = (world(), Program::new());
    let (mut daemon, server) = far_end(&world, &program, &["--allow-record"]);
    let _peers = world.transfer(GREEDY, GREEDY);
    let running = start(&world, &program, &server, &["--port", "5001", "--for", "3s"]);
    records(&daemon);
    daemon.kill_9();
    let finished = running.end();
    assert_eq!(finished.code, Some(1), "{finished:?}");
    assert!(finished.err.contains("record: "), "{finished:?}");
    assert!(!program.work().join("recording.far.pcapng").exists());
}

fn without_the_privilege() {
    let program = Program::of(crate::program::User::Ordinary);
    let refused = program.run(&["serve", "--listen", "127.0.0.1:0", "--allow-record"]);
    assert_eq!(refused.code, Some(3), "{refused:?}");
    assert!(refused.err.contains("CAP_NET_RAW"), "{refused:?}");
    // Who is not asked for it serves.
    let (daemon, address) = serve(&program, &[]);
    let near = program.run(&["record", &address.to_string(), "--for", "1s"]);
    assert_eq!(near.code, Some(3), "{near:?}");
    assert_eq!(ended(daemon).code, Some(130));
}
