//! Which stream numbers a far end has seen.
//!
//! The initiator counts up, but OPEN frames may overtake each other on different carriers, and each
//! may come twice. So the far end keeps the numbers that were skipped; all others below the next
//! are known, and a frame about one of them that has no stream any more is late, not wrong.

use super::super::frame::StreamId;
use super::super::violation::Violation;
use std::collections::BTreeSet;

/// The most numbers that may be skipped at a time.
const SKIPPED_MAX: usize = 100_000;

/// The numbers seen so far.
#[derive(Debug)]
pub(super) struct Opened {
    next: u32,
    skipped: BTreeSet<u32>,
}

impl Opened {
    pub fn new() -> Self {
        Opened { next: 1, skipped: BTreeSet::new() }
    }

    /// Whether the stream was opened at some time.
    pub fn has(&self, stream: StreamId) -> bool {
        stream.0 < self.next && !self.skipped.contains(&stream.0)
    }

    /// Notes a number. Returns whether it is new.
    pub fn insert(&mut self, stream: StreamId) -> Result<bool, Violation> {
        if stream.0 < self.next {
            return Ok(self.skipped.remove(&stream.0));
        }
        let skipped = (stream.0 - self.next) as usize;
        if self.skipped.len() + skipped > SKIPPED_MAX {
            return Err(Violation::Numbers);
        }
        self.skipped.extend(self.next..stream.0);
        self.next = stream.0.checked_add(1).ok_or(Violation::Numbers)?;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_may_overtake_each_other_but_are_new_once() {
        let mut opened = Opened::new();
        for (number, is_new) in [(1, true), (4, true), (2, true), (2, false), (4, false), (3, true)]
        {
            assert_eq!(opened.insert(StreamId(number)), Ok(is_new), "{number}");
            assert!(opened.has(StreamId(number)));
        }
        assert!(!opened.has(StreamId(5)));
        assert_eq!(opened.insert(StreamId(200_000)), Err(Violation::Numbers));
        assert_eq!(opened.insert(StreamId(u32::MAX)), Err(Violation::Numbers));
    }
}
