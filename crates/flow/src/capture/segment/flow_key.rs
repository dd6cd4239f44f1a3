//! Which connection a segment belongs to: its two ends, whichever of them sent it.

use super::Segment;
use std::net::SocketAddr;

/// Two ends in a fixed order, so that both directions of a connection have the same key.
///
/// Only addresses and ports count, as in tshark: VLAN tags, tunnels and interfaces do not
/// distinguish connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FlowKey(KeyEnds);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum KeyEnds {
    /// Address and port in one word each.
    V4(u64, u64),
    /// The same as bytes, so that their alignment does not pad the other variant.
    V6([u8; 18], [u8; 18]),
}

impl FlowKey {
    /// The key of the segment's connection, and whether its sender is the first end of the key.
    /// With the same address and port on both ends (a "land" packet) there is only one direction.
    pub fn of(segment: &Segment) -> (FlowKey, bool) {
        match (segment.source, segment.destination) {
            (SocketAddr::V4(source), SocketAddr::V4(destination)) => {
                let [source, destination] =
                    [source, destination].map(|end| (end.ip().to_bits(), end.port()));
                Self::of_ipv4(source, destination)
            }
            (source, destination) => {
                let (source, destination) = (end_as_bytes(source), end_as_bytes(destination));
                (
                    FlowKey(KeyEnds::V6(source.min(destination), source.max(destination))),
                    source <= destination,
                )
            }
        }
    }

    /// The same from the addresses and ports of an IPv4 packet.
    pub(crate) fn of_ipv4(source: (u32, u16), destination: (u32, u16)) -> (FlowKey, bool) {
        let [source, destination] =
            [source, destination].map(|(address, port)| u64::from(address) << 16 | u64::from(port));
        (
            FlowKey(KeyEnds::V4(source.min(destination), source.max(destination))),
            source <= destination,
        )
    }

    /// The two ends, the first of the key first.
    pub fn ends(&self) -> [SocketAddr; 2] {
        match self.0 {
            KeyEnds::V4(a, b) => [a, b]
                .map(|word| SocketAddr::from((((word >> 16) as u32).to_be_bytes(), word as u16))),
            KeyEnds::V6(a, b) => [a, b].map(|bytes| {
                let address: [u8; 16] = std::array::from_fn(|at| bytes[at]);
                SocketAddr::from((address, u16::from_be_bytes([bytes[16], bytes[17]])))
            }),
        }
    }

    /// The number of its shard, out of `count`: the same in every process and for both directions.
    pub fn shard(&self, count: usize) -> usize {
        let (a, b) = match self.0 {
            KeyEnds::V4(a, b) => (a, b),
            KeyEnds::V6(a, b) => (fold(a), fold(b)),
        };
        // Fibonacci hashing (Knuth, The Art of Computer Programming 6.4): the high bits of a
        // product are well mixed.
        let mixed = (a.rotate_left(32) ^ b.wrapping_mul(0xd6e8_feb8_6659_fd93))
            .wrapping_mul(0x9e37_79b9_7f4a_7c15);
        ((u128::from(mixed) * count as u128) >> 64) as usize
    }
}

/// An end's address and port, an address of IPv4 as one of IPv6.
fn end_as_bytes(end: SocketAddr) -> [u8; 18] {
    let address = match end {
        SocketAddr::V4(end) => end.ip().to_ipv6_mapped().octets(),
        SocketAddr::V6(end) => end.ip().octets(),
    };
    let mut bytes = [0; 18];
    bytes[..16].copy_from_slice(&address);
    bytes[16..].copy_from_slice(&end.port().to_be_bytes());
    bytes
}

/// A number that every byte has a part in.
fn fold(bytes: [u8; 18]) -> u64 {
    bytes.iter().fold(0, |sum: u64, byte| sum.rotate_left(8).wrapping_mul(31) ^ u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::segment::{Flags, SequenceNumber, TcpOptions};
    use fullpipe_model::units::Bytes;
    use proptest::prelude::*;

    fn segment(source: SocketAddr, destination: SocketAddr) -> Segment {
        Segment {
            source,
            destination,
            ip_id: None,
            ce: false,
            ip: Default::default(),
            seq: SequenceNumber(0),
            ack: SequenceNumber(0),
            flags: Flags::ACK,
            window: 0,
            payload: Bytes::ZERO,
            options: TcpOptions::default(),
            payload_start: Default::default(),
            is_broken: false,
            is_header_cut: false,
        }
    }

    proptest! {
        #[test]
        fn both_directions_are_one_connection(a: [u8; 16], b: [u8; 16], ports: (u16, u16), four: bool) {
            let end = |bytes: [u8; 16], port| if four {
                SocketAddr::from(([bytes[0], bytes[1], bytes[2], bytes[3]], port))
            } else {
                SocketAddr::from((bytes, port))
            };
            let (a, b) = (end(a, ports.0), end(b, ports.1));
            let ((there, one), (back, other)) = (FlowKey::of(&segment(a, b)), FlowKey::of(&segment(b, a)));
            prop_assert_eq!(there, back);
            prop_assert!(a == b || one != other);
            prop_assert_eq!(there.ends(), if one { [a, b] } else { [b, a] });
            for count in 1..9 {
                prop_assert!(there.shard(count) < count && there.shard(count) == back.shard(count));
            }
        }
    }

    #[test]
    fn shards_are_even_for_neighbouring_ports() {
        let server = SocketAddr::from(([192, 0, 2, 1], 443));
        let mut counts = [0; 4];
        for port in 1024..21_024 {
            let (key, _) = FlowKey::of(&segment(SocketAddr::from(([10, 0, 0, 1], port)), server));
            counts[key.shard(4)] += 1;
        }
        assert!(counts.iter().all(|count| (4_500..5_500).contains(count)), "{counts:?}");
    }
}
