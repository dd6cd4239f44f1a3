//! The last packets of a direction, to recognise duplicates.

use super::scoreboard::TICKS;
use crate::capture::segment::{Flags, Segment};
use fullpipe_model::units::Duration;

/// How many packets are remembered. A duplicate made by the capture comes right behind the first
/// packet, or behind the rest of a burst where a host forwards it. One made by the network comes
/// after the packets that jitter lets pass.
const REMEMBERED: usize = 16;

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Recent {
    /// One number for everything that identifies a packet; zero for none. Of 250 million packets
    /// one is taken for a copy by chance.
    packets: [u32; REMEMBERED],
    next: u8,
    /// The identification of the last packet, and the one that was expected of it.
    id: Option<u16>,
    expected: Option<u16>,
    /// How many packets the last one was on the wire.
    segments: u16,
}

/// A step of identifications below this means lost packets. A larger one means that the sender
/// counts in another way.
const MISSED: u16 = 64;

impl Recent {
    /// Notes a packet. Returns whether it repeats one of the last packets. `rtt` is the path's
    /// round trip. Without an IP identification, data is a copy where it has the timestamp of the
    /// first, and the path is so long that nothing can be sent again within one tick; so is a SYN,
    /// which nobody repeats so soon. An ACK without data never is, because it may be repeated at
    /// once.
    pub fn is_repeated(&mut self, segment: &Segment, rtt: Option<Duration>) -> bool {
        let ip_id = segment.ip_id.filter(|id| *id != 0);
        if let Some(ip_id) = ip_id {
            self.expected = self.id.map(|id| id.wrapping_add(self.segments.max(1)));
            self.id = Some(ip_id);
            self.segments = 1;
        } else {
            let is_syn = segment.flags.any(Flags::SYN);
            let is_far = is_syn || rtt.is_some_and(|rtt| rtt > TICKS);
            if segment.end() == segment.seq || segment.options.timestamps.is_none() || !is_far {
                return false;
            }
        }
        let stamp = segment.options.timestamps.map_or(0, |(value, _)| value);
        let [data, answer] = [(segment.seq.0, segment.end().0), (segment.ack.0, stamp)]
            .map(|(high, low)| u64::from(high) << 32 | u64::from(low));
        let mixed = data.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
            ^ answer.wrapping_mul(0xd6e8_feb8_6659_fd93).rotate_left(17);
        let seen = (mixed ^ u64::from(ip_id.unwrap_or(0))).wrapping_mul(0xff51_afd7_ed55_8ccd);
        let seen = ((seen >> 32) as u32).max(1);
        let repeated = self.packets.contains(&seen);
        self.packets[usize::from(self.next)] = seen;
        self.next = (self.next + 1) % REMEMBERED as u8;
        repeated
    }

    /// Notes that the last packet was this many packets on the wire. Each of them has its own
    /// identification (`inet_gso_segment`, net/ipv4/af_inet.c).
    pub fn counts(&mut self, segments: u32) {
        self.segments = segments.clamp(1, u16::MAX.into()) as u16;
    }

    /// Whether packets between this one, which was noted last, and the one before it were not
    /// captured. This is so if a sender that numbers its packets one by one skipped numbers in
    /// between.
    pub fn misses(&self, segment: &Segment) -> bool {
        let (Some(id), Some(last), Some(expected)) = (segment.ip_id, self.id, self.expected) else {
            return false;
        };
        id == last && (1..MISSED).contains(&id.wrapping_sub(expected))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::segment::{SequenceNumber, TcpOptions};
    use fullpipe_model::units::Bytes;

    fn bare(ip_id: u16) -> Segment {
        let end = std::net::SocketAddr::from(([192, 0, 2, 1], 80));
        Segment {
            source: end,
            destination: end,
            ip_id: Some(ip_id),
            ce: false,
            ip: Default::default(),
            seq: SequenceNumber(ip_id.into()),
            ack: SequenceNumber(0),
            flags: Flags::ACK,
            window: 0,
            payload: Bytes::new(1000),
            options: TcpOptions::default(),
            payload_start: Default::default(),
            is_broken: false,
            is_header_cut: false,
        }
    }

    #[test]
    fn a_packet_of_many_segments_has_an_identification_for_each() {
        let mut recent = Recent::default();
        let sees = |recent: &mut Recent, id, segments| {
            let segment = bare(id);
            recent.is_repeated(&segment, None);
            recent.counts(segments);
            recent.misses(&segment)
        };
        assert!(!sees(&mut recent, 100, 10), "the first");
        assert!(!sees(&mut recent, 110, 1), "ten were in the packet before");
        assert!(!sees(&mut recent, 111, 1));
        assert!(sees(&mut recent, 113, 1), "112 did not pass");
        assert!(!sees(&mut recent, 9000, 1), "another way of counting");
    }

    #[test]
    fn data_without_an_identification_is_a_copy_within_a_tick_of_a_long_path() {
        let data = |stamp| {
            let timestamps = Some((stamp, 7));
            let options = TcpOptions { timestamps, ..TcpOptions::default() };
            Segment { ip_id: None, options, ..bare(1) }
        };
        let repeats = |rtt, first: Segment, second: Segment| {
            let mut recent = Recent::default();
            assert!(!recent.is_repeated(&first, rtt));
            recent.is_repeated(&second, rtt)
        };
        let far = Some(Duration::from_millis(20));
        assert!(repeats(far, data(5), data(5)));
        assert!(!repeats(far, data(5), data(6)), "sent again");
        assert!(!repeats(Some(Duration::from_millis(1)), data(5), data(5)), "soon, and near");
        assert!(!repeats(None, data(5), data(5)), "nobody knows how far");
        let syn = |stamp| Segment { flags: Flags::SYN, ..data(stamp) };
        assert!(repeats(None, syn(5), syn(5)));
        assert!(!repeats(None, syn(5), syn(1005)), "sent again");
        let ack = |stamp| Segment { payload: Bytes::ZERO, ..data(stamp) };
        assert!(!repeats(far, ack(5), ack(5)), "an ACK may be repeated at once");
    }
}
