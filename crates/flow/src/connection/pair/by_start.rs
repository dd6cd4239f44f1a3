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
    /// Of those behind whose ends one before them reaches: their places in the order, and how far
    /// that is. They are few where segments are alike.
    reaches: Vec<(u32, i64)>,
    /// Where the last one was found: the next one is near.
    last: Cell<usize>,
}

impl<'a> ByStart<'a> {
    pub fn new(segments: &'a Segments) -> Self {
        let with_bytes = segments.with_bytes().map(|(number, _)| number);
        let order = sorted(with_bytes, |number| segments.at(number).start);
        let (mut ends, mut reaches) = (i64::MIN, Vec::new());
        for (place, number) in order.iter().enumerate() {
            let end = segments.at(*number as usize).end;
            ends = ends.max(end);
            if ends > end {
                reaches.push((place as u32, ends));
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
            (*number as usize, one, self.reach(place, one.end))
        });
        let may_reach = move |(_, _, reach): &(usize, Carried, i64)| *reach > start;
        let near = before.take_while(may_reach).take(MOST_LOOKED_AT);
        near.filter(move |(_, one, _)| one.end > start).map(|(number, ..)| number)
    }

    /// The largest end of this one and those before it in the order.
    #[inline]
    fn reach(&self, place: usize, end: i64) -> i64 {
        if self.reaches.is_empty() {
            return end;
        }
        let found = self.reaches.binary_search_by_key(&place, |(at, _)| *at as usize);
        found.map_or(end, |at| self.reaches[at].1)
    }
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
