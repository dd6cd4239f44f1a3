//! Which bytes of which segment arrived.

use super::segments::{Carried, Segments};
use std::collections::HashMap;

/// What is left of the segments once those that arrived are given to them. The last that arrived
/// come first.
pub(super) struct Parted {
    /// Of each that was sent, what did not arrive.
    lost: Vec<Remaining>,
    /// Of which some pieces did not arrive: those.
    pieces: HashMap<usize, Vec<(i64, i64)>, foldhash::fast::RandomState>,
    /// Those that arrived of which not all bytes were sent as anything else that arrived, and how
    /// many were not; the last first.
    extra: Vec<(usize, i64)>,
    /// Whether each that arrived could be one that was sent.
    could_be: Vec<bool>,
}

/// What is left of a segment.
#[derive(Debug, Clone, Copy)]
enum Remaining {
    Whole,
    Nothing,
    Pieces,
}

impl Parted {
    pub fn new(near: &Segments, far: &Segments) -> Self {
        Parted {
            lost: vec![Remaining::Whole; near.len()],
            pieces: HashMap::default(),
            extra: Vec::new(),
            could_be: vec![false; far.len()],
        }
    }

    /// Gives `arrived`, the segment of this number, to those of `near` that it was sent as.
    pub fn give(
        &mut self,
        number: usize,
        arrived: &Carried,
        near: &Segments,
        sent_as: impl Iterator<Item = usize>,
    ) {
        let mut rest = vec![(arrived.start, arrived.end)];
        for at in sent_as {
            self.could_be[number] = true;
            let sent = near.at(at);
            let left = self.lost(at, &sent);
            self.keep(at, without(&left, &rest));
            rest = without(&rest, &left);
            if rest.is_empty() {
                return;
            }
        }
        self.extra.push((number, rest.iter().map(|(from, to)| to - from).sum()));
    }

    /// The same where it was sent as this one only.
    #[inline]
    pub fn give_to(&mut self, number: usize, arrived: &Carried, near: &Segments, at: usize) {
        let sent = near.at(at);
        let is_same = (sent.start, sent.end) == (arrived.start, arrived.end);
        if let (true, Remaining::Whole) = (is_same, self.lost[at]) {
            self.could_be[number] = true;
            self.lost[at] = Remaining::Nothing;
        } else {
            self.give(number, arrived, near, std::iter::once(at));
        }
    }

    fn keep(&mut self, at: usize, pieces: Vec<(i64, i64)>) {
        self.lost[at] = if pieces.is_empty() { Remaining::Nothing } else { Remaining::Pieces };
        if !pieces.is_empty() {
            self.pieces.insert(at, pieces);
        }
    }

    /// What of this one, of those that were sent, did not arrive.
    #[inline]
    pub fn lost(&self, at: usize, sent: &Carried) -> Vec<(i64, i64)> {
        match self.lost[at] {
            Remaining::Nothing => Vec::new(),
            Remaining::Whole => vec![(sent.start, sent.end)],
            Remaining::Pieces => self.pieces.get(&at).cloned().unwrap_or_default(),
        }
    }

    /// Of those that arrived, the ones that have bytes that were not sent as anything else that
    /// arrived, with how many and whether it could be one that was sent; the first of them first.
    pub fn extras(&self) -> impl Iterator<Item = (usize, i64, bool)> {
        let first_first = self.extra.iter().rev();
        first_first.map(|(number, bytes)| (*number, *bytes, self.could_be[*number]))
    }

    /// Whether this one, of those that arrived, has such bytes.
    pub fn is_extra(&self, number: usize) -> bool {
        let found = self.extra.binary_search_by(|(one, _)| number.cmp(one));
        found.is_ok_and(|at| self.extra[at].1 > 0)
    }

    /// Whether this one, of those that arrived, is more than was sent of it.
    pub fn is_duplicate(&self, number: usize) -> bool {
        self.could_be[number] && self.is_extra(number)
    }
}

/// The parts of `ranges` that are in none of `others`.
fn without(ranges: &[(i64, i64)], others: &[(i64, i64)]) -> Vec<(i64, i64)> {
    let mut left = ranges.to_vec();
    for (from, to) in others {
        let parts = left
            .into_iter()
            .flat_map(|(start, end)| [(start, end.min(*from)), (start.max(*to), end)]);
        left = parts.filter(|(start, end)| start < end).collect();
    }
    left
}
