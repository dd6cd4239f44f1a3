//! Sequence numbers that do not wrap.

use crate::capture::segment::SequenceNumber;

/// Sequence numbers as numbers that do not wrap: each is the one nearest to the last.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Unwrapped {
    number: SequenceNumber,
    last: i64,
}

impl Unwrapped {
    /// `base` is 0.
    pub fn from(base: SequenceNumber) -> Self {
        Unwrapped { number: base, last: 0 }
    }

    pub fn of(&mut self, number: SequenceNumber) -> i64 {
        self.last += i64::from(number.after(self.number));
        self.number = number;
        self.last
    }
}
