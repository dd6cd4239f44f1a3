//! `fullpipe record`: what passes is in the file, once, and the answer is `analyze`'s.

use std::fs;
use std::path::PathBuf;

use fullpipe_lab::SERVER_ADDRESS;
use fullpipe_model::units::Duration;
use nix::sys::signal::Signal;
use serde_json::Value;

use crate::Case;
use crate::need::Need;
use crate::program::{Finished, Program, Running, User, until};
use crate::why::World;
use crate::why_causes::GREEDY;

const NEEDS: &[Need] = &[Need::Root, Need::Program("python3")];

/// What an ordinary user's TShark needs to record in a namespace of his own.
const EXTCAP: &[Need] =
    &[Need::OrdinaryUser, Need::Program("tshark"), Need::Program("python3"), Need::Program("ip")];

pub const CASES: &[Case] = &[
    ("what_passes_is_recorded_and_answered", NEEDS, what_passes_is_recorded_and_answered),
    ("a_program_is_recorded_as_a_whole", NEEDS, a_program_is_recorded_as_a_whole),
    ("whoever_ends_it_keeps_what_was_recorded", NEEDS, whoever_ends_it_keeps_what_was_recorded),
    ("kill_9_leaves_nothing", NEEDS, kill_9_leaves_nothing),
    ("a_full_file_ends_it", NEEDS, a_full_file_ends_it),
    ("a_ring_keeps_the_newest", NEEDS, a_ring_keeps_the_newest),
    ("it_ends_soon_after_it_happened", NEEDS, it_ends_soon_after_it_happened),
    ("packets_go_to_another_program", NEEDS, packets_go_to_another_program),
    ("it_stands_among_wiresharks_interfaces", EXTCAP, it_stands_among_wiresharks_interfaces),
    ("without_the_privilege_it_says_so", &[Need::OrdinaryUser], without_the_privilege_it_says_so),
    ("what_makes_no_sense_is_refused", &[Need::Root], what_makes_no_sense_is_refused),
];

const PATIENCE: Duration = Duration::from_secs(30);

/// Two hosts with a path of 30 Mbit/s and 20 ms.
fn world() -> World {
    World::new(["", "", "rate = \"30mbit\"\nrtt = \"20ms\"\nqueue = \"150kB\""])
}

/// Starts `record` with these arguments at the client's host.
fn start(world: &World, program: &Program, arguments: &[&str]) -> Running {
    let mut command = program.command(&[&["record"], arguments].concat());
    world.client.start_in(&mut command).unwrap();
    program.start(&mut command)
}

/// Starts one without an end of its own, and waits until it records.
fn started(world: &World, program: &Program, arguments: &[&str]) -> Running {
    let running = start(world, program, arguments);
    until("it records", PATIENCE, || running.err().contains("Ctrl-C ends it"));
    running
}

fn record(world: &World, program: &Program, arguments: &[&str]) -> Finished {
    start(world, program, arguments).end()
}

/// What is in the folder where the program works.
fn files(program: &Program) -> Vec<PathBuf> {
    fs::read_dir(program.work()).unwrap().map(|entry| entry.unwrap().path()).collect()
}

/// What `analyze` says of a file.
fn analyzed(program: &Program, file: &str) -> Value {
    let finished = program.run(&["analyze", file, "--json"]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    finished.json()
}

/// A transfer on its way is recorded without what it carries; the answer is the one of `analyze`.
fn what_passes_is_recorded_and_answered() {
    let (world, program) = (world(), Program::new());
    let _peers = world.transfer(GREEDY, GREEDY);
    let finished = record(&world, &program, &["--port", "5001", "--for", "3s", "--json"]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let document = finished.json();
    let recorded = &document["recorded"];
    let packets = recorded["packets"].as_u64().unwrap();
    // 30 Mbit/s for 3 s are 7,700 segments, of which a host sees up to 44 as one.
    assert!((175..60_000).contains(&packets), "{document:#}");
    assert_eq!((&recorded["dropped"], &recorded["is_full"]), (&0.into(), &false.into()));
    let span = recorded["last_ns"].as_u64().unwrap() - recorded["first_ns"].as_u64().unwrap();
    assert!((2_500_000_000..4_000_000_000).contains(&span), "{span}");
    let first = &document["analysis"]["connections"][0];
    assert_eq!(first["limits"][0]["limit"], "link", "{first:#}");
    let again = analyzed(&program, "recording.pcapng");
    assert_eq!(again["connections"], document["analysis"]["connections"]);
    assert_eq!((&again["packets"], &again["dropped"]), (&packets.into(), &0.into()));
    let file = fs::read(program.work().join("recording.pcapng")).unwrap();
    assert_eq!(recorded["size_bytes"], file.len());
    assert!(!file.windows(20).any(|part| part == [b'x'; 20]), "no payload is kept");
    // The same for people: the answer, and beside it what was recorded.
    let told = record(&world, &program, &["--host", &SERVER_ADDRESS.to_string(), "--for", "1s"]);
    assert_eq!(told.code, Some(0), "{told:?}");
    assert!(told.out.contains("link") && told.err.contains("none was dropped"), "{told:?}");
    let other = record(&world, &program, &["--port", "5002", "--for", "500ms", "-o", "no.pcapng"]);
    assert_eq!(other.code, Some(1), "{other:?}");
    assert!(other.err.contains("no TCP packet with these ports"), "{other:?}");
    assert!(!program.work().join("no.pcapng").exists());
}

/// Of a program's connections the first packet is there and the last, and of others that began
/// before it none. The program's output and exit code are its own.
fn a_program_is_recorded_as_a_whole() {
    const CLIENT: &str = "import socket, sys\n\
        s = socket.create_connection((sys.argv[1], 5003)); s.sendall(b'q'); n = 0\n\
        while part := s.recv(65536): n += len(part)\n\
        print(n); sys.exit(7)";
    const SERVER: &str = "import socket\n\
        l = socket.create_server(('', 5003)); print('ready', flush=True)\n\
        c, _ = l.accept(); c.recv(1); c.sendall(b'x' * 300000)";
    let (world, program) = (world(), Program::new());
    let _peers = world.transfer(GREEDY, GREEDY);
    let mut server = std::process::Command::new("python3");
    server.args(["-c", SERVER]);
    let _server = crate::why::Process::start(&world.server, server);
    let address = SERVER_ADDRESS.to_string();
    let client = ["--json", "-o", "own.pcapng", "--", "python3", "-c", CLIENT, &address];
    let finished = record(&world, &program, &client);
    assert_eq!((finished.code, finished.out.trim()), (Some(7), "300000"), "{finished:?}");
    let document: Value = serde_json::from_str(&finished.err).unwrap();
    let connections = document["analysis"]["connections"].as_array().unwrap();
    let [own] = &connections[..] else { panic!("{} connections", connections.len()) };
    assert_eq!(own["server"], format!("{address}:5003"), "{own:#}");
    assert!(own["handshake_rtt_us"].as_u64().unwrap() >= 20_000, "{own:#}");
    assert_eq!(own["server_to_client"]["unique_payload_bytes"], 300_000, "{own:#}");
    assert_eq!(own["close"], "finished", "{own:#}");
    let missing = record(&world, &program, &["--", "no-such-program"]);
    assert_eq!(missing.code, Some(3), "{missing:?}");
    assert!(missing.err.contains("no-such-program"), "{missing:?}");
}

fn whoever_ends_it_keeps_what_was_recorded() {
    let (world, program) = (world(), Program::new());
    let _peers = world.transfer(GREEDY, GREEDY);
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        let name = format!("{signal}.pcapng");
        let running = started(&world, &program, &["--port", "5001", "-o", &name]);
        assert!(!program.work().join(&name).exists(), "it has no name before it is complete");
        running.signal(signal);
        let finished = running.end();
        assert_eq!(finished.code, Some(0), "{signal}: {finished:?}");
        assert!(analyzed(&program, &name)["packets"].as_u64().unwrap() > 0, "{signal}");
    }
    // Who asked for a time is told that it was less.
    let running = start(&world, &program, &["--port", "5001", "--for", "10m"]);
    until("it records", PATIENCE, || {
        let sockets = fs::read_to_string(format!("/proc/{}/net/packet", running.id()));
        sockets.unwrap_or_default().lines().count() > 1
    });
    running.signal(Signal::SIGINT);
    let finished = running.end();
    assert_eq!(finished.code, Some(130), "{finished:?}");
    assert!(program.work().join("recording.pcapng").exists());
}

fn kill_9_leaves_nothing() {
    let (world, program) = (world(), Program::new());
    let _peers = world.transfer(GREEDY, GREEDY);
    let mut running = started(&world, &program, &["--port", "5001"]);
    running.kill_9();
    assert_eq!(files(&program), Vec::<PathBuf>::new());
    let sockets = world.client.run(|| fs::read_to_string("/proc/thread-self/net/packet")).unwrap();
    assert_eq!(sockets.unwrap().lines().count(), 1, "no packet socket is left");
}

/// The file never has more than it was allowed.
fn a_full_file_ends_it() {
    const MOST: u64 = 1_000_000;
    let (world, program) = (world(), Program::new());
    let _peers = world.transfer(GREEDY, GREEDY);
    let words = ["--port", "5001", "--snap", "65535", "--size", "1MB", "--json"];
    let finished = record(&world, &program, &words);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let document = finished.json();
    assert_eq!(document["recorded"]["is_full"], true, "{document:#}");
    let size = fs::metadata(program.work().join("recording.pcapng")).unwrap().len();
    assert!((MOST / 2..=MOST).contains(&size), "{size}");
    assert_eq!(document["recorded"]["size_bytes"], size);
}

/// The ring never has more than it may, another recording goes on in it, and the answer is of what
/// is still there of its own. Files of others stay.
fn a_ring_keeps_the_newest() {
    const MOST: u64 = 1_000_000;
    let (world, program) = (world(), Program::new());
    let _peers = world.transfer(GREEDY, GREEDY);
    let ring = program.work().join("ring");
    let words = ["--port", "5001", "--ring", "ring", "--size", "1MB", "--snap", "65535"];
    let words = [&words[..], &["--for", "2s", "--json"]].concat();
    let mut last = Vec::new();
    for time in 0..2 {
        let finished = record(&world, &program, &words);
        assert_eq!(finished.code, Some(0), "{finished:?}");
        let document = finished.json();
        let files = document["recorded"]["files"].as_array().unwrap();
        let there = fs::read_dir(&ring).unwrap().map(|entry| entry.unwrap());
        let (mut size, mut names) = (0, Vec::new());
        for entry in there.filter(|entry| entry.file_name() != "notes.txt") {
            size += entry.metadata().unwrap().len();
            names.push(entry.file_name().into_string().unwrap());
        }
        // 30 Mbit/s for 2 s are 7.5 MB.
        assert!((MOST * 6 / 10..=MOST).contains(&size), "{size} in {names:?}");
        assert_eq!(names.len(), files.len(), "{document:#}");
        assert!(document["recorded"]["size_bytes"].as_u64().unwrap() > MOST, "{document:#}");
        names.sort();
        assert!(last.iter().all(|name| !names.contains(name)), "{last:?} {names:?}");
        assert!(last.last() < names.first(), "numbers go on");
        let words: Vec<&str> = files.iter().map(|file| file.as_str().unwrap()).collect();
        let again = program.run(&[&["analyze", "--as-one", "--json"], &words[..]].concat());
        assert_eq!(again.json()["connections"], document["analysis"]["connections"]);
        if time == 0 {
            fs::write(ring.join("notes.txt"), "kept").unwrap();
        }
        last = names;
    }
    assert!(ring.join("notes.txt").exists());
    let told = program.run(&["record", "--ring", "ring", "-o", "file.pcapng"]);
    assert_eq!(told.code, Some(2), "{told:?}");
}

/// Of a transfer at 30 Mbit/s a condition below ends nothing, and one above ends it.
fn it_ends_soon_after_it_happened() {
    let (world, program) = (world(), Program::new());
    let _peers = world.transfer(GREEDY, GREEDY);
    let words = |condition| ["--port", "5001", "--json", "--for", "40s", "--until", condition];
    let found = record(&world, &program, &words("goodput < 90mbit"));
    assert_eq!(found.code, Some(0), "{found:?}");
    assert!(found.err.contains("it happened"), "{found:?}");
    // Three seconds in a row, and five more.
    let took = found.took.as_secs_f64();
    assert!((7.0..30.0).contains(&took), "{took}");
    let triggered = &found.json()["triggered"];
    assert_eq!(triggered["condition"], "goodput < 90mbit", "{triggered:#}");
    assert_eq!(triggered["remote"], format!("{SERVER_ADDRESS}:5001"), "{triggered:#}");
    let goodput = triggered["goodput_bps"].as_f64().unwrap();
    assert!((5e6..40e6).contains(&goodput), "{triggered:#}");
    let short = ["--port", "5001", "--for", "4s", "--until", "goodput < 1kbit"];
    let missed = record(&world, &program, &short);
    assert_eq!(missed.code, Some(1), "{missed:?}");
    assert!(missed.err.contains("did not happen") && missed.out.contains("link"), "{missed:?}");
    let wrong = record(&world, &program, &["--until", "speed < 1mbit"]);
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
    assert!(wrong.err.contains("goodput, rtt and retransmitted"), "{wrong:?}");
}

fn without_the_privilege_it_says_so() {
    let program = Program::of(User::Ordinary);
    let refused = program.run(&["record", "--port", "443", "--for", "1s"]);
    assert_eq!(refused.code, Some(3), "{refused:?}");
    for told in ["open packet socket", "CAP_NET_RAW", "sudo", "fullpipe doctor"] {
        assert!(refused.err.contains(told), "{told}: {refused:?}");
    }
    assert_eq!(files(&program), Vec::<PathBuf>::new());
}

fn what_makes_no_sense_is_refused() {
    let program = Program::new();
    for (code, words) in [
        (4, &["--device", "no-such-device"][..]),
        (2, &["--port", "70000"]),
        (2, &["--host", "example.org"]),
        (2, &["--for", "0s"]),
        (2, &["--for", "1s", "--", "true"]),
        (2, &["--size", "1kB"]),
        (1, &["-o", "no-such-folder/x.pcapng"]),
        (1, &["-o", "."]),
    ] {
        let refused = program.run(&[&["record"], words].concat());
        assert_eq!(refused.code, Some(code), "{words:?}: {refused:?}");
        assert!(refused.err.lines().count() == 1 && refused.out.is_empty(), "{refused:?}");
    }
}

/// A stream is a whole capture that has no name, and ends without a complaint when nobody reads it.
fn packets_go_to_another_program() {
    let (world, program) = (world(), Program::new());
    let _peers = world.transfer(GREEDY, GREEDY);
    let words = ["--port", "5001", "--for", "1s", "-o", "-"];
    let mut command = program.command(&[&["record"], &words[..]].concat());
    world.client.start_in(&mut command).unwrap();
    let mut analyze = program.command(&["analyze", "-", "--json"]);
    let mut recording = command.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let answer = program.start(analyze.stdin(recording.stdout.take().unwrap())).end();
    assert_eq!(recording.wait().unwrap().code(), Some(0));
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let document = answer.json();
    assert!(document["packets"].as_u64().unwrap() > 50, "{document:#}");
    assert_eq!(document["connections"][0]["limits"][0]["limit"], "link", "{document:#}");
    assert_eq!(document["dropped"], 0, "the end of the stream says so: {document:#}");
    // Whoever reads no more ends it, long before its time.
    let words = ["--port", "5001", "--for", "10m", "-o", "-"];
    let mut command = program.command(&[&["record"], &words[..]].concat());
    world.client.start_in(&mut command).unwrap();
    let mut recording = command.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let mut first = [0; 4];
    std::io::Read::read_exact(&mut recording.stdout.take().unwrap(), &mut first).unwrap();
    assert_eq!(first, [0x0a, 0x0d, 0x0d, 0x0a], "a section's header");
    assert_eq!(recording.wait().unwrap().code(), Some(0));
    assert_eq!(files(&program), Vec::<PathBuf>::new());
    for more in [&["--json"][..], &["--", "true"], &["db.example"]] {
        let refused = record(&world, &program, &[&["-o", "-"], more].concat());
        assert_eq!(refused.code, Some(2), "{refused:?}");
    }
}

/// Two transfers on loopback, on two ports, for as long as it is let.
const ON_LOOPBACK: &str = "import socket, threading\n\
    ready = threading.Semaphore(0)\n\
    def serve(port):\n\
    \x20   l = socket.create_server(('127.0.0.1', port)); ready.release()\n\
    \x20   c, _ = l.accept()\n\
    \x20   while c.recv(65536): pass\n\
    def send(port):\n\
    \x20   ready.acquire(); s = socket.create_connection(('127.0.0.1', port))\n\
    \x20   while not threading.Event().wait(0.01): s.sendall(b'x' * 4096)\n\
    for port in (5001, 5002): threading.Thread(target=serve, args=(port,), daemon=True).start()\n\
    ready.acquire(); ready.acquire(); ready.release(2)\n\
    threading.Thread(target=send, args=(5002,), daemon=True).start()\n\
    send(5001)";

/// TShark lists the interface, and gets the packets of the port that its option names.
fn it_stands_among_wiresharks_interfaces() {
    let program = Program::of(User::Ordinary);
    let extcap = program.work().join("extcap");
    fs::create_dir(&extcap).unwrap();
    let from = concat!(env!("CARGO_MANIFEST_DIR"), "/../../contrib/wireshark/fullpipe-extcap");
    fs::copy(from, extcap.join("fullpipe-extcap")).unwrap();
    let script = "ip link set lo up; python3 -c \"$ON_LOOPBACK\" & transfer=$!\n\
        tshark -D; tshark -i fullpipe -o extcap.fullpipe.port:5001 -c 40 -w \"$PLACE/out.pcapng\"\n\
        ended=$?; kill $transfer; exit $ended";
    let mut command = program.command_by(&[
        "unshare",
        "--net",
        "--user",
        "--map-current-user",
        "--keep-caps",
        "sh",
        "-c",
        script,
    ]);
    command
        .env("ON_LOOPBACK", ON_LOOPBACK)
        .env("PLACE", program.tmp())
        .env("FULLPIPE", program.binary())
        .env("HOME", program.tmp())
        .env("XDG_CONFIG_HOME", program.tmp())
        .env("WIRESHARK_EXTCAP_DIR", &extcap);
    let finished = program.start(&mut command).end();
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(finished.out.contains("fullpipe (Record with fullpipe"), "{finished:?}");
    let out = program.tmp().join("out.pcapng");
    let document = analyzed(&program, out.to_str().unwrap());
    assert_eq!(document["packets"], 40, "{document:#}");
    let all = document["connections"].as_array().unwrap();
    for one in all {
        let ends = [&one["client"], &one["server"]].map(|end| end.as_str().unwrap());
        assert!(ends.iter().any(|end| end.ends_with(":5001")), "{document:#}");
    }
    let file = fs::read(out).unwrap();
    assert!(!all.is_empty() && !file.windows(20).any(|part| part == [b'x'; 20]));
}
