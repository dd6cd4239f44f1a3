//! Payload bytes counted once, however often they were sent.

use crate::segment::SequenceNumber;
use fullpipe_model::units::Bytes;

/// Most holes that are remembered. With more than that, late data counts as repeated data.
const MAX_HOLES: usize = 128;

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

    /// Notes `length` bytes from `seq`. Returns how many of them are new.
    pub fn see(&mut self, seq: SequenceNumber, length: u32) -> u64 {
        let end = seq + length;
        let next = *self.next.get_or_insert(seq);
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

    pub fn count(&self) -> Bytes {
        Bytes::new(self.count)
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
                let new = unique.see(SequenceNumber(start.wrapping_add(offset)), length);
                prop_assert_eq!(new as usize, set.len() - before);
            }
            prop_assert_eq!(unique.count().get() as usize, set.len());
        }
    }
}
