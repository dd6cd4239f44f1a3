//! The gateway behind the link: what the command sends to the rest of the world goes on from here.
//!
//! The far end of the link is a network namespace that calls every address its own
//! ([`fullpipe_kernel::transparent`]). A TCP connection that is asked for over the link is opened
//! from the machine's own network ([`fullpipe_kernel::outside::Outside`]), and accepted here when
//! that stands; bytes go from one to the other. Datagrams likewise, each pair of addresses with a
//! socket of its own. Nothing of the machine is changed for it, no forwarding, no rule, no route,
//! and it takes no privilege.
//!
//! How to think about it: the link carries a TCP connection of its own between two stacks of this
//! kernel. Its round-trip time, rate and losses are the link's alone; what lies between the gateway
//! and the server comes on top for the application, but not for this connection's congestion
//! control. What refuses, is unreachable or silent, is so to the command too, and a reset is
//! carried as one. ICMP is answered here: `ping` shows the link.
//!
//! The gateway's own address stands for the machine's loopback: a service on 127.0.0.1 is reached
//! there.
//!
//! It lives as long as the process.

use super::bounds::{Bounds, GatewayCounters};
use super::connections::Connections;
use super::datagrams::Passing;
use super::destinations::{Destinations, spawn};
use super::requests::{Gateway, accept, take};
use super::unreachable::Reporter;
use fullpipe_kernel::connection_request::ConnectionRequests;
use fullpipe_kernel::descriptors::DescriptorLimit;
use fullpipe_kernel::netlink::Netlink;
use fullpipe_kernel::netns::NetNs;
use fullpipe_kernel::outside::Outside;
use fullpipe_kernel::sock_diag::SockDiag;
use fullpipe_kernel::{Refused, transparent};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex};

/// Port of the two listeners in the gateway's namespace, where nobody else is.
const PORT: u16 = 1;

/// Starts the gateway in `ns`, whose end of the link is `device`; the command is in `near`.
///
/// # Errors
/// A kernel without transparent proxying, a missing `nft`.
pub(super) fn start(
    ns: &Arc<NetNs>,
    device: &str,
    near: &NetNs,
    outside: &Arc<Outside>,
    destinations: Destinations,
    counters: &Arc<GatewayCounters>,
) -> Result<Arc<Connections>, Refused> {
    let bounds = Bounds::within(DescriptorLimit::own().raise());
    let mut netlink = Netlink::open(ns)?;
    let gateway = Arc::new(Gateway {
        requests: ConnectionRequests::open(ns, netlink.link_index(device)?)?,
        outside: Arc::clone(outside),
        destinations,
        connections: Arc::new(Connections::new(bounds.connections, counters)),
        near: Mutex::new(SockDiag::open_in(near)?),
    });
    let everything = [IpAddr::from(Ipv4Addr::UNSPECIFIED), IpAddr::from(Ipv6Addr::UNSPECIFIED)];
    let ipv6 = netlink.takes_ipv6("lo")?;
    for any in everything.into_iter().filter(|any| any.is_ipv4() || ipv6) {
        netlink.own_every_address(any)?;
        let address = SocketAddr::new(any, PORT);
        let listener = transparent::listener(ns, address)?;
        let accepting = Arc::clone(&gateway);
        spawn("gateway-tcp", move || accept(&listener, &accepting))?;
        let passing = Passing {
            near: transparent::datagrams(ns, address)?,
            ns: Arc::clone(ns),
            outside: Arc::clone(outside),
            destinations,
            counters: Arc::clone(counters),
            reporter: Arc::new(Reporter::open(ns, any)?),
            flows_max: bounds.flows,
        };
        spawn("gateway-udp", move || passing.run())?;
    }
    let connections = Arc::clone(&gateway.connections);
    spawn("gateway-syn", move || take(&gateway))?;
    transparent::nft(ns, &transparent::rule(device, PORT, ipv6))?;
    Ok(connections)
}
