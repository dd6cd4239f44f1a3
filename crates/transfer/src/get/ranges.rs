//! Which connection fetches which bytes.
//!
//! [`Ranges`] knows the bytes that are missing and the piece that each connection fetches. A
//! connection asks for a piece with [`Ranges::take`], reports what arrived with
//! [`Ranges::advance`], and gives the rest back with [`Ranges::release`] when it dies. Where
//! nothing is left to hand out, a connection takes the second half of the largest piece that
//! another one fetches (work stealing), so no connection is idle while another has much to do, and
//! the end of the file does not wait for the slowest.
//!
//! Every byte belongs to one connection at a time: what [`Ranges::advance`] accepts is accepted
//! once, and data beyond a piece that was shortened meanwhile is refused.

use std::collections::BTreeMap;
use std::ops::Range;

/// The smallest piece that a connection takes from another: with less, the request costs more than
/// it saves.
const LEAST_PIECE: u64 = 256 << 10;

/// A connection, by number.
pub(super) type Worker = usize;

/// The bytes of a file: arrived, being fetched, or missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ranges {
    total: u64,
    /// In ascending order; none touches another.
    missing: Vec<Range<u64>>,
    /// What each connection has still to fetch; never empty.
    pieces: BTreeMap<Worker, Range<u64>>,
}

impl Ranges {
    /// A file of `total` bytes, of which nothing is there.
    pub(super) fn new(total: u64) -> Ranges {
        let missing = if total > 0 { std::iter::once(0..total).collect() } else { Vec::new() };
        Ranges { total, missing, pieces: BTreeMap::new() }
    }

    /// A file of `total` bytes, of which `done` is there; `None` if `done` is not in ascending
    /// order within the file.
    pub(super) fn resumed(total: u64, done: &[(u64, u64)]) -> Option<Ranges> {
        let mut ranges = Ranges { total, missing: Vec::new(), pieces: BTreeMap::new() };
        let mut at = 0;
        for &(start, end) in done {
            if start < at || end < start || end > total {
                return None;
            }
            ranges.put_back(at..start);
            at = end;
        }
        ranges.put_back(at..total);
        Some(ranges)
    }

    /// The length of the file.
    pub(super) fn total(&self) -> u64 {
        self.total
    }

    /// The next piece for a connection that has none.
    pub(super) fn take(&mut self, worker: Worker) -> Option<Range<u64>> {
        let piece = match self.missing.is_empty() {
            false => self.missing.remove(0),
            true => self.steal()?,
        };
        self.pieces.insert(worker, piece.clone());
        Some(piece)
    }

    /// The second half of the largest piece.
    fn steal(&mut self) -> Option<Range<u64>> {
        let largest = self.pieces.values_mut().max_by_key(|piece| piece.end - piece.start)?;
        let half = (largest.end - largest.start) / 2;
        if half < LEAST_PIECE {
            return None;
        }
        let end = largest.end;
        largest.end -= half;
        Some(largest.end..end)
    }

    /// Where the next `count` bytes of the connection belong, and how many of them are wanted:
    /// fewer if another connection has taken over the rest.
    pub(super) fn wanted(&self, worker: Worker, count: u64) -> (u64, u64) {
        let piece = self.pieces.get(&worker);
        piece.map_or((0, 0), |piece| (piece.start, count.min(piece.end - piece.start)))
    }

    /// Whether nothing has arrived, and no connection but `worker` fetches anything.
    pub(super) fn is_untouched(&self, worker: Worker) -> bool {
        let others = self.pieces.keys().any(|one| *one != worker);
        !others && self.done_bytes() == 0
    }

    /// The connection received `count` bytes. Returns what [`Ranges::wanted`] does.
    pub(super) fn advance(&mut self, worker: Worker, count: u64) -> (u64, u64) {
        let (at, wanted) = self.wanted(worker, count);
        let Some(piece) = self.pieces.get_mut(&worker) else { return (0, 0) };
        piece.start += wanted;
        if piece.is_empty() {
            self.pieces.remove(&worker);
        }
        (at, wanted)
    }

    /// Whether the connection has something to fetch.
    pub(super) fn has_piece(&self, worker: Worker) -> bool {
        self.pieces.contains_key(&worker)
    }

    /// The connection ended: what it had to fetch is missing again.
    pub(super) fn release(&mut self, worker: Worker) {
        if let Some(piece) = self.pieces.remove(&worker) {
            self.put_back(piece);
        }
    }

    fn put_back(&mut self, piece: Range<u64>) {
        if piece.is_empty() {
            return;
        }
        let at = self.missing.partition_point(|one| one.start < piece.start);
        self.missing.insert(at, piece);
        let mut merged: Vec<Range<u64>> = Vec::with_capacity(self.missing.len());
        for one in self.missing.drain(..) {
            match merged.last_mut() {
                Some(last) if last.end == one.start => last.end = one.end,
                _ => merged.push(one),
            }
        }
        self.missing = merged;
    }

    /// The body ended here, where its length was not known.
    pub(super) fn end_at(&mut self, total: u64) {
        *self = Ranges { total, missing: Vec::new(), pieces: BTreeMap::new() };
    }

    /// The file turned out to have `total` bytes, not more than were assumed.
    pub(super) fn end_at_most(&mut self, total: u64) {
        self.total = total;
        for piece in self.missing.iter_mut().chain(self.pieces.values_mut()) {
            piece.end = piece.end.min(total);
        }
        self.missing.retain(|piece| !piece.is_empty());
        self.pieces.retain(|_, piece| !piece.is_empty());
    }

    /// Whether a connection more would find something to do.
    pub(super) fn has_work(&self) -> bool {
        let largest = self.pieces.values().map(|piece| piece.end - piece.start).max();
        !self.missing.is_empty() || largest.is_some_and(|largest| largest / 2 >= LEAST_PIECE)
    }

    /// Whether every byte is there.
    pub(super) fn is_complete(&self) -> bool {
        self.missing.is_empty() && self.pieces.is_empty()
    }

    /// Bytes that are there.
    pub(super) fn done_bytes(&self) -> u64 {
        let left = self.missing.iter().chain(self.pieces.values());
        self.total - left.map(|one| one.end - one.start).sum::<u64>()
    }

    /// What is there, in ascending order.
    pub(super) fn done(&self) -> Vec<(u64, u64)> {
        let mut left: Vec<&Range<u64>> = self.missing.iter().chain(self.pieces.values()).collect();
        left.sort_by_key(|one| one.start);
        let mut done = Vec::new();
        let mut at = 0;
        for one in left {
            if one.start > at {
                done.push((at, one.start));
            }
            at = one.end;
        }
        if at < self.total {
            done.push((at, self.total));
        }
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_idle_connection_takes_half_of_the_largest_piece() {
        let mut ranges = Ranges::new(8 << 20);
        assert_eq!(ranges.take(0), Some(0..8 << 20));
        assert_eq!(ranges.take(1), Some(4 << 20..8 << 20));
        assert_eq!(ranges.advance(0, 2 << 20), (0, 2 << 20));
        assert_eq!(ranges.take(2), Some(6 << 20..8 << 20));
        // The first one has two MiB left, as the second; what comes beyond is not wanted.
        assert_eq!(ranges.advance(0, 3 << 20), (2 << 20, 2 << 20));
        assert!(!ranges.has_piece(0) && ranges.has_piece(1));
    }

    #[test]
    fn a_record_that_contradicts_itself_is_no_record() {
        for done in [&[(5, 3)][..], &[(0, 11)], &[(4, 6), (5, 7)]] {
            assert_eq!(Ranges::resumed(10, done), None, "{done:?}");
        }
        let ranges = Ranges::resumed(10, &[(0, 2), (2, 4), (6, 7)]).unwrap();
        assert_eq!(ranges.done(), [(0, 4), (6, 7)]);
        assert_eq!(ranges.done_bytes(), 5);
    }

    proptest! {
        /// Connections of any speed that die at any time bring every byte exactly once.
        #[test]
        fn every_byte_is_accepted_exactly_once(
            total in 0u64..6_000_000,
            events in prop::collection::vec((0usize..6, 0u64..900_000, 0u8..10), 0..400),
        ) {
            let mut ranges = Ranges::new(total);
            let mut accepted: Vec<(u64, u64)> = Vec::new();
            for (worker, count, what) in events {
                if what == 0 {
                    ranges.release(worker);
                } else if !ranges.has_piece(worker) && ranges.take(worker).is_none() {
                    continue;
                }
                let (at, wanted) = ranges.advance(worker, count);
                prop_assert!(wanted <= count);
                accepted.extend((wanted > 0).then_some((at, at + wanted)));
                let copy = Ranges::resumed(total, &ranges.done()).unwrap();
                prop_assert_eq!(copy.done_bytes(), ranges.done_bytes());
            }
            while ranges.take(9).is_some() {
                let (at, wanted) = ranges.advance(9, u64::MAX);
                accepted.push((at, at + wanted));
            }
            for worker in 0..6 {
                let (at, wanted) = ranges.advance(worker, u64::MAX);
                accepted.extend((wanted > 0).then_some((at, at + wanted)));
            }
            prop_assert!(ranges.is_complete());
            accepted.sort_unstable();
            let mut at = 0;
            for (start, end) in accepted {
                prop_assert_eq!(start, at);
                at = end;
            }
            prop_assert_eq!(at, total);
        }

        /// One connection a hundred times slower than the others does not hold up the end: after
        /// the fast ones are idle it has less than two of the smallest pieces left.
        #[test]
        fn the_last_piece_does_not_stall(total in 4_000_000u64..40_000_000, fast in 1usize..6) {
            let mut ranges = Ranges::new(total);
            let mut idle = 0;
            for step in 0u64.. {
                for worker in 0..=fast {
                    if ranges.has_piece(worker) || ranges.take(worker).is_some() {
                        ranges.advance(worker, if worker == 0 { 1_000 } else { 100_000 });
                    } else if worker > 0 {
                        idle += 1;
                    }
                }
                if idle == fast || ranges.is_complete() {
                    break;
                }
                prop_assert!(step < 100_000);
            }
            prop_assert!(total - ranges.done_bytes() <= (fast as u64 + 1) * 2 * LEAST_PIECE);
        }
    }
}
