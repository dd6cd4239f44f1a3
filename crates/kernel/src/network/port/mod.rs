//! The ends of a link at its two hosts: frames out of a host, frames into a host.
//!
//! A [`PortPair`] attaches to two network namespaces and does not connect them: what one host sends
//! can be read from its port, and the program that owns the pair decides when, and whether, to
//! write it to the other port. Frames look like this:
//!
//! ```text
//! [vnet_hdr: 10 bytes][l2: Port::l2_len() bytes][IP packet]
//! ```
//!
//! The `vnet_hdr` is `struct virtio_net_hdr` (linux/virtio_net.h, host byte order). It marks a
//! frame as a super-packet of up to 64 KB that stands for many segments (`gso_type`, `gso_size`),
//! and says where a checksum is still missing (`csum_start`, `csum_offset`). Its offsets count from
//! the end of the `vnet_hdr`, so they include the `l2_len` bytes. Both ports of a pair are of one
//! kind, and their hosts share one Ethernet address, so a frame read from one can be written to the
//! other unchanged.
//!
//! Two kinds, in order of preference:
//! * [`PortKind::Tun`]: a TUN device in each host. One copy in, one out.
//! * [`PortKind::Veth`]: where `/dev/net/tun` is missing or may not be opened (containers, hardened
//!   machines): a veth pair for each host, whose far end is in a separate namespace with an
//!   `AF_PACKET` socket. Slower, and the queue between host and program is a socket buffer bounded
//!   by `net.core.rmem_max`: see [`Port::drops`].
//!
//! A third kind, [`PortKind::Tap`], is not for hosts of a lab but for the traffic of a device of
//! the machine ([`crate::network::redirect`]): like TUN, with Ethernet headers.
//!
//! Both ports are non-blocking; wait with [`crate::process::wait`]. Every method takes `&self`: one
//! thread for each direction reads one port and writes the other.

mod tun;
mod veth;

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Mutex;

use fullpipe_model::units::Bytes;

use crate::Refused;
use crate::bpf::packet_drops::packet_drops;
use crate::network::netlink::{LinkChange, Netlink, Network};
use crate::network::netns::NetNs;

/// Bytes of `struct virtio_net_hdr` in front of each frame.
pub const VNET_HDR_LEN: usize = 10;

/// A buffer of this length holds any frame.
pub const FRAME_MAX: usize = VNET_HDR_LEN + 14 + 65_536;

/// Packets that a TUN device queues for the reader. A full window must fit, because nothing slows
/// the sender down here.
const TX_QUEUE_LEN: u32 = 10_000;

/// How a port is connected to its host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PortKind {
    /// A TUN device in the host.
    Tun,
    /// A veth pair with an `AF_PACKET` socket at the far end.
    Veth,
    /// A TAP device: Ethernet frames.
    Tap,
}

impl std::fmt::Display for PortKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            PortKind::Tun => "tun",
            PortKind::Veth => "veth",
            PortKind::Tap => "tap",
        })
    }
}

/// One side of a pair: the host and its device.
#[derive(Debug, Clone)]
pub struct PortConfig<'a> {
    /// The host.
    pub ns: &'a NetNs,
    /// Name of the device in the host, at most 15 bytes: `wan0`.
    pub device: &'a str,
    /// The device's addresses, each of which adds a route to its network. IPv6 addresses are left
    /// out if the device has no IPv6: the MTU is below 1280, or IPv6 is disabled.
    pub addresses: &'a [Network],
}

/// Why hosts could not be given ports.
#[derive(Debug, thiserror::Error)]
pub enum PortError {
    /// Neither kind works here.
    #[error("make ports: no TUN device ({tun}), and no veth pair either ({veth})")]
    Neither {
        /// Why TUN failed.
        tun: Box<Refused>,
        /// Why veth failed.
        veth: Box<Refused>,
    },
    /// The requested kind failed, or a later step.
    #[error(transparent)]
    Refused(#[from] Refused),
}

/// Two ports of one kind, one for each of two hosts.
#[derive(Debug)]
pub struct PortPair {
    /// The first host's.
    pub a: Port,
    /// The second host's.
    pub b: Port,
    /// Why this is not a pair of TUN devices, for the notes of a run.
    pub not_tun: Option<Refused>,
}

impl PortPair {
    /// Gives both hosts a device that is up, with `mtu` and its addresses; TUN if possible, else
    /// veth.
    ///
    /// Two devices of a pair that share a network (`10.0.0.1/24`, `10.0.0.2/24`) reach each other
    /// without further routes. They use no ARP and no neighbour discovery.
    pub fn create(
        a: &PortConfig<'_>,
        b: &PortConfig<'_>,
        mtu: Bytes,
    ) -> Result<PortPair, PortError> {
        match PortPair::of_kind(PortKind::Tun, a, b, mtu) {
            Ok(pair) => Ok(pair),
            Err(tun) => match PortPair::of_kind(PortKind::Veth, a, b, mtu) {
                Ok(pair) => Ok(PortPair { not_tun: Some(tun), ..pair }),
                Err(veth) => Err(PortError::Neither { tun: tun.into(), veth: veth.into() }),
            },
        }
    }

    /// Two TAP devices in one namespace or two: for frames that other devices send and receive.
    pub fn taps(a: &PortConfig<'_>, b: &PortConfig<'_>, mtu: Bytes) -> Result<PortPair, Refused> {
        PortPair::of_kind(PortKind::Tap, a, b, mtu)
    }

    /// The same with a fixed kind: for comparisons and tests.
    pub fn of_kind(
        kind: PortKind,
        a: &PortConfig<'_>,
        b: &PortConfig<'_>,
        mtu: Bytes,
    ) -> Result<PortPair, Refused> {
        let (a, b) = match kind {
            PortKind::Tun | PortKind::Tap => {
                (tun::open(kind, a)?, tun::open(kind, b)?).finish(a, b, mtu)?
            }
            PortKind::Veth => veth::open(a, b)?.finish(a, b, mtu)?,
        };
        Ok(PortPair { a, b, not_tun: None })
    }
}

/// Two devices that exist but have no addresses yet.
trait Finish {
    fn finish(
        self,
        a: &PortConfig<'_>,
        b: &PortConfig<'_>,
        mtu: Bytes,
    ) -> Result<(Port, Port), Refused>;
}

impl Finish for (Port, Port) {
    fn finish(
        self,
        a: &PortConfig<'_>,
        b: &PortConfig<'_>,
        mtu: Bytes,
    ) -> Result<(Port, Port), Refused> {
        for side in [a, b] {
            let mut netlink = Netlink::open(side.ns)?;
            let change = LinkChange {
                mtu: Some(mtu),
                txqueuelen: Some(TX_QUEUE_LEN),
                ipv6_link_local: Some(false),
                ..LinkChange::default()
            };
            netlink.change_link(side.device, &change)?;
            // Brought up last, because the host may send from then on.
            netlink.change_link(
                side.device,
                &LinkChange { up: Some(true), ..LinkChange::default() },
            )?;
            netlink.add_addresses(side.device, side.addresses)?;
        }
        Ok(self)
    }
}

/// Packets lost between a host and the program, which no model decided to lose. A run with any of
/// them is not a valid experiment on the link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Drops {
    /// Sent by the host and not read in time by the program.
    pub from_host: u64,
    /// Written by the program and not accepted by the host.
    pub to_host: u64,
}

/// One host's end of the link.
#[derive(Debug)]
pub struct Port {
    kind: PortKind,
    fd: OwnedFd,
    counters: Mutex<DropCounters>,
}

/// Sources of [`Port::drops`].
struct DropCounters {
    /// For the namespace of `device`: the host's for TUN, the far end's for veth.
    netlink: Netlink,
    device: String,
    /// Drops of the packet socket, whose own counter restarts at each reading.
    socket: u64,
}

impl std::fmt::Debug for DropCounters {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DropCounters").field("device", &self.device).finish_non_exhaustive()
    }
}

impl Port {
    fn new(kind: PortKind, fd: OwnedFd, netlink: Netlink, device: &str) -> Port {
        Port {
            kind,
            fd,
            counters: Mutex::new(DropCounters { netlink, device: device.into(), socket: 0 }),
        }
    }

    /// How it is connected to its host.
    pub fn kind(&self) -> PortKind {
        self.kind
    }

    /// Bytes of link-layer header between the `vnet_hdr` and the IP packet: 0 or 14.
    pub fn l2_len(&self) -> usize {
        match self.kind {
            PortKind::Tun => 0,
            PortKind::Veth | PortKind::Tap => 14,
        }
    }

    /// Reads the next frame that the host sent and returns its length, including the `vnet_hdr`;
    /// `WouldBlock` if there is none. A `buffer` shorter than [`FRAME_MAX`] may cut a frame off.
    pub fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        // SAFETY: the kernel writes at most `buffer.len()` bytes into `buffer`.
        let count =
            unsafe { libc::read(self.fd.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len()) };
        usize::try_from(count).map_err(|_| io::Error::last_os_error())
    }

    /// Delivers one frame to the host, given in parts that start with the `vnet_hdr`; returns its
    /// length.
    ///
    /// `WouldBlock` if the host has no room; `InvalidInput` if the `vnet_hdr` contradicts the
    /// frame.
    pub fn write_vectored(&self, frame: &[IoSlice<'_>]) -> io::Result<usize> {
        // SAFETY: an IoSlice is an iovec by its documentation; the kernel only reads the memory
        // that they name.
        let count = unsafe {
            libc::writev(self.fd.as_raw_fd(), frame.as_ptr().cast(), frame.len() as libc::c_int)
        };
        usize::try_from(count).map_err(|_| io::Error::last_os_error())
    }

    /// Packets lost between host and program so far. This asks the kernel: call it at the end of a
    /// run, not for each packet.
    pub fn drops(&self) -> Result<Drops, Refused> {
        let mut counters = self.counters.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let DropCounters { netlink, device, socket } = &mut *counters;
        let link = netlink.counters(device)?;
        match self.kind {
            PortKind::Tun | PortKind::Tap => {
                Ok(Drops { from_host: link.tx_dropped, to_host: link.rx_dropped })
            }
            PortKind::Veth => {
                *socket += packet_drops(self.fd.as_fd(), "packet socket")?;
                // Before the socket there is a queue for each CPU (net.core.netdev_max_backlog),
                // counted at the far device.
                Ok(Drops { from_host: *socket + link.rx_dropped, to_host: link.tx_dropped })
            }
        }
    }
}

impl AsFd for Port {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
