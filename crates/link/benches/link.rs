//! What the emulated link carries, compared with a plain veth pair in the same run:
//! `cargo bench -p fullpipe-link`.
//!
//! One flow between two real stacks on this machine's CPUs. The project's targets: at 40 ms RTT at
//! least 2.3 of 2.5 Gbit/s; near 0 ms at least 4 Gbit/s; rates of 10, 100 and 1000 Mbit/s within 1
//! %. Machines differ, so the table also shows the ratio to veth; nothing is asserted here.
//!
//! At the end it measures the lower bound for any program that delivers packets one by one: the CPU
//! time of a thread that only sleeps until a packet is due and writes it into a host where somebody
//! waits for it. `-- bare` measures that alone.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark prints its table")]

use etherparse::{IpHeaders, IpNumber, Ipv4Extensions, Ipv4Header, PacketBuilder};
use fullpipe_kernel::network::netlink::{LinkChange, Netlink, Network, VethEnd};
use fullpipe_kernel::network::netns::NetNs;
use fullpipe_kernel::network::port::{PortPair, VNET_HDR_LEN};
use fullpipe_kernel::process::wait::Waiter;
use fullpipe_kernel::{host::clock, process::sched, run::sandbox};
use fullpipe_lab::{CLIENT_ADDRESS, SERVER_ADDRESS, join_hosts};
use fullpipe_link::{Emulator, Junction, LinkEnds, LinkOptions, LinkReport};
use fullpipe_model::scenario::{File, LinkEngine, Scenario};
use fullpipe_model::units::{Bytes, Duration, Rate};
use std::io::{IoSlice, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;

const LONG: Duration = Duration::from_secs(6);
/// Left out at the start: slow start is not the link's business.
const WARM_UP: Duration = Duration::from_secs(2);

fn main() {
    let only_bare = std::env::args().any(|argument| argument == "bare");
    let measure = if only_bare { bare_table } else { table };
    let exit = sandbox::run(&sandbox::SandboxOptions::default(), |_| match measure() {
        Ok(()) => 0,
        Err(error) => {
            eprintln!("bench link: {error}");
            1
        }
    });
    match exit {
        Ok(exit) => std::process::exit(exit.code()),
        Err(error) => eprintln!("SKIPPED: bench link: {error}"),
    }
}

fn table() -> Result<(), Box<dyn std::error::Error>> {
    println!(
        "{:<34} {:>12} {:>9} {:>10} {:>30}",
        "one flow", "IP rate", "of asked", "of veth", "late p50 / p99 / max"
    );
    let veth = veth()?;
    println!("{:<34} {:>12} {:>9} {:>10}", "plain veth, no link", veth.to_string(), "", "1.00");
    for (name, link) in [
        ("0 ms, no rate", ""),
        ("40 ms, 2.5 Gbit/s", "rate = \"2.5gbit\"\nrtt = \"40ms\""),
        ("10 ms, 1 Gbit/s", "rate = \"1gbit\"\nrtt = \"10ms\""),
        ("10 ms, 100 Mbit/s", "rate = \"100mbit\"\nrtt = \"10ms\""),
        ("10 ms, 10 Mbit/s", "rate = \"10mbit\"\nrtt = \"10ms\""),
    ] {
        let (rate, asked, report) = emulated(link)?;
        let late = report.lateness();
        println!(
            "{name:<34} {:>12} {:>9} {:>10.2} {:>30}",
            rate.to_string(),
            asked
                .map_or(String::new(), |asked| format!("{:.2} %", 100.0 * rate.fraction_of(asked))),
            rate.fraction_of(veth),
            format!("{} / {} / {}", late.quantile(0.5), late.quantile(0.99), late.max()),
        );
    }
    bare_table()
}

fn bare_table() -> Result<(), Box<dyn std::error::Error>> {
    println!(
        "{:<34} {:>16} {:>22}",
        "a bare hand-over every", "CPU a hand-over", "two of them for a Gbit"
    );
    for micros in [12_000, 1200, 120] {
        let period = Duration::from_micros(micros);
        let each = bare(period)?;
        // A packet of 1500 bytes, and its acknowledgement.
        let gigabit = each.saturating_mul(2 * 1_000_000_000 / (1500 * 8));
        println!("{:<34} {:>16} {:>22}", period.to_string(), each.to_string(), gigabit.to_string());
    }
    Ok(())
}

/// The CPU time of a hand-over by a thread that does nothing but sleep for `period` and hand over.
fn bare(period: Duration) -> Result<Duration, Box<dyn std::error::Error>> {
    let scenario = File::parse("[link]")?.scenarios("bare")?.remove(0);
    let (hosts, ports) = hosts(&scenario)?;
    let socket = hosts.client.ns.run(|| UdpSocket::bind(SocketAddr::new(CLIENT_ADDRESS, 0)))??;
    // One that was lost is a failure, not a wait for ever.
    socket.set_read_timeout(Some(std::time::Duration::from_secs(2)))?;
    if ports.b.l2_len() > 0 {
        return Err("a bare hand-over is measured at a TUN device, and there is none here".into());
    }
    let mut frame = vec![0u8; VNET_HDR_LEN];
    let packet = PacketBuilder::ip(IpHeaders::Ipv4(
        Ipv4Header::new(
            8 + 1472,
            64,
            IpNumber::UDP,
            octets(SERVER_ADDRESS)?,
            octets(CLIENT_ADDRESS)?,
        )?,
        Ipv4Extensions::default(),
    ));
    packet.udp(9, socket.local_addr()?.port()).write(&mut frame, &[0; 1472])?;
    let count = (2_000_000_000 / period.as_nanos()).clamp(200, 4000);
    std::thread::scope(|scope| {
        let hand_over = scope.spawn(|| -> std::io::Result<Duration> {
            let _ = sched::fifo();
            let mut waiter = Waiter::new()?;
            let before = ran()?;
            for _ in 0..count {
                waiter.wait(period)?;
                ports.b.write_vectored(&[IoSlice::new(&frame)])?;
            }
            Ok(ran()?.saturating_sub(before))
        });
        let mut taken = 0;
        while taken < count && socket.recv(&mut [0; 2048])? > 0 {
            taken += 1;
        }
        let spent = hand_over.join().map_err(|_| "the thread that hands over panicked")??;
        Ok(Duration::from_nanos(spent.as_nanos() / count))
    })
}

/// The hosts of `scenario` with ports for our own link between them.
fn hosts(scenario: &Scenario) -> Result<(LinkEnds, Arc<PortPair>), Box<dyn std::error::Error>> {
    match join_hosts(&scenario.hosts, LinkEngine::Own, &scenario.path)? {
        (hosts, Junction::Ports(ports)) => Ok((hosts, ports)),
        (_, Junction::Wire { .. }) => Err("our own link has ports".into()),
    }
}

fn octets(address: IpAddr) -> Result<[u8; 4], &'static str> {
    if let IpAddr::V4(address) = address {
        Ok(address.octets())
    } else {
        Err("not an IPv4 address")
    }
}

/// What this thread ran so far, by the scheduler's count.
fn ran() -> std::io::Result<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let nanos = text.split(' ').next().and_then(|nanos| nanos.parse().ok());
    nanos
        .map(Duration::from_nanos)
        .ok_or_else(|| std::io::Error::other("schedstat does not begin with a number"))
}

fn veth() -> Result<Rate, Box<dyn std::error::Error>> {
    let (a, b) = (NetNs::create("a")?, NetNs::create("b")?);
    let end = |last| VethEnd { name: "wan0", mac: [2, 0, 0, 0, 0, last] };
    Netlink::open(&a)?.add_veth(end(1), end(2), &b)?;
    for (ns, address) in [(&a, SERVER_ADDRESS), (&b, CLIENT_ADDRESS)] {
        let mut netlink = Netlink::open(ns)?;
        netlink.change_link("wan0", &LinkChange { up: Some(true), ..LinkChange::default() })?;
        netlink.add_address("wan0", Network::new(address, 24))?;
    }
    let goodput = transfer(&a, &b, SERVER_ADDRESS)?;
    // As IP packets of 1500 bytes with timestamps would carry it: the same measure as below.
    Ok(Rate::from_bits_per_sec_f64(goodput.as_f64() * 1500.0 / 1448.0))
}

/// The rate of IP packets that a link carries in steady state, what was asked for, and its report.
fn emulated(link: &str) -> Result<(Rate, Option<Rate>, LinkReport), Box<dyn std::error::Error>> {
    let text = format!(
        "[hosts.server]\ncongestion_control = \"cubic\"\nsysctl = {{ \"net.ipv4.tcp_wmem\" = \"4096 65536 67108864\" }}\n\
         [hosts.client]\nsysctl = {{ \"net.ipv4.tcp_rmem\" = \"4096 131072 67108864\" }}\n[link]\n{link}\n"
    );
    let scenario = File::parse(&text)?.scenarios("bench")?.remove(0);
    let (hosts, ports) = hosts(&scenario)?;
    let emulator = Emulator::start(ports, &scenario.path, &LinkOptions::default())?;
    let goodput = transfer(&hosts.server.ns, &hosts.client.ns, SERVER_ADDRESS);
    let report = emulator.stop()?;
    let rate = Rate::from_bits_per_sec_f64(goodput?.as_f64() * 1500.0 / 1448.0);
    Ok((rate, scenario.path.to_client.rate, report))
}

/// Goodput of one connection after [`WARM_UP`].
fn transfer(
    server: &NetNs,
    client: &NetNs,
    address: IpAddr,
) -> Result<Rate, Box<dyn std::error::Error>> {
    let listener = server.run(|| TcpListener::bind(SocketAddr::new(address, 0)))??;
    let to = listener.local_addr()?;
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let Ok((mut stream, _)) = listener.accept() else { return };
            let chunk = vec![0u8; 256 * 1024];
            while stream.write_all(&chunk).is_ok() {}
        });
        let received = client.run(|| -> std::io::Result<Option<Rate>> {
            let mut stream = TcpStream::connect(to)?;
            let mut chunk = vec![0u8; 256 * 1024];
            let (start, mut counted, mut from) = (clock::now(), 0u64, None);
            loop {
                counted += stream.read(&mut chunk)? as u64;
                let now = clock::now();
                match from {
                    None if now.since(start) >= WARM_UP => (from, counted) = (Some(now), 0),
                    Some(from) if now.since(start) >= LONG => {
                        return Ok(Bytes::new(counted).per(now.since(from)));
                    }
                    _ => {}
                }
            }
        })??;
        received.ok_or_else(|| "no time passed".into())
    })
}
