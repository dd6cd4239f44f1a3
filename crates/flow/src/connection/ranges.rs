//! Sets of sequence numbers as ranges.

use crate::segment::SequenceNumber;

/// Ranges that are kept; in a set of more, further ones are not added.
const MAX_RANGES: usize = 512;

/// Disjoint ranges within half of the sequence space, by number.
#[derive(Debug, Clone, Default)]
pub(super) struct Ranges {
    ranges: Vec<(SequenceNumber, SequenceNumber)>,
    bytes: u64,
}

impl Ranges {
    /// Adds a range; gives how many of its bytes are new.
    pub fn add(&mut self, from: SequenceNumber, to: SequenceNumber) -> u64 {
        let first = self.ranges.partition_point(|(_, end)| end.is_before(from));
        let last = first + self.ranges[first..].partition_point(|(start, _)| !to.is_before(*start));
        let (mut start, mut end, mut known) = (from, to, 0);
        for (left, right) in &self.ranges[first..last] {
            if left.is_before(start) {
                start = *left;
            }
            end = end.max(*right);
            known += u64::from(right.distance(*left));
        }
        if first == last && self.ranges.len() >= MAX_RANGES {
            return 0;
        }
        let new = u64::from(end.distance(start)).saturating_sub(known);
        self.ranges.splice(first..last, [(start, end)]);
        self.bytes += new;
        new
    }

    /// How many bytes of the range are in the set.
    pub fn within(&self, from: SequenceNumber, to: SequenceNumber) -> u32 {
        let first = self.ranges.partition_point(|(_, end)| !from.is_before(*end));
        let overlaps = self.ranges[first..].iter().take_while(|(start, _)| start.is_before(to));
        overlaps
            .map(|(start, end)| {
                (if end.is_before(to) { *end } else { to }).distance(from.max(*start))
            })
            .sum()
    }

    /// Bytes within this range that are in neither this set nor `other`.
    pub fn in_neither(&self, other: &Ranges, from: SequenceNumber, to: SequenceNumber) -> u32 {
        let first = self.ranges.partition_point(|(_, end)| !from.is_before(*end));
        let overlaps = self.ranges[first..].iter().take_while(|(start, _)| start.is_before(to));
        let own = |(start, end): &(SequenceNumber, SequenceNumber)| {
            let (start, end) = (from.max(*start), if end.is_before(to) { *end } else { to });
            end.distance(start) - other.within(start, end)
        };
        to.distance(from) - other.within(from, to) - overlaps.map(own).sum::<u32>()
    }

    /// Forgets everything before `una`.
    pub fn forget_before(&mut self, una: SequenceNumber) {
        let gone = self.ranges.partition_point(|(_, end)| !una.is_before(*end));
        let bytes: u64 =
            self.ranges.drain(..gone).map(|(start, end)| u64::from(end.distance(start))).sum();
        self.bytes -= bytes;
        if let Some(first) = self.ranges.first_mut().filter(|(start, _)| start.is_before(una)) {
            self.bytes -= u64::from(una.distance(first.0));
            first.0 = una;
        }
    }

    /// The number after the highest.
    pub fn end(&self) -> Option<SequenceNumber> {
        self.ranges.last().map(|(_, end)| *end)
    }

    /// Bytes in all.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        /// Against a plain set, across the wrap.
        #[test]
        fn behaves_like_a_set(start: u32, steps in prop::collection::vec((0_u8..4, 0_u32..300, 0_u32..40), 1..80)) {
            let mut ranges = Ranges::default();
            let mut set = BTreeSet::new();
            for (what, from, length) in steps {
                let number = |offset: u32| SequenceNumber(start.wrapping_add(offset));
                let (left, right) = (number(from), number(from + length));
                let inside = set.range(from..from + length).count();
                match what {
                    0 | 1 if length > 0 => {
                        set.extend(from..from + length);
                        prop_assert_eq!(ranges.add(left, right), u64::from(length) - inside as u64);
                    }
                    2 => {
                        let mut other = Ranges::default();
                        let (first, last) = (from + length / 3, from + length * 2);
                        other.add(number(first), number(last));
                        let is_in_neither = |byte: &u32| !set.contains(byte) && !(first..last).contains(byte);
                        let expected = (from..from + length).filter(is_in_neither).count();
                        prop_assert_eq!(ranges.in_neither(&other, left, right) as usize, expected);
                        prop_assert_eq!(other.in_neither(&ranges, left, right) as usize, expected);
                    }
                    3 => {
                        set.retain(|byte| *byte >= from);
                        ranges.forget_before(left);
                    }
                    _ => prop_assert_eq!(ranges.within(left, right) as usize, inside),
                }
                prop_assert_eq!(ranges.bytes() as usize, set.len());
                prop_assert_eq!(ranges.end(), set.last().map(|byte| number(byte + 1)));
            }
        }
    }
}
