//! Segments by where they start.

use super::segments::{Carried, Segments};
use super::sorted::sorted;
use std::cell::Cell;

/// More segments are not looked at for one, whatever somebody sends: a long segment over very many
/// short ones would make each of them look at all.
pub(super) const MOST_LOOKED_AT: usize = 4096;

/// The segments of one place that have bytes, sorted by where they start.
pub(super) struct ByStart<'a> {
    segments: &'a Segments,
    /// Their numbers among all.
    order: Vec<u32>,
    /// How far behind its start each of them and those before it in the order reach; empty where
    /// none overlaps another.
    reaches: Vec<u32>,
    /// Where the last one was found: the next one is near.
    last: Cell<usize>,
}

impl<'a> ByStart<'a> {
    pub fn new(segments: &'a Segments) -> Self {
        let with_bytes = segments.with_bytes().map(|(number, _)| number);
        let order = sorted(with_bytes, |number| segments.at(number).start);
        let mut ends = i64::MIN;
        let mut reaches = Vec::new();
        for (place, number) in order.iter().enumerate() {
            let one = segments.at(*number as usize);
            if ends > one.start && reaches.is_empty() {
                reaches.reserve_exact(order.len());
                let before = order[..place].iter().map(|number| segments.at(*number as usize));
                reaches.extend(before.map(|one| reach_of(&one, one.end)));
            }
            ends = ends.max(one.end);
            if !reaches.is_empty() {
                reaches.push(reach_of(&one, ends));
            }
        }
        ByStart { segments, reaches, order, last: Cell::new(0) }
    }

    /// The numbers of the segments that have bytes of `one`, the last start first.
    #[inline]
    pub fn overlapping(&self, one: &Carried) -> impl Iterator<Item = usize> {
        let (start, end) = (one.start, one.end);
        let is_before = |number: &u32| self.segments.at(*number as usize).start < end;
        let until = near_point(&self.order, self.last.get(), is_before);
        self.last.set(until);
        let before = self.order[..until].iter().enumerate().rev();
        let before = before.map(|(place, number)| {
            let one = self.segments.at(*number as usize);
            let reach = self.reaches.get(place).copied();
            (*number as usize, one, reach.unwrap_or_else(|| reach_of(&one, one.end)))
        });
        // One that reaches farther than is noted may reach anywhere.
        let may_reach = move |(_, one, reach): &(usize, Carried, u32)| {
            *reach == u32::MAX || one.start + i64::from(*reach) > start
        };
        let near = before.take_while(may_reach).take(MOST_LOOKED_AT);
        near.filter(move |(_, one, _)| one.end > start).map(|(number, ..)| number)
    }
}

/// How far behind the start of `one` this end is.
#[inline]
fn reach_of(one: &Carried, end: i64) -> u32 {
    u32::try_from(end - one.start).unwrap_or(u32::MAX)
}

/// The same as [`slice::partition_point`], and fast where the answer is near `guess`.
pub(super) fn near_point<T>(all: &[T], guess: usize, is_before: impl Fn(&T) -> bool) -> usize {
    let guess = guess.min(all.len());
    let (mut low, mut high, mut step) = (guess, guess, 1);
    // All before `low` are, and none from `high` on.
    if guess > 0 && !is_before(&all[guess - 1]) {
        while low > 0 && !is_before(&all[low - 1]) {
            high = low - 1;
            low = low.saturating_sub(step);
            step *= 2;
        }
    } else {
        while high < all.len() && is_before(&all[high]) {
            low = high + 1;
            high = (high + step).min(all.len());
            step *= 2;
        }
    }
    low + all[low..high].partition_point(is_before)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_guess_changes_nothing(
            mut all in prop::collection::vec(0_u8..40, 0..60),
            bound in 0_u8..40,
            guess in 0_usize..70,
        ) {
            all.sort_unstable();
            let found = near_point(&all, guess, |one| *one < bound);
            prop_assert_eq!(found, all.partition_point(|one| *one < bound));
        }
    }
}
