//! Two hosts joined through a third namespace, in which netem can stand between them and packets
//! can be captured.
//!
//! ```text
//!  host a            wire                      host b
//!  wan0 ───veth─── "a"   redirect   "b" ───veth─── wan0
//!                   what arrives on "a" leaves by "b", past b's disciplines; and the other way
//!                   round
//! ```
//!
//! Where the wire has to carry MTU segments, a network card stands between each host and its edge:
//!
//! ```text
//!  host a       wire
//!  wan0 ─veth─ "a-host"  redirect  "a-card" ─veth─ "a"  redirect  "b" ..
//! ```
//!
//! The host's own device keeps all offloads, so its TCP makes super-packets and charges its buffers
//! for them as on any machine. "a-card" has no offloads, so the kernel cuts what is sent to it and
//! completes the checksums. Turning offloads off at the host's own device would not do: a device
//! without checksum offload has no scatter-gather, without that it has no segmentation in software
//! either (`netdev_fix_features`), and TCP, which sees this at its route, would make segments
//! itself. Each segment would be charged with its own bookkeeping, and a send buffer would carry a
//! third less.
//!
//! A discipline on the host's own device would come before every point of observation, because
//! packets that leave a device are seen behind its disciplines. Here each host's edge is a device
//! of the wire: what the host sends is seen arriving there, before netem, and what it receives is
//! seen leaving, behind netem. No program touches a packet on its way.
//!
//! Addressing is that of [`crate::network::port`]'s veth pairs: both hosts' devices share one
//! Ethernet address and do not resolve others.

use std::os::fd::AsRawFd;

use fullpipe_model::units::Bytes;

use crate::Refused;
use crate::network::netem::Netem;
use crate::network::netlink::{LinkChange, Mac, Netlink, QdiscCounters, QdiscPlace, VethEnd};
use crate::network::netns::NetNs;
use crate::network::packet_filter::PacketFilter;
use crate::network::packet_ring::{self, PacketRing};
use crate::network::port::PortConfig;

// Locally administered, unicast.
const HOST_MAC: Mac = [0x02, 0, 0, 0, 0, 0x01];
const WIRE_MAC: Mac = [0x02, 0, 0, 0, 0, 0x02];
/// Bytes of an Ethernet header.
pub const L2_LEN: usize = 14;

/// One of the two hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The first.
    A,
    /// The second.
    B,
}

impl Side {
    fn device(self) -> &'static str {
        match self {
            Side::A => "a",
            Side::B => "b",
        }
    }

    /// The host's peer, if a card stands between host and edge.
    fn host(self) -> &'static str {
        match self {
            Side::A => "a-host",
            Side::B => "b-host",
        }
    }

    fn card(self) -> &'static str {
        match self {
            Side::A => "a-card",
            Side::B => "b-card",
        }
    }
}

/// The wire between two hosts' devices; everything ends with this value.
pub struct Wire {
    ns: NetNs,
    netlink: Netlink,
}

impl std::fmt::Debug for Wire {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Wire").field("ns", &self.ns).finish_non_exhaustive()
    }
}

impl Wire {
    /// Joins both hosts, with super-packets of up to `gso_max_segs` MTU segments between them. With
    /// 1 there are single segments with checksums, as on a real wire: the hosts' TCP makes
    /// super-packets as any Linux does, and each host's card cuts them.
    pub fn create(
        a: &PortConfig<'_>,
        b: &PortConfig<'_>,
        mtu: Bytes,
        gso_max_segs: u32,
    ) -> Result<Wire, Refused> {
        let ns = NetNs::create("wire")?;
        let mut netlink = Netlink::open(&ns)?;
        let cut_at_card = gso_max_segs == 1;
        for (side, config) in [(Side::A, a), (Side::B, b)] {
            let mut host = Netlink::open(config.ns)?;
            let peer = if cut_at_card { side.host() } else { side.device() };
            host.add_veth(
                VethEnd { name: config.device, mac: HOST_MAC },
                VethEnd { name: peer, mac: WIRE_MAC },
                &ns,
            )?;
            let devices = if cut_at_card {
                let [device, card] =
                    [side.device(), side.card()].map(|name| VethEnd { name, mac: WIRE_MAC });
                netlink.add_veth(device, card, &ns)?;
                ns.run(|| offload_nothing(side.card()))??;
                vec![side.device(), side.card(), side.host()]
            } else {
                vec![side.device()]
            };
            // The wire accepts anything that the hosts' devices can be configured to send.
            let silent = LinkChange {
                ipv6_link_local: Some(false),
                arp: Some(false),
                ..LinkChange::default()
            };
            for device in devices {
                netlink.change_link(
                    device,
                    &LinkChange { mtu: Some(Bytes::new(65_535)), ..silent.clone() },
                )?;
                netlink
                    .change_link(device, &LinkChange { up: Some(true), ..LinkChange::default() })?;
            }
            // A limit here would act on TCP itself, whose buffers then hold less data, in more and
            // smaller packets.
            let gso_max_segs = (!cut_at_card).then_some(gso_max_segs);
            host.change_link(
                config.device,
                &LinkChange { mtu: Some(mtu), gso_max_segs, ..silent },
            )?;
        }
        // First, before other requests that a kernel may refuse, because this refusal has a remedy.
        for side in [Side::A, Side::B] {
            netlink.set_netem(side.device(), QdiscPlace::Root, &Netem::default())?;
            if cut_at_card {
                netlink.redirect_arrivals(side.host(), side.card())?;
                netlink.redirect_arrivals(side.card(), side.host())?;
            }
        }
        netlink.redirect_arrivals(Side::A.device(), Side::B.device())?;
        netlink.redirect_arrivals(Side::B.device(), Side::A.device())?;
        for config in [a, b] {
            let mut host = Netlink::open(config.ns)?;
            // Brought up last, because the host may send from then on.
            host.change_link(
                config.device,
                &LinkChange { up: Some(true), ..LinkChange::default() },
            )?;
            host.add_addresses(config.device, config.addresses)?;
        }
        Ok(Wire { ns, netlink })
    }

    /// Puts a netem in front of `side`, for packets from the other host.
    pub fn set_netem(
        &mut self,
        side: Side,
        place: QdiscPlace,
        netem: &Netem,
    ) -> Result<(), Refused> {
        self.netlink.set_netem(side.device(), place, netem)
    }

    /// The netem in front of `side` as the kernel has it, and its counters.
    pub fn netem(
        &mut self,
        side: Side,
        place: QdiscPlace,
    ) -> Result<(Netem, QdiscCounters), Refused> {
        self.netlink.netem(side.device(), place)
    }

    /// Captures at `side`'s edge: outgoing packets there are on their way to that host.
    pub fn watch(&mut self, side: Side, snaplen: Bytes) -> Result<PacketRing, Refused> {
        let index = self.netlink.link_index(side.device())?;
        let filter = PacketFilter::everything(snaplen.saturating_add(Bytes::new(L2_LEN as u64)));
        PacketRing::open(&self.ns, side.device(), index, &filter, packet_ring::MEMORY)
    }
}

/// Makes the kernel write checksums into what is sent to `device` rather than leave them to a card
/// that does not exist. So it cuts super-packets too, because it can compute a segment's checksum
/// only when it knows the segment.
fn offload_nothing(device: &str) -> Result<(), Refused> {
    /// `struct ifreq` with `ifr_data`.
    #[repr(C)]
    struct IfReq {
        name: [u8; libc::IFNAMSIZ],
        data: *mut EthtoolValue,
        rest: [u8; 16],
    }
    /// `struct ethtool_value`
    #[repr(C)]
    struct EthtoolValue {
        cmd: u32,
        data: u32,
    }
    const ETHTOOL_STXCSUM: u32 = 0x17;
    const SIOCETHTOOL: libc::c_ulong = 0x8946;
    let socket = std::net::UdpSocket::bind("0.0.0.0:0")
        .map_err(|e| Refused::new("open socket", device, e))?;
    let mut value = EthtoolValue { cmd: ETHTOOL_STXCSUM, data: 0 };
    let mut request = IfReq { name: [0; libc::IFNAMSIZ], data: &raw mut value, rest: [0; 16] };
    let length = device.len().min(libc::IFNAMSIZ - 1);
    request.name[..length].copy_from_slice(&device.as_bytes()[..length]);
    // SAFETY: SIOCETHTOOL reads a `struct ifreq`, which `request` is by layout, and the
    // ethtool_value that it points to; both live through the call.
    match unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL as _, &mut request) } {
        0 => Ok(()),
        _ => Err(Refused::last("turn checksum offload off", device)),
    }
}
