//! What the link reads from a packet's headers: its flow, and whether it supports ECN (pure).
//!
//! The bytes are untrusted and read once for each frame: all segments of a super-packet share these
//! headers. A packet that is not IP, or is shorter than it claims, has no flow of its own: no rule
//! matches it, and all such packets share a flow.
//!
//! **Fragments have no ports here, not even the first**, which contains them: so all fragments of a
//! packet match the same rule and share a flow, and none overtakes another. A rule that names a
//! port does not match fragments.
//!
//! Sources: RFC 791, RFC 8200 (section 4, extension headers), RFC 6946 (atomic fragments), RFC
//! 3168.

use fullpipe_model::link::Ecn;
use fullpipe_model::link::rule::{PacketKey, Protocol};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// No packet has more extension headers; if it does, the next one counts as its protocol.
const EXTENSIONS_MAX: usize = 8;

/// The headers of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Headers {
    /// The fields that rules look at.
    pub key: PacketKey,
    /// The ECN field.
    pub ecn: Ecn,
    /// Offset of the transport header from the start of the IP packet; `None` in a fragment.
    pub transport: Option<usize>,
    /// Whether it has an IPv6 routing header: its checksum may then be for another destination.
    pub routed: bool,
}

impl Headers {
    /// Parses the headers of the IP packet `ip`; `None` if it is not IP.
    pub fn read(ip: &[u8]) -> Option<Headers> {
        match ip.first()? >> 4 {
            4 => Self::v4(ip),
            6 => Self::v6(ip),
            _ => None,
        }
    }

    fn v4(ip: &[u8]) -> Option<Headers> {
        let header = usize::from(ip[0] & 15) * 4;
        if header < 20 || ip.len() < header {
            return None;
        }
        let address =
            |at: usize| IpAddr::V4(Ipv4Addr::new(ip[at], ip[at + 1], ip[at + 2], ip[at + 3]));
        // More fragments follow, or it is not the first.
        let fragment = u16::from_be_bytes([ip[6], ip[7]]) & 0x3fff != 0;
        let protocol = Protocol(ip[9]);
        let transport = (!fragment).then_some(header);
        let ports = transport.and_then(|at| ports(protocol, ip.get(at..)?));
        let key = PacketKey { source: address(12), destination: address(16), protocol, ports };
        Some(Headers { key, ecn: Ecn::from_bits(ip[1]), transport, routed: false })
    }

    fn v6(ip: &[u8]) -> Option<Headers> {
        let (source, destination) = (address_v6(ip, 8)?, address_v6(ip, 24)?);
        let (protocol, transport, routed) = above_v6(ip);
        let ports = transport.and_then(|at| ports(protocol, ip.get(at..)?));
        let key = PacketKey { source, destination, protocol, ports };
        // The traffic class spans the first two bytes.
        Some(Headers { key, ecn: Ecn::from_bits(ip[1] >> 4), transport, routed })
    }

    /// A hash that is the same for all packets of a flow.
    pub fn flow(&self) -> u32 {
        let PacketKey { source, destination, protocol, ports } = self.key;
        let (source, destination) = (wide(source), wide(destination));
        let (source_port, destination_port) = ports.unwrap_or_default();
        let ports =
            u64::from(source_port) << 24 | u64::from(destination_port) << 8 | u64::from(protocol.0);
        let halves = [
            source as u64,
            (source >> 64) as u64,
            destination as u64,
            (destination >> 64) as u64,
            ports,
        ];
        let mixed = halves.into_iter().fold(0, |hash, half| mix(hash ^ half));
        (mixed >> 32) as u32
    }
}

fn address_v6(ip: &[u8], at: usize) -> Option<IpAddr> {
    let octets: [u8; 16] = ip.get(at..at + 16)?.try_into().ok()?;
    Some(IpAddr::V6(Ipv6Addr::from(octets)))
}

/// An address of either version as a number.
fn wide(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(v4) => u128::from(u32::from(v4)),
        IpAddr::V6(v6) => u128::from(v6),
    }
}

/// The finaliser of SplitMix64: every input bit affects every output bit.
fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// The protocol above IPv6, its offset (past the extension headers; none in a fragment), and
/// whether there is a routing header.
fn above_v6(ip: &[u8]) -> (Protocol, Option<usize>, bool) {
    const HOP_BY_HOP: u8 = 0;
    const ROUTING: u8 = 43;
    const FRAGMENT: u8 = 44;
    const AUTHENTICATION: u8 = 51;
    const DESTINATION: u8 = 60;
    let (mut next, mut at, mut routed) = (ip[6], 40, false);
    for _ in 0..EXTENSIONS_MAX {
        let Some(&[following, length, high, low]) =
            ip.get(at..).and_then(|rest| rest.first_chunk())
        else {
            break;
        };
        let skip = match next {
            HOP_BY_HOP | ROUTING | DESTINATION => (usize::from(length) + 1) * 8,
            AUTHENTICATION => (usize::from(length) + 2) * 4,
            // An atomic fragment contains the whole packet and does not count.
            FRAGMENT if u16::from_be_bytes([high, low]) & 0xfff9 == 0 => 8,
            FRAGMENT => return (Protocol(following), None, routed),
            _ => break,
        };
        routed |= next == ROUTING;
        (next, at) = (following, at + skip);
    }
    (Protocol(next), Some(at), routed)
}

/// Source and destination port, if the protocol has them.
fn ports(protocol: Protocol, transport: &[u8]) -> Option<(u16, u16)> {
    const DCCP: u8 = 33;
    const SCTP: u8 = 132;
    const UDP_LITE: u8 = 136;
    let has = matches!(protocol, Protocol::TCP | Protocol::UDP | Protocol(DCCP | SCTP | UDP_LITE));
    let [a, b, c, d] = *transport.first_chunk().filter(|_| has)?;
    Some((u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])))
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::{IpFragOffset, IpNumber, Ipv4Header, Ipv6Header, PacketBuilder};
    use proptest::prelude::*;

    fn key(source: &str, destination: &str, protocol: u8, ports: Option<(u16, u16)>) -> PacketKey {
        let address = |text: &str| text.parse().unwrap();
        PacketKey {
            source: address(source),
            destination: address(destination),
            protocol: Protocol(protocol),
            ports,
        }
    }

    #[test]
    fn addresses_ports_and_ecn_of_both_versions() {
        let mut packet = Vec::new();
        PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 5], 64)
            .tcp(4000, 443, 1, 1)
            .write(&mut packet, b"x")
            .unwrap();
        packet[1] |= 2;
        let headers = Headers::read(&packet).unwrap();
        assert_eq!(headers.key, key("10.0.0.1", "10.0.0.5", 6, Some((4000, 443))));
        assert_eq!((headers.ecn, headers.transport), (Ecn::Ect0, Some(20)));
        let mut packet = Vec::new();
        PacketBuilder::ipv6([1; 16], [2; 16], 64).udp(53, 5353).write(&mut packet, b"x").unwrap();
        packet[1] |= 0x10;
        let headers = Headers::read(&packet).unwrap();
        assert_eq!(headers.key.ports, Some((53, 5353)));
        assert_eq!(
            (headers.key.protocol, headers.ecn, headers.transport),
            (Protocol::UDP, Ecn::Ect1, Some(40))
        );
    }

    #[test]
    fn all_fragments_of_a_packet_are_alike() {
        let fragment = |offset: u16, more| {
            let mut ip =
                Ipv4Header::new(100, 64, IpNumber::UDP, [10, 0, 0, 1], [10, 0, 0, 2]).unwrap();
            (ip.fragment_offset, ip.more_fragments) =
                (IpFragOffset::try_new(offset).unwrap(), more);
            let mut packet = ip.to_bytes().to_vec();
            packet.extend([7; 100]);
            Headers::read(&packet).unwrap()
        };
        let (first, later) = (fragment(0, true), fragment(10, false));
        assert_eq!(first, later);
        assert_eq!((first.key.ports, first.transport), (None, None));
        assert!(fragment(0, false).key.ports.is_some());
    }

    #[test]
    fn ipv6_extension_headers_are_walked() {
        let packet = |chain: &[(u8, &[u8])], last: u8| {
            let first = chain.first().map_or(last, |(number, _)| *number);
            let nexts = chain.iter().skip(1).map(|(number, _)| *number).chain([last]);
            let ip = Ipv6Header {
                next_header: IpNumber(first),
                source: [1; 16],
                destination: [2; 16],
                ..Default::default()
            };
            let mut packet = ip.to_bytes().to_vec();
            for ((_, rest), next) in chain.iter().zip(nexts) {
                packet.push(next);
                packet.extend(*rest);
            }
            packet.extend([0x0f, 0xa0, 0x01, 0xbb, 0, 0, 0, 0]);
            Headers::read(&packet).unwrap()
        };
        let options: &[u8] = &[0, 1, 4, 0, 0, 0, 0];
        let found = packet(&[(0, options), (60, options), (43, &[1; 15])], 6);
        assert_eq!((found.key.protocol, found.key.ports), (Protocol::TCP, Some((4000, 443))));
        assert_eq!((found.transport, found.routed), (Some(40 + 8 + 8 + 16), true));
        let atomic = packet(&[(44, &[0, 0, 0, 9, 9, 9, 9])], 17);
        assert_eq!(atomic.key.ports, Some((4000, 443)));
        let first = packet(&[(44, &[0, 0, 1, 9, 9, 9, 9])], 17);
        let later = packet(&[(44, &[0, 1, 0, 9, 9, 9, 9])], 17);
        assert_eq!(first, later);
        assert_eq!((first.key.protocol, first.key.ports), (Protocol::UDP, None));
    }

    #[test]
    fn a_flow_has_one_hash_and_others_have_others() {
        let hash = |port: u16| {
            let headers = Headers {
                key: key("10.0.0.1", "10.0.0.2", 6, Some((port, 80))),
                ecn: Ecn::NotEct,
                transport: None,
                routed: false,
            };
            headers.flow()
        };
        assert_eq!(hash(1), hash(1));
        let different: std::collections::BTreeSet<u32> =
            (0..1000).map(|port| hash(port) % 1024).collect();
        // Of 1000 balls in 1024 bins 638 bins are expected to be hit, with a deviation of about 10.
        assert!((590..690).contains(&different.len()), "{}", different.len());
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..120), version in prop_oneof![Just(0x45u8), Just(0x60)]) {
            let mut bytes = bytes;
            if let Some(first) = bytes.first_mut() {
                *first = version;
            }
            if let Some(headers) = Headers::read(&bytes) {
                headers.flow();
            }
        }
    }
}
