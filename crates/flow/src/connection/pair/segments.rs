//! The segments of one direction at one place, in the order of its capture: numbers that do not
//! wrap.
//!
//! A packet takes no more memory for it: its numbers are counted from those of a packet before it,
//! of which a new one is chosen wherever they are farther away than 32 bits tell.

use super::sighting::{Marks, SightedWay, Sighting};
use crate::capture::segment::{Flags, SequenceNumber};
use crate::connection::unwrapped::Unwrapped;

/// A segment at one place.
#[derive(Debug, Clone, Copy)]
pub(super) struct Carried {
    /// Nanoseconds by A's clock.
    pub at: i64,
    /// The first number that it takes of the sequence space, and the one after the last; the same
    /// for an acknowledgement alone.
    pub start: i64,
    pub end: i64,
    ack: i64,
    marks: Marks,
}

impl Carried {
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Some of its bytes.
    pub fn part(&self, start: i64, end: i64) -> Carried {
        Carried { start, end, ..*self }
    }

    /// What it acknowledges, in the numbers of the other direction.
    pub fn ack(&self) -> Option<i64> {
        (self.ack != i64::MIN).then_some(self.ack)
    }

    /// TSval (RFC 7323).
    pub fn timestamp(&self) -> Option<u32> {
        self.marks.timestamp()
    }

    /// IPv4's identification.
    pub fn ip_id(&self) -> Option<u16> {
        self.marks.ip_id()
    }
}

/// The segments of one direction at one place.
#[derive(Debug)]
pub(super) struct Segments {
    pub way: SightedWay,
    /// Whence numbers are counted, by the first segment for which they are; the first is for all.
    anchors: Vec<Anchor>,
}

/// Numbers as a packet has them, and the same without wrapping.
#[derive(Debug, Clone, Copy)]
struct Anchor {
    from: usize,
    seq: (SequenceNumber, i64),
    ack: (SequenceNumber, i64),
}

impl Segments {
    /// `base` is the number from which what is sent is counted, `back` that from which what is
    /// acknowledged is.
    pub fn new(way: SightedWay, base: SequenceNumber, back: SequenceNumber) -> Self {
        let mut anchor = Anchor { from: 0, seq: (base, 0), ack: (back, 0) };
        let mut anchors = vec![anchor];
        let (mut sent, mut acked) = (Unwrapped::from(base), Unwrapped::from(back));
        for (from, one) in way.sightings.iter().enumerate() {
            let seq = (one.seq, sent.of(one.seq));
            let mut is_near = from_anchor(anchor.seq, one.seq) == seq.1;
            let mut ack = anchor.ack;
            if one.flags.any(Flags::ACK) {
                ack = (one.ack, acked.of(one.ack));
                is_near &= from_anchor(anchor.ack, one.ack) == ack.1;
            }
            if !is_near {
                anchor = Anchor { from, seq, ack };
                anchors.push(anchor);
            }
        }
        Segments { way, anchors }
    }

    pub fn len(&self) -> usize {
        self.way.sightings.len()
    }

    /// The segment of this number.
    #[inline]
    pub fn at(&self, number: usize) -> Carried {
        let anchor = match &self.anchors[..] {
            [only] => only,
            all => &all[all.partition_point(|one| one.from <= number) - 1],
        };
        carried(&self.way.sightings[number], anchor)
    }

    /// All of them.
    #[inline]
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Carried> + ExactSizeIterator {
        (0..self.len()).map(|number| self.at(number))
    }

    /// Those with bytes, SYN or FIN, each with its number.
    #[inline]
    pub fn with_bytes(&self) -> WithBytes<'_> {
        WithBytes { segments: self, from: 0, until: self.len() }
    }
}

/// Segments with bytes. It is a type of its own because a chain of iterators is a call for each
/// segment.
pub(super) struct WithBytes<'a> {
    segments: &'a Segments,
    from: usize,
    until: usize,
}

impl Iterator for WithBytes<'_> {
    type Item = (usize, Carried);

    #[inline]
    fn next(&mut self) -> Option<(usize, Carried)> {
        while self.from < self.until {
            let number = self.from;
            self.from += 1;
            let one = self.segments.at(number);
            if !one.is_empty() {
                return Some((number, one));
            }
        }
        None
    }
}

impl DoubleEndedIterator for WithBytes<'_> {
    #[inline]
    fn next_back(&mut self) -> Option<(usize, Carried)> {
        while self.from < self.until {
            self.until -= 1;
            let one = self.segments.at(self.until);
            if !one.is_empty() {
                return Some((self.until, one));
            }
        }
        None
    }
}

/// The number that is nearest to the anchor's.
#[inline]
fn from_anchor((number, unwrapped): (SequenceNumber, i64), one: SequenceNumber) -> i64 {
    unwrapped + i64::from(one.after(number))
}

#[inline]
fn carried(one: &Sighting, anchor: &Anchor) -> Carried {
    let start = from_anchor(anchor.seq, one.seq);
    let has_ack = one.flags.any(Flags::ACK);
    Carried {
        at: one.at,
        start,
        end: start + i64::from(one.length()),
        ack: if has_ack { from_anchor(anchor.ack, one.ack) } else { i64::MIN },
        marks: one.marks(),
    }
}
