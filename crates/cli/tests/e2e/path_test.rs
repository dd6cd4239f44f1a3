//! `fullpipe serve`, `keygen` and `test`: over loopback, over a path whose truth is known, with
//! strangers who knock, and with an end that is killed.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;

use fullpipe_kernel::host::clock;
use fullpipe_lab::SERVER_ADDRESS;
use fullpipe_model::law::Framing;
use fullpipe_model::units::{Duration, Rate};
use nix::sys::signal::Signal;
use serde_json::Value;

use crate::Case;
use crate::need::Need;
use crate::program::{Finished, Program, Running, until};
use crate::why::World;

const ROOT: &[Need] = &[Need::Root];
const ROOT_NFT: &[Need] = &[Need::Root, Need::Program("nft")];

pub const CASES: &[Case] = &[
    ("loopback_needs_no_keys", &[], loopback),
    ("a_full_path_is_measured_from_both_ends", ROOT, full_path),
    ("loss_and_a_small_window_are_told_apart", ROOT, loss_and_window),
    ("a_path_of_600_ms_is_tested", ROOT, long_path),
    ("packets_that_get_lost_by_their_size_are_found", ROOT_NFT, black_hole),
    ("strangers_get_nothing", &[], strangers),
    ("an_end_that_is_killed_is_reported", &[], killed),
    ("what_makes_no_sense_is_refused", &[], refusals),
];

const PATIENCE: Duration = Duration::from_secs(30);

/// A daemon on loopback, and its address.
pub fn serve(program: &Program, words: &[&str]) -> (Running, SocketAddr) {
    let all = [&["serve", "--listen", "127.0.0.1:0"], words].concat();
    let daemon = program.start(&mut program.command(&all));
    let address = daemon_address(&daemon);
    (daemon, address)
}

/// The address that a daemon says it listens on.
pub fn daemon_address(daemon: &Running) -> SocketAddr {
    let mut address = None;
    until("the daemon listens", PATIENCE, || {
        let said = daemon.err();
        let mut lines = said.lines();
        let word = lines.find_map(|line| line.strip_prefix("serving tests on "));
        address = word.and_then(|word| word.trim().parse().ok());
        address.is_some()
    });
    address.unwrap()
}

/// A new key in the program's folder; the public one.
pub fn key(program: &Program, file: &str) -> String {
    let made = program.run(&["keygen", file, "--json"]);
    assert_eq!(made.code, Some(0), "{made:?}");
    made.json()["public_key"].as_str().unwrap().to_owned()
}

fn number(value: &Value, key: &str) -> f64 {
    value[key].as_f64().unwrap_or_else(|| panic!("no {key} in {value:#}"))
}

fn loopback() {
    let program = Program::new();
    let (daemon, address) = serve(&program, &[]);
    let address = address.to_string();
    let words = ["test", &address, "--time", "1s", "--parallel", "1,3", "--interval", "300ms"];
    let finished = program.run(&[&words[..], &["--json"]].concat());
    assert_eq!((finished.code, finished.err.as_str()), (Some(0), ""), "{finished:?}");
    let document = finished.json();
    let runs = document["runs"].as_array().unwrap();
    let shape: Vec<_> = runs
        .iter()
        .map(|run| (run["role"].as_str().unwrap(), run["connections"].as_array().unwrap().len()))
        .collect();
    assert_eq!(shape, [("sender", 1), ("receiver", 1), ("sender", 3), ("receiver", 3)]);
    for run in runs {
        let (bytes, time) = (number(run, "bytes"), number(run, "time_us"));
        let goodput = number(run, "goodput_bps");
        assert!(bytes > 1e6 && goodput > 1e7, "{run:#}");
        assert!((goodput / (bytes * 8e6 / time) - 1.0).abs() < 1e-3, "{run:#}");
        let base = number(run, "base_rtt_us");
        assert!(base > 0.0 && base < 20_000.0, "{run:#}");
        // What was told on the way is part of what arrived.
        let told = run["intervals"].as_array().unwrap().iter();
        let told: f64 =
            told.map(|one| number(one, "forward_bytes") + number(one, "reverse_bytes")).sum();
        assert!(told > 0.0 && told <= bytes * 1.02, "{told} of {run:#}");
    }
    let by_bytes = program.run(&["test", &address, "--bytes", "20MB", "--bidir", "--rfc6349"]);
    assert_eq!(by_bytes.code, Some(0), "{by_bytes:?}");
    for part in ["to it, both at once", "19.07 MiB in", "Transfer Time Ratio", "who must act"] {
        let stands = by_bytes.out.contains(part)
            || (part == "who must act" && by_bytes.out.contains("machine was the limit"));
        assert!(stands, "{part}: {by_bytes:?}");
    }
    let taken = program.run(&["serve", "--listen", &address]);
    assert_eq!(taken.code, Some(1), "{taken:?}");
    assert!(taken.err.contains("another program has it"), "{taken:?}");
    daemon.signal(Signal::SIGTERM);
    let ended = daemon.end();
    assert_eq!(ended.code, Some(130), "{ended:?}");
    assert!(ended.err.contains("stopped"), "{ended:?}");
}

/// A test between two hosts with keys; the daemon ends with it.
fn over_a_path(program: &Program, world: &World, words: &[&str]) -> Finished {
    if !program.work().join("server.key").exists() {
        let server = key(program, "server.key");
        let client = key(program, "client.key");
        program.file("clients", format!("# who may\n{client} the client\n"));
        program.file("server.pub", &server);
    }
    let server = std::fs::read_to_string(program.work().join("server.pub")).unwrap();
    let listen = format!("{SERVER_ADDRESS}:5606");
    let mut command = program.command(&[
        "serve",
        "--listen",
        &listen,
        "--key",
        "server.key",
        "--allow-key",
        "clients",
    ]);
    world.server.start_in(&mut command).unwrap();
    let daemon = program.start(&mut command);
    daemon_address(&daemon);
    let host = SERVER_ADDRESS.to_string();
    let keys = ["test", &host, "--key", "client.key", "--server-key", &server, "--json"];
    let mut command = program.command(&[&keys, words].concat());
    world.client.start_in(&mut command).unwrap();
    let finished = program.start(&mut command).end();
    daemon.signal(Signal::SIGTERM);
    let ended = daemon.end();
    assert_eq!((finished.code, ended.code), (Some(0), Some(130)), "{finished:?} {ended:?}");
    finished
}

/// A link that is the only limit: what both directions measure is what the link was told.
fn full_path() {
    let program = Program::new();
    let world = World::new(["", "", "rate = \"50mbit\"\nrtt = \"40ms\"\nqueue = \"250kB\""]);
    let finished = over_a_path(&program, &world, &["--time", "4s", "--rfc6349", "--parallel", "1"]);
    let document = finished.json();
    let link: Rate = "50mbit".parse().unwrap();
    let most = Framing::IP_1500.goodput(link).as_f64();
    let runs = document["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 4, "{document:#}");
    let mtu = &document["path_mtu"];
    assert_eq!((&mtu["forward_bytes"], &mtu["reverse_bytes"]), (&1500.into(), &1500.into()));
    for run in &runs[..2] {
        let steady = number(run, "steady_goodput_bps") / most;
        let base = number(run, "base_rtt_us") / 40_000.0;
        eprintln!("steady {steady:.4} of the link's goodput, base RTT {base:.4} of the path's");
        assert!((0.93..=1.01).contains(&steady), "{run:#}");
        assert!((0.99..1.1).contains(&base), "{run:#}");
        assert!(number(run, "loaded_rtt_us") > 40_000.0, "{run:#}");
        assert_eq!(run["machine"], Value::Null, "{run:#}");
        assert_eq!(run["answer"]["limit"], "link", "{run:#}");
        assert_eq!(run["mtu_bytes"], 1500, "{run:#}");
        let bottleneck = number(run, "bottleneck_bps") / link.as_f64();
        assert!((0.93..=1.01).contains(&bottleneck), "{run:#}");
        let metrics = &run["rfc6349"];
        let ratio = number(metrics, "transfer_time_ratio");
        assert!((1.0..1.5).contains(&ratio), "{run:#}");
        let delay =
            100.0 * (number(metrics, "average_rtt_us") / number(metrics, "baseline_rtt_us") - 1.0);
        assert!((number(metrics, "buffer_delay_percent") - delay).abs() < 0.1, "{run:#}");
        assert!((50.0..=100.0).contains(&number(metrics, "efficiency_percent")), "{run:#}");
    }
}

/// On a path with loss the counts fit the link's, and a small buffer at the far end is named from
/// here.
fn loss_and_window() {
    let program = Program::new();
    let lossy = World::new([
        "",
        "",
        "rate = \"100mbit\"\nrtt = \"20ms\"\nqueue = \"1MB\"\n[link.to_client]\nloss = \"1%\"",
    ]);
    let finished = over_a_path(&program, &lossy, &["--time", "4s", "--reverse"]);
    let run = &finished.json()["runs"][0];
    let loss = &run["loss"];
    let [share, least, most] = ["share", "share_least", "share_most"].map(|key| number(loss, key));
    eprintln!("loss {share:.5}, {least:.5} to {most:.5}");
    // The interval misses the truth one time in twenty; twice its width does not.
    let half = (most - least) / 2.0;
    assert!(least - half <= 0.01 && 0.01 <= most + half, "{run:#}");
    assert_eq!(run["answer"]["limit"], "congestion_window", "{run:#}");
    drop(lossy);
    let small = World::new([
        "\"net.ipv4.tcp_rmem\" = \"4096 65536 200000\"",
        "",
        "rate = \"200mbit\"\nrtt = \"60ms\"\nqueue = \"2MB\"",
    ]);
    let finished = over_a_path(&program, &small, &["--time", "3s", "--forward"]);
    let run = &finished.json()["runs"][0];
    let answer = &run["answer"];
    assert_eq!(
        (answer["limit"].as_str(), answer["acts"].as_str()),
        (Some("receive_window"), Some("peer")),
        "{run:#}"
    );
    let causes = answer["causes"].to_string();
    assert!(causes.contains("receive_buffer_at_its_largest"), "{run:#}");
    assert_eq!(run["bottleneck_bps"], Value::Null, "the path was not full: {run:#}");
}

/// A satellite's round trip: every step waits for it, and none gives up.
fn long_path() {
    let program = Program::new();
    let world = World::new(["", "", "rate = \"20mbit\"\nrtt = \"600ms\"\nqueue = \"1500kB\""]);
    let finished = over_a_path(&program, &world, &["--time", "6s", "--reverse"]);
    let run = &finished.json()["runs"][0];
    let base = number(run, "base_rtt_us") / 600_000.0;
    assert!((0.99..1.05).contains(&base), "{run:#}");
    // Slow start takes half of the time; what is carried then is at most the link.
    let goodput = number(run, "goodput_bps");
    assert!((1e6..20e6).contains(&goodput), "{run:#}");
    assert_eq!(run["machine"], Value::Null, "{run:#}");
}

/// A host that drops datagrams by their size and says nothing: probes find what passes, each way by
/// itself. TCP is let through, so that there are runs.
fn black_hole() {
    let program = Program::new();
    let world = World::new(["", "", "rate = \"50mbit\"\nrtt = \"20ms\"\nqueue = \"250kB\""]);
    let mut rules = Command::new("nft");
    // The length of UDP is that of the packet less IP's header of 20 bytes.
    rules.arg(
        "add table ip hole; add chain ip hole input { type filter hook input priority 0; }; \
         add rule ip hole input udp length > 1380 drop",
    );
    world.client.start_in(&mut rules).unwrap();
    assert!(rules.status().unwrap().success());
    let words = ["--time", "1s", "--rfc6349", "--parallel", "1", "--reverse"];
    let document = over_a_path(&program, &world, &words).json();
    let mtu = &document["path_mtu"];
    assert_eq!((&mtu["forward_bytes"], &mtu["reverse_bytes"]), (&1500.into(), &1400.into()));
    assert_eq!(document["runs"][0]["mtu_bytes"], 1500, "what the kernel believes");
}

/// Whether a daemon closes this connection without a word.
fn is_closed(mut stream: TcpStream) -> bool {
    stream.set_read_timeout(Some(std::time::Duration::from_secs(30))).unwrap();
    let mut said = Vec::new();
    match stream.read_to_end(&mut said) {
        // A TLS alert is all that a wrong handshake gets.
        Ok(_) => said.len() < 16,
        Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
    }
}

fn strangers() {
    let program = Program::new();
    let server = key(&program, "server.key");
    let (client, other) = (key(&program, "client.key"), key(&program, "other.key"));
    program.file("clients", format!("{client}\n"));
    let keys = ["--key", "server.key", "--allow-key", "clients"];
    let (mut daemon, address) = serve(&program, &keys);
    let target = address.to_string();
    let test = |words: &[&str]| {
        program.run(&[&["test", &target, "--time", "500ms", "--json"], words].concat())
    };
    for (words, part) in [
        (&[][..], "--server-key"),
        (&["--key", "other.key", "--server-key", &server], "--allow-key"),
        (&["--key", "client.key", "--server-key", &other], "--server-key"),
    ] {
        let finished = test(words);
        assert_eq!(finished.code, Some(1), "{finished:?}");
        assert!(finished.err.contains(part), "{finished:?}");
        assert_eq!(finished.err.trim_end().lines().count(), 1, "{finished:?}");
    }
    let knock = |bytes: &[u8]| {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(bytes).unwrap();
        stream
    };
    let garbage: Vec<u8> = (0..4096u32).map(|at| (at * 7919 % 251) as u8).collect();
    assert!(is_closed(knock(&[&[22, 3, 1, 0xff, 0xff], &garbage[..]].concat())), "TLS garbage");
    assert!(is_closed(knock(b"GET / HTTP/1.1\r\n\r\n")), "HTTP");
    assert!(is_closed(knock(&[0; 64])), "plain messages where keys are needed");
    assert!(is_closed(knock(&[&b"FPDATA01"[..], &[7; 50]].concat())), "a forged ticket");
    // Slow ones: each sends one byte and waits. They are all closed in the time that each has.
    let start = clock::now();
    let slow: Vec<TcpStream> = (0..300).map(|_| knock(&[22])).collect();
    let known = test(&["--key", "client.key", "--server-key", &server, "--forward"]);
    // Beyond the bound of one address nobody is read, so a known client may have to wait as well.
    assert!(matches!(known.code, Some(0 | 1)), "{known:?}");
    assert!(slow.into_iter().all(is_closed), "slow strangers");
    assert!(clock::now().since(start) < Duration::from_secs(60));
    assert!(!daemon.has_ended());
    let known = test(&["--key", "client.key", "--server-key", &server]);
    assert_eq!(known.code, Some(0), "{known:?}");
    let status = std::fs::read_to_string(format!("/proc/{}/status", daemon.id())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let peak: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(peak < 100_000, "{peak} kB after 300 strangers");
}

fn killed() {
    let program = Program::new();
    let (mut daemon, address) = serve(&program, &[]);
    let target = address.to_string();
    let words = ["test", &target, "--time", "30s", "--reverse", "--interval", "200ms"];
    let begun = |test: &Running| {
        until("data flows", PATIENCE, || test.out().contains("[from]"));
    };
    // The near end: the daemon is free for the next.
    let mut test = program.start(&mut program.command(&words));
    begun(&test);
    test.kill_9();
    drop(test);
    let mut next = program.run(&["test", &target, "--time", "500ms", "--json"]);
    until("the place is free again", PATIENCE, || {
        next = program.run(&["test", &target, "--time", "500ms", "--json"]);
        next.code == Some(0)
    });
    // Ctrl-C.
    let test = program.start(&mut program.command(&words));
    begun(&test);
    test.signal(Signal::SIGINT);
    let ended = test.end();
    assert_eq!(ended.code, Some(130), "{ended:?}");
    // The far end: the near one says after what time.
    for way in ["--reverse", "--forward"] {
        if daemon.has_ended() {
            let (again, _) = again(&program, address);
            daemon = again;
        }
        let words = ["test", &target, "--time", "30s", way, "--interval", "200ms"];
        let mut test = program.start(&mut program.command(&words));
        until("data flows", PATIENCE, || {
            // The run before may hold its place for a moment.
            if test.has_ended() {
                test = program.start(&mut program.command(&words));
            }
            test.out().contains(" MB ")
        });
        daemon.kill_9();
        let ended = test.end();
        assert_eq!(ended.code, Some(1), "{ended:?}");
        assert!(ended.err.contains("the data ended after"), "{ended:?}");
        assert!(ended.took < PATIENCE, "{ended:?}");
    }
}

/// A daemon at an address that was in use.
fn again(program: &Program, address: SocketAddr) -> (Running, SocketAddr) {
    let listen = address.to_string();
    let daemon = program.start(&mut program.command(&["serve", "--listen", &listen]));
    let address = daemon_address(&daemon);
    (daemon, address)
}

fn refusals() {
    let program = Program::new();
    let public = key(&program, "some.key");
    program.file("open.key", std::fs::read(program.work().join("some.key")).unwrap());
    let open = program.work().join("open.key");
    std::fs::set_permissions(open, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    program.file("empty", "# nobody\n");
    for (code, words, part) in [
        (4, &["keygen", "some.key"][..], "the file exists"),
        (2, &["serve", "--listen", "0.0.0.0:0"], "needs keys"),
        (2, &["serve", "--key", "some.key"], "--allow-key"),
        (4, &["serve", "--key", "some.key", "--allow-key", "empty"], "it has no key"),
        (4, &["serve", "--key", "open.key", "--allow-key", "empty"], "chmod 600"),
        (4, &["serve", "--key", "none", "--allow-key", "empty"], "fullpipe keygen"),
        (2, &["test", "192.0.2.1"], "needs keys"),
        (2, &["test", "localhost", "--server-key", "ed25519:12"], "64 hexadecimal digits"),
        (2, &["test", "localhost", "--parallel", "65"], "--parallel"),
        (2, &["test", "localhost", "--forward", "--reverse"], "cannot be used"),
        (4, &["test", "localhost", "--key", "none", "--server-key", &public], "fullpipe keygen"),
        (1, &["test", "127.0.0.1:1"], "fullpipe serve"),
    ] {
        let finished = program.run(words);
        assert_eq!(finished.code, Some(code), "{words:?} {finished:?}");
        assert!(finished.err.contains(part), "{finished:?}");
        assert_eq!(finished.err.trim_end().lines().count(), 1, "{finished:?}");
    }
    let mode = std::fs::metadata(program.work().join("some.key")).unwrap().permissions();
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&mode) & 0o777, 0o600);
}
