//! `fullpipe link -- CMD`: a real program behind a path, with each figure compared to its law.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};

use fullpipe_model::units::Duration;
use nix::sys::signal::Signal;

use crate::Case;
use crate::need::Need;
use crate::program::{Finished, Program, User, until};
use crate::remains::{Machine, assert_nothing_left, namespaces, process_inside, processes};

const CURL: Need = Need::Program("curl");
const NFT: Need = Need::Program("nft");
const TC: Need = Need::Program("tc");

pub const CASES: &[Case] = &[
    ("curl_meets_the_round_trip_time", &[CURL, NFT], || curl_meets_the_round_trip_time(User::Own)),
    ("an_ordinary_user_reaches_the_loopback", &[CURL, NFT, Need::OrdinaryUser], || {
        curl_meets_the_round_trip_time(User::Ordinary);
    }),
    ("the_programs_exit_code_is_ours", &[], the_programs_exit_code_is_ours),
    (
        "the_program_keeps_standard_input_and_its_user",
        &[Need::OrdinaryUser],
        the_program_keeps_its_input_and_its_user,
    ),
    (
        "signals_go_through_and_nothing_is_left",
        &[Need::Root],
        signals_go_through_and_nothing_is_left,
    ),
    ("kill_9_leaves_nothing", &[Need::Root], kill_9_leaves_nothing),
    ("the_path_changes_in_mid_transfer", &[CURL], the_path_changes_in_mid_transfer),
    ("the_log_has_every_packet", &[CURL, Need::Program("python3")], the_log_has_every_packet),
    (
        "netem_carries_it_where_tc_gets_it_and_is_refused_elsewhere",
        &[CURL, Need::Program("python3"), TC],
        netem,
    ),
    (
        "each_end_has_a_capture_that_analyze_reads",
        &[CURL, Need::Program("python3")],
        captures_of_both_ends,
    ),
    ("a_full_disk_is_told_and_the_commands_code_stays", &[CURL, Need::Root], a_full_disk_is_told),
    (
        "both_ends_have_the_congestion_control_asked_for",
        &[Need::Program("python3"), NFT],
        both_ends_have_the_congestion_control_asked_for,
    ),
    ("show_prints_tc_commands_with_the_words_asked", &[], show_prints_tc_commands),
    ("what_cannot_be_is_refused_with_its_reason", &[], what_cannot_be_is_refused),
];

/// A service on this machine's loopback that answers each request with a line, on a thread that
/// ends with the trial.
fn service() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut request = [0; 4096];
            if stream.read(&mut request).is_ok() {
                let _ = stream.write_all(b"HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nyes");
            }
        }
    });
    address
}

/// Seconds that curl says, which is all that it prints.
fn seconds(finished: &Finished) -> f64 {
    assert_eq!(finished.code, Some(0), "{finished:?}");
    finished.out.trim().parse().unwrap_or_else(|_| panic!("no number: {finished:?}"))
}

/// curl's options that make it print the time of the handshake alone, and retry nothing.
const TIME_CONNECT: [&str; 5] = ["curl", "-q", "-sS", "-o/dev/null", "-w%{time_connect}"];

/// A handshake is one round trip: no less, and as little more as a busy machine needs.
fn curl_meets_the_round_trip_time(user: User) {
    let port = service().port();
    let program = Program::of(user);
    let url = format!("http://{{server}}:{port}/");
    let command = [&["link", "--rtt", "120ms", "--"], &TIME_CONNECT[..], &[url.as_str()]].concat();
    // What a busy machine adds is not the path's: one of a few tries meets it undisturbed.
    let mut times = Vec::new();
    while times.len() < 10 && times.iter().all(|&time| time > 0.120 + 0.080) {
        times.push(seconds(&program.run(&command)));
    }
    eprintln!("handshakes over 120 ms, {user:?}: {times:?}");
    assert!(times.iter().all(|&time| time >= 0.120), "faster than the path: {times:?}");
    assert!(
        times.iter().any(|&time| time <= 0.120 + 0.080),
        "all far above the path's 120 ms: {times:?}"
    );
}

fn both_ends_have_the_congestion_control_asked_for() {
    const SERVER: &str = "exec python3 -c \"import socket; \
        client = socket.create_server(('', 8000)).accept()[0]; client.recv(1); \
        client.sendall(client.getsockopt(6, 13, 16).split(b'\\0')[0] + b'\\n')\"";
    const CLIENT: &str = "import socket, sys; server = socket.create_connection((sys.argv[1], int(sys.argv[2]))); \
        server.sendall(b'x'); \
        print(server.getsockopt(6, 13, 16).split(b'\\0')[0].decode(), server.makefile().readline(), end='')";
    let python = ["--", "python3", "-c", CLIENT, "{server}"];
    let program = Program::new();
    let here = "--congestion=reno";
    let server = ["link", "-q", here, "--server", SERVER];
    let finished = program.run(&[&server[..], &python, &["8000"]].concat());
    assert_eq!(finished.out, "reno reno\n", "{finished:?}");
    // Behind a gateway the far end is the gateway's, and the program's own is what we see.
    let port = service().port().to_string();
    let finished = program.run(&[&["link", "-q", here], &python[..], &[&port]].concat());
    assert!(finished.out.starts_with("reno"), "{finished:?}");
    let finished = program.run(&["link", "--congestion", "none-such", "--", "true"]);
    assert_eq!(finished.code, Some(1), "{finished:?}");
    for part in ["congestion control: none-such", "tcp_available_congestion_control"] {
        assert!(finished.err.contains(part), "{finished:?}");
    }
}

fn the_programs_exit_code_is_ours() {
    let program = Program::new();
    let code = |line: &str| {
        program.run(&["link", "-q", "--server", "exec sleep 30", "--", "sh", "-c", line]).code
    };
    // A server that never listens is told by name, long before the program is started.
    assert_eq!(code("true"), Some(1));
    let server = "exec python3 -m http.server 8000";
    let code =
        |line: &str| program.run(&["link", "-q", "--server", server, "--", "sh", "-c", line]).code;
    assert_eq!(code("exit 7"), Some(7));
    assert_eq!(code("kill -TERM $$"), Some(143));
    let missing = program.run(&["link", "--server", server, "--", "no-such-program"]);
    assert_eq!(missing.code, Some(3));
    assert!(missing.err.contains("start no-such-program: it is not installed"), "{missing:?}");
}

fn the_program_keeps_its_input_and_its_user() {
    let program = Program::of(User::Ordinary);
    let place = program.file("typed", "typed in\n");
    let line = "cat; id -u; test -w /root/x || echo no power";
    let server = "exec python3 -m http.server 8000";
    let mut command = program.command(&["link", "-q", "--server", server, "--", "sh", "-c", line]);
    command.stdin(std::fs::File::open(program.work().join(place)).unwrap());
    let finished = program.start(&mut command).end();
    let own = if nix::unistd::geteuid().is_root() { 1000 } else { nix::unistd::geteuid().as_raw() };
    assert_eq!((finished.code, finished.out), (Some(0), format!("typed in\n{own}\nno power\n")));
}

/// A program that says what it was sent, and that it is ready for it.
const LISTENS: &str = "trap 'echo got TERM; exit 9' TERM; echo ready; while :; do sleep 0.05; done";

fn ready(program: &Program) -> crate::program::Running {
    let server = "exec python3 -m http.server 8000";
    let running = program.start(
        &mut program.command(&["link", "-q", "--server", server, "--", "sh", "-c", LISTENS]),
    );
    until("the program runs", Duration::from_secs(20), || running.out().contains("ready"));
    running
}

fn signals_go_through_and_nothing_is_left() {
    let machine = Machine::look();
    let program = Program::new();
    let running = ready(&program);
    let seen = namespaces(processes(&program));
    assert!(seen.len() >= 3, "the two ends and the empty one of the supervisor, seen: {seen:?}");
    running.signal(Signal::SIGTERM);
    let id = running.id();
    let finished = running.end();
    assert_eq!(
        (finished.code, finished.out.as_str()),
        (Some(9), "ready\ngot TERM\n"),
        "{finished:?}"
    );
    assert_nothing_left(&program, &seen, &[id], &machine);
    assert!(
        !link_sockets().iter().any(|name| name.contains(&format!("-{id}."))),
        "{:?}",
        link_sockets()
    );
}

fn kill_9_leaves_nothing() {
    let machine = Machine::look();
    for inner in [None, Some(1), Some(2)] {
        let program = Program::new();
        let mut running = ready(&program);
        let seen = namespaces(processes(&program));
        match inner {
            None => running.kill_9(),
            Some(number) => {
                let process = process_inside(&program, number).expect("the run has processes");
                nix::sys::signal::kill(nix::unistd::Pid::from_raw(process as i32), Signal::SIGKILL)
                    .unwrap();
            }
        }
        let id = running.id();
        let _ = running.end();
        let left = || link_sockets().iter().any(|name| name.contains(&format!("-{id}.")));
        // It takes away the sockets that nobody answers; the kernel closes those of a killed
        // process in its own time.
        until("its socket is gone", Duration::from_secs(30), || {
            assert_eq!(program.run(&["link", "list"]).code, Some(0));
            !left()
        });
        assert_eq!(program.run(&["lab", "clean"]).code, Some(0));
        assert_nothing_left(&program, &seen, &[id], &machine);
    }
}

/// A download of 300 kB over 20 ms: at its receiver's end data comes, at its sender's it leaves,
/// half a round trip earlier.
fn captures_of_both_ends() {
    const SIZE: u64 = 300_000;
    let program = Program::new();
    program.file("body", vec![7; SIZE as usize]);
    let get = "curl -q -sS -o /dev/null http://$FULLPIPE_SERVER:8000/body";
    let server = "exec python3 -m http.server 8000";
    let link = [
        "link",
        "-q",
        "--rtt",
        "20ms",
        "--capture",
        "kept",
        "--html",
        "report.html",
        "--server",
        server,
        "--",
        "sh",
        "-c",
        get,
    ];
    let finished = program.run(&link);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let mut names: Vec<_> = std::fs::read_dir(program.work().join("kept"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    names.sort();
    assert_eq!(names, ["client.edge.pcap", "server.edge.pcap"]);
    let html = std::fs::read_to_string(program.work().join("report.html")).unwrap();
    assert!(
        html.contains("client.edge.pcap") && html.contains("\"server_to_client\":{\"segments\"")
    );
    let first_data = ["client", "server"].map(|end| {
        let file = format!("kept/{end}.edge.pcap");
        let report = program.run(&["analyze", &file, "--json"]).json();
        let connections = report["connections"].as_array().unwrap();
        let sent = |connection: &&serde_json::Value| {
            connection["server_to_client"]["payload_bytes"].as_u64() > Some(SIZE)
        };
        let download =
            connections.iter().find(sent).unwrap_or_else(|| panic!("no download: {report:#}"));
        assert!(download["client_to_server"]["packets"].as_u64() > Some(10), "{download:#}");
        assert_eq!(download["close"], "finished", "{download:#}");
        // The SYN leaves the client before it comes to the server.
        download["start_ns"].as_u64().unwrap()
    });
    assert!(first_data[1] - first_data[0] >= 10_000_000, "{first_data:?}");
    let both = program.run(&[
        "analyze",
        "--as-one",
        "kept/client.edge.pcap",
        "kept/server.edge.pcap",
        "--json",
    ]);
    assert_eq!(both.code, Some(0), "{both:?}");
}

fn a_full_disk_is_told() {
    let port = service().port();
    for (command, expected) in [("true", 1), ("exit 7", 7)] {
        let program = Program::new();
        std::fs::create_dir(program.work().join("tiny")).unwrap();
        let loads = format!(
            "for i in $(seq 40); do curl -q -sS -o /dev/null http://{{server}}:{port}/; done; {command}"
        );
        let script = "mount -t tmpfs -o size=16k none tiny && exec \"$0\" link -q --capture tiny -- sh -c \"$1\"";
        let binary = program.binary().to_str().unwrap();
        let words = ["unshare", "-m", "sh", "-c", script, binary, &loads];
        let finished = program.start(&mut program.command_by(&words)).end();
        assert_eq!(finished.code, Some(expected), "{finished:?}");
        assert!(finished.err.contains("No space left on device"), "{finished:?}");
        assert!(finished.err.contains("free some space"), "{finished:?}");
    }
}

fn link_sockets() -> Vec<String> {
    // A relay that was killed may have left one, whose process had the same number.
    let is_links = |name: &String| name.ends_with(".sock") && !name.ends_with(".relay.sock");
    let own = format!("/tmp/fullpipe-{}", nix::unistd::geteuid());
    let folders = ["/run/fullpipe", own.as_str()];
    let files =
        folders.iter().flat_map(|folder| std::fs::read_dir(folder).into_iter().flatten().flatten());
    files.map(|file| file.file_name().to_string_lossy().into_owned()).filter(is_links).collect()
}

/// The same program makes two handshakes; between them the path changes under it.
fn the_path_changes_in_mid_transfer() {
    let program = Program::new();
    let server = "exec python3 -m http.server 8000";
    let curl = TIME_CONNECT.join(" ").replace("%{", "'%{").replace('}', "}\\n'");
    let line = format!(
        "{curl} http://$FULLPIPE_SERVER:8000/; read go; {curl} http://$FULLPIPE_SERVER:8000/"
    );
    let name = format!("e2e-{}", std::process::id());
    let words = [
        "link",
        "-q",
        "--name",
        &name,
        "--rtt",
        "20ms",
        "--server",
        server,
        "--",
        "sh",
        "-c",
        line.as_str(),
    ];
    let mut command = program.command(&words);
    let (input, mut typed) = std::io::pipe().unwrap();
    command.stdin(input);
    let running = program.start(&mut command);
    // The command keeps a copy of the pipe's end otherwise, and so would the trial.
    drop(command);
    until("the first handshake is over", Duration::from_secs(20), || running.out().contains('\n'));
    let set = program.run(&["link", "set", "--link", &name, "--delay", "150ms"]);
    assert_eq!((set.code, set.err.as_str()), (Some(0), ""), "{set:?}");
    let status = program.run(&["link", "status", "--link", &name, "--json"]).json();
    assert_eq!(status["path"]["to_client"]["delay"], "150ms", "{status:#}");
    let refused = program.run(&["link", "set", "--link", &name, "--mtu", "9000"]);
    assert_eq!(refused.code, Some(4), "{refused:?}");
    let wrong = program.run(&["link", "set", "--link", &name, "--loss", "x"]);
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
    typed.write_all(b"go\n").unwrap();
    let finished = running.end();
    let times: Vec<f64> = finished.out.lines().map(|line| line.parse().unwrap()).collect();
    eprintln!("handshakes over 20 ms, then 300 ms: {times:?}");
    assert_eq!((finished.code, times.len()), (Some(0), 2), "{finished:?}");
    assert!((0.020..0.150).contains(&times[0]) && times[1] >= 0.300, "{times:?}");
    let gone = program.run(&["link", "status", "--link", &name]);
    assert_eq!(gone.code, Some(2), "{gone:?}");
}

/// What the log counts is what the link counted, and Wireshark's format of it is one that our own
/// reader takes.
fn the_log_has_every_packet() {
    let program = Program::new();
    let server = "exec python3 -m http.server 8000";
    let words = [
        "link",
        "--loss",
        "20%",
        "--log",
        "link.log",
        "--report",
        "report.json",
        "--server",
        server,
        "--",
    ];
    let command = [&words[..], &TIME_CONNECT, &["http://{server}:8000/"]].concat();
    assert_eq!(program.run(&command).code, Some(0));
    let report = std::fs::read_to_string(program.work().join("report.json")).unwrap();
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    let told =
        program.run(&["link", "log", "link.log", "--json", "--pcapng", "link.pcapng"]).json();
    for way in ["to_client", "to_server"] {
        let arrived = told[way]["arrived_packets"].as_u64().unwrap();
        // The report is a moment older than the end.
        assert!(
            arrived >= report["statistics"][way]["arrived_packets"].as_u64().unwrap(),
            "{way}: {told:#} {report:#}"
        );
    }
    assert!(told["records"].as_array().unwrap().len() >= 6, "{told:#}");
    assert_eq!(program.run(&["analyze", "link.pcapng", "--json"]).code, Some(0));
    assert_eq!(program.run(&["link", "log", "report.json"]).code, Some(4));
}

/// Whether this kernel has netem, asked by somebody else.
fn tc_gets_netem() -> bool {
    let command = "PATH=$PATH:/usr/sbin:/sbin; exec tc qdisc add dev lo root netem delay 1ms";
    let namespaces = if nix::unistd::geteuid().is_root() { "-n" } else { "-Urn" };
    let output = std::process::Command::new("unshare")
        .args([namespaces, "sh", "-c", command])
        .output()
        .unwrap();
    output.status.success()
}

/// The same flags with the kernel's engine: the path's time where the kernel has netem, else exit
/// code 3 and what to do.
fn netem() {
    let program = Program::new();
    let server = "exec python3 -m http.server 8000";
    let words = ["link", "-q", "--engine", "netem", "--rtt", "120ms", "--server", server, "--"];
    let command = [&words[..], &TIME_CONNECT, &["http://{server}:8000/"]].concat();
    let finished = program.run(&command);
    if tc_gets_netem() {
        let time = seconds(&finished);
        assert!((0.120..0.180).contains(&time), "{time}");
    } else {
        assert_eq!((finished.code, finished.out.as_str()), (Some(3), ""), "{finished:?}");
        assert!(
            finished.err.contains("this kernel has no netem: load it (modprobe sch_netem"),
            "{finished:?}"
        );
        assert_eq!(finished.err.lines().count(), 1, "{finished:?}");
    }
    let foreign = [
        "link",
        "--engine",
        "netem",
        "--discipline",
        "codel",
        "--rate",
        "1mbit",
        "--server",
        server,
        "--",
        "true",
    ];
    let refused = program.run(&foreign);
    assert!(matches!(refused.code, Some(3 | 4)) && refused.err.contains("netem"), "{refused:?}");
}

/// One word after another as netem has them, both ways; a match becomes a filter; nothing is run.
fn show_prints_tc_commands() {
    let program = Program::new();
    let cases: [(&[&str], &[&str]); 4] = [
        (
            &["--rate", "1gbit", "--delay", "25ms", "--loss", "0.1%"],
            &[" delay 25ms", " loss 0.1%", " rate 1gbit"],
        ),
        (
            &[
                "--delay",
                "100ms 10ms 30% distribution normal",
                "--duplicate",
                "1%",
                "--corrupt",
                "0.1%",
            ],
            &[" delay 100ms 10ms 30% distribution normal", " duplicate 1%", " corrupt 0.1%"],
        ),
        (
            &["--delay", "10ms", "--reorder", "25% 50% gap 5"],
            &[" delay 10ms", " reorder 25% 50% gap 5"],
        ),
        (&["--delay", "1ms", "--loss", "gemodel 1% 20%"], &[" loss gemodel 1% 20%"]),
    ];
    for (words, expected) in cases {
        let shown = program.run(&[&["link"], words, &["--show"]].concat());
        assert_eq!((shown.code, shown.err.as_str()), (Some(0), ""), "{words:?}: {shown:?}");
        let netem: Vec<_> =
            shown.out.lines().filter(|line| line.contains(" netem limit ")).collect();
        assert_eq!(netem.len(), 2, "a line each way: {shown:?}");
        let has = |line: &str| {
            line.starts_with("tc qdisc replace ") && expected.iter().all(|word| line.contains(word))
        };
        assert!(netem.iter().all(|line| has(line)), "{expected:?} in {netem:#?}");
    }
    let shown = program.run(&["link", "--to", "10.0.0.5:443", "--up-delay", "17ms", "--show"]);
    assert_eq!(shown.code, Some(0), "{shown:?}");
    assert!(shown.out.contains("dst_ip 10.0.0.5/32 dst_port 443"), "{shown:?}");
    assert_eq!(shown.out.matches(" delay 17ms").count(), 1, "one way only: {shown:?}");
}

fn what_cannot_be_is_refused() {
    let program = Program::new();
    let cases: [(&[&str], i32, &str); 8] = [
        (&["link", "--delay", "25x", "--", "true"], 2, "--delay 25x"),
        (&["link", "--rtt", "5ms", "--delay", "5ms", "--", "true"], 2, "not both"),
        (&["link", "--reorder", "25%", "--", "true"], 2, "reorder"),
        (&["link", "--rate", "1mbit", "--queue", "10B", "--", "true"], 2, "packet"),
        (&["link", "--mtu", "100", "--", "true"], 2, "mtu"),
        (&["link", "--rate", "10gbit", "--delay", "60s", "--", "true"], 4, "needs"),
        (&["link", "--rtt", "5ms"], 2, "CMD"),
        (&["link", "--name", "../x", "--", "true"], 2, "letters"),
    ];
    for (arguments, code, said) in cases {
        let finished = program.run(arguments);
        assert_eq!(finished.code, Some(code), "{arguments:?}: {finished:?}");
        assert!(
            finished.err.starts_with("fullpipe: ") && finished.err.contains(said),
            "{arguments:?}: {finished:?}"
        );
        assert_eq!(finished.err.lines().count(), 1, "{arguments:?}: {finished:?}");
    }
}
