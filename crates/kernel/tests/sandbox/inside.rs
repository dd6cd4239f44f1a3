//! What runs in the sandbox: each case prints what the harness waits for, and fails by a panic.

use std::fs;
use std::io::{IoSlice, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::panic::AssertUnwindSafe;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

use fullpipe_kernel::host::sysctl::{self, SysctlError};
use fullpipe_kernel::network::netlink::{
    LinkChange, Netlink, Network, Route, RouteMetrics, VethEnd,
};
use fullpipe_kernel::network::netns::NetNs;
use fullpipe_kernel::network::port::{FRAME_MAX, Port, PortConfig, PortKind, PortPair};
use fullpipe_kernel::process::wait::{self, PollFd, PollFlags};
use fullpipe_kernel::run::sandbox::{self, Inside, Interrupt, Privilege, SandboxError};
use fullpipe_kernel::socket::sock_diag::{Filter, SockDiag};
use fullpipe_kernel::{host::clock, socket::congestion};
use fullpipe_model::units::{Bytes, Duration};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

const LIMIT: Duration = Duration::from_secs(20);

type Case = fn(&Inside) -> i32;

pub fn case(name: &str) -> Option<Case> {
    Some(match name {
        "seven" => |_| 7,
        "panic" => |inside| {
            println!("{}", inside.journal().scratch_directory("panic").unwrap().display());
            panic!("on purpose")
        },
        "settings" => settings,
        "tun" => |inside| transfer(PortKind::Tun, inside.privilege()),
        "veth" => |inside| transfer(PortKind::Veth, inside.privilege()),
        "orphans" => orphans,
        "wait" => |inside| {
            println!("ready");
            assert!(inside.interrupt().wait(Some(LIMIT)).unwrap());
            println!("interrupted");
            130
        },
        "stubborn" => |inside| {
            println!("ready");
            assert!(inside.interrupt().wait(Some(LIMIT)).unwrap());
            println!("interrupted and staying");
            let _ = Interrupt::new().unwrap().wait(Some(LIMIT));
            0
        },
        "count-cleaned" => |inside| {
            println!("{}", inside.cleaned().len());
            0
        },
        "killed-worker" => |_| {
            kill(Pid::this(), Signal::SIGKILL).unwrap();
            unreachable!("killed")
        },
        "busy" => busy,
        "seven-from-thread" => |_| {
            std::thread::scope(|scope| {
                let (reader, writer) = std::io::pipe().unwrap();
                scope.spawn(move || (&reader).read_to_end(&mut Vec::new()));
                let nested = sandbox::run(&sandbox::SandboxOptions::default(), |_| 1);
                assert!(matches!(nested, Err(SandboxError::Threads(2))), "{nested:?}");
                drop(writer);
            });
            7
        },
        _ => return None,
    })
}

fn network(text: &str) -> Network {
    let (address, prefix_len) = text.split_once('/').unwrap();
    Network::new(address.parse().unwrap(), prefix_len.parse().unwrap())
}

/// One of everything that a run makes, a line about each.
fn busy(inside: &Inside) -> i32 {
    println!("started");
    println!("scratch {}", inside.journal().scratch_directory("busy").unwrap().display());
    let hosts = ["a", "b"].map(|label| NetNs::create(label).unwrap());
    for host in &hosts {
        println!("namespace {}", host.inode().unwrap());
    }
    let (one, two) = ([network("10.9.0.1/24")], [network("10.9.0.2/24")]);
    let a = PortConfig { ns: &hosts[0], device: "fptest0", addresses: &one };
    let b = PortConfig { ns: &hosts[1], device: "fptest0", addresses: &two };
    let _pair = PortPair::create(&a, &b, Bytes::new(1500)).unwrap();
    println!("ports");
    let mut child = Command::new("sh");
    child.args(["-c", "sleep 1000 & setsid sleep 1000 & wait"]);
    hosts[0].start_in(&mut child).unwrap();
    let mut child = child.spawn().unwrap();
    println!("programs");
    child.wait().unwrap();
    0
}

fn orphans(_: &Inside) -> i32 {
    for code in 0..50 {
        // The inner shell ends first, its child is init's from then on.
        let script = format!("sh -c 'true & true &'; exit {code}");
        assert_eq!(Command::new("sh").args(["-c", &script]).status().unwrap().code(), Some(code));
    }
    // procfs is the machine's, where init has another number than 1.
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let init =
        status.lines().find_map(|line| line.strip_prefix("PPid:")).unwrap().trim().to_string();
    let zombies = || {
        let stats = fs::read_dir("/proc")
            .unwrap()
            .filter_map(|item| fs::read_to_string(item.ok()?.path().join("stat")).ok());
        let of_init = |stat: &String| {
            let mut fields = stat.rsplit(')').next().unwrap().split_whitespace();
            (fields.next(), fields.next()) == (Some("Z"), Some(init.as_str()))
        };
        stats.filter(of_init).count()
    };
    let deadline = clock::now() + LIMIT;
    while zombies() > 0 {
        assert!(clock::now() < deadline, "orphans are not reaped");
        std::thread::yield_now();
    }
    0
}

fn settings(_: &Inside) -> i32 {
    let host = NetNs::create("host").unwrap();
    let other = NetNs::create("other").unwrap();
    assert_ne!(host.inode().unwrap(), other.inode().unwrap());

    let name = "net.ipv4.tcp_rmem".parse().unwrap();
    let before = sysctl::read(&other, &name).unwrap();
    sysctl::write(&host, &name, "4096\t4096  4096").unwrap();
    assert_eq!(sysctl::read(&host, &name).unwrap(), "4096 4096 4096");
    assert_eq!(sysctl::read(&other, &name).unwrap(), before);
    for global in [
        "net.core.rmem_max",
        "net.core.wmem_max",
        "net.core.netdev_max_backlog",
        "net.ipv4.tcp_mem",
    ] {
        let error = sysctl::write(&host, &global.parse().unwrap(), "4096").unwrap_err();
        assert!(matches!(error, SysctlError::Global { .. }), "{error}");
    }
    let error =
        sysctl::write(&host, &"net.ipv4.tcp_no_such_thing".parse().unwrap(), "1").unwrap_err();
    assert!(error.to_string().contains("no such setting"), "{error}");
    let error = sysctl::write(&host, &name, "1 two 3").unwrap_err();
    assert!(error.to_string().contains("does not take this value"), "{error}");
    devices(&host, &other);
    0
}

/// Each kind of thing that can be set on a device, as `ip` shows it.
fn devices(host: &NetNs, other: &NetNs) {
    let mut netlink = Netlink::open(host).unwrap();
    let here = VethEnd { name: "v0", mac: [2, 0, 0, 0, 0, 1] };
    let peer = VethEnd { name: "v1", mac: [2, 0, 0, 0, 0, 2] };
    netlink.add_veth(here, peer, other).unwrap();
    assert_eq!(netlink.mac("v0").unwrap(), Some([2, 0, 0, 0, 0, 1]));
    let change = LinkChange {
        up: Some(true),
        mtu: Some(Bytes::new(1400)),
        txqueuelen: Some(77),
        ..LinkChange::default()
    };
    netlink.change_link("v0", &change).unwrap();
    netlink.add_address("v0", network("10.9.1.1/24")).unwrap();
    netlink.add_address("v0", network("fd00::1/64")).unwrap();
    netlink.set_neighbour("v0", "10.9.1.2".parse::<IpAddr>().unwrap(), [2, 0, 0, 0, 0, 9]).unwrap();
    let metrics = RouteMetrics {
        congctl: Some("reno".into()),
        initcwnd: Some(20),
        ..RouteMetrics::default()
    };
    let destination = network("10.9.2.0/24");
    let gateway = Some("10.9.1.2".parse().unwrap());
    netlink.set_route(&Route { destination, gateway, device: "v0".into(), metrics }).unwrap();
    shows(host, &["link", "show", "v0"], &["mtu 1400", "qlen 77", "UP"]);
    shows(host, &["address", "show", "v0"], &["10.9.1.1/24", "fd00::1/64"]);
    shows(host, &["route"], &["10.9.2.0/24 via 10.9.1.2 dev v0", "congctl reno", "initcwnd 20"]);
    shows(host, &["neighbour"], &["10.9.1.2 dev v0 lladdr 02:00:00:00:00:09 PERMANENT"]);
    shows(host, &["link", "show", "lo"], &["UP"]);

    // A congestion control that programs may not choose is still a route's to give.
    let (available, allowed) =
        (congestion::available(host).unwrap(), congestion::allowed(host).unwrap());
    assert!(allowed.iter().all(|name| available.contains(name)), "{allowed:?} of {available:?}");
    if let Some(name) = available.iter().find(|name| !allowed.contains(name)) {
        let error = sysctl::write(host, &"net.ipv4.tcp_congestion_control".parse().unwrap(), name)
            .unwrap_err();
        // Root of the machine may; then there was nothing to refuse.
        assert!(error.to_string().contains("congctl"), "{error}");
        let metrics = RouteMetrics { congctl: Some(name.clone()), ..RouteMetrics::default() };
        netlink.set_route(&Route { destination, gateway, device: "v0".into(), metrics }).unwrap();
        shows(host, &["route"], &[&format!("congctl {name}")]);
    }

    let error = netlink.add_address("nope", network("10.0.0.1/8")).unwrap_err();
    assert!(error.to_string().contains("device nope in host"), "{error}");
    let unreachable = Some("10.77.0.1".parse().unwrap());
    let route = Route {
        destination,
        gateway: unreachable,
        device: "v0".into(),
        metrics: RouteMetrics::default(),
    };
    let error = netlink.set_route(&route).unwrap_err();
    assert!(error.to_string().contains("invalid gateway"), "the kernel's own words: {error}");
    netlink.delete_link("v0").unwrap();
    assert!(Netlink::open(other).unwrap().link_index("v1").is_err(), "the peer goes with it");
}

/// Compares with the independent `ip`, where it is installed.
fn shows(ns: &NetNs, arguments: &[&str], words: &[&str]) {
    let mut command = Command::new("ip");
    command.args(arguments);
    ns.start_in(&mut command).unwrap();
    let Ok(output) = command.output() else {
        crate::skipped(
            &format!("comparison with `ip {}`", arguments.join(" ")),
            "ip is not installed",
        );
        return;
    };
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    for word in words {
        assert!(text.contains(word), "'{word}' is not in: {text}");
    }
}

/// 30 MB from one host to the other over ports that a plain forwarder joins, checked byte by byte
/// and by sock_diag.
fn transfer(kind: PortKind, privilege: Privilege) -> i32 {
    const AMOUNT: u64 = 30_000_000;
    let [client, server] = ["client", "server"].map(|label| NetNs::create(label).unwrap());
    for (ours, theirs) in [("10.9.0.1/24", "10.9.0.2/24"), ("fd09::1/64", "fd09::2/64")] {
        let (ours, theirs) = ([network(ours)], [network(theirs)]);
        let device = if ours[0].address.is_ipv4() { "wan4" } else { "wan6" };
        let a = PortConfig { ns: &client, device, addresses: &ours };
        let b = PortConfig { ns: &server, device, addresses: &theirs };
        let pair = match PortPair::of_kind(kind, &a, &b, Bytes::new(1500)) {
            Ok(pair) => pair,
            Err(error) if kind == PortKind::Tun && privilege == Privilege::UserNamespace => {
                // Not skipped: where its device is closed to ordinary users, they get the other
                // kind, tried by "veth".
                let pair = PortPair::create(&a, &b, Bytes::new(1500)).unwrap();
                assert_eq!((pair.a.kind(), pair.not_tun.is_some()), (PortKind::Veth, true));
                eprintln!("ordinary users have no TUN here, and get veth: {error}");
                return 0;
            }
            Err(error) if kind == PortKind::Tun => {
                crate::skipped("transfer over TUN", error);
                return 0;
            }
            Err(error) => panic!("{error}"),
        };
        assert_eq!(
            (pair.a.kind(), pair.a.l2_len()),
            (kind, if kind == PortKind::Tun { 0 } else { 14 })
        );
        // reno is everywhere, and never the default where it matters.
        let metrics = RouteMetrics { congctl: Some("reno".into()), ..RouteMetrics::default() };
        let route =
            Route { destination: masked(theirs[0]), gateway: None, device: device.into(), metrics };
        Netlink::open(&server).unwrap().set_route(&route).unwrap();
        let listener = server.run(|| TcpListener::bind((theirs[0].address, 0))).unwrap().unwrap();
        let stop = Interrupt::new().unwrap();
        let super_packets = AtomicU64::new(0);
        std::thread::scope(|scope| {
            scope.spawn(|| forward(&pair.a, &pair.b, &stop, &super_packets));
            scope.spawn(|| forward(&pair.b, &pair.a, &stop, &super_packets));
            let address = listener.local_addr().unwrap();
            let download = scope.spawn(|| send(listener, &server));
            // Before any panic goes on: the forwarders end by it, and the scope waits for them.
            let received = std::panic::catch_unwind(AssertUnwindSafe(|| {
                client.run(|| receive(address)).unwrap()
            }));
            let sent = download.join();
            stop.set();
            sent.unwrap();
            assert_eq!(received.unwrap(), AMOUNT);
        });
        assert!(super_packets.load(Ordering::Relaxed) > 100, "offloads are off");
        eprintln!("drops: {:?} {:?}", pair.a.drops().unwrap(), pair.b.drops().unwrap());
    }
    return 0;

    fn send(listener: TcpListener, server: &NetNs) {
        let (mut stream, remote) = listener.accept().unwrap();
        assert_eq!(congestion::of(&stream).unwrap(), "reno");
        let mut diag = SockDiag::open_in(server).unwrap();
        let local = stream.local_addr().unwrap();
        let mut block = [0; 10_000];
        for index in 0..AMOUNT / block.len() as u64 {
            block.fill(index as u8);
            stream.write_all(&block).unwrap();
        }
        let sample = diag.sample(local, remote).unwrap().expect("the connection is there");
        assert_eq!((sample.local, sample.remote), (local, remote));
        assert_eq!(sample.congestion_control.as_deref(), Some("reno"));
        assert!(sample.info.is_some() && sample.memory.is_some(), "{sample:?}");
        let mut samples = Vec::new();
        diag.dump(&Filter { local_port: Some(local.port()), remote_port: None }, &mut samples)
            .unwrap();
        assert_eq!(samples.len(), 1, "{samples:?}");
        assert_eq!(samples[0].remote, remote);
        let nobody = SocketAddr::new(remote.ip(), remote.port() ^ 1);
        assert!(diag.sample(local, nobody).unwrap().is_none());
    }

    fn receive(address: SocketAddr) -> u64 {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(LIMIT.into())).unwrap();
        let (mut received, mut block) = (0, [0; 65_536]);
        loop {
            let count = stream.read(&mut block).unwrap();
            if count == 0 {
                return received;
            }
            for (offset, &byte) in block[..count].iter().enumerate() {
                assert_eq!(
                    byte,
                    ((received + offset as u64) / 10_000) as u8,
                    "at byte {received}+{offset}"
                );
            }
            received += count as u64;
        }
    }
}

fn masked(network: Network) -> Network {
    let address = match network.address {
        IpAddr::V4(_) => "10.9.0.0".parse().unwrap(),
        IpAddr::V6(_) => "fd09::".parse().unwrap(),
    };
    Network { address, ..network }
}

/// Hands over every frame as it is, until `stop`.
fn forward(from: &Port, to: &Port, stop: &Interrupt, super_packets: &AtomicU64) {
    let mut frame = vec![0; FRAME_MAX];
    while !stop.is_set() {
        match from.read(&mut frame) {
            Ok(length) => {
                super_packets.fetch_add((frame[1] != 0).into(), Ordering::Relaxed);
                to.write_vectored(&[IoSlice::new(&frame[..length])]).unwrap();
            }
            Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => {
                let mut fds = [
                    PollFd::new(from.as_fd(), PollFlags::POLLIN),
                    PollFd::new(stop.as_fd(), PollFlags::POLLIN),
                ];
                wait::ready(&mut fds, Some(LIMIT)).unwrap();
            }
            Err(e) => panic!("read: {e}"),
        }
    }
}
