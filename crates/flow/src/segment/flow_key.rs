//! Which connection a segment belongs to: its two ends, whichever of them sent it.

use super::Segment;
use std::net::SocketAddr;

/// Two ends in a fixed order, so that both directions of a connection have the same key.
///
/// Addresses alone decide, as in tshark: VLAN tags, tunnels and interfaces do not keep connections apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FlowKey(Ends);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Ends {
    /// Address and port in one word each.
    V4(u64, u64),
    V6((u128, u16), (u128, u16)),
}

impl FlowKey {
    /// The key of the segment's connection, and whether its sender is the first end of the key. With the same address and
    /// port on both ends (a "land" packet) there is only one direction.
    pub fn of(segment: &Segment) -> (FlowKey, bool) {
        match (segment.source, segment.destination) {
            (SocketAddr::V4(source), SocketAddr::V4(destination)) => {
                let word = |end: std::net::SocketAddrV4| u64::from(end.ip().to_bits()) << 16 | u64::from(end.port());
                let (source, destination) = (word(source), word(destination));
                (FlowKey(Ends::V4(source.min(destination), source.max(destination))), source <= destination)
            }
            (source, destination) => {
                let pair = |end: SocketAddr| match end {
                    SocketAddr::V4(end) => (end.ip().to_ipv6_mapped().to_bits(), end.port()),
                    SocketAddr::V6(end) => (end.ip().to_bits(), end.port()),
                };
                let (source, destination) = (pair(source), pair(destination));
                (FlowKey(Ends::V6(source.min(destination), source.max(destination))), source <= destination)
            }
        }
    }

    /// Which of `count` shards it falls into: the same in every process, and for both directions.
    pub fn shard(&self, count: usize) -> usize {
        let fold = |value: u128| (value as u64) ^ (value >> 64) as u64;
        let (a, b) = match self.0 {
            Ends::V4(a, b) => (a, b),
            Ends::V6((a, a_port), (b, b_port)) => (fold(a) ^ u64::from(a_port), fold(b) ^ u64::from(b_port)),
        };
        // Fibonacci hashing (Knuth, The Art of Computer Programming 6.4): the high bits of a product are well mixed.
        let mixed = (a.rotate_left(32) ^ b.wrapping_mul(0xd6e8_feb8_6659_fd93)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        ((u128::from(mixed) * count as u128) >> 64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::{Flags, Options, SequenceNumber};
    use fullpipe_model::units::Bytes;
    use proptest::prelude::*;

    fn segment(source: SocketAddr, destination: SocketAddr) -> Segment {
        Segment {
            source,
            destination,
            ip_id: None,
            ce: false,
            seq: SequenceNumber(0),
            ack: SequenceNumber(0),
            flags: Flags::ACK,
            window: 0,
            payload: Bytes::ZERO,
            options: Options::default(),
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
