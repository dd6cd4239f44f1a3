//! Segments by where they start.

use super::copies::{Carried, sorted_numbers};
use std::cell::Cell;

/// More segments are not looked at for one, whatever somebody sends: a long segment over very many
/// short ones would make each of them look at all.
pub(super) const MOST_LOOKED_AT: usize = 4096;

/// The segments of one place that have bytes, sorted by where they start.
pub(super) struct ByStart<'a> {
    carried: &'a [Carried],
    order: Vec<ByteStart>,
    /// Where the last one was found: the next one is near.
    last: Cell<usize>,
}

/// Where a segment starts.
struct ByteStart {
    start: i64,
    /// The largest end of this one and those before it in the order.
    ends: i64,
    /// Its number among all segments.
    number: usize,
}

impl<'a> ByStart<'a> {
    pub fn new(carried: &'a [Carried]) -> Self {
        let all = carried.iter().enumerate().filter(|(_, one)| !one.is_empty());
        let all: Vec<(i64, usize)> = all.map(|(at, one)| (one.start, at)).collect();
        let sorted = sorted_numbers(all.len(), |at| all[at].0);
        let mut ends = i64::MIN;
        let order = sorted.into_iter().map(|at| {
            let (start, number) = all[at as usize];
            ends = ends.max(carried[number].end);
            ByteStart { start, ends, number }
        });
        ByStart { carried, order: order.collect(), last: Cell::new(0) }
    }

    /// The numbers of the segments that have bytes of `one`, the last start first.
    pub fn overlapping(&self, one: &Carried) -> impl Iterator<Item = usize> {
        let (start, end) = (one.start, one.end);
        let until = near_point(&self.order, self.last.get(), |one| one.start < end);
        self.last.set(until);
        let before = self.order[..until].iter().rev();
        let reach = before.take_while(move |one| one.ends > start).take(MOST_LOOKED_AT);
        reach.map(|one| one.number).filter(move |at| self.carried[*at].end > start)
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
