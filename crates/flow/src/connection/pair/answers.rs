//! What a receiver acknowledged, as the place nearer to it saw that go back.

use super::by_start::{MOST_LOOKED_AT, near_point};
use super::segments::{Carried, Segments};
use crate::capture::segment::SequenceNumber;
use crate::connection::unwrapped::Unwrapped;

/// The acknowledgements of one direction at one place.
pub(super) struct Answers<'a> {
    back: &'a Segments,
    /// The segments that acknowledged more than those before them.
    acked: Vec<u32>,
    /// Ranges that were acknowledged selectively, with the time.
    sacked: Vec<(i64, i64, i64)>,
    /// The least time from data at this place to the first acknowledgement of it here.
    pub fastest: i64,
}

impl<'a> Answers<'a> {
    /// `data` is what the receiver answers, and `back` what it sent; the bytes are counted from
    /// `base`.
    pub fn new(data: &Segments, back: &'a Segments, base: SequenceNumber) -> Self {
        let (mut most, mut acked) = (i64::MIN, Vec::new());
        for (number, one) in back.iter().enumerate() {
            if let Some(ack) = one.ack().filter(|ack| *ack > most) {
                most = ack;
                acked.push(number as u32);
            }
        }
        let mut unwrapped = Unwrapped::from(base);
        let blocks = back.way.sacks.iter();
        let sacked = blocks.map(|(at, from, to)| {
            let from = unwrapped.of(*from);
            (*at, from, unwrapped.of(*to))
        });
        let sacked = sacked.collect();
        let mut answers = Answers { back, acked, sacked, fastest: 0 };
        answers.fastest = answers.least_time(data);
        answers
    }

    /// Whether the receiver had `piece` before its next copy could have answered for it at `later`.
    pub fn have(&self, piece: &Carried, later: i64) -> bool {
        let at = self.acked.partition_point(|at| self.ack(*at) < piece.end);
        let acked = self.acked.get(at).map(|at| self.back.at(*at as usize).at);
        if acked.is_some_and(|at| at < later && at >= piece.at) {
            return true;
        }
        let from = self.sacked.partition_point(|(at, ..)| *at < piece.at);
        let until = self.sacked.partition_point(|(at, ..)| *at < later);
        let meanwhile = self.sacked[from..until.max(from)].iter().take(MOST_LOOKED_AT);
        meanwhile.copied().any(|(_, from, to)| from <= piece.start && to >= piece.end)
    }

    fn least_time(&self, data: &Segments) -> i64 {
        let mut last = 0;
        let answered = |(_, one): (usize, Carried)| {
            last = near_point(&self.acked, last, |at| self.ack(*at) < one.end);
            let first = self.back.at(*self.acked.get(last)? as usize).at;
            (first >= one.at).then_some(first - one.at)
        };
        let times = data.with_bytes().filter_map(answered);
        times.min().unwrap_or_default().saturating_sub(1)
    }

    fn ack(&self, number: u32) -> i64 {
        self.back.at(number as usize).ack().unwrap_or(i64::MIN)
    }
}
