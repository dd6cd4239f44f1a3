//! Measures the ports: iperf3 between two hosts, over each kind with a plain forwarder, and over a
//! veth pair beside it.
//!
//! `cargo run --release -p fullpipe-kernel --example ports`; needs iperf3. With RTT and rate out of
//! the way, this is the most that a link can carry here.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for people")]

use std::io::{BufRead, BufReader, ErrorKind, IoSlice};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::process::{Command, Stdio};

use fullpipe_kernel::network::netlink::{LinkChange, Netlink, Network, VethEnd};
use fullpipe_kernel::network::netns::NetNs;
use fullpipe_kernel::network::port::{FRAME_MAX, Port, PortConfig, PortKind, PortPair};
use fullpipe_kernel::process::wait::{self, PollFd, PollFlags};
use fullpipe_kernel::run::sandbox::{self, Inside, Interrupt};
use fullpipe_kernel::socket::sock_diag::{Filter, SockDiag};
use fullpipe_kernel::{host::clock, process::sched};
use fullpipe_model::units::{Bytes, Duration};

fn main() -> std::process::ExitCode {
    match sandbox::run(&sandbox::SandboxOptions::default(), measure) {
        Ok(exit) => std::process::ExitCode::from(exit.code() as u8),
        Err(error) => {
            eprintln!("{error}");
            std::process::ExitCode::FAILURE
        }
    }
}

fn measure(inside: &Inside) -> i32 {
    println!("privilege: {:?}", inside.privilege());
    socket_samples();
    for flows in ["1", "4"] {
        direct(flows);
        for kind in [PortKind::Tun, PortKind::Veth] {
            for fifo in [false, true] {
                forwarded(kind, fifo, flows);
            }
        }
    }
    0
}

/// What it costs to follow a connection.
fn socket_samples() {
    const COUNT: u64 = 1000;
    // Its loopback is up, unlike the sandbox's own.
    NetNs::create("loopback").expect("a namespace").enter().expect("a namespace");
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
    let stream =
        TcpStream::connect(listener.local_addr().expect("an address")).expect("a connection");
    let (local, remote) =
        (stream.local_addr().expect("an address"), stream.peer_addr().expect("an address"));
    let mut diag = SockDiag::open().expect("sock_diag");
    let start = clock::now();
    for _ in 0..COUNT {
        diag.sample(local, remote).expect("an answer").expect("the connection");
    }
    let one = clock::now().since(start).as_nanos() / COUNT;
    let filter = Filter { local_port: Some(local.port()), remote_port: Some(remote.port()) };
    let mut samples = Vec::new();
    let start = clock::now();
    for _ in 0..COUNT / 10 {
        samples.clear();
        diag.dump(&filter, &mut samples).expect("an answer");
    }
    let all = clock::now().since(start).as_nanos() / (COUNT / 10);
    println!(
        "sock_diag: {} a sample, {} a dump",
        Duration::from_nanos(one),
        Duration::from_nanos(all)
    );
}

fn hosts() -> [NetNs; 2] {
    ["client", "server"].map(|label| NetNs::create(label).expect("a namespace"))
}

fn ends() -> [[Network; 1]; 2] {
    ["10.9.0.1", "10.9.0.2"].map(|address| [Network::new(address.parse().expect("an address"), 24)])
}

fn direct(flows: &str) {
    let [client, server] = hosts();
    let [ours, theirs] = ends();
    let mut near = Netlink::open(&client).expect("netlink");
    let [here, there] = [1, 2].map(|last| VethEnd { name: "wan0", mac: [2, 0, 0, 0, 0, last] });
    near.add_veth(here, there, &server).expect("veth");
    for (ns, ends) in [(&client, ours), (&server, theirs)] {
        let mut netlink = Netlink::open(ns).expect("netlink");
        netlink
            .change_link("wan0", &LinkChange { up: Some(true), ..LinkChange::default() })
            .expect("up");
        netlink.add_address("wan0", ends[0]).expect("address");
    }
    println!("veth direct, {flows} flows: {}", iperf3(&client, &server, flows));
}

fn forwarded(kind: PortKind, fifo: bool, flows: &str) {
    let [client, server] = hosts();
    let [ours, theirs] = ends();
    let a = PortConfig { ns: &client, device: "wan0", addresses: &ours };
    let b = PortConfig { ns: &server, device: "wan0", addresses: &theirs };
    let pair = match PortPair::of_kind(kind, &a, &b, Bytes::new(1500)) {
        Ok(pair) => pair,
        Err(error) => return println!("{kind}: {error}"),
    };
    let stop = Interrupt::new().expect("an eventfd");
    let result = std::thread::scope(|scope| {
        scope.spawn(|| forward(&pair.a, &pair.b, fifo, &stop));
        scope.spawn(|| forward(&pair.b, &pair.a, fifo, &stop));
        let result = iperf3(&client, &server, flows);
        stop.set();
        result
    });
    let drops = [&pair.a, &pair.b].map(|port| port.drops().expect("counters"));
    println!("{kind}{}, {flows} flows: {result}; {drops:?}", if fifo { " SCHED_FIFO" } else { "" });
}

fn forward(from: &Port, to: &Port, fifo: bool, stop: &Interrupt) {
    if fifo && let Err(error) = sched::fifo() {
        eprintln!("{error}");
    }
    let mut frame = vec![0; FRAME_MAX];
    loop {
        match from.read(&mut frame) {
            Ok(length) => {
                if let Err(error) = to.write_vectored(&[IoSlice::new(&frame[..length])]) {
                    eprintln!("write: {error}");
                }
            }
            Err(e) if e.kind() == ErrorKind::WouldBlock => {
                let mut fds = [
                    PollFd::new(from.as_fd(), PollFlags::POLLIN),
                    PollFd::new(stop.as_fd(), PollFlags::POLLIN),
                ];
                wait::ready(&mut fds, None).expect("ppoll");
                if stop.is_set() {
                    return;
                }
            }
            Err(e) => return eprintln!("read: {e}"),
        }
    }
}

/// Bits per second received, and retransmissions.
fn iperf3(client: &NetNs, server: &NetNs, flows: &str) -> String {
    let mut listener = Command::new("iperf3");
    listener.args(["--server", "--one-off", "--forceflush"]).stdout(Stdio::piped());
    server.start_in(&mut listener).expect("a namespace");
    let mut listener = listener.spawn().expect("iperf3 is installed");
    // It listens once it has said so.
    let lines = BufReader::new(listener.stdout.take().expect("a pipe")).lines();
    let _ = lines.map_while(Result::ok).find(|line| line.contains("listening"));
    let mut sender = Command::new("iperf3");
    sender.args(["--client", "10.9.0.2", "--time", "3", "--json", "--parallel", flows]);
    client.start_in(&mut sender).expect("a namespace");
    let output = sender.output().expect("iperf3 is installed");
    let _ = listener.kill();
    let _ = listener.wait();
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let end = &json["end"];
    let rate = end["sum_received"]["bits_per_second"].as_f64().unwrap_or_default() / 1e9;
    format!("{rate:.2} Gbit/s, {} retransmissions", end["sum_sent"]["retransmits"])
}
