//! Ports without TUN: a veth pair for each host, with an `AF_PACKET` socket at its far end.
//!
//! The far ends are in a separate namespace, which has no addresses and lives as long as the two
//! sockets. Both hosts' devices have the same Ethernet address and do not resolve neighbours
//! (NOARP: Linux then addresses frames to the device's own address). So every frame is already
//! addressed to the other host, whatever its IP address, and no neighbour table is needed. The far
//! ends have another address, so their own IP stack drops the frames at once.
//!
//! The socket's buffer is the queue between host and program. With CAP_NET_ADMIN on the machine it
//! is 128 MB; otherwise `net.core.rmem_max` bounds it: 4 MB since Linux 6.17, 208 KiB before, and a
//! super-packet takes 64 KiB and more. What does not fit is lost and counted ([`Port::drops`]).
//! `PACKET_QDISC_BYPASS` was measured and gains nothing, because a veth device has no queueing
//! discipline.
//!
//! A host takes frames from the queue of the CPU on which they were written, so a writing thread
//! that moves between CPUs can reorder packets: pin it ([`crate::process::sched::Placement`]) where
//! that matters.
//!
//! With `PACKET_VNET_HDR` the socket reads and writes super-packets with the same header as TUN.
//! Source: packet(7), net/packet/af_packet.c.

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

use super::{Port, PortConfig, PortKind};
use crate::Refused;
use crate::network::netlink::{LinkChange, Mac, Netlink, VethEnd};
use crate::network::netns::NetNs;

// Locally administered, unicast.
const HOST_MAC: Mac = [0x02, 0, 0, 0, 0, 0x01];
const FAR_MAC: Mac = [0x02, 0, 0, 0, 0, 0x02];

// From linux/if_packet.h; the libc crate does not have them for Linux.
const PACKET_VNET_HDR: libc::c_int = 15;
const PACKET_IGNORE_OUTGOING: libc::c_int = 23;

/// Requested socket buffer; the kernel grants what its limits allow.
const BUFFER: libc::c_int = 128 << 20;

/// Makes both hosts' veth pairs; they are removed when the ports are dropped.
pub(super) fn open(a: &PortConfig<'_>, b: &PortConfig<'_>) -> Result<(Port, Port), Refused> {
    let wire = NetNs::create("wire")?;
    Ok((one(a, &wire, "a")?, one(b, &wire, "b")?))
}

fn one(config: &PortConfig<'_>, wire: &NetNs, far: &str) -> Result<Port, Refused> {
    let mut host = Netlink::open(config.ns)?;
    let mut netlink = Netlink::open(wire)?;
    host.add_veth(
        VethEnd { name: config.device, mac: HOST_MAC },
        VethEnd { name: far, mac: FAR_MAC },
        wire,
    )?;
    host.change_link(config.device, &LinkChange { arp: Some(false), ..LinkChange::default() })?;
    // The far end accepts anything that the host's device can be configured to send.
    let mtu = Some(fullpipe_model::units::Bytes::new(65_535));
    let silent =
        LinkChange { ipv6_link_local: Some(false), arp: Some(false), mtu, ..LinkChange::default() };
    netlink.change_link(far, &silent)?;
    netlink.change_link(far, &LinkChange { up: Some(true), ..LinkChange::default() })?;
    // A socket bound to a device that is down returns ENETDOWN at its first read. The host's end is
    // still down, so nothing is missed.
    let fd = wire.run(|| packet_socket(far, netlink.link_index(far)?))??;
    Ok(Port::new(PortKind::Veth, fd, netlink, far))
}

fn packet_socket(device: &str, index: u32) -> Result<OwnedFd, Refused> {
    let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // Protocol 0: nothing is received before the socket is bound to the one device.
    // SAFETY: no memory is passed.
    let raw = unsafe { libc::socket(libc::AF_PACKET, kind, 0) };
    if raw < 0 {
        return Err(Refused::last("open packet socket", device)
            .hint("it needs CAP_NET_RAW in the namespace"));
    }
    // SAFETY: `raw` was just opened and belongs to nobody else.
    let fd = unsafe { OwnedFd::from_raw_fd(raw) };
    set(&fd, libc::SOL_PACKET, PACKET_VNET_HDR, 1).map_err(|e| {
        Refused::new("set PACKET_VNET_HDR", device, e).hint("it needs Linux 2.6.27 or later")
    })?;
    set(&fd, libc::SOL_PACKET, PACKET_IGNORE_OUTGOING, 1).map_err(|e| {
        Refused::new("set PACKET_IGNORE_OUTGOING", device, e).hint("it needs Linux 4.20 or later")
    })?;
    // FORCE needs CAP_NET_ADMIN on the machine itself; without, net.core.rmem_max bounds the
    // buffer.
    for (force, plain) in
        [(libc::SO_RCVBUFFORCE, libc::SO_RCVBUF), (libc::SO_SNDBUFFORCE, libc::SO_SNDBUF)]
    {
        if set(&fd, libc::SOL_SOCKET, force, BUFFER).is_err() {
            set(&fd, libc::SOL_SOCKET, plain, BUFFER)
                .map_err(|e| Refused::new("set socket buffer", device, e))?;
        }
    }
    // SAFETY: sockaddr_ll is plain data, for which zeros are valid.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
    address.sll_ifindex = index as libc::c_int;
    let length = size_of_val(&address) as libc::socklen_t;
    // SAFETY: `address` is a sockaddr_ll of the length given and lives through the call.
    if unsafe { libc::bind(fd.as_raw_fd(), (&raw const address).cast(), length) } != 0 {
        return Err(Refused::last("bind packet socket", device));
    }
    Ok(fd)
}

fn set(
    fd: impl AsFd,
    level: libc::c_int,
    option: libc::c_int,
    value: libc::c_int,
) -> io::Result<()> {
    let length = size_of_val(&value) as libc::socklen_t;
    let fd = fd.as_fd().as_raw_fd();
    // SAFETY: `value` is an int of the length given and lives through the call.
    match unsafe { libc::setsockopt(fd, level, option, (&raw const value).cast(), length) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
