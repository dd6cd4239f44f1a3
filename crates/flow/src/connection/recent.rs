//! The last packets of a direction, to know one that comes twice.

use crate::segment::Segment;

/// A packet that is repeated by the capture comes right behind the first, one that the network repeated after what jitter
/// let pass.
const REMEMBERED: usize = 8;

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Recent {
    /// One number for all that makes a packet what it is; zero for none.
    packets: [u64; REMEMBERED],
    next: u8,
    /// The identification of the packet before, and of the one before that.
    ids: [Option<u16>; 2],
}

/// A step of identifications up to this one is of packets that were lost; more is another way of counting.
const MISSED: u16 = 64;

impl Recent {
    /// Notes a packet; gives whether it is one of the last again. Without an IP identification nothing is.
    pub fn is_repeated(&mut self, segment: &Segment) -> bool {
        let Some(ip_id) = segment.ip_id.filter(|id| *id != 0) else { return false };
        self.ids = [Some(ip_id), self.ids[0]];
        let stamp = segment.options.timestamps.map_or(0, |(value, _)| value);
        let word = |high: u32, low: u32| u64::from(high) << 32 | u64::from(low);
        let mixed = word(segment.seq.0, segment.end().0).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
            ^ word(segment.ack.0, stamp).wrapping_mul(0xd6e8_feb8_6659_fd93).rotate_left(17);
        let seen = (mixed ^ u64::from(ip_id)).wrapping_mul(0xff51_afd7_ed55_8ccd);
        let repeated = self.packets.contains(&seen);
        self.packets[usize::from(self.next)] = seen;
        self.next = (self.next + 1) % REMEMBERED as u8;
        repeated
    }

    /// Whether packets between this one, which was noted last, and the one before it were not captured: a sender that
    /// counts its packets one by one counted others in between.
    pub fn misses(&self, segment: &Segment) -> bool {
        let (Some(id), [Some(last), Some(before)]) = (segment.ip_id, self.ids) else { return false };
        id == last && (2..=MISSED).contains(&id.wrapping_sub(before))
    }
}
