//! Which of the packets that were seen are recorded: each once, and of connections that are meant.

use fullpipe_flow::capture::LinkType;
use fullpipe_flow::capture::ip_packet;
use fullpipe_flow::capture::segment::{Flags, Parsed, Segment};
use fullpipe_kernel::network::packet_ring::{Hardware, SeenPacket};
use fullpipe_kernel::network::port::VNET_HDR_LEN;
use fullpipe_model::units::{Duration, Instant};
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};

/// A device that saw a direction of a connection first and nothing for so long has lost it to
/// another one. Copies of a packet on other devices follow within microseconds.
const SILENT: Duration = Duration::from_millis(200);
/// Directions of connections that are remembered at least, and half of those at most: the others
/// are those that were silent longest.
const REMEMBERED: usize = 1 << 16;

/// One direction of a connection: from where, to where.
type Way = (SocketAddr, SocketAddr);

/// Where a direction is recorded.
#[derive(Debug, Clone, Copy)]
struct SeenWay {
    device: u32,
    last: Instant,
    /// Whether it is of a connection that is meant.
    is_meant: bool,
}

/// Decides by the packets before.
#[derive(Debug)]
pub(super) struct Choice {
    new_only: bool,
    between: Option<[IpAddr; 2]>,
    /// Those that were seen lately, and those that were seen before them.
    ways: [HashMap<Way, SeenWay>; 2],
}

impl Choice {
    /// With `new_only`, only connections count whose first packet is seen; with `between`, only
    /// those between two addresses.
    pub(super) fn new(new_only: bool, between: Option<[IpAddr; 2]>) -> Choice {
        Choice { new_only, between, ways: Default::default() }
    }

    /// Whether the packet is recorded.
    pub(super) fn takes(&mut self, seen: &SeenPacket<'_>) -> bool {
        // What loops back is seen twice, on its way out and on its way in.
        if seen.hardware == Hardware::Loopback && seen.outgoing {
            return false;
        }
        let data = seen.frame.get(VNET_HDR_LEN..).unwrap_or_default();
        let length = seen.len.saturating_sub(VNET_HDR_LEN);
        let parsed =
            ip_packet(link_type(seen.hardware), data).map(|ip| Segment::from_ip(ip, length));
        let Some(Parsed::Tcp(segment)) = parsed else { return false };
        self.takes_segment(&segment, seen.device, Instant::ZERO + seen.at)
    }

    fn takes_segment(&mut self, segment: &Segment, device: u32, at: Instant) -> bool {
        let way = (segment.source, segment.destination);
        let ends = [way.0.ip(), way.1.ip()];
        if self.between.is_some_and(|[a, b]| ends != [a, b] && ends != [b, a]) {
            return false;
        }
        let begins = segment.flags.any(Flags::SYN);
        let is_meant = !self.new_only || begins;
        let mut seen = self.find(&way).unwrap_or(SeenWay { device, last: at, is_meant });
        let is_here = seen.device == device || at.since(seen.last) >= SILENT;
        if is_here {
            seen.is_meant |= begins;
            (seen.device, seen.last) = (device, at);
        }
        self.keep(way, seen);
        is_here && seen.is_meant
    }

    fn find(&mut self, way: &Way) -> Option<SeenWay> {
        let [lately, before] = &mut self.ways;
        lately.get(way).copied().or_else(|| before.remove(way))
    }

    fn keep(&mut self, way: Way, seen: SeenWay) {
        let [lately, before] = &mut self.ways;
        if lately.len() >= REMEMBERED && !lately.contains_key(&way) {
            *before = std::mem::take(lately);
        }
        lately.insert(way, seen);
    }
}

/// What a packet begins with.
pub(super) fn link_type(hardware: Hardware) -> LinkType {
    match hardware {
        Hardware::Ethernet | Hardware::Loopback => LinkType::ETHERNET,
        Hardware::Other => LinkType::RAW,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A segment from port `from` to port `to`.
    fn segment(from: u16, to: u16, flags: Flags) -> Segment {
        let mut ip = vec![0x45, 0, 0, 40, 0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        ip.extend([from.to_be_bytes(), to.to_be_bytes()].concat());
        ip.extend([0; 8]);
        ip.extend([0x50, flags.0, 0, 0, 0, 0, 0, 0]);
        match Segment::from_ip(&ip, ip.len()) {
            Parsed::Tcp(segment) => segment,
            other => panic!("{other:?}"),
        }
    }

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn each_direction_is_taken_where_it_was_seen_first() {
        let mut choice = Choice::new(false, None);
        let (out, back) = (segment(1, 2, Flags::ACK), segment(2, 1, Flags::ACK));
        // A bond sends before its port, and its port receives before it.
        let taken = [(&out, 1), (&out, 2), (&back, 2), (&back, 1), (&out, 1), (&out, 2)]
            .map(|(segment, device)| choice.takes_segment(segment, device, at(0)));
        assert_eq!(taken, [true, false, true, false, true, false]);
    }

    #[test]
    fn a_device_that_falls_silent_is_replaced() {
        let mut choice = Choice::new(false, None);
        let back = segment(2, 1, Flags::ACK);
        assert!(choice.takes_segment(&back, 1, at(0)));
        assert!(!choice.takes_segment(&back, 2, at(100)));
        assert!(choice.takes_segment(&back, 2, at(200)));
        assert!(!choice.takes_segment(&back, 1, at(250)));
    }

    #[test]
    fn a_connection_from_before_is_not_new() {
        let mut choice = Choice::new(true, None);
        let mut takes = |from, to, flags| choice.takes_segment(&segment(from, to, flags), 1, at(0));
        assert!(!takes(1, 2, Flags::ACK));
        assert!(takes(3, 2, Flags::SYN) && takes(2, 3, Flags::SYN | Flags::ACK));
        assert!(takes(3, 2, Flags::ACK) && takes(2, 3, Flags::ACK));
        // The port is used again.
        assert!(takes(1, 2, Flags::SYN) && takes(1, 2, Flags::ACK));
    }

    #[test]
    fn only_what_passes_between_two_addresses_is_taken() {
        let [here, peer, other] =
            ["10.0.0.1", "10.0.0.2", "10.0.0.3"].map(|ip| ip.parse().unwrap());
        let mut choice = Choice::new(false, Some([peer, here]));
        let mut between = |from: IpAddr, to: IpAddr| {
            let mut segment = segment(1, 2, Flags::ACK);
            segment.source.set_ip(from);
            segment.destination.set_ip(to);
            choice.takes_segment(&segment, 1, at(0))
        };
        assert!(between(here, peer) && between(peer, here));
        assert!(!between(peer, other) && !between(other, here) && !between(here, here));
    }

    #[test]
    fn what_is_remembered_is_bounded_and_what_goes_on_stays() {
        let mut choice = Choice::new(true, None);
        let long = segment(1, 2, Flags::SYN);
        assert!(choice.takes_segment(&long, 1, at(0)));
        let carries_on = segment(1, 2, Flags::ACK);
        for number in 0..4 * REMEMBERED {
            let mut other = segment(3, (number % 60_000) as u16 + 4, Flags::ACK);
            other.source.set_port((number / 60_000) as u16 + 10);
            choice.takes_segment(&other, 1, at(0));
            if number % 1000 == 0 {
                assert!(choice.takes_segment(&carries_on, 1, at(0)), "{number}");
            }
        }
        let [lately, before] = &choice.ways;
        assert!(lately.len() <= REMEMBERED && before.len() <= REMEMBERED);
    }
}
