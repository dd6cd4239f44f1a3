//! Devices, addresses, routes and neighbours through rtnetlink, synchronously: each request waits
//! for its acknowledgement.
//!
//! A [`Netlink`] talks to the namespace for which it was opened, from any thread. Devices are named
//! by their interface name; the index is looked up each time, because nothing here is on a hot
//! path. The messages are those of `ip link`, `ip address`, `ip route` and `ip neighbour`. Errors
//! contain the kernel's own explanation (extended ACK) if it gives one.

mod class;
mod egress;
mod filter;
mod ipv6;
mod metrics;
mod qdisc;

pub use ipv6::IPV6_MTU_MIN;
pub use qdisc::{QdiscCounters, QdiscPlace};

use std::io;
use std::net::IpAddr;

use fullpipe_model::units::Bytes;
use netlink_packet_core::{
    ErrorMessage, NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE, NLM_F_REQUEST, NetlinkHeader,
    NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::address::{AddressAttribute, AddressHeaderFlags, AddressMessage};
use netlink_packet_route::link::{
    AfSpecInet6, AfSpecUnspec, In6AddrGenMode, InfoData, InfoKind, InfoVeth, LinkAttribute,
    LinkFlags, LinkInfo, LinkLayerType, LinkMessage,
};
use netlink_packet_route::neighbour::{NeighbourAttribute, NeighbourMessage, NeighbourState};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteMetric, RouteProtocol,
    RouteScope, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};

use crate::Refused;
use crate::network::netns::NetNs;

/// An Ethernet address.
pub type Mac = [u8; 6];

/// An address with its prefix length, as in `10.1.2.3/24`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Network {
    /// The address.
    pub address: IpAddr,
    /// The prefix length in bits.
    pub prefix_len: u8,
}

impl Network {
    /// `address/prefix_len`.
    pub const fn new(address: IpAddr, prefix_len: u8) -> Self {
        Network { address, prefix_len }
    }
}

impl std::fmt::Display for Network {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix_len)
    }
}

/// One device of a veth pair that is to be made.
#[derive(Debug, Clone, Copy)]
pub struct VethEnd<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its Ethernet address.
    pub mac: Mac,
}

/// Changes to a device; `None` leaves a property as it is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LinkChange {
    /// Whether it is up.
    pub up: Option<bool>,
    /// Largest packet without link-layer header.
    pub mtu: Option<Bytes>,
    /// Packets that the device's queue holds.
    pub txqueuelen: Option<u32>,
    /// Its Ethernet address.
    pub mac: Option<Mac>,
    /// Whether it resolves its neighbours' addresses (ARP, ND).
    pub arp: Option<bool>,
    /// MTU segments in the largest super-packet that hosts may send through it; 1 means single
    /// segments only.
    pub gso_max_segs: Option<u32>,
    /// Whether it generates an IPv6 link-local address (and then sends unsolicited packets: router
    /// solicitations, MLD). Ignored for a device without IPv6.
    pub ipv6_link_local: Option<bool>,
}

impl std::fmt::Display for LinkChange {
    /// In the terms of `ip link set`: "up, mtu 1500".
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let words = [
            self.up.map(|up| if up { "up" } else { "down" }.to_string()),
            self.mtu.map(|mtu| format!("mtu {}", mtu.get())),
            self.txqueuelen.map(|length| format!("txqueuelen {length}")),
            self.mac
                .map(|mac| format!("address {}", mac.map(|byte| format!("{byte:02x}")).join(":"))),
            self.arp.map(|on| format!("arp {}", on_or_off(on))),
            self.gso_max_segs.map(|count| format!("gso_max_segs {count}")),
            self.ipv6_link_local.map(|on| format!("IPv6 link-local address {}", on_or_off(on))),
        ];
        f.write_str(&words.into_iter().flatten().collect::<Vec<_>>().join(", "))
    }
}

fn on_or_off(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}

/// A route to add to the main table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// The destination.
    pub destination: Network,
    /// The router; `None`: directly on the device.
    pub gateway: Option<IpAddr>,
    /// The outgoing device.
    pub device: String,
    /// Settings of TCP connections along it.
    pub metrics: RouteMetrics,
}

/// Per-route settings of TCP, with the names of `ip route`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RouteMetrics {
    /// Congestion control of connections along this route; an application may still choose another.
    pub congctl: Option<String>,
    /// Path MTU to assume.
    pub mtu: Option<Bytes>,
    /// Initial congestion window in segments.
    pub initcwnd: Option<u32>,
    /// Initial receive window in segments.
    pub initrwnd: Option<u32>,
}

/// Counters of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LinkCounters {
    /// Packets that the device received.
    pub rx_packets: u64,
    /// Packets that it sent.
    pub tx_packets: u64,
    /// Received packets that it dropped.
    pub rx_dropped: u64,
    /// Packets to send that it dropped, for example because its queue was full.
    pub tx_dropped: u64,
}

/// A socket for routing requests to one network namespace.
#[derive(Debug)]
pub struct Netlink {
    socket: Socket,
    sequence: u32,
    /// For messages: "host client".
    place: String,
}

/// Properties of a device, from [`Netlink::device`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Device {
    /// Its number.
    pub index: u32,
    /// Largest packet without link-layer header.
    pub mtu: Bytes,
    /// Whether its frames have an Ethernet header.
    pub ethernet: bool,
}

impl Netlink {
    /// Opens one for `ns`. It works as long as the namespace lives, even after `ns` is dropped.
    pub fn open(ns: &NetNs) -> Result<Netlink, Refused> {
        Netlink::of(ns.run(new_socket)?, ns.label())
    }

    /// Opens one for the namespace of the calling thread, which takes no privilege.
    pub fn open_own() -> Result<Netlink, Refused> {
        Netlink::of(new_socket(), "this network namespace")
    }

    fn of(socket: io::Result<Socket>, place: &str) -> Result<Netlink, Refused> {
        let socket = socket.map_err(|e| Refused::new("open netlink socket", place, e))?;
        Ok(Netlink { socket, sequence: 0, place: place.into() })
    }

    /// The index of device `name`.
    pub fn link_index(&mut self, name: &str) -> Result<u32, Refused> {
        Ok(self.link(name)?.header.index)
    }

    /// The counters of device `name` since it was made.
    pub fn counters(&mut self, name: &str) -> Result<LinkCounters, Refused> {
        let link = self.link(name)?;
        let stats = link.attributes.iter().find_map(|a| match a {
            LinkAttribute::Stats64(s) => Some(LinkCounters {
                rx_packets: s.rx_packets,
                tx_packets: s.tx_packets,
                rx_dropped: s.rx_dropped,
                tx_dropped: s.tx_dropped,
            }),
            _ => None,
        });
        Ok(stats.unwrap_or_default())
    }

    /// The Ethernet address of device `name`, if it has one.
    pub fn mac(&mut self, name: &str) -> Result<Option<Mac>, Refused> {
        let link = self.link(name)?;
        Ok(link.attributes.iter().find_map(|a| match a {
            LinkAttribute::Address(bytes) => bytes.as_slice().try_into().ok(),
            _ => None,
        }))
    }

    /// The properties of device `name`.
    pub fn device(&mut self, name: &str) -> Result<Device, Refused> {
        let link = self.link(name)?;
        let mtu = link.attributes.iter().find_map(|a| match a {
            LinkAttribute::Mtu(mtu) => Some(Bytes::new((*mtu).into())),
            _ => None,
        });
        let ethernet =
            matches!(link.header.link_layer_type, LinkLayerType::Ether | LinkLayerType::Loopback);
        Ok(Device { index: link.header.index, mtu: mtu.unwrap_or(Bytes::new(1500)), ethernet })
    }

    fn link(&mut self, name: &str) -> Result<LinkMessage, Refused> {
        let subject = format!("device {name} in {}", self.place);
        let mut message = LinkMessage::default();
        message.attributes.push(LinkAttribute::IfName(name.into()));
        let answer = self.ask("find device", &subject, 0, RouteNetlinkMessage::GetLink(message))?;
        match answer {
            Some(RouteNetlinkMessage::NewLink(link)) => Ok(link),
            _ => Err(Refused::new(
                "find device",
                subject,
                io::Error::from(io::ErrorKind::InvalidData),
            )),
        }
    }

    /// Changes a device.
    pub fn change_link(&mut self, name: &str, change: &LinkChange) -> Result<(), Refused> {
        let mut message = LinkMessage::default();
        let link = self.link(name)?;
        message.header.index = link.header.index;
        let flags = [(change.up, LinkFlags::Up), (change.arp.map(|arp| !arp), LinkFlags::Noarp)];
        for (value, flag) in flags {
            if let Some(value) = value {
                message.header.change_mask |= flag;
                message.header.flags.set(flag, value);
            }
        }
        let attributes = &mut message.attributes;
        attributes.extend(change.mtu.map(|mtu| LinkAttribute::Mtu(mtu_u32(mtu))));
        attributes.extend(change.txqueuelen.map(LinkAttribute::TxQueueLen));
        attributes.extend(change.gso_max_segs.map(LinkAttribute::GsoMaxSegs));
        attributes.extend(change.mac.map(|mac| LinkAttribute::Address(mac.to_vec())));
        let link_local = change.ipv6_link_local.filter(|_| ipv6::keeps_settings(&link, change.mtu));
        attributes.extend(link_local.map(|on| {
            let mode = if on { In6AddrGenMode::Eui64 } else { In6AddrGenMode::None };
            LinkAttribute::AfSpecUnspec(vec![AfSpecUnspec::Inet6(vec![AfSpecInet6::AddrGenMode(
                mode,
            )])])
        }));
        let subject = format!("device {name} in {}: {change}", self.place);
        self.tell("change device", &subject, 0, RouteNetlinkMessage::SetLink(message))
    }

    /// Makes a pair of veth devices: `here`, and `peer` in `peer_ns`.
    pub fn add_veth(
        &mut self,
        here: VethEnd<'_>,
        peer: VethEnd<'_>,
        peer_ns: &NetNs,
    ) -> Result<(), Refused> {
        let mut far = LinkMessage::default();
        far.attributes = vec![
            LinkAttribute::IfName(peer.name.into()),
            LinkAttribute::Address(peer.mac.to_vec()),
            LinkAttribute::NetNsFd(peer_ns.raw_fd()),
        ];
        let mut near = LinkMessage::default();
        near.attributes = vec![
            LinkAttribute::IfName(here.name.into()),
            LinkAttribute::Address(here.mac.to_vec()),
            LinkAttribute::LinkInfo(vec![
                LinkInfo::Kind(InfoKind::Veth),
                LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(far))),
            ]),
        ];
        let (name, peer) = (here.name, peer.name);
        let subject = format!("{name} in {} with {peer} in {}", self.place, peer_ns.label());
        self.tell(
            "make veth pair",
            &subject,
            NLM_F_CREATE | NLM_F_EXCL,
            RouteNetlinkMessage::NewLink(near),
        )
    }

    /// Removes a device (of a veth pair: both).
    pub fn delete_link(&mut self, name: &str) -> Result<(), Refused> {
        let mut message = LinkMessage::default();
        message.header.index = self.link_index(name)?;
        let subject = format!("device {name} in {}", self.place);
        self.tell("delete device", &subject, 0, RouteNetlinkMessage::DelLink(message))
    }

    /// Gives `device` an address; an IPv6 address is usable at once, without duplicate address
    /// detection.
    pub fn add_address(&mut self, device: &str, address: Network) -> Result<(), Refused> {
        let mut message = AddressMessage::default();
        message.header.index = self.link_index(device)?;
        message.header.family = family(address.address);
        message.header.prefix_len = address.prefix_len;
        if address.address.is_ipv6() {
            message.header.flags = AddressHeaderFlags::Nodad;
        }
        message.attributes = vec![
            AddressAttribute::Address(address.address),
            AddressAttribute::Local(address.address),
        ];
        let subject = format!("{address} on device {device} in {}", self.place);
        self.tell(
            "add address",
            &subject,
            NLM_F_CREATE | NLM_F_EXCL,
            RouteNetlinkMessage::NewAddress(message),
        )
    }

    /// Adds a route, or replaces the one to the same destination, including one that came with an
    /// address.
    pub fn set_route(&mut self, route: &Route) -> Result<(), Refused> {
        let mut message = RouteMessage::default();
        message.header.address_family = family(route.destination.address);
        message.header.destination_prefix_length = route.destination.prefix_len;
        message.header.table = RouteHeader::RT_TABLE_MAIN;
        message.header.protocol = RouteProtocol::Static;
        message.header.kind = RouteType::Unicast;
        message.header.scope = if route.gateway.is_some() || route.destination.address.is_ipv6() {
            RouteScope::Universe
        } else {
            RouteScope::Link
        };
        let attributes = &mut message.attributes;
        if route.destination.prefix_len > 0 {
            attributes.push(RouteAttribute::Destination(route.destination.address.into()));
        }
        attributes
            .extend(route.gateway.map(|via| RouteAttribute::Gateway(RouteAddress::from(via))));
        attributes.push(RouteAttribute::Oif(self.link_index(&route.device)?));
        if route.destination.address.is_ipv6() {
            attributes.push(RouteAttribute::Priority(IPV6_PRIORITY));
        }
        let metrics = &route.metrics;
        let metrics: Vec<RouteMetric> = [
            metrics.congctl.clone().map(RouteMetric::CcAlgo),
            metrics.mtu.map(|mtu| RouteMetric::Mtu(mtu_u32(mtu))),
            metrics.initcwnd.map(RouteMetric::InitCwnd),
            metrics.initrwnd.map(RouteMetric::InitRwnd),
        ]
        .into_iter()
        .flatten()
        .collect();
        if !metrics.is_empty() {
            attributes.push(RouteAttribute::Metrics(metrics));
        }
        let via = route.gateway.map(|via| format!(" via {via}")).unwrap_or_default();
        let congctl = route
            .metrics
            .congctl
            .as_ref()
            .map(|name| format!(" congctl {name}"))
            .unwrap_or_default();
        let subject =
            format!("{}{via} dev {}{congctl} in {}", route.destination, route.device, self.place);
        self.tell(
            "set route",
            &subject,
            NLM_F_CREATE | NLM_F_REPLACE,
            RouteNetlinkMessage::NewRoute(message),
        )
    }

    /// Makes every address of `family_of`'s family local (`ip route add local default dev lo`),
    /// except where a more specific route exists: for a namespace that stands in for the rest of
    /// the world.
    pub fn own_every_address(&mut self, family_of: IpAddr) -> Result<(), Refused> {
        let mut message = RouteMessage::default();
        message.header.address_family = family(family_of);
        message.header.table = RouteHeader::RT_TABLE_MAIN;
        message.header.protocol = RouteProtocol::Static;
        message.header.kind = RouteType::Local;
        message.header.scope = RouteScope::Host;
        message.attributes.push(RouteAttribute::Oif(self.link_index("lo")?));
        let subject = format!("local default dev lo in {}", self.place);
        self.tell(
            "set route",
            &subject,
            NLM_F_CREATE | NLM_F_REPLACE,
            RouteNetlinkMessage::NewRoute(message),
        )
    }

    /// Sets a permanent neighbour entry: `address` is at `mac` on `device`.
    pub fn set_neighbour(
        &mut self,
        device: &str,
        address: IpAddr,
        mac: Mac,
    ) -> Result<(), Refused> {
        let mut message = NeighbourMessage::default();
        message.header.family = family(address);
        message.header.ifindex = self.link_index(device)?;
        message.header.state = NeighbourState::Permanent;
        message.attributes = vec![
            NeighbourAttribute::Destination(address.into()),
            NeighbourAttribute::LinkLayerAddress(mac.to_vec()),
        ];
        let subject = format!("{address} on device {device} in {}", self.place);
        self.tell(
            "set neighbour",
            &subject,
            NLM_F_CREATE | NLM_F_REPLACE,
            RouteNetlinkMessage::NewNeighbour(message),
        )
    }

    fn tell(
        &mut self,
        operation: &'static str,
        subject: &str,
        flags: u16,
        request: RouteNetlinkMessage,
    ) -> Result<(), Refused> {
        self.ask(operation, subject, flags | NLM_F_ACK, request).map(drop)
    }

    fn send(&mut self, flags: u16, request: RouteNetlinkMessage) -> io::Result<()> {
        self.sequence = self.sequence.wrapping_add(1);
        let mut header = NetlinkHeader::default();
        header.flags = flags | NLM_F_REQUEST;
        header.sequence_number = self.sequence;
        let mut message = NetlinkMessage::new(header, NetlinkPayload::from(request));
        message.finalize();
        let mut buffer = vec![0; message.buffer_len()];
        message.serialize(&mut buffer);
        self.socket.send(&buffer, 0).map(drop)
    }

    /// Sends `request` and returns the first answer: a message, or `None` for a plain
    /// acknowledgement.
    fn ask(
        &mut self,
        operation: &'static str,
        subject: &str,
        flags: u16,
        request: RouteNetlinkMessage,
    ) -> Result<Option<RouteNetlinkMessage>, Refused> {
        let refused = |cause: io::Error| Refused::new(operation, subject, cause);
        self.send(flags, request).map_err(refused)?;
        loop {
            let (bytes, _) = self.socket.recv_from_full().map_err(refused)?;
            let answer = NetlinkMessage::<RouteNetlinkMessage>::deserialize(&bytes)
                .map_err(|e| refused(io::Error::new(io::ErrorKind::InvalidData, e.to_string())))?;
            if answer.header.sequence_number != self.sequence {
                // Left over from a request whose answer nobody waited for.
                continue;
            }
            return match answer.payload {
                NetlinkPayload::Error(error) if error.code.is_none() => Ok(None),
                NetlinkPayload::Error(error) => {
                    Err(refused(error.to_io()).hint(hint(error.raw_code(), explanation(&error))))
                }
                NetlinkPayload::InnerMessage(inner) => Ok(Some(inner)),
                // The end of a dump without entries.
                NetlinkPayload::Done(_) => Ok(None),
                _ => continue,
            };
        }
    }
}

/// A socket that asks the kernel by one of the protocols of netlink(7).
pub(crate) fn connected_socket(protocol: isize) -> io::Result<Socket> {
    let mut socket = Socket::new(protocol)?;
    socket.bind_auto()?;
    socket.connect(&SocketAddr::new(0, 0))?;
    Ok(socket)
}

fn new_socket() -> io::Result<Socket> {
    let socket = connected_socket(NETLINK_ROUTE)?;
    // Both are optional (an explanation with the errno, and not the whole request back); old
    // kernels refuse them.
    let _ = socket.set_ext_ack(true);
    let _ = socket.set_cap_ack(true);
    Ok(socket)
}

/// Precedes the route that comes with an address (256). In IPv4 that route is replaced; in IPv6 it
/// stays.
const IPV6_PRIORITY: u32 = 1;

fn family(address: IpAddr) -> AddressFamily {
    if address.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 }
}

fn mtu_u32(mtu: Bytes) -> u32 {
    u32::try_from(mtu.get()).unwrap_or(u32::MAX)
}

/// The kernel's message among an error's attributes (NLMSGERR_ATTR_MSG), which follow the request's
/// header.
fn explanation(error: &ErrorMessage) -> Option<String> {
    const NLMSGHDR_LEN: usize = 16;
    const NLMSGERR_ATTR_MSG: u16 = 1;
    let mut rest = error.header.get(NLMSGHDR_LEN..)?;
    while let [l0, l1, k0, k1, ..] = *rest {
        let length = usize::from(u16::from_ne_bytes([l0, l1]));
        let value = rest.get(4..length)?;
        if u16::from_ne_bytes([k0, k1]) & 0x3fff == NLMSGERR_ATTR_MSG {
            let text = String::from_utf8_lossy(value);
            return Some(text.trim_end_matches('\0').to_string());
        }
        rest = rest.get(length.next_multiple_of(4)..)?;
    }
    None
}

fn hint(code: i32, explanation: Option<String>) -> String {
    let said = explanation.map(|text| format!("the kernel says: {text}"));
    let advice = match -code {
        libc::EPERM => {
            "it needs CAP_NET_ADMIN over this network namespace: root, or a user namespace"
        }
        libc::EEXIST => "choose another name or address, or remove the old one first",
        libc::ENODEV => "check the device's name and its namespace",
        libc::EOPNOTSUPP => "this kernel was built without it",
        _ => "",
    };
    match said {
        Some(said) if advice.is_empty() => said,
        Some(said) => format!("{said}; {advice}"),
        None => advice.into(),
    }
}
