//! Sets of sequence numbers as ranges.

use crate::capture::segment::SequenceNumber;

/// Most ranges that are stored. A range that would be one more is not added.
const MAX_RANGES: usize = 512;

/// Disjoint ranges within half of the sequence space, in order.
#[derive(Debug, Clone, Default)]
pub(super) struct Ranges {
    ranges: Vec<(SequenceNumber, SequenceNumber)>,
    bytes: u64,
}

impl Ranges {
    /// Adds a range. Returns how many of its bytes are new. A range that would stretch the set over
    /// more than half of the sequence space is not added: it would be before and after the others.
    pub fn add(&mut self, from: SequenceNumber, to: SequenceNumber) -> u64 {
        if !self.stays_in_half(from, to) {
            return 0;
        }
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

    /// Whether this range is one, and the set with it lies within half of the sequence space.
    fn stays_in_half(&self, from: SequenceNumber, to: SequenceNumber) -> bool {
        let ends = self.ranges.first().zip(self.ranges.last());
        let (first, last) = ends.map_or((from, to), |((first, _), (_, last))| (*first, *last));
        let (left, right) = (i64::from(from.after(first)), i64::from(to.after(first)));
        let stretch = right.max(i64::from(last.after(first))) - left.min(0);
        left < right && stretch < 1 << 31
    }

    /// The number of bytes of the range that are in the set.
    pub fn within(&self, from: SequenceNumber, to: SequenceNumber) -> u32 {
        self.overlaps(from, to).map(|(start, end)| end.distance(start)).sum()
    }

    /// The parts of the set that lie in this range, which is shorter than half of the sequence
    /// space: disjoint, and inside the range.
    ///
    /// The range may lie anywhere, so that its numbers and the set's need not be in one half of the
    /// space, where alone "before" is an order. Offsets from the set's first number are an order:
    /// those of the set are within half of the space, and the range has no second place on the
    /// circle that would overlap them.
    fn overlaps(
        &self,
        from: SequenceNumber,
        to: SequenceNumber,
    ) -> impl Iterator<Item = (SequenceNumber, SequenceNumber)> {
        let base = self.ranges.first().map_or(from, |(start, _)| *start);
        let left = i64::from(from.after(base));
        let right = left + i64::from(to.distance(from));
        let first = self.ranges.partition_point(|(_, end)| i64::from(end.after(base)) <= left);
        let offsets = self.ranges[first..]
            .iter()
            .map(move |(start, end)| (i64::from(start.after(base)), i64::from(end.after(base))));
        offsets
            .take_while(move |(start, _)| *start < right)
            .map(move |(start, end)| (base + start.max(left) as u32, base + end.min(right) as u32))
    }

    /// Bytes within this range that are in neither this set nor `other`.
    pub fn in_neither(&self, other: &Ranges, from: SequenceNumber, to: SequenceNumber) -> u32 {
        let here = self.within(from, to);
        let both: u32 = self.overlaps(from, to).map(|(start, end)| other.within(start, end)).sum();
        // Here and in the other set are parts of the range, and both is a part of each of them.
        to.distance(from).saturating_sub(here).saturating_sub(other.within(from, to) - both)
    }

    /// Forgets everything before `una`.
    pub fn forget_before(&mut self, una: SequenceNumber) {
        let gone = self.ranges.partition_point(|(_, end)| !una.is_before(*end));
        let bytes: u64 =
            self.ranges.drain(..gone).map(|(start, end)| u64::from(end.distance(start))).sum();
        self.bytes = self.bytes.saturating_sub(bytes);
        if let Some((start, end)) = self.ranges.first_mut()
            && start.is_before(una)
            && una.is_before(*end)
        {
            self.bytes = self.bytes.saturating_sub(una.distance(*start).into());
            *start = una;
        }
    }

    /// The number after the highest in the set.
    pub fn end(&self) -> Option<SequenceNumber> {
        self.ranges.last().map(|(_, end)| *end)
    }

    /// The number of bytes in the set.
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
        /// Numbers from anywhere, as a damaged capture has them: the count is that of the ranges,
        /// and no part of a range is more than the range.
        #[test]
        fn counts_what_it_holds_whatever_comes(steps in prop::collection::vec((0_u8..3, any::<u32>(), any::<u32>()), 1..60)) {
            let mut ranges = Ranges::default();
            for (what, from, length) in steps {
                let (left, right) = (SequenceNumber(from), SequenceNumber(from.wrapping_add(length)));
                match what {
                    0 => drop(ranges.add(left, right)),
                    1 => ranges.forget_before(left),
                    _ if left.is_before(right) => {
                        let within = ranges.within(left, right);
                        prop_assert!(within <= length);
                        prop_assert_eq!(ranges.in_neither(&Ranges::default(), left, right), length - within);
                    }
                    _ => {}
                }
                let held: u64 = ranges.ranges.iter().map(|(start, end)| u64::from(end.distance(*start))).sum();
                prop_assert_eq!(ranges.bytes(), held);
            }
        }

        /// Anywhere on the circle of numbers, in 256 equal cells of it: the sets may lie on opposite
        /// sides, and the range over the ends of both.
        #[test]
        fn counts_exactly_on_the_whole_circle(
            start: u32,
            steps in prop::collection::vec((any::<bool>(), any::<u8>(), 1_u8..128), 1..24),
            asked in prop::collection::vec((any::<u8>(), 0_u8..128), 1..24),
        ) {
            let number = |cell: u8| SequenceNumber(start.wrapping_add(u32::from(cell) << 24));
            let cells = |from: u8, count: u8| (0..count).map(move |step| from.wrapping_add(step));
            let mut sets = [Ranges::default(), Ranges::default()];
            let mut held = [[false; 256]; 2];
            for (which, from, count) in steps {
                let (set, held) = (&mut sets[usize::from(which)], &mut held[usize::from(which)]);
                let fresh = cells(from, count).filter(|cell| !held[usize::from(*cell)]).count();
                let new = set.add(number(from), number(from.wrapping_add(count)));
                if new > 0 {
                    prop_assert_eq!(new, (fresh as u64) << 24);
                    cells(from, count).for_each(|cell| held[usize::from(cell)] = true);
                }
            }
            let [one, other] = &sets;
            for (from, count) in asked {
                let (left, right) = (number(from), number(from.wrapping_add(count)));
                let within = |set: &[bool; 256]| cells(from, count).filter(|cell| set[usize::from(*cell)]).count() as u32;
                let neither = cells(from, count).filter(|cell| !held[0][usize::from(*cell)] && !held[1][usize::from(*cell)]);
                prop_assert_eq!(one.within(left, right), within(&held[0]) << 24);
                prop_assert_eq!(other.within(left, right), within(&held[1]) << 24);
                prop_assert_eq!(one.in_neither(other, left, right), (neither.count() as u32) << 24);
            }
        }

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
