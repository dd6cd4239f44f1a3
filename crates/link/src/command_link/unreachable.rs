//! ICMP's "destination unreachable" (RFC 792; RFC 4443, section 3.1), as a router sends it for a
//! datagram that it cannot forward, with the destination as the source address.

use etherparse::{IpNumber, Ipv4Header, Ipv6Header, PacketBuilder, UdpHeader, icmpv4, icmpv6};
use fullpipe_kernel::network::netns::NetNs;
use fullpipe_kernel::{Refused, socket::transparent};
use std::net::{IpAddr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// Hop limit of our messages: the link is one hop.
const HOPS: u8 = 64;

/// The reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unreachable {
    /// Nobody listens at the port.
    Port,
    /// The host does not answer on its network.
    Host,
    /// No route leads there.
    Net,
}

impl Unreachable {
    /// The meaning of a socket's errno; `None` if it is about something else.
    pub fn from_errno(errno: i32) -> Option<Unreachable> {
        match io_error_kind(errno) {
            std::io::ErrorKind::ConnectionRefused => Some(Unreachable::Port),
            std::io::ErrorKind::HostUnreachable => Some(Unreachable::Host),
            std::io::ErrorKind::NetworkUnreachable => Some(Unreachable::Net),
            _ => None,
        }
    }
}

fn io_error_kind(errno: i32) -> std::io::ErrorKind {
    std::io::Error::from_raw_os_error(errno).kind()
}

/// Sends these messages to the command's end.
#[derive(Debug)]
pub(super) struct Reporter {
    socket: OwnedFd,
}

impl Reporter {
    /// A reporter for the family of `any`, in the gateway's namespace.
    pub fn open(ns: &Arc<NetNs>, any: IpAddr) -> Result<Reporter, Refused> {
        Ok(Reporter { socket: transparent::packets(ns, any)? })
    }

    /// Tells `sender` that its datagram to `meant` could not be delivered. Like every ICMP message
    /// it may be lost.
    pub fn report(&self, unreachable: Unreachable, sender: SocketAddr, meant: SocketAddr) {
        let packet = match (sender, meant) {
            (SocketAddr::V4(to), SocketAddr::V4(from)) => message_v4(unreachable, to, from),
            (SocketAddr::V6(to), SocketAddr::V6(from)) => message_v6(unreachable, to, from),
            _ => return,
        };
        if let Some(packet) = packet {
            let _ = transparent::send_packet(&self.socket, &packet, sender.ip());
        }
    }
}

/// The UDP header of the undeliverable datagram; only its ports matter.
fn udp(sender: u16, meant: u16) -> [u8; UdpHeader::LEN] {
    let length = UdpHeader::LEN as u16;
    UdpHeader { source_port: sender, destination_port: meant, length, checksum: 0 }.to_bytes()
}

fn message_v4(what: Unreachable, to: SocketAddrV4, from: SocketAddrV4) -> Option<Vec<u8>> {
    let header = Ipv4Header::new(
        UdpHeader::LEN as u16,
        HOPS,
        IpNumber::UDP,
        to.ip().octets(),
        from.ip().octets(),
    )
    .ok()?;
    let mut about = header.to_bytes().to_vec();
    about.extend_from_slice(&udp(to.port(), from.port()));
    let kind = match what {
        Unreachable::Port => icmpv4::DestUnreachableHeader::Port,
        Unreachable::Host => icmpv4::DestUnreachableHeader::Host,
        Unreachable::Net => icmpv4::DestUnreachableHeader::Network,
    };
    let mut packet = Vec::new();
    let builder = PacketBuilder::ipv4(from.ip().octets(), to.ip().octets(), HOPS);
    builder
        .icmpv4(etherparse::Icmpv4Type::DestinationUnreachable(kind))
        .write(&mut packet, &about)
        .ok()?;
    Some(packet)
}

fn message_v6(what: Unreachable, to: SocketAddrV6, from: SocketAddrV6) -> Option<Vec<u8>> {
    let header = Ipv6Header {
        payload_length: UdpHeader::LEN as u16,
        next_header: IpNumber::UDP,
        hop_limit: HOPS,
        source: to.ip().octets(),
        destination: from.ip().octets(),
        ..Ipv6Header::default()
    };
    let mut about = header.to_bytes().to_vec();
    about.extend_from_slice(&udp(to.port(), from.port()));
    let code = match what {
        Unreachable::Port => icmpv6::DestUnreachableCode::Port,
        Unreachable::Host => icmpv6::DestUnreachableCode::Address,
        Unreachable::Net => icmpv6::DestUnreachableCode::NoRoute,
    };
    let mut packet = Vec::new();
    let builder = PacketBuilder::ipv6(from.ip().octets(), to.ip().octets(), HOPS);
    builder
        .icmpv6(etherparse::Icmpv6Type::DestinationUnreachable(code))
        .write(&mut packet, &about)
        .ok()?;
    Some(packet)
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::{SlicedPacket, TransportSlice};

    #[test]
    fn the_message_names_the_datagram_that_it_is_about() {
        let to = "10.77.0.2:40000".parse().unwrap();
        let from = "192.0.2.9:53".parse().unwrap();
        let packet = message_v4(Unreachable::Port, to, from).unwrap();
        let sliced = SlicedPacket::from_ip(&packet).unwrap();
        let Some(TransportSlice::Icmpv4(icmp)) = sliced.transport else { panic!("{sliced:?}") };
        assert_eq!((icmp.type_u8(), icmp.code_u8()), (3, 3));
        let about = SlicedPacket::from_ip(icmp.payload()).unwrap();
        let Some(TransportSlice::Udp(udp)) = about.transport else { panic!("{about:?}") };
        assert_eq!((udp.source_port(), udp.destination_port()), (40_000, 53));
    }
}
