//! The gateway behind the link: what the command sends to the rest of the world goes on from here.
//!
//! The far end of the link is a network namespace that calls every address its own ([`fullpipe_kernel::transparent`]).
//! A TCP connection that comes over the link is accepted here, whoever it was meant for, and a second one is opened from
//! the machine's own network ([`fullpipe_kernel::outside::Outside`]) to that address; bytes go from one to the other.
//! Datagrams likewise, each pair of addresses with a socket of its own. Nothing of the machine is changed for it, no
//! forwarding, no rule, no route, and it takes no privilege.
//!
//! How to think about it: the link carries a TCP connection of its own between two stacks of this kernel. Its round-trip
//! time, rate and losses are the link's alone; what lies between the gateway and the server comes on top for the
//! application, but not for this connection's congestion control. A server that refuses is told to the command as a
//! reset after the handshake. ICMP is answered here: `ping` shows the link.
//!
//! The gateway's own address stands for the machine's loopback: a service on 127.0.0.1 is reached there.
//!
//! It lives as long as the process.

use super::connections::{Connection, Connections, Ends};
use super::datagrams::{DatagramCounters, Passing};
use super::meaning::{Meaning, PAUSE, THREAD_STACK, spawn};
use super::unreachable::Reporter;
use fullpipe_kernel::netlink::Netlink;
use fullpipe_kernel::netns::NetNs;
use fullpipe_kernel::outside::Outside;
use fullpipe_kernel::{Refused, transparent};
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;

/// Port of the two listeners in the gateway's namespace, where nobody else is.
const PORT: u16 = 1;
/// Connections at once; what comes on top is reset.
const CONNECTIONS_MAX: usize = 2048;
const BUFFER: usize = 128 << 10;

/// Starts the gateway in `ns`, whose end of the link is `device`.
///
/// # Errors
/// A kernel without transparent proxying, a missing `nft`.
pub(super) fn start(
    ns: &Arc<NetNs>,
    device: &str,
    outside: &Arc<Outside>,
    meaning: Meaning,
    counters: &Arc<DatagramCounters>,
) -> Result<Arc<Connections>, Refused> {
    let mut netlink = Netlink::open(ns)?;
    let everything = [IpAddr::from(Ipv4Addr::UNSPECIFIED), IpAddr::from(Ipv6Addr::UNSPECIFIED)];
    let connections = Arc::new(Connections::default());
    let ipv6 = netlink.takes_ipv6("lo")?;
    for any in everything.into_iter().filter(|any| any.is_ipv4() || ipv6) {
        netlink.own_every_address(any)?;
        let address = SocketAddr::new(any, PORT);
        let listener = transparent::listener(ns, address)?;
        let (out, count) = (Arc::clone(outside), Arc::clone(&connections));
        spawn("gateway-tcp", move || accept(&listener, &out, &count, meaning))?;
        let passing = Passing {
            near: transparent::datagrams(ns, address)?,
            ns: Arc::clone(ns),
            outside: Arc::clone(outside),
            meaning,
            counters: Arc::clone(counters),
            reporter: Arc::new(Reporter::open(ns, any)?),
        };
        spawn("gateway-udp", move || passing.run())?;
    }
    transparent::nft(ns, &transparent::rule(device, PORT, ipv6))?;
    Ok(connections)
}

fn accept(listener: &TcpListener, outside: &Arc<Outside>, connections: &Arc<Connections>, meaning: Meaning) {
    loop {
        let Ok((near, from)) = listener.accept() else {
            // Out of descriptors, or a connection that is gone again: the next one may be well.
            std::thread::park_timeout(PAUSE);
            continue;
        };
        let Ok(meant) = near.local_addr() else { continue };
        let Some(slot) = connections.enter(Ends { near: from, meant }, CONNECTIONS_MAX) else {
            transparent::reset(near);
            continue;
        };
        let outside = Arc::clone(outside);
        // Where there is no thread for it, the connection and its slot are gone with the closure.
        let _ = spawn("gateway", move || match outside.connect(meaning.target(meant)) {
            Ok(far) => join(&near, &far, &slot.connection),
            Err(_) => transparent::reset(near),
        });
    }
}

/// Carries bytes both ways until both sides have ended.
fn join(near: &TcpStream, far: &TcpStream, connection: &Connection) {
    connection.connected(far);
    // What was sent in pieces goes on in pieces.
    let _ = (near.set_nodelay(true), far.set_nodelay(true));
    std::thread::scope(|scope| {
        let back = std::thread::Builder::new().name("gateway".into()).stack_size(THREAD_STACK);
        if back.spawn_scoped(scope, || carry(far, near, |_| {})).is_err() {
            let _ = (near.shutdown(Shutdown::Both), far.shutdown(Shutdown::Both));
        }
        carry(near, far, |bytes| connection.set_carried(bytes));
        connection.end_upwards();
    });
}

/// Carries bytes one way until they end; `holds` is told how many are in between.
fn carry(mut from: &TcpStream, mut to: &TcpStream, holds: impl Fn(usize)) {
    let mut buffer = vec![0; BUFFER];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(length) => {
                holds(length);
                let written = to.write_all(&buffer[..length]);
                holds(0);
                if written.is_err() {
                    return end_both(from, to);
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => return end_both(from, to),
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}

/// One of the two is gone for good: neither way goes on.
fn end_both(from: &TcpStream, to: &TcpStream) {
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}
