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

use super::datagrams::pass_datagrams;
use fullpipe_kernel::netlink::Netlink;
use fullpipe_kernel::netns::NetNs;
use fullpipe_kernel::outside::Outside;
use fullpipe_kernel::{Refused, transparent};
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Port of the two listeners in the gateway's namespace, where nobody else is.
const PORT: u16 = 1;
/// Connections at once; what comes on top is reset.
const CONNECTIONS_MAX: usize = 2048;
/// After an error of the kernel, which may well come again at once.
pub(super) const PAUSE: std::time::Duration = std::time::Duration::from_millis(10);
const BUFFER: usize = 128 << 10;
const THREAD_STACK: usize = 256 << 10;

/// What addresses mean beyond the gateway.
#[derive(Debug, Clone, Copy)]
pub struct Meaning {
    /// The gateway's own addresses, which stand for the machine's loopback.
    pub gateway: (Ipv4Addr, Ipv6Addr),
    /// Who is asked for what comes to the gateway's port 53.
    pub resolver: Option<IpAddr>,
}

impl Meaning {
    /// Where to connect to, from the machine's own network.
    pub(super) fn target(&self, meant: SocketAddr) -> SocketAddr {
        let of_gateway = meant.ip() == self.gateway.0 || meant.ip() == self.gateway.1;
        match (of_gateway, self.resolver, meant.ip()) {
            (false, ..) => meant,
            (true, Some(resolver), _) if meant.port() == 53 => SocketAddr::new(resolver, 53),
            (true, _, IpAddr::V4(_)) => SocketAddr::new(Ipv4Addr::LOCALHOST.into(), meant.port()),
            (true, _, IpAddr::V6(_)) => SocketAddr::new(Ipv6Addr::LOCALHOST.into(), meant.port()),
        }
    }
}

/// Starts the gateway in `ns`, whose end of the link is `device`.
///
/// # Errors
/// A kernel without transparent proxying, a missing `nft`.
pub fn start(ns: &Arc<NetNs>, device: &str, outside: &Arc<Outside>, meaning: Meaning) -> Result<(), Refused> {
    let mut netlink = Netlink::open(ns)?;
    let everything = [IpAddr::from(Ipv4Addr::UNSPECIFIED), IpAddr::from(Ipv6Addr::UNSPECIFIED)];
    let connections = Arc::new(AtomicUsize::new(0));
    let ipv6 = netlink.takes_ipv6("lo")?;
    for any in everything.into_iter().filter(|any| any.is_ipv4() || ipv6) {
        netlink.own_every_address(any)?;
        let address = SocketAddr::new(any, PORT);
        let listener = transparent::listener(ns, address)?;
        let (out, count) = (Arc::clone(outside), Arc::clone(&connections));
        spawn("gateway-tcp", move || accept(&listener, &out, &count, meaning))?;
        let datagrams = transparent::datagrams(ns, address)?;
        let (out, ns) = (Arc::clone(outside), Arc::clone(ns));
        spawn("gateway-udp", move || pass_datagrams(&datagrams, &ns, &out, meaning))?;
    }
    transparent::nft(ns, &transparent::rule(device, PORT, ipv6))
}

pub(super) fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), Refused> {
    let thread = std::thread::Builder::new().name(name.into()).stack_size(THREAD_STACK).spawn(work);
    thread.map(drop).map_err(|cause| Refused::new("start thread", name, cause))
}

fn accept(listener: &TcpListener, outside: &Arc<Outside>, connections: &Arc<AtomicUsize>, meaning: Meaning) {
    loop {
        let Ok((near, _)) = listener.accept() else {
            // Out of descriptors, or a connection that is gone again: the next one may be well.
            std::thread::park_timeout(PAUSE);
            continue;
        };
        if connections.load(Ordering::Relaxed) >= CONNECTIONS_MAX {
            transparent::reset(near);
            continue;
        }
        connections.fetch_add(1, Ordering::Relaxed);
        let (outside, count) = (Arc::clone(outside), Arc::clone(connections));
        let spawned = spawn("gateway", move || {
            let meant = near.local_addr();
            match meant.map(|meant| outside.connect(meaning.target(meant))) {
                Ok(Ok(far)) => join(&near, &far),
                _ => transparent::reset(near),
            }
            count.fetch_sub(1, Ordering::Relaxed);
        });
        if spawned.is_err() {
            connections.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Carries bytes both ways until both sides have ended.
fn join(near: &TcpStream, far: &TcpStream) {
    // What was sent in pieces goes on in pieces.
    let _ = (near.set_nodelay(true), far.set_nodelay(true));
    std::thread::scope(|scope| {
        let back = std::thread::Builder::new().name("gateway".into()).stack_size(THREAD_STACK);
        if back.spawn_scoped(scope, || carry(far, near)).is_err() {
            let _ = (near.shutdown(Shutdown::Both), far.shutdown(Shutdown::Both));
        }
        carry(near, far);
    });
}

fn carry(mut from: &TcpStream, mut to: &TcpStream) {
    let mut buffer = vec![0; BUFFER];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(length) if to.write_all(&buffer[..length]).is_ok() => {}
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            // One of the two is gone for good: neither way goes on.
            _ => {
                let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
                return;
            }
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gateway_stands_for_the_loopback_and_its_port_53_for_the_resolver() {
        let gateway = (Ipv4Addr::new(10, 77, 0, 1), Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1));
        let meaning = Meaning { gateway, resolver: Some(IpAddr::from([127, 0, 0, 53])) };
        let target = |text: &str| meaning.target(text.parse().unwrap()).to_string();
        assert_eq!(target("10.77.0.1:80"), "127.0.0.1:80");
        assert_eq!(target("[fd00::1]:80"), "[::1]:80");
        assert_eq!(target("10.77.0.1:53"), "127.0.0.53:53");
        assert_eq!(target("192.0.2.1:53"), "192.0.2.1:53");
        assert_eq!(Meaning { resolver: None, ..meaning }.target("10.77.0.1:53".parse().unwrap()).port(), 53);
    }
}
