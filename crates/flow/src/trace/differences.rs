//! Columns of integers as differences, as the page reads them: each number is the difference from
//! the one before it, the first from 0. Neighbours in time are near each other, so the text is
//! short.

use serde::ser::{Serialize, Serializer};

/// Serialises the numbers of an iterator as differences.
pub(super) struct Differences<I>(pub I);

impl<I: Iterator<Item = i64> + Clone> Serialize for Differences<I> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let mut before = 0_i64;
        s.collect_seq(self.0.clone().map(|number| {
            let difference = number.wrapping_sub(before);
            before = number;
            difference
        }))
    }
}

/// Serialises the numbers of an iterator as they are.
pub(super) struct Plain<I>(pub I);

impl<I: Iterator<Item = i64> + Clone> Serialize for Plain<I> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_seq(self.0.clone())
    }
}

/// A time in µs as a number of a column.
pub(super) fn number(micros: u64) -> i64 {
    i64::try_from(micros).unwrap_or(i64::MAX)
}
