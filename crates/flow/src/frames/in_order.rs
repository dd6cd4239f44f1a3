//! The bytes of one direction in their order, from segments in any order, in bounded memory.

use crate::capture::segment::SequenceNumber;
use fullpipe_model::units::Instant;
use std::collections::VecDeque;

/// The most bytes, and pieces, that wait for others before them.
const WAITING_MOST: usize = 2 << 20;
const PIECES_MOST: usize = 1 << 13;

/// Bytes of a segment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Piece<'a> {
    /// When it was captured.
    pub at: Instant,
    /// The number of its first byte.
    pub seq: SequenceNumber,
    pub bytes: &'a [u8],
}

/// More waits than is kept: what is missing was probably not captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TooMuchWaits;

/// One direction's bytes.
#[derive(Debug)]
pub(super) struct InOrder {
    /// The number of the next byte.
    next: SequenceNumber,
    waiting: VecDeque<(Instant, SequenceNumber, Box<[u8]>)>,
    held: usize,
}

impl InOrder {
    /// From the byte with this number on.
    pub fn new(next: SequenceNumber) -> Self {
        InOrder { next, waiting: VecDeque::new(), held: 0 }
    }

    /// The number of the first byte that is missing.
    pub fn next(&self) -> SequenceNumber {
        self.next
    }

    /// Whether bytes wait for others before them.
    pub fn waits(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Keeps a piece that comes too early. What is there already is kept once.
    pub fn keep(&mut self, piece: Piece<'_>) -> Result<(), TooMuchWaits> {
        let Piece { at, seq, bytes } = piece;
        // Behind the last one that begins no later, which is mostly the last.
        let before = self.waiting.iter().rposition(|(_, other, _)| !seq.is_before(*other));
        let place = before.map_or(0, |before| before + 1);
        let is_known =
            before.and_then(|before| self.waiting.get(before)).is_some_and(|(_, other, known)| {
                seq.distance(*other) as usize + bytes.len() <= known.len()
            });
        if is_known {
            return Ok(());
        }
        if self.held + bytes.len() > WAITING_MOST || self.waiting.len() >= PIECES_MOST {
            return Err(TooMuchWaits);
        }
        self.held += bytes.len();
        self.waiting.insert(place, (at, seq, bytes.into()));
        Ok(())
    }

    /// The part of a piece that comes next, which counts as taken; `None` where something before it
    /// is missing, or all of it was taken before.
    pub fn take<'a>(&mut self, piece: Piece<'a>) -> Option<&'a [u8]> {
        let Piece { seq, bytes, .. } = piece;
        if self.next.is_before(seq) {
            return None;
        }
        let fresh = bytes.get(self.next.distance(seq) as usize..).filter(|new| !new.is_empty())?;
        self.next = self.next + fresh.len() as u32;
        Some(fresh)
    }

    /// The next piece that waited and may be taken now. Those that were taken meanwhile are
    /// dropped.
    pub fn pop(&mut self) -> Option<(Instant, SequenceNumber, Box<[u8]>)> {
        let (_, seq, _) = self.waiting.front()?;
        if self.next.is_before(*seq) {
            return None;
        }
        let piece = self.waiting.pop_front()?;
        self.held -= piece.2.len();
        Some(piece)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Gives the pieces, and what was taken in order.
    fn taken(start: u32, pieces: &[(u32, Vec<u8>)]) -> Result<(Vec<u8>, bool), TooMuchWaits> {
        let mut order = InOrder::new(SequenceNumber(start));
        let mut taken = Vec::new();
        for (offset, bytes) in pieces {
            let seq = SequenceNumber(start) + *offset;
            let piece = Piece { at: Instant::ZERO, seq, bytes };
            match order.take(piece) {
                Some(new) => taken.extend_from_slice(new),
                None if order.next().is_before(seq) => order.keep(piece)?,
                None => {}
            }
            while let Some((at, seq, bytes)) = order.pop() {
                let new = order.take(Piece { at, seq, bytes: &bytes });
                taken.extend_from_slice(new.unwrap_or_default());
            }
        }
        Ok((taken, order.waits()))
    }

    proptest! {
        /// Whatever the order and however often: every byte comes once, in order.
        #[test]
        fn any_order_gives_the_same_bytes(
            start: u32,
            cuts in proptest::collection::vec((0_u32..400, 1_u32..80), 1..40),
            seed: u64,
        ) {
            let whole: Vec<u8> = (0..500_u32).map(|at| (at * 7 + at / 256) as u8).collect();
            let mut pieces: Vec<(u32, Vec<u8>)> = (0..10).map(|at| at * 50).map(|at| (at, 50))
                .chain(cuts)
                .map(|(at, length)| {
                    let end = (at + length).min(500);
                    (at, whole[at as usize..end as usize].to_vec())
                })
                .collect();
            let mut state = seed | 1;
            for at in (1..pieces.len()).rev() {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                pieces.swap(at, (state >> 33) as usize % (at + 1));
            }
            let (taken, waits) = taken(start, &pieces).unwrap();
            prop_assert_eq!(taken, whole);
            prop_assert!(!waits);
        }
    }

    #[test]
    fn what_waits_is_bounded() {
        let pieces: Vec<_> = (1..3000).map(|at| (at * 1448, vec![0; 1448])).collect();
        assert_eq!(taken(0, &pieces), Err(TooMuchWaits));
        let tiny: Vec<_> = (1..20_000).map(|at| (at * 2, vec![0; 1])).collect();
        assert_eq!(taken(0, &tiny), Err(TooMuchWaits));
    }
}
