//! Chunks of one direction of a stream, in any order, back into the stream.
//!
//! [`Reassembly::push`] takes a chunk, [`Reassembly::pop`] gives the stream's next bytes. What
//! arrives twice, whole or in part, counts once. The memory is bounded by the caller: it accepts
//! nothing at or beyond the limit that it granted. Pieces beside each other are joined while they
//! are small, so that many tiny chunks do not cost more in bookkeeping than in bytes.

use super::violation::Violation;
use bytes::{Bytes as Buffer, BytesMut};
use std::collections::{BTreeMap, VecDeque};

/// Pieces are joined, by copying, up to this size.
const JOIN_BELOW: usize = 2048;

/// The most pieces apart from each other that a stream may have: with a full chunk each, they are
/// 256 MiB, more than any stream is granted.
const PIECES_MAX: usize = 16 * 1024;

/// One direction of a stream, as received.
#[derive(Debug, Default)]
pub(crate) struct Reassembly {
    /// In order, not yet popped.
    ready: VecDeque<Buffer>,
    ready_bytes: u64,
    /// The first offset that is missing.
    next: u64,
    /// Beyond a gap, by offset; they do not overlap.
    waiting: BTreeMap<u64, Buffer>,
    waiting_bytes: u64,
    /// The end of the furthest chunk.
    highest: u64,
    /// The length of the whole direction, once it is known.
    length: Option<u64>,
}

impl Reassembly {
    /// Takes the chunk at `offset`; all of it must lie below `limit`.
    pub fn push(&mut self, offset: u64, data: Buffer, limit: u64) -> Result<(), Violation> {
        let end = offset.checked_add(data.len() as u64).ok_or(Violation::BeyondCredit)?;
        if end > limit {
            return Err(Violation::BeyondCredit);
        }
        if self.length.is_some_and(|length| end > length) {
            return Err(Violation::BeyondEnd);
        }
        self.highest = self.highest.max(end);
        self.insert(offset, data);
        self.advance();
        if self.waiting.len() > PIECES_MAX { Err(Violation::TooManyPieces) } else { Ok(()) }
    }

    /// Takes the length of the direction.
    pub fn finish(&mut self, length: u64) -> Result<(), Violation> {
        let differs = self.length.is_some_and(|known| known != length);
        if differs || self.highest > length {
            return Err(Violation::BeyondEnd);
        }
        self.length = Some(length);
        Ok(())
    }

    /// The stream's next bytes, as far as they are here.
    pub fn pop(&mut self) -> Option<Buffer> {
        let data = self.ready.pop_front()?;
        self.ready_bytes -= data.len() as u64;
        Some(data)
    }

    /// Whether everything up to the end has been popped.
    pub fn is_at_end(&self) -> bool {
        self.length == Some(self.next) && self.ready.is_empty()
    }

    /// Whether there is something to pop.
    pub fn is_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Bytes in memory: in order, and beyond a gap.
    pub fn held(&self) -> (u64, u64) {
        (self.ready_bytes, self.waiting_bytes)
    }

    /// Inserts the parts of a chunk that are not here yet.
    fn insert(&mut self, mut offset: u64, mut data: Buffer) {
        if offset < self.next {
            let known = (self.next - offset).min(data.len() as u64);
            data = data.slice(known as usize..);
            offset += known;
        }
        if let Some((&before, piece)) = self.waiting.range(..=offset).next_back() {
            let known = (before + piece.len() as u64).saturating_sub(offset);
            let known = known.min(data.len() as u64);
            data = data.slice(known as usize..);
            offset += known;
        }
        while !data.is_empty() {
            let after = self.waiting.range(offset..).next().map(|(&at, piece)| (at, piece.len()));
            let end = offset + data.len() as u64;
            let Some((at, length)) = after.filter(|(at, _)| *at < end) else {
                return self.keep(offset, data);
            };
            if at > offset {
                self.keep(offset, data.slice(..(at - offset) as usize));
            }
            let known = (at + length as u64).min(end) - offset;
            data = data.slice(known as usize..);
            offset += known;
        }
    }

    /// Keeps a piece that overlaps no other.
    fn keep(&mut self, offset: u64, data: Buffer) {
        self.waiting_bytes += data.len() as u64;
        let before = self.waiting.range(..offset).next_back();
        let joined = before
            .filter(|(at, piece)| *at + piece.len() as u64 == offset)
            .filter(|(_, piece)| piece.len() + data.len() <= JOIN_BELOW)
            .map(|(&at, piece)| {
                let mut joined = BytesMut::with_capacity(JOIN_BELOW);
                joined.extend_from_slice(piece);
                joined.extend_from_slice(&data);
                (at, joined.freeze())
            });
        let (at, data) = joined.unwrap_or((offset, data));
        self.waiting.insert(at, data);
    }

    /// Makes ready what has no gap before it any more.
    fn advance(&mut self) {
        while let Some(first) = self.waiting.first_entry() {
            if *first.key() != self.next {
                return;
            }
            let data = first.remove();
            let length = data.len() as u64;
            self.next += length;
            self.waiting_bytes -= length;
            self.ready_bytes += length;
            self.ready.push_back(data);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn popped(reassembly: &mut Reassembly) -> Vec<u8> {
        std::iter::from_fn(|| reassembly.pop()).flatten().collect()
    }

    proptest! {
        /// Chunks that overlap in any way, in any order, several times.
        #[test]
        fn the_stream_comes_out_once_and_in_order(
            chunks in prop::collection::vec((0usize..3000, 1usize..900), 1..60),
            pop_every in 1usize..10,
        ) {
            let stream: Vec<u8> = (0..4000u32).map(|at| (at * 7 + at / 251) as u8).collect();
            let mut reassembly = Reassembly::default();
            let mut got = Vec::new();
            let mut has = vec![false; stream.len()];
            for (turn, (offset, length)) in chunks.iter().enumerate() {
                let data = Buffer::copy_from_slice(&stream[*offset..offset + length]);
                reassembly.push(*offset as u64, data, 4000).unwrap();
                has[*offset..offset + length].fill(true);
                if turn % pop_every == 0 {
                    got.extend(popped(&mut reassembly));
                }
                let (ready, waiting) = reassembly.held();
                let here = has.iter().filter(|is_here| **is_here).count() as u64;
                prop_assert_eq!(got.len() as u64 + ready + waiting, here);
            }
            got.extend(popped(&mut reassembly));
            let whole = has.iter().take_while(|is_here| **is_here).count();
            prop_assert_eq!(&got[..], &stream[..whole]);
            let end = has.iter().rposition(|is_here| *is_here).map_or(0, |last| last + 1);
            reassembly.finish(end as u64).unwrap();
            prop_assert_eq!(reassembly.is_at_end(), whole == end);
        }
    }

    #[test]
    fn what_was_not_granted_is_a_violation() {
        let mut reassembly = Reassembly::default();
        let data = Buffer::from_static(b"0123456789");
        assert_eq!(reassembly.push(0, data.clone(), 9), Err(Violation::BeyondCredit));
        assert_eq!(reassembly.push(u64::MAX, data.clone(), 9), Err(Violation::BeyondCredit));
        reassembly.push(5, data.clone(), 15).unwrap();
        assert_eq!(reassembly.finish(14), Err(Violation::BeyondEnd));
        reassembly.finish(15).unwrap();
        assert_eq!(reassembly.finish(16), Err(Violation::BeyondEnd));
        assert_eq!(reassembly.push(6, data, 100), Err(Violation::BeyondEnd));
        assert!(!reassembly.is_at_end());
    }

    #[test]
    fn tiny_chunks_behind_a_gap_are_joined() {
        let mut reassembly = Reassembly::default();
        for offset in 1..=2000 {
            reassembly.push(offset, Buffer::from_static(b"x"), 4000).unwrap();
        }
        assert_eq!(reassembly.waiting.len(), 1);
        reassembly.push(0, Buffer::from_static(b"x"), 4000).unwrap();
        assert_eq!(popped(&mut reassembly).len(), 2001);
    }
}
