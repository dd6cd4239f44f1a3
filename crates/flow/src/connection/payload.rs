//! Payload bytes counted once, however often they were sent.

use crate::capture::segment::SequenceNumber;
use fullpipe_model::units::Bytes;

/// Most holes that are remembered. With more than that, late data counts as repeated data.
const MAX_HOLES: usize = 128;

/// No acknowledgement covers more than the largest window (RFC 7323, section 2.3).
const MAX_WINDOW: u32 = 1 << 30;

/// Which parts of a direction's sequence space were seen.
#[derive(Debug, Clone, Default)]
pub(super) struct Unique {
    next: Option<SequenceNumber>,
    /// Ranges below `next` that were not seen.
    holes: Vec<(SequenceNumber, SequenceNumber)>,
    count: u64,
}

impl Unique {
    /// Sets the first number of the sequence space, where the handshake shows it. If the first data
    /// starts above it, that leaves a hole.
    pub fn starts_at(&mut self, seq: SequenceNumber) {
        self.next.get_or_insert(seq);
    }

    /// Notes `length` bytes from `seq`, while `una` was the highest number acknowledged. Returns
    /// how many of them are new.
    pub fn see(&mut self, seq: SequenceNumber, length: u32, una: SequenceNumber) -> u64 {
        let end = seq + length;
        let next = *self.next.get_or_insert(seq);
        if next.is_before(seq) && self.holes.len() == MAX_HOLES {
            self.settle(una);
        }
        let mut new = u64::from(end.distance(if seq.is_before(next) { next } else { seq }));
        if next.is_before(seq) && self.holes.len() < MAX_HOLES {
            self.holes.push((next, seq));
        }
        self.next = Some(next.max(end));
        if seq.is_before(next) && !self.holes.is_empty() {
            new += self.fill(seq, end);
        }
        // Numbers that jump over half of the sequence space leave holes that overlap.
        let new = new.min(length.into());
        self.count += new;
        new
    }

    /// Notes that the other end acknowledged `bytes` of a direction of which nothing was captured.
    /// One is a SYN or a FIN.
    pub fn acknowledged(&mut self, bytes: u32) {
        if (2..=MAX_WINDOW).contains(&bytes) {
            self.count += u64::from(bytes);
        }
    }

    /// How many bytes were sent, by what was captured and by what was acknowledged up to `una`:
    /// what is missing in between was sent, too. `end` is the number after the highest captured.
    pub fn count(&self, una: Option<SequenceNumber>, end: Option<SequenceNumber>) -> Bytes {
        Bytes::new(self.count.saturating_add(self.unseen(una, end)))
    }

    /// Whether bytes were acknowledged that were never captured.
    pub fn lacks(&self, una: Option<SequenceNumber>, end: Option<SequenceNumber>) -> bool {
        self.holes.len() == MAX_HOLES || self.unseen(una, end) > 0
    }

    fn unseen(&self, una: Option<SequenceNumber>, end: Option<SequenceNumber>) -> u64 {
        let Some(una) = una else { return 0 };
        let holes = self.holes.iter().map(|(from, to)| {
            let reached = if una.is_before(*to) { una } else { *to };
            u64::from(reached.distance(*from))
        });
        // One number beyond is that of a FIN.
        let beyond = end.map_or(0, |end| una.distance(end));
        holes.sum::<u64>() + if beyond > 1 { u64::from(beyond) } else { 0 }
    }

    /// Counts the oldest hole if all of it was acknowledged, to have room for another.
    fn settle(&mut self, una: SequenceNumber) {
        if self.holes.first().is_some_and(|(_, to)| !una.is_before(*to)) {
            let (from, to) = self.holes.remove(0);
            self.count += u64::from(to.distance(from));
        }
    }

    /// Removes the range from the holes. Returns how many of their bytes it filled.
    fn fill(&mut self, seq: SequenceNumber, end: SequenceNumber) -> u64 {
        let mut filled = 0;
        let mut left = Vec::with_capacity(self.holes.len() + 1);
        for (from, to) in self.holes.drain(..) {
            let start = from.max(seq);
            let stop = if end.is_before(to) { end } else { to };
            let part = stop.distance(start);
            if part == 0 {
                left.push((from, to));
                continue;
            }
            filled += u64::from(part);
            left.extend(
                [(from, start), (stop, to)].into_iter().filter(|(from, to)| from.is_before(*to)),
            );
        }
        left.truncate(MAX_HOLES);
        self.holes = left;
        filled
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against a plain set of byte numbers, across the wrap.
        #[test]
        fn counts_like_a_set(start: u32, segments in prop::collection::vec((0_u32..300, 0_u32..40), 1..60)) {
            let mut unique = Unique::default();
            let mut set = std::collections::BTreeSet::new();
            // Without this, data before the first segment's start would be unknown, not a hole.
            unique.starts_at(SequenceNumber(start));
            for (offset, length) in segments {
                let before = set.len();
                set.extend(offset..offset + length);
                let seq = SequenceNumber(start.wrapping_add(offset));
                let new = unique.see(seq, length, SequenceNumber(start));
                prop_assert_eq!(new as usize, set.len() - before);
            }
            prop_assert_eq!(unique.count(None, None).get() as usize, set.len());
        }

        /// However much of it was captured, what was acknowledged was sent.
        #[test]
        fn what_was_acknowledged_counts(
            start: u32,
            segments in prop::collection::vec((1_u32..40, any::<bool>()), 1..600),
        ) {
            let first = SequenceNumber(start);
            let (mut unique, mut at, mut end) = (Unique::default(), first, first);
            unique.starts_at(first);
            for (length, is_captured) in segments {
                if is_captured {
                    unique.see(at, length, at);
                    end = at + length;
                }
                at = at + length;
            }
            let sent = u64::from(at.distance(first));
            let known = unique.count(Some(at), Some(end)).get();
            // The last byte alone is taken for a FIN.
            let is_one = at.distance(end) == 1;
            prop_assert_eq!(known, sent - u64::from(is_one));
        }
    }
}
