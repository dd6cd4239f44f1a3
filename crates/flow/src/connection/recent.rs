//! The last packets of a direction, to know one that comes twice.

use crate::segment::{Segment, SequenceNumber};

/// A packet that is repeated by the network or the capture comes right behind the first.
const REMEMBERED: usize = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Seen {
    seq: SequenceNumber,
    end: SequenceNumber,
    ack: SequenceNumber,
    stamp: u32,
    ip_id: u16,
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Recent {
    packets: [Seen; REMEMBERED],
    next: u8,
}

impl Recent {
    /// Notes a packet; gives whether it is one of the last again. Without an IP identification nothing is.
    pub fn is_repeated(&mut self, segment: &Segment) -> bool {
        let Some(ip_id) = segment.ip_id.filter(|id| *id != 0) else { return false };
        let stamp = segment.options.timestamps.map_or(0, |(value, _)| value);
        let seen = Seen { seq: segment.seq, end: segment.end(), ack: segment.ack, stamp, ip_id };
        let repeated = self.packets.contains(&seen);
        self.packets[usize::from(self.next)] = seen;
        self.next = (self.next + 1) % REMEMBERED as u8;
        repeated
    }
}
