//! Which segments carry an end's first words: those that begin like a protocol, and those in which
//! such words go on. Whoever reads the capture asks before connections are known, so that the rest
//! of the payload stays where it is.

use crate::capture::greeting::goes_on;
use crate::capture::segment::{PayloadStart, SequenceNumber};

/// Words of so many connections may go on at a time. The oldest are no longer waited for.
const MOST: usize = 16;

/// What begins in one segment and goes on in the next. Sequence numbers alone tell where: a wrong
/// one only passes on bytes that its connection does not want.
#[derive(Debug, Default)]
pub(super) struct Expected {
    next: Vec<SequenceNumber>,
    missing: Vec<usize>,
}

/// A segment, as far as it is asked.
#[derive(Debug, Clone, Copy)]
pub(super) struct Saying<'a> {
    pub start: PayloadStart,
    pub seq: SequenceNumber,
    /// The number after its last byte.
    pub end: SequenceNumber,
    pub payload: &'a [u8],
}

impl Expected {
    /// Whether a segment that begins so is worth a closer look.
    #[inline]
    pub fn may_be_words(&self, start: PayloadStart) -> bool {
        start != PayloadStart::Other || !self.next.is_empty()
    }

    /// Whether it is words, and what they leave to be said.
    pub fn are_words(&mut self, saying: Saying<'_>) -> bool {
        let Saying { start, seq, end, payload } = saying;
        let expected = self.next.iter().position(|next| *next == seq);
        let missing = match expected {
            Some(at) => {
                self.next.remove(at);
                self.missing.remove(at).saturating_sub(payload.len())
            }
            None => goes_on(start, payload),
        };
        if missing > 0 && end != seq {
            if self.next.len() == MOST {
                self.next.remove(0);
                self.missing.remove(0);
            }
            self.next.push(end);
            self.missing.push(missing);
        }
        start != PayloadStart::Other || expected.is_some()
    }
}
