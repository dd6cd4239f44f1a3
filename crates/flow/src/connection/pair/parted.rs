//! Which bytes of which segment arrived.

use super::copies::Carried;

/// What is left of the segments once those that arrived are given to them.
pub(super) struct Parted {
    /// Of each that was sent, what did not arrive.
    pub lost: Vec<Remaining>,
    /// Of each that arrived, how many bytes were not sent as anything else that arrived.
    pub extra: Vec<i64>,
    /// Whether each that arrived could be one that was sent.
    pub could_be: Vec<bool>,
}

impl Parted {
    pub fn new(near: &[Carried], far: &[Carried]) -> Self {
        Parted {
            lost: vec![Remaining::Whole; near.len()],
            extra: vec![0; far.len()],
            could_be: vec![false; far.len()],
        }
    }

    /// Gives `arrived`, the segment of this number, to those of `near` that it was sent as.
    pub fn give(
        &mut self,
        number: usize,
        arrived: &Carried,
        near: &[Carried],
        sent_as: impl Iterator<Item = usize>,
    ) {
        let mut rest = Remaining::Whole;
        for at in sent_as {
            self.could_be[number] = true;
            rest = self.lost[at].take(&near[at], rest, arrived);
            if rest.is_empty() {
                return;
            }
        }
        self.extra[number] = rest.pieces(arrived).iter().map(|(from, to)| to - from).sum();
    }
}

/// What is left of a segment.
#[derive(Debug, Clone)]
pub(super) enum Remaining {
    Whole,
    /// These ranges; mostly none.
    Pieces(Vec<(i64, i64)>),
}

impl Remaining {
    pub fn pieces(&self, of: &Carried) -> Vec<(i64, i64)> {
        match self {
            Remaining::Whole => vec![(of.start, of.end)],
            Remaining::Pieces(pieces) => pieces.clone(),
        }
    }

    fn is_empty(&self) -> bool {
        matches!(self, Remaining::Pieces(pieces) if pieces.is_empty())
    }

    /// Takes what is left of `arrived` out of what is left of `of`, and returns what of it is left
    /// then.
    fn take(&mut self, of: &Carried, rest: Remaining, arrived: &Carried) -> Remaining {
        let is_same = (of.start, of.end) == (arrived.start, arrived.end);
        if let (true, Remaining::Whole, Remaining::Whole) = (is_same, &*self, &rest) {
            *self = Remaining::Pieces(Vec::new());
            return Remaining::Pieces(Vec::new());
        }
        let (ranges, pieces) = (rest.pieces(arrived), self.pieces(of));
        *self = Remaining::Pieces(without(&pieces, &ranges));
        Remaining::Pieces(without(&ranges, &pieces))
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
