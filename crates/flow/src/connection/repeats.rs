//! Whether data that was sent again had arrived the first time.
//!
//! Three things show whether a retransmission was needless, and whether the first sending was
//! overtaken:
//!
//! * *The echo* (Eifel, RFC 3522): the ACK that moves the left edge echoes the timestamp of the
//!   segment that filled it. One older than the retransmission's is that of an earlier sending.
//! * *Time*: an answer sooner than any round trip is not one to the retransmission.
//! * *DSACK* (RFC 2883; RFC 3708 reasons from it): the data arrived twice, and one of its
//!   retransmissions was needless. Where the echo said that the retransmission filled the hole, or
//!   DSACK follows upon the report of the data much sooner than sendings follow upon each other,
//!   what came twice is a copy that the network made, and nothing is revised. Linux holds ACKs back
//!   above a hole ("SACK compression"), and one that was held back tells of the last repetition
//!   only: those sent before it whose first sending had arrived are taken to have come with it.
//!
//! A packet was lost for each retransmission until DSACK says otherwise, even where the first
//! sending arrived: then it was the retransmission that did not.
//!
//! Where data above it had arrived when it was sent again, an earlier sending that arrives after
//! all was overtaken.

use crate::segment::{Segment, SequenceNumber};
use fullpipe_model::units::{Duration, Instant};
use std::collections::VecDeque;

/// Retransmissions that are remembered.
const MOST: usize = 256;
/// Linux holds an ACK back for a twentieth of the round trip, and not for longer than this
/// (`tcp_comp_sack_delay_ns`).
const HELD_BACK: Duration = Duration::from_millis(1);
/// DSACK comes up to a round trip after the ACK: what was sent twice is remembered for so many
/// bytes below it.
const BEHIND: u32 = 1 << 20;

/// What is known of a retransmission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Its data was not reported to have arrived.
    Awaited,
    /// Its data arrived; by which sending is not known.
    Arrived,
    /// It filled the hole itself.
    Filled,
    /// An earlier sending filled the hole.
    Needless,
    /// An earlier sending filled the hole, and what was sent after this one came twice before it
    /// did: this one was lost itself, as far as was reported.
    Missing,
}

#[derive(Debug, Clone, Copy)]
struct Repeat {
    from: SequenceNumber,
    to: SequenceNumber,
    at: Instant,
    stamp: Option<u32>,
    /// It is the first, and data above it had arrived before.
    overtaken: bool,
    state: State,
    /// When its data was reported; meaningful where it is not awaited.
    reported: Instant,
}

/// Retransmissions in the order of sending. Most connections have none, and many are open at once:
/// until the first it is a null pointer.
#[derive(Debug, Clone, Default)]
pub(super) struct Repeats(Option<Box<Remembered>>);

#[derive(Debug, Clone, Default)]
struct Remembered {
    in_order: VecDeque<Repeat>,
    /// How many of them are awaited: mostly none, or the last of many.
    awaited: usize,
    /// When the last ACK came, and whether it came so long after the one before that it may have
    /// been held back.
    answered: Instant,
    held_back: bool,
    /// When the left edge moved last, and the timestamp that was echoed then.
    moved: Option<(Instant, u32)>,
}

/// An ACK as far as it answers retransmissions.
#[derive(Debug, Clone, Copy)]
pub(super) struct Answer {
    pub at: Instant,
    /// Acknowledged before it, and by it.
    pub una: SequenceNumber,
    pub ack: SequenceNumber,
    /// The timestamp that it echoes.
    pub echo: Option<u32>,
    /// The least time from data to its acknowledgement, and to any report of it.
    pub rtt: Option<Duration>,
    pub quickest: Option<Duration>,
    /// Whether the receiver had data above a hole when it was last heard of: only then does it hold
    /// ACKs back.
    pub above_hole: bool,
}

/// What is to be revised: retransmissions that were not necessary, and how many sendings before
/// them were overtaken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Outcome {
    pub spurious: u64,
    pub overtaken: u64,
}

impl Repeats {
    /// A retransmission of what had not arrived; `overtaken`: it is the first, and data above it
    /// had.
    pub fn sent_again(&mut self, at: Instant, segment: &Segment, overtaken: bool) {
        let (from, to) = (segment.seq, segment.end());
        let Remembered { in_order: repeats, awaited, .. } = &mut **self.0.get_or_insert_default();
        if repeats.len() >= MOST {
            let forgotten = repeats.pop_front();
            *awaited -= usize::from(forgotten.is_some_and(|repeat| repeat.is_awaited()));
        }
        let stamp = segment.options.timestamps.map(|(value, _)| value);
        repeats.push_back(Repeat {
            from,
            to,
            at,
            stamp,
            overtaken,
            state: State::Awaited,
            reported: at,
        });
        *awaited += 1;
    }

    /// An ACK; `has` says whether SACK blocks, its own included, reported a range.
    pub fn answered(
        &mut self,
        answer: &Answer,
        has: impl Fn(SequenceNumber, SequenceNumber) -> bool,
    ) -> Outcome {
        let mut outcome = Outcome::default();
        let Some(remembered) = self.0.as_deref_mut() else { return outcome };
        let held = answer
            .rtt
            .map_or(HELD_BACK, |rtt| HELD_BACK.min(Duration::from_nanos(rtt.as_nanos() / 20)));
        remembered.held_back = answer.above_hole && answer.at.since(remembered.answered) >= held;
        remembered.answered = answer.at;
        if answer.una.is_before(answer.ack) {
            remembered.moved = answer.echo.map(|echo| (answer.at, echo));
        }
        // What else one ACK reports came in the same way as what filled the hole at its edge. The
        // first retransmission shows which of the sendings that was; those after it may be needless
        // without the first sending having arrived.
        let mut at_edge = None;
        let first = remembered.first_awaited();
        let Remembered { in_order: repeats, awaited, .. } = remembered;
        for repeat in repeats.range_mut(first..).filter(|repeat| repeat.is_awaited()) {
            if answer.ack.is_before(repeat.to) && !has(repeat.from, repeat.to) {
                continue;
            }
            *awaited -= 1;
            let own = repeat.is_echoed(answer);
            at_edge = at_edge.or(own);
            repeat.reported = answer.at;
            repeat.state = match own.or(at_edge).or_else(|| repeat.is_answered_early(answer)) {
                Some(true) => {
                    outcome.overtaken += u64::from(repeat.overtaken);
                    State::Needless
                }
                Some(false) => State::Filled,
                None => State::Arrived,
            };
        }
        outcome
    }

    /// DSACK: this arrived more than once.
    pub fn arrived_twice(
        &mut self,
        from: SequenceNumber,
        to: SequenceNumber,
        answer: &Answer,
    ) -> Outcome {
        let mut outcome = Outcome::default();
        let Some(Remembered { in_order: repeats, held_back, awaited, .. }) = self.0.as_deref_mut()
        else {
            return outcome;
        };
        let duplicate = Duplicate { from, to, answer };
        let oldest = duplicate.oldest();
        let latest = repeats.iter().rposition(|repeat| duplicate.may_be_of(repeat)).unwrap_or(0);
        // Of several sendings of the same bytes one came twice: the last, since the ones before it
        // have been answered.
        let chosen = duplicate.chosen(repeats.make_contiguous());
        let mut places = 0..;
        repeats.retain_mut(|repeat| {
            let place = places.next().unwrap_or(usize::MAX);
            if chosen[place] {
                if repeat.state != State::Filled && !repeat.is_of_copy(answer) {
                    outcome.spurious += 1;
                    let is_counted = matches!(repeat.state, State::Needless | State::Missing);
                    outcome.overtaken += u64::from(repeat.overtaken && !is_counted);
                }
                return false;
            }
            if place < latest && repeat.state == State::Needless {
                if *held_back {
                    outcome.spurious += 1;
                    return false;
                }
                repeat.state = State::Missing;
            }
            !repeat.to.is_before(oldest)
        });
        *awaited = repeats.iter().filter(|repeat| repeat.is_awaited()).count();
        outcome
    }

    /// The capture ended. A needless retransmission that could not be answered yet was not lost, as
    /// far as anything says: only what was sent earlier was answered, by a round trip of at least
    /// `rtt` or by the last echo.
    pub fn ended(&self, rtt: Option<Duration>) -> Outcome {
        let (Some(Remembered { in_order, answered, moved, .. }), Some(rtt)) =
            (self.0.as_deref(), rtt)
        else {
            return Outcome::default();
        };
        let echo = moved.filter(|(at, _)| answered.since(*at) < rtt).map(|(_, echo)| echo);
        let is_unanswered = |repeat: &&Repeat| {
            let is_newer =
                echo.zip(repeat.stamp).is_some_and(|(echo, stamp)| is_older(echo, stamp));
            repeat.state == State::Needless && (is_newer || answered.since(repeat.at) < rtt)
        };
        Outcome { spurious: in_order.iter().filter(is_unanswered).count() as u64, overtaken: 0 }
    }
}

/// What DSACK reports to have come twice.
struct Duplicate<'a> {
    from: SequenceNumber,
    to: SequenceNumber,
    answer: &'a Answer,
}

impl Duplicate<'_> {
    /// What ends before this number is forgotten.
    fn oldest(&self) -> SequenceNumber {
        self.answer.ack + BEHIND.wrapping_neg()
    }

    /// Whether this retransmission may be one of the two that came.
    ///
    /// A block may be of several that came together. Reported sooner than anything was after a
    /// retransmission, it is of a copy that the network made of an earlier sending.
    fn may_be_of(&self, repeat: &Repeat) -> bool {
        !repeat.to.is_before(self.oldest())
            && repeat.overlaps(self.from, self.to)
            && !repeat.is_sooner(self.answer, self.answer.quickest)
    }

    /// For each retransmission whether it is the one that came twice: of those that may be and
    /// overlap, the last, unless it filled the hole itself and another did not.
    fn chosen(&self, repeats: &[Repeat]) -> Vec<bool> {
        // Each is compared with those chosen only, which are forgotten then: however many overlap,
        // one ACK costs little.
        let mut found = Vec::<usize>::new();
        for wants_filled in [false, true] {
            for (place, repeat) in repeats.iter().enumerate().rev() {
                if (repeat.state == State::Filled) != wants_filled || !self.may_be_of(repeat) {
                    continue;
                }
                let mut others = found.iter().map(|other| &repeats[*other]);
                if !others.any(|other| other.overlaps(repeat.from, repeat.to)) {
                    found.push(place);
                }
            }
        }
        let mut chosen = vec![false; repeats.len()];
        found.into_iter().for_each(|place| chosen[place] = true);
        chosen
    }
}

/// By the order of timestamps (RFC 7323, 5.2).
const fn is_older(echo: u32, stamp: u32) -> bool {
    (echo.wrapping_sub(stamp) as i32) < 0
}

impl Remembered {
    /// Where the first that is awaited stands: from the end, as what was sent last is answered
    /// last.
    fn first_awaited(&self) -> usize {
        let (mut first, mut left) = (self.in_order.len(), self.awaited);
        while left > 0 && first > 0 {
            first -= 1;
            left -= usize::from(self.in_order[first].is_awaited());
        }
        first
    }
}

impl Repeat {
    fn overlaps(&self, from: SequenceNumber, to: SequenceNumber) -> bool {
        self.from.is_before(to) && from.is_before(self.to)
    }

    fn is_awaited(&self) -> bool {
        self.state == State::Awaited
    }

    /// Whether the echo of an ACK that fills the hole at the left edge is older than this; `None`:
    /// it is not there.
    fn is_echoed(&self, answer: &Answer) -> Option<bool> {
        let moves_edge = !answer.una.is_before(self.from) && answer.una.is_before(answer.ack);
        let stamps = answer.echo.zip(self.stamp).filter(|_| moves_edge);
        stamps.map(|(echo, stamp)| is_older(echo, stamp))
    }

    /// Whether DSACK follows so soon on the report of the data that two sendings can hardly have
    /// come so close together, which left a round trip or so apart: a copy can.
    fn is_of_copy(&self, answer: &Answer) -> bool {
        let close =
            answer.rtt.map_or(Duration::ZERO, |rtt| Duration::from_nanos(rtt.as_nanos() / 4));
        self.state == State::Arrived && answer.at.since(self.reported) < close
    }

    /// `Some` where the arrival was reported sooner than it could be had this sending arrived.
    fn is_answered_early(&self, answer: &Answer) -> Option<bool> {
        self.is_sooner(answer, answer.rtt).then_some(true)
    }

    /// Whether the answer came clearly sooner than `least` after this.
    fn is_sooner(&self, answer: &Answer, least: Option<Duration>) -> bool {
        least.is_some_and(|least| {
            answer.at.since(self.at) < Duration::from_nanos(least.as_nanos() / 10 * 9)
        })
    }
}

#[cfg(test)]
mod tests;
