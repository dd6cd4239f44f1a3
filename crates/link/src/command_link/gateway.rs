//! The gateway at the far end of the link, which forwards what the command sends to the rest of the
//! world.
//!
//! The far end of the link is a network namespace in which every address is local
//! ([`fullpipe_kernel::socket::transparent`]). When the command requests a TCP connection over the
//! link, the gateway first connects onwards from the machine's own network
//! ([`fullpipe_kernel::run::outside::Outside`]), then accepts the request and copies bytes between
//! the two. Datagrams work likewise, with a socket for each pair of addresses. Nothing on the
//! machine is changed (no forwarding, rule or route), and no privilege is needed.
//!
//! How to think about it: the link carries a TCP connection of its own between two stacks of this
//! kernel. Its round-trip time, rate and losses are the link's alone. What lies between the gateway
//! and the server adds to that for the application, but not for this connection's congestion
//! control. A server that refuses, is unreachable or silent appears so to the command, and a reset
//! is passed on as a reset. The gateway itself answers ICMP: `ping` shows the link.
//!
//! The gateway's own address means the machine's loopback: a service on 127.0.0.1 is reached there.
//!
//! The gateway lives as long as the process.

use super::bounds::{Bounds, GatewayCounters};
use super::connections::ConnectionTable;
use super::datagrams::Passing;
use super::destinations::{Destinations, spawn};
use super::requests::{Gateway, accept, take};
use super::unreachable::Reporter;
use crate::ends::{LinkEnd, LinkEnds};
use fullpipe_kernel::network::netlink::Netlink;
use fullpipe_kernel::process::descriptors::DescriptorLimit;
use fullpipe_kernel::run::outside::Outside;
use fullpipe_kernel::socket::connection_request::ConnectionRequests;
use fullpipe_kernel::socket::sock_diag::SockDiag;
use fullpipe_kernel::{Refused, socket::transparent};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex};

/// Port of the two listeners in the gateway's namespace, where nothing else listens.
const PORT: u16 = 1;

/// Starts the gateway at the server's end of the link; the command is at the client's.
///
/// # Errors
/// The kernel has no transparent proxying, or `nft` is missing.
pub(super) fn start(
    ends: &LinkEnds,
    outside: &Arc<Outside>,
    destinations: Destinations,
    counters: &Arc<GatewayCounters>,
) -> Result<Arc<ConnectionTable>, Refused> {
    let LinkEnd { ns, device, .. } = &ends.server;
    let bounds = Bounds::within(DescriptorLimit::own().raise());
    let mut netlink = Netlink::open(ns)?;
    let gateway = Arc::new(Gateway {
        requests: ConnectionRequests::open(ns, netlink.link_index(device)?)?,
        outside: Arc::clone(outside),
        destinations,
        connections: Arc::new(ConnectionTable::new(bounds.connections, counters)),
        near: Mutex::new(SockDiag::open_in(&ends.client.ns)?),
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
