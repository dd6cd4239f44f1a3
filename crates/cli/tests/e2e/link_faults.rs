//! Faults that must not harm the users of a link: a helper that is killed, a client that says
//! nothing, a name taken twice, packets too small for IPv6, a single CPU for everything.

use std::io::Write;
use std::net::UdpSocket;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use fullpipe_kernel::network::netlink::{LinkChange, Netlink};
use fullpipe_kernel::process::sched::Placement;
use fullpipe_model::units::{Bytes, Duration};
use nix::sys::signal::Signal;

use crate::Case;
use crate::attach::{DEVICE, THERE, World, name};
use crate::need::Need;
use crate::program::{Finished, Program, Running, User, until};
use crate::remains::{process_inside, processes};

const CURL: Need = Need::Program("curl");
const NFT: Need = Need::Program("nft");
const PYTHON: Need = Need::Program("python3");

pub const CASES: &[Case] = &[
    ("a_killed_way_out_ends_the_link_with_a_message", &[NFT], a_killed_way_out_ends_the_link),
    ("one_name_is_one_links_also_when_many_want_it_at_once", &[NFT], one_name_is_one_links),
    ("silent_clients_hold_nobody_up", &[NFT], silent_clients_hold_nobody_up),
    ("packets_too_small_for_ipv6_pass", &[CURL, NFT, PYTHON], packets_too_small_for_ipv6_pass),
    (
        "where_ipv6_is_off_it_is_left_out",
        &[Need::Root, Need::Tcx, NFT, PYTHON],
        where_ipv6_is_off_it_is_left_out,
    ),
    ("on_one_cpu_nobody_is_starved", &[PYTHON], on_one_cpu_nobody_is_starved),
    ("udp_to_a_closed_port_is_refused", &[NFT, PYTHON], udp_to_a_closed_port_is_refused),
    (
        "more_udp_flows_than_there_is_room_for",
        &[NFT, PYTHON],
        more_udp_flows_than_there_is_room_for,
    ),
    ("messages_are_for_people", &[Need::Root, Need::OrdinaryUser], messages_are_for_people),
];

/// A link whose command reads its standard input to the end, and the end of that.
fn waiting(program: &Program, name: &str) -> (Running, std::io::PipeWriter) {
    let mut command = program.command(&[
        "link",
        "--name",
        name,
        "--rtt",
        "5ms",
        "--",
        "sh",
        "-c",
        "echo runs; cat",
    ]);
    let (input, typed) = std::io::pipe().unwrap();
    command.stdin(input);
    (program.start(&mut command), typed)
}

fn runs(running: &Running) -> bool {
    running.out().contains("runs")
}

fn a_killed_way_out_ends_the_link() {
    let program = Program::new();
    let (running, _typed) = waiting(&program, &name("out"));
    until("the command runs", Duration::from_secs(30), || runs(&running));
    let is_outside = |id: &u32| {
        std::fs::read_to_string(format!("/proc/{id}/comm"))
            .is_ok_and(|comm| comm.trim() == "fullpipe-out")
    };
    let outside =
        processes(&program).into_iter().find(is_outside).expect("a process stayed outside");
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(outside as i32), Signal::SIGKILL).unwrap();
    let finished = running.end();
    assert_eq!(finished.code, Some(1), "{finished:?}");
    assert!(
        finished.err.contains("fullpipe-out: it was killed; start the link again"),
        "{finished:?}"
    );
}

fn one_name_is_one_links() {
    let (program, name) = (Program::new(), name("one"));
    let mut links: Vec<_> = (0..6).map(|_| waiting(&program, &name)).collect();
    until("one link runs and the others have ended", Duration::from_secs(60), || {
        let ended =
            links.iter_mut().map(|(running, _)| usize::from(running.has_ended())).sum::<usize>();
        ended == links.len() - 1 && links.iter().any(|(running, _)| runs(running))
    });
    let status = program.run(&["link", "status", "--link", &name]);
    assert_eq!(status.code, Some(0), "{status:?}");
    let mut codes = Vec::new();
    for (running, typed) in links {
        drop(typed);
        let finished = running.end();
        let refused = finished.err.contains("a link of this name runs; choose another with --name");
        assert_eq!(finished.code, Some(if refused { 2 } else { 0 }), "{finished:?}");
        codes.push(finished.code);
    }
    assert_eq!(codes.iter().filter(|&&code| code == Some(0)).count(), 1, "{codes:?}");
}

/// The control socket of link `name`, in whichever folder of this user it is.
fn control_socket(name: &str) -> PathBuf {
    let own = format!("/tmp/fullpipe-{}", nix::unistd::geteuid());
    let paths = ["/run/fullpipe", own.as_str()]
        .map(|folder| PathBuf::from(folder).join(format!("link-{name}.sock")));
    paths.into_iter().find(|path| path.exists()).expect("the link has a socket")
}

/// Clients that say nothing, and one that never ends its line; meanwhile an honest one is answered.
fn silent_clients_hold_nobody_up() {
    let (program, name) = (Program::new(), name("silent"));
    let (running, typed) = waiting(&program, &name);
    until("the command runs", Duration::from_secs(30), || runs(&running));
    let socket = control_socket(&name);
    let clients: Vec<_> = (0..12).map(|_| UnixStream::connect(&socket).unwrap()).collect();
    (&clients[0]).write_all(b"\"stat").unwrap();
    let status = program.run(&["link", "status", "--link", &name]);
    assert_eq!(status.code, Some(0), "{status:?}");
    // More than are answered at once: whoever comes then is told so, and finds room a moment later.
    let more: Vec<_> = (0..60).map(|_| UnixStream::connect(&socket).unwrap()).collect();
    until("there is room again", Duration::from_secs(20), || {
        let status = program.run(&["link", "status", "--link", &name]);
        assert!(status.code == Some(0) || status.err.contains("try again"), "{status:?}");
        status.code == Some(0)
    });
    drop((clients, more, typed));
    assert_eq!(running.end().code, Some(0));
}

fn packets_too_small_for_ipv6_pass() {
    let program = Program::new();
    for mtu in ["576", "1279"] {
        // `ip` may not be there: what the command says of its device is the kernel's own file.
        let line = "cat /sys/class/net/wan0/mtu 2>/dev/null; cat /proc/net/if_inet6";
        let alone =
            program.run(&["link", "-q", "--mtu", mtu, "--rtt", "5ms", "--", "sh", "-c", line]);
        assert_eq!(alone.code, Some(0), "{alone:?}");
        assert!(!alone.out.contains("wan0"), "no IPv6 there: {alone:?}");
        let server = "exec python3 -m http.server 8000";
        let get = ["curl", "-q", "-sS", "-o/dev/null", "-w%{http_code}", "http://{server}:8000/"];
        let words = ["link", "-q", "--mtu", mtu, "--rtt", "5ms", "--server", server, "--"];
        let passed = program.run(&[&words[..], &get].concat());
        assert_eq!((passed.code, passed.out.as_str()), (Some(0), "200"), "{passed:?}");
    }
    let scenario = crate::program::scenario("small", ["20mbit", "5ms"], "size = \"100kB\"", "")
        .replace("rtt = ", "mtu = \"600B\"\nrtt = ");
    let rows = program.rows(&[program.file("small.toml", scenario)]);
    assert!(rows[0].number("goodput_bps") > 0.0, "{rows:?}");
}

/// Switched off in the machine's own network: on a device that is attached, and on the one that
/// `--nat` makes there.
fn where_ipv6_is_off_it_is_left_out() {
    let (world, program, name) = (World::new(), Program::new(), name("no6"));
    fullpipe_kernel::host::sysctl::write(
        &world.here,
        &"net.ipv6.conf.all.disable_ipv6".parse().unwrap(),
        "1",
    )
    .unwrap();
    fullpipe_kernel::host::sysctl::write(
        &world.here,
        &"net.ipv6.conf.default.disable_ipv6".parse().unwrap(),
        "1",
    )
    .unwrap();
    fullpipe_kernel::host::sysctl::write(&world.here, &"net.ipv4.ip_forward".parse().unwrap(), "1")
        .unwrap();
    // The next attachment is to a device too small for IPv6 besides.
    for mtu in [1500, 576] {
        let change = LinkChange { mtu: Some(Bytes::new(mtu)), ..LinkChange::default() };
        Netlink::open(&world.here).unwrap().change_link(DEVICE, &change).unwrap();
        let attached =
            world.run(&program, &["attach", "--dev", DEVICE, "--name", &name, "--rtt", "50ms"]);
        assert_eq!((attached.code, attached.err.as_str()), (Some(0), ""), "{attached:?}");
        let round_trip = world.round_trip(THERE, world.ports[0]);
        assert!(round_trip >= Duration::from_millis(50), "{round_trip}");
        assert_eq!(world.run(&program, &["detach", "--dev", &name]).code, Some(0));
    }
    let line = format!(
        "import socket; socket.create_connection(('{THERE}',{})); print('connected')",
        world.ports[0]
    );
    for words in [&["--nat"][..], &["--nat", "--mtu", "576"], &["--mtu", "576"]] {
        let done = world.run(
            &program,
            &[words, &["-q", "--rtt", "5ms", "--", "python3", "-c", &line]].concat(),
        );
        assert_eq!((done.code, done.out.trim()), (Some(0), "connected"), "{done:?}");
    }
}

/// Sends all it can for two seconds, as the server does.
const FLOOD: &str = "\
import os, socket, sys, time
end = time.monotonic() + 2
if sys.argv[1] == 'server':
    connection, _ = socket.create_server(('', 8000)).accept()
else:
    connection = socket.create_connection((sys.argv[1], 8000))
connection.settimeout(1)
data = bytes(1 << 20)
if sys.argv[1] == 'server':
    try:
        while True:
            connection.sendall(data)
    except OSError:
        pass
else:
    while time.monotonic() < end:
        connection.recv(1 << 20)
";

/// Link, server, command and a computing program share one CPU. The computing program must get its
/// fair share: as much as each of the link's threads.
fn on_one_cpu_nobody_is_starved() {
    let program = Program::new();
    let flood = program.file("flood.py", FLOOD);
    let cpu = fullpipe_kernel::process::sched::cpus_from_here().unwrap()[0];
    let placement = Placement { cpus: vec![cpu], nice: None };
    let server = format!("exec python3 {flood} server");
    let words = [
        "link",
        "-q",
        "--rtt",
        "2ms",
        "--report",
        "report.json",
        "--server",
        &server,
        "--",
        "python3",
        flood,
        "{server}",
    ];
    let mut command = program.command(&words);
    placement.apply_to(&mut command).unwrap();
    let mut third = Command::new("sh");
    third.args(["-c", "while :; do :; done"]).stdin(Stdio::null());
    placement.apply_to(&mut third).unwrap();
    let mut third = third.spawn().unwrap();
    let mut running = program.start(&mut command);
    // The worker's threads are the link; it is gone with its accounts at the end, so they are read
    // until then.
    let (mut link, mut of_third, mut before) = (0, 0, None);
    until("the command ends", Duration::from_secs(60), || {
        if let Some(now) = process_inside(&program, 2).and_then(busiest_thread) {
            let third_now =
                cpu_time(&format!("/proc/{}/schedstat", third.id())).unwrap_or_default();
            let (link_before, third_before) = *before.get_or_insert((now, third_now));
            // When its thread has ended, another one is the busiest, with less.
            if now > link_before + link {
                (link, of_third) = (now - link_before, third_now - third_before);
            }
        }
        running.has_ended()
    });
    let _ = (third.kill(), third.wait());
    let finished = running.end();
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let report = std::fs::read_to_string(program.work().join("report.json")).unwrap();
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    eprintln!(
        "on one CPU: the link's busiest thread took {} ms, the third program {} ms",
        link / 1000000,
        of_third / 1000000
    );
    assert_eq!(report["real_time"], false, "{report:#}");
    assert!(
        of_third * 10 >= link * 7,
        "the third program had {of_third} ns, the link's thread {link} ns"
    );
    assert!(link > 50_000_000, "the link was busy");
    assert!(of_third > 100_000_000, "the third program had {of_third} ns of two seconds");
}

/// Nanoseconds on a CPU: the first number of a `schedstat` file.
fn cpu_time(file: &str) -> Option<u64> {
    std::fs::read_to_string(file).ok()?.split_whitespace().next()?.parse().ok()
}

/// The CPU time of the thread of process `id` that has had the most.
fn busiest_thread(id: u32) -> Option<u64> {
    let threads = std::fs::read_dir(format!("/proc/{id}/task")).ok()?.flatten();
    threads
        .filter_map(|thread| cpu_time(&thread.path().join("schedstat").display().to_string()))
        .max()
}

/// As without a link: the command's connected sockets learn that nobody listens, by either
/// protocol.
fn udp_to_a_closed_port_is_refused() {
    let program = Program::new();
    let free = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let line = format!(
        "import socket
for address in ['{{server}}', 'fd46:7069:7065::1']:
    s = socket.socket(socket.AF_INET6 if ':' in address else socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(20)
    s.connect((address, {free}))
    s.send(b'x')
    try: s.recv(10); print('answered')
    except OSError as error: print(type(error).__name__)
"
    );
    let done = program.run(&["link", "-q", "--rtt", "5ms", "--", "python3", "-c", &line]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert_eq!(done.out, "ConnectionRefusedError\nConnectionRefusedError\n", "{done:?}");
}

/// The longest silent flows make room for new ones, every one of which is answered; it is counted
/// and told.
fn more_udp_flows_than_there_is_room_for() {
    let program = Program::new();
    let echo = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = echo.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let mut buffer = [0; 100];
        while let Ok((length, from)) = echo.recv_from(&mut buffer) {
            let _ = echo.send_to(&buffer[..length], from);
        }
    });
    let line = format!(
        "import socket
flows = []
for flow in range(600):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(20)
    s.connect(('{{server}}', {port}))
    s.send(b'x')
    assert s.recv(10) == b'x'
    flows.append(s)
flows[0].send(b'again'); assert flows[0].recv(10) == b'again'
print('all answered')
"
    );
    let done = program.run(&["link", "--json", "--", "python3", "-c", &line]);
    assert_eq!((done.code, done.out.as_str()), (Some(0), "all answered\n"), "{done:?}");
    let report: serde_json::Value = serde_json::from_str(done.err.trim()).unwrap();
    let evicted = report["gateway"]["evicted_flows"].as_u64().unwrap();
    eprintln!("600 flows and one that was given up before: {evicted} evicted");
    // Where descriptors are few, it is more.
    assert!(evicted >= 600 + 1 - 512, "{report:#}");
    assert_eq!(report["gateway"]["dropped_datagrams"], 0, "{report:#}");
}

/// What lacks a privilege says in one line what to do, and shows nobody how a value looks inside of
/// the program.
fn messages_are_for_people() {
    let program = Program::of(User::Ordinary);
    let scenario = program.file(
        "quick.toml",
        "name = \"quick\"\n[link]\nrtt = \"5ms\"\n[transfer]\nsize = \"1kB\"\n",
    );
    let cases: [(&[&str], &str); 4] = [
        (&["link", "attach", "--dev", "lo", "--rtt", "5ms"], "root"),
        (&["link", "--nat", "--rtt", "5ms", "--", "true"], "root"),
        (&["lab", "run", scenario, "--out", "/proc/nowhere"], "--out"),
        (&["link", "--loss", "1", "--", "true"], "write 1% or 0.01"),
    ];
    for (words, advice) in cases {
        assert_for_people(&program.run(words), words, advice);
    }
    // As in a container that dropped them all.
    let binary = program.binary().to_str().unwrap();
    let drop = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs"];
    let root = Program::new();
    for words in
        [&["link", "--rtt", "5ms", "--", "true"][..], &["lab", "run", "quick", "--no-cache"]]
    {
        let finished =
            root.start(&mut root.command_by(&[&drop[..], &[binary], words].concat())).end();
        assert_for_people(&finished, words, "run it as an ordinary user");
        assert_eq!(finished.code, Some(3), "{finished:?}");
    }
}

fn assert_for_people(finished: &Finished, words: &[&str], advice: &str) {
    assert!(
        finished.code != Some(0) && finished.err.starts_with("fullpipe: "),
        "{words:?}: {finished:?}"
    );
    assert_eq!(finished.err.lines().count(), 1, "{words:?}: {finished:?}");
    assert!(finished.err.contains(advice), "{words:?}: {advice} is not in {finished:?}");
    for inside in ["{", "Some(", "None", "panicked"] {
        assert!(!finished.err.contains(inside), "{words:?}: {finished:?}");
    }
}
