//! `fullpipe link attach`: it affects the selected traffic of a device only, and nothing once it is
//! gone.

use std::io::Read;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::process::Command;

use fullpipe_kernel::host::clock;
use fullpipe_kernel::network::netlink::{LinkChange, Netlink, Network, VethEnd};
use fullpipe_kernel::network::netns::NetNs;
use fullpipe_model::units::Duration;

use crate::Case;
use crate::guest::{self, Time};
use crate::need::Need;
use crate::program::{Finished, Program, until};

const TC: Need = Need::Program("tc");
const NEEDS: &[Need] = &[Need::Root, Need::Tcx];

pub const CASES: &[Case] = &[
    ("one_port_is_impaired_and_no_other", NEEDS, one_port_is_impaired_and_no_other),
    ("all_of_a_device_both_families_and_bulk", NEEDS, all_of_a_device),
    ("after_kill_9_traffic_flows_as_before", NEEDS, || {
        after_kill_9_traffic_flows_as_before("links")
    }),
    ("after_kill_9_filters_let_everything_pass", &[Need::Root, TC], || {
        after_kill_9_traffic_flows_as_before("filters")
    }),
    (
        "before_linux_6_6_filters_do_the_same",
        &[Need::OldGuestKernel, TC, Need::Program("curl"), Need::Program("python3")],
        before_linux_6_6_filters_do_the_same,
    ),
    (
        "nat_routes_the_programs_own_packets",
        &[Need::Root, Need::Program("nft"), Need::Program("python3")],
        nat,
    ),
    ("what_cannot_be_attached_is_refused", NEEDS, what_cannot_be_attached_is_refused),
];

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 99, 0, 1));
pub const THERE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 99, 0, 2));
const THERE6: IpAddr = IpAddr::V6(Ipv6Addr::new(0xfd99, 0, 0, 0, 0, 0, 0, 2));
const HERE6: IpAddr = IpAddr::V6(Ipv6Addr::new(0xfd99, 0, 0, 0, 0, 0, 0, 1));
pub const DEVICE: &str = "e2e0";

/// A separate machine (a network namespace) with one interface, and a neighbour with two services.
pub struct World {
    /// The machine.
    pub here: NetNs,
    _there: NetNs,
    /// The services' ports.
    pub ports: [u16; 2],
}

impl World {
    pub fn new() -> World {
        let (here, there) =
            (NetNs::create("machine").unwrap(), NetNs::create("neighbour").unwrap());
        let mut netlink = Netlink::open(&here).unwrap();
        let end = |name, last| VethEnd { name, mac: [2, 0, 0, 0, 0, last] };
        netlink.add_veth(end(DEVICE, 1), end("e2e1", 2), &there).unwrap();
        let up = LinkChange { up: Some(true), ..LinkChange::default() };
        for (ns, device, addresses) in
            [(&here, DEVICE, [HERE, HERE6]), (&there, "e2e1", [THERE, THERE6])]
        {
            let mut netlink = Netlink::open(ns).unwrap();
            netlink.change_link(device, &up).unwrap();
            for address in addresses {
                netlink
                    .add_address(
                        device,
                        Network::new(address, if address.is_ipv4() { 24 } else { 64 }),
                    )
                    .unwrap();
            }
        }
        let ports = [(); 2].map(|()| there.run(service).unwrap());
        let world = World { here, _there: there, ports };
        // The kernel looks for a carrier, and gives the address that comes with it, in its own
        // time.
        until("the device is up", Duration::from_secs(30), || {
            let device = world.device();
            device.contains("fe80::")
                && !device.contains("NO-CARRIER")
                && !device.contains("linkdown")
        });
        world
    }

    /// The time that a handshake takes.
    fn handshake(&self, to: IpAddr, port: u16) -> Duration {
        let connected = self.here.run(|| {
            let start = clock::now();
            TcpStream::connect_timeout(&SocketAddr::new(to, port), Duration::from_secs(20).into())
                .map(|stream| (clock::now().since(start), stream))
        });
        connected.unwrap().unwrap().0
    }

    /// The shortest of a few attempts: the time of the path, without the machine's other work.
    pub fn round_trip(&self, to: IpAddr, port: u16) -> Duration {
        (0..5).map(|_| self.handshake(to, port)).min().unwrap()
    }

    pub fn run(&self, program: &Program, words: &[&str]) -> Finished {
        let mut command = program.command(&[&["link"], words].concat());
        self.here.start_in(&mut command).unwrap();
        program.start(&mut command).end()
    }

    /// What `ip` and `tc` tell of the device, without its counters.
    pub fn device(&self) -> String {
        let look = |words: &[&str]| {
            let mut command = Command::new(words[0]);
            command.args(&words[1..]);
            self.here.start_in(&mut command).unwrap();
            String::from_utf8(command.output().unwrap().stdout).unwrap()
        };
        let words = [&["ip", "-d", "address"][..], &["tc", "qdisc", "show"], &["ip", "route"]];
        // Whether the kernel still looks for doubles of an address is a matter of the first second.
        words.map(look).concat().replace(" tentative", "")
    }
}

/// Accepts connections and sends each a megabyte, on a thread that ends with the trial.
fn service() -> u16 {
    let listener = TcpListener::bind("[::]:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || std::io::Write::write_all(&mut &stream, &vec![7; 1 << 20]));
        }
    });
    port
}

/// Names are per user, not per network namespace.
pub fn name(what: &str) -> String {
    format!("e2e-{what}-{}", std::process::id())
}

fn one_port_is_impaired_and_no_other() {
    let (world, program, name) = (World::new(), Program::new(), name("port"));
    let before = world.device();
    let [one, other] = world.ports;
    let to = format!("{THERE}:{one}");
    let attached = world.run(
        &program,
        &["attach", "--dev", DEVICE, "--name", &name, "--to", &to, "--rtt", "170ms"],
    );
    assert_eq!((attached.code, attached.err.as_str()), (Some(0), ""), "{attached:?}");
    let [slow, fast] = [one, other].map(|port| world.round_trip(THERE, port));
    let slow6 = world.round_trip(THERE6, one);
    eprintln!("port {one}: {slow}; port {other}: {fast}; port {one} of the IPv6 address: {slow6}");
    let asked = Duration::from_millis(170);
    assert!(slow >= asked && slow < asked + Duration::from_millis(60), "{slow}");
    assert!(
        fast < Duration::from_millis(60) && slow6 < Duration::from_millis(60),
        "{fast}, {slow6}"
    );
    // Untouched is more than fast: the link has seen the packets of the one port only.
    let status = world.run(&program, &["status", "--link", &name, "--json"]).json();
    let arrived = status["statistics"]["to_server"]["arrived_packets"].as_u64().unwrap();
    let connections = 5;
    assert!(arrived >= 2 * connections, "{status:#}");
    let again = world.run(&program, &["status", "--link", &name, "--json"]).json();
    let _ = world.round_trip(THERE, other);
    let then = world.run(&program, &["status", "--link", &name, "--json"]).json();
    // What the one port's connections still had to say is over after a round trip; the other port
    // adds nothing.
    let count = |status: &serde_json::Value| {
        status["statistics"]["to_server"]["arrived_packets"].as_u64().unwrap()
    };
    assert!(count(&then) <= count(&again) + connections * 2, "{again:#} {then:#}");
    let detached = world.run(&program, &["detach", "--dev", &name]);
    assert_eq!((detached.code, detached.err.as_str()), (Some(0), ""), "{detached:?}");
    assert_eq!(world.device(), before, "the device is as it was");
    assert!(world.round_trip(THERE, one) < Duration::from_millis(60));
    assert_eq!(world.run(&program, &["detach", "--dev", &name]).code, Some(2), "it is gone");
    // The rule has counters of its own, and here all packets are its.
    let of_rule = &then["statistics"]["to_server"]["rules"][0];
    assert_eq!(of_rule["match"], format!("to {to}"), "{then:#}");
    assert_eq!(of_rule["arrived_packets"].as_u64().unwrap(), count(&then), "{then:#}");
}

fn all_of_a_device() {
    let (world, program, name) = (World::new(), Program::new(), name("all"));
    let words =
        ["attach", "--dev", DEVICE, "--name", &name, "--rtt", "100ms", "--down-rate", "50mbit"];
    let attached = world.run(&program, &words);
    assert_eq!(attached.code, Some(0), "{attached:?}");
    for to in [THERE, THERE6] {
        let round_trip = world.round_trip(to, world.ports[0]);
        eprintln!("{to}: {round_trip}");
        assert!(round_trip >= Duration::from_millis(100), "{to}: {round_trip}");
        // Bulk: super-packets of the kernel go through, and none of their bytes is lost.
        let (length, took) = world
            .here
            .run(|| {
                let start = clock::now();
                let mut stream = TcpStream::connect(SocketAddr::new(to, world.ports[1])).unwrap();
                let mut got = Vec::new();
                stream.read_to_end(&mut got).unwrap();
                assert!(got.iter().all(|&byte| byte == 7));
                (got.len(), clock::now().since(start))
            })
            .unwrap();
        assert_eq!(length, 1 << 20);
        // 8.4 Mbit at 50 Mbit/s and a handshake.
        assert!(took >= Duration::from_millis(100 + 167), "{took}");
    }
    assert_eq!(world.run(&program, &["set", "--link", &name, "--delay", "0ms"]).code, Some(0));
    assert!(world.round_trip(THERE, world.ports[0]) < Duration::from_millis(60));
    assert_eq!(world.run(&program, &["detach", "--dev", &name]).code, Some(0));
}

fn after_kill_9_traffic_flows_as_before(hooks: &str) {
    let (world, program, name) = (World::new(), Program::new(), name(&format!("kill-{hooks}")));
    let before = world.device();
    // Everything is lost: whatever arrives has not been on the link.
    let words = ["attach", "--dev", DEVICE, "--name", &name, "--loss", "100%", "--hooks", hooks];
    assert_eq!(world.run(&program, &words).code, Some(0));
    let status = world.run(&program, &["status", "--link", &name, "--json"]).json();
    let blocked = world.here.run(|| {
        let timeout = Duration::from_millis(300);
        TcpStream::connect_timeout(&SocketAddr::new(THERE, world.ports[0]), timeout.into()).is_err()
    });
    assert!(blocked.unwrap(), "nothing may pass a link that loses everything");
    let pid = nix::unistd::Pid::from_raw(status["pid"].as_i64().unwrap() as i32);
    let killed = clock::now();
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL).unwrap();
    // Not repeated by TCP after a second, but let through at once: a new connection each time.
    let connects = || {
        let timeout = Duration::from_millis(50);
        let connect = || {
            TcpStream::connect_timeout(&SocketAddr::new(THERE, world.ports[0]), timeout.into())
                .is_ok()
        };
        world.here.run(connect).unwrap()
    };
    until("traffic flows", Duration::from_secs(1), connects);
    eprintln!("traffic flows {} after kill -9", clock::now().since(killed));
    let filters = hooks == "filters";
    assert_eq!(
        world.device().contains("clsact"),
        filters,
        "what is left by the way before Linux 6.6, without effect"
    );
    let cleaned = world.run(&program, &["clean"]);
    assert_eq!(cleaned.code, Some(0), "{cleaned:?}");
    assert_eq!(cleaned.out.contains("on 1 device"), filters, "{cleaned:?}");
    assert!(!(filters && cleaned.out.contains("Nothing to clean")), "{cleaned:?}");
    until("the devices of the link are gone", Duration::from_secs(1), || world.device() == before);
    // The name is free again.
    assert_eq!(world.run(&program, &words).code, Some(0));
    assert_eq!(world.run(&program, &["detach", "--dev", &name]).code, Some(0));
    assert_eq!(world.device(), before);
}

/// Answers each connection and closes it, and reports on descriptor 3 when it listens. It sleeps in
/// `accept`: Python's own `http.server` polls, which in a guest in real time can happen without a
/// pause.
const SERVER: &str = "\
import os, socket
listener = socket.create_server(('', 8000))
os.write(3, b'listening\\n'); os.close(3)
while True:
    connection, _ = listener.accept()
    connection.recv(4096)
    connection.sendall(b'HTTP/1.0 200 OK\\r\\nContent-Length: 0\\r\\n\\r\\n')
    connection.close()
";

/// In a guest with a kernel without `tcx`: a link, its death, what it leaves behind, and how that
/// is removed. Somebody else's filter stays, and so does what it needs.
fn before_linux_6_6_filters_do_the_same() {
    let script = "\
        ip link add e2e0 type veth peer name e2e1; ip netns add there; ip link set e2e1 netns there\n\
        ip addr add 10.99.0.1/24 dev e2e0; ip link set e2e0 up\n\
        ip -n there addr add 10.99.0.2/24 dev e2e1; ip -n there link set e2e1 up\n\
        mkfifo /run/listening; ip netns exec there python3 server.py 3>/run/listening & read _ </run/listening; echo early\n\
        connect() { curl -q -sS -m 9 -o/dev/null -w \"$1 %{time_connect}\\n\" http://10.99.0.2:8000/init.sh 2>&1; }\n\
        $fullpipe link attach --dev e2e0 --to 10.99.0.2:8000 --rtt 200ms; echo attach $?; connect slow\n\
        pid=$($fullpipe link status --json | python3 -c 'import json,sys; print(json.load(sys.stdin)[\"pid\"])')\n\
        kill -9 $pid; connect killed; connect fast; tc filter show dev e2e0 ingress | grep -c fullpipe\n\
        $fullpipe link clean; tc qdisc show dev e2e0 | grep -c clsact\n\
        tc qdisc add dev e2e0 clsact; tc filter add dev e2e0 egress protocol ip prio 7 u32 match u32 0 0 action ok\n\
        $fullpipe link attach --dev e2e0 --rtt 200ms; connect slow; $fullpipe link detach --dev e2e0; echo detach $?\n\
        tc filter show dev e2e0 egress | grep -c fullpipe; tc filter show dev e2e0 egress | grep -c match\n";
    // Our link looks at the clock until a packet is due, so time must pass by itself.
    let program = Program::new();
    program.file("server.py", SERVER);
    let out = guest::run(&program, Some("6.1"), Time::Real, script);
    eprintln!("{out}");
    let lines: Vec<_> = out
        .lines()
        .filter(|line| !line.starts_with("early") && !line.starts_with("curl"))
        .collect();
    let ["attach 0", slow, _killed, fast, "1", cleaned @ .., "0", again, "detach 0", "0", "1"] =
        &lines[..]
    else {
        panic!("{out}")
    };
    let seconds = |line: &str| -> f64 { line.split_once(' ').unwrap().1.parse().unwrap() };
    assert!(cleaned.iter().any(|line| line.contains("on 1 device")), "{out}");
    assert!(!cleaned.iter().any(|line| line.contains("Nothing to clean")), "{out}");
    assert!(
        seconds(slow) >= 0.2 && seconds(again) >= 0.2 && (0.0001..0.15).contains(&seconds(fast)),
        "{out}"
    );
}

/// The neighbour sees the machine's address, the program's port, and a handshake as long as the
/// path.
fn nat() {
    let (world, program) = (World::new(), Program::new());
    let forwards = "net.ipv4.ip_forward".parse().unwrap();
    let before = world.device();
    let line = format!(
        "import socket,time; t=time.monotonic(); s=socket.create_connection(('{THERE}',{})); \
         print(time.monotonic()-t, s.getsockname()[0])",
        world.ports[0]
    );
    let words = ["--nat", "-q", "--rtt", "120ms", "--", "python3", "-c", &line];
    let refused = world.run(&program, &words);
    assert_eq!(refused.code, Some(3), "{refused:?}");
    assert!(refused.err.contains("net.ipv4.ip_forward"), "{refused:?}");
    fullpipe_kernel::host::sysctl::write(&world.here, &forwards, "1").unwrap();
    let passes = |line: &str, here: IpAddr| {
        let done =
            world.run(&program, &["--nat", "-q", "--rtt", "120ms", "--", "python3", "-c", line]);
        let (seconds, own) = done.out.trim().split_once(' ').unwrap_or_else(|| panic!("{done:?}"));
        eprintln!("handshake through the router: {seconds} s, the program's own address {own}");
        assert!((0.120..0.200).contains(&seconds.parse::<f64>().unwrap()), "{done:?}");
        assert_ne!(own, here.to_string(), "its address is translated on the way");
    };
    passes(&line, HERE);
    // IPv6 has a setting of its own; without it there is no way, and no wait for one.
    let line6 = line.replace(&THERE.to_string(), &THERE6.to_string());
    let no_way =
        world.run(&program, &["--nat", "-q", "--rtt", "120ms", "--", "python3", "-c", &line6]);
    assert!(no_way.code == Some(1) && no_way.err.contains("unreachable"), "{no_way:?}");
    fullpipe_kernel::host::sysctl::write(
        &world.here,
        &"net.ipv6.conf.all.forwarding".parse().unwrap(),
        "1",
    )
    .unwrap();
    passes(&line6, HERE6);
    assert_eq!(world.device(), before, "nothing is left on the machine");
    let mut rules = Command::new("nft");
    rules.args(["list", "ruleset"]).env("PATH", "/usr/sbin:/sbin:/usr/bin:/bin");
    world.here.start_in(&mut rules).unwrap();
    until("the rules are gone", Duration::from_secs(2), || {
        rules.output().unwrap().stdout.is_empty()
    });
}

fn what_cannot_be_attached_is_refused() {
    let (world, program, name) = (World::new(), Program::new(), name("refused"));
    let attach = |device: &str, name: &str| {
        let words = ["attach", "--dev", device, "--name", name, "--rtt", "5ms"];
        let finished = world.run(&program, &words);
        assert!(finished.err.starts_with("fullpipe: ") || finished.code == Some(0), "{finished:?}");
        finished.code
    };
    assert_eq!(attach("nosuch", &name), Some(4));
    assert_eq!(attach(DEVICE, &name), Some(0));
    // The name is taken; under another name the device is.
    assert_eq!(attach(DEVICE, &name), Some(2));
    assert_eq!(attach(DEVICE, &format!("{name}-2")), Some(1));
    assert_eq!(world.run(&program, &["attach", "--dev", DEVICE]).code, Some(2));
    assert_eq!(
        world.run(&program, &["set", "--link", &name, "--to", ":80", "--delay", "5ms"]).code,
        Some(4)
    );
    assert_eq!(world.run(&program, &["detach", "--dev", &name]).code, Some(0));
}
