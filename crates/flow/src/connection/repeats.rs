//! Whether retransmitted data had already arrived from an earlier transmission.
//!
//! Three kinds of evidence show whether a retransmission was needless, and whether the first
//! transmission was overtaken:
//!
//! * *The echo* (Eifel, RFC 3522): the ACK that moves the left edge echoes the timestamp of the
//!   segment that filled the hole there. If that timestamp is older than the retransmission's, an
//!   earlier transmission filled the hole.
//! * *Time*: an ACK that comes sooner than any round trip does not answer the retransmission.
//! * *DSACK* (RFC 2883; RFC 3708 reasons from it): the data arrived twice, so one of its
//!   retransmissions was needless. In two cases the second arrival is a copy that the network made,
//!   and nothing is revised: the echo showed that the retransmission filled the hole, or the DSACK
//!   follows the report of the data much sooner than transmissions follow each other. Linux holds
//!   back ACKs above a hole ("SACK compression"). The DSACK of a held-back ACK covers only the last
//!   repetition. Retransmissions sent before that one whose first transmission had arrived are
//!   assumed to have arrived with it.
//!
//! Each retransmission counts as one lost packet until DSACK contradicts it. This holds even where
//! the first transmission arrived: then it was the retransmission that was lost.
//!
//! If data above a segment had arrived before the segment was sent again, and an earlier
//! transmission of the segment arrives after all, that transmission was overtaken.

use crate::capture::segment::{Segment, SequenceNumber};
use fullpipe_model::units::{Duration, Instant};
use std::collections::VecDeque;

/// Most retransmissions that are remembered.
const MOST: usize = 256;
/// Linux holds an ACK back for a twentieth of the round trip, but no longer than this
/// (`tcp_comp_sack_delay_ns`).
const HELD_BACK: Duration = Duration::from_millis(1);
/// DSACK comes up to a round trip after the ACK. Retransmissions are therefore remembered until
/// they are this many bytes below the ACK.
const BEHIND: u32 = 1 << 20;

/// What is known of a retransmission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RepeatState {
    /// Its data was not yet reported to have arrived.
    Awaited,
    /// Its data arrived; it is not known from which transmission.
    Arrived,
    /// It filled the hole itself.
    Filled,
    /// An earlier transmission filled the hole.
    Needless,
    /// An earlier transmission filled the hole. A later retransmission was then reported to have
    /// arrived twice, and this one was not. As far as the reports show, this one was lost.
    Missing,
}

#[derive(Debug, Clone, Copy)]
struct Repeat {
    from: SequenceNumber,
    to: SequenceNumber,
    at: Instant,
    stamp: Option<u32>,
    /// It is the first retransmission of its data, and data above it had arrived before.
    overtaken: bool,
    state: RepeatState,
    /// When its data was reported to have arrived; meaningful once it is no longer awaited.
    reported: Instant,
}

/// Retransmissions in the order of sending. Most connections have none, and many connections are
/// open at once, so this is a null pointer until the first.
#[derive(Debug, Clone, Default)]
pub(super) struct Repeats(Option<Box<Remembered>>);

#[derive(Debug, Clone, Default)]
struct Remembered {
    in_order: VecDeque<Repeat>,
    /// How many of the retransmissions are awaited: mostly none, or the last of many.
    awaited: usize,
    /// When the last ACK came, and whether it came so long after the one before that it may have
    /// been held back.
    answered: Instant,
    held_back: bool,
    /// When the left edge last moved, and the timestamp that was echoed then.
    moved: Option<(Instant, u32)>,
}

/// The part of an ACK that matters to retransmissions.
#[derive(Debug, Clone, Copy)]
pub(super) struct AckFacts {
    pub at: Instant,
    /// The highest number acknowledged before this ACK, and the number that it acknowledges.
    pub una: SequenceNumber,
    pub ack: SequenceNumber,
    /// The timestamp that it echoes.
    pub echo: Option<u32>,
    /// The least time from data to its acknowledgement, and the least to any report of it.
    pub rtt: Option<Duration>,
    pub quickest: Option<Duration>,
    /// Whether the receiver, at its last report, had data above a hole. Only then does it hold ACKs
    /// back.
    pub above_hole: bool,
}

/// Corrections to the counts: retransmissions that were not necessary, and earlier transmissions
/// that were overtaken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Corrections {
    pub spurious: u64,
    pub overtaken: u64,
}

impl Repeats {
    /// Notes a retransmission of data that had not arrived. `overtaken` means that it is the first
    /// one, and that data above it had arrived.
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
            state: RepeatState::Awaited,
            reported: at,
        });
        *awaited += 1;
    }

    /// Notes an ACK. `has` says whether SACK blocks, those of this ACK included, reported a range.
    pub fn answered(
        &mut self,
        answer: &AckFacts,
        has: impl Fn(SequenceNumber, SequenceNumber) -> bool,
    ) -> Corrections {
        let mut outcome = Corrections::default();
        let Some(remembered) = self.0.as_deref_mut() else { return outcome };
        let held = answer
            .rtt
            .map_or(HELD_BACK, |rtt| HELD_BACK.min(Duration::from_nanos(rtt.as_nanos() / 20)));
        remembered.held_back = answer.above_hole && answer.at.since(remembered.answered) >= held;
        remembered.answered = answer.at;
        if answer.una.is_before(answer.ack) {
            remembered.moved = answer.echo.map(|echo| (answer.at, echo));
        }
        // The other data that this ACK reports arrived in the same way as the data that filled the
        // hole at the left edge. The first retransmission shows which transmission filled that
        // hole. A later retransmission may be needless even if the first transmission never
        // arrived.
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
                    RepeatState::Needless
                }
                Some(false) => RepeatState::Filled,
                None => RepeatState::Arrived,
            };
        }
        outcome
    }

    /// Notes a DSACK block: this range arrived more than once.
    pub fn arrived_twice(
        &mut self,
        from: SequenceNumber,
        to: SequenceNumber,
        answer: &AckFacts,
    ) -> Corrections {
        let mut outcome = Corrections::default();
        let Some(Remembered { in_order: repeats, held_back, awaited, .. }) = self.0.as_deref_mut()
        else {
            return outcome;
        };
        let duplicate = Duplicate { from, to, answer };
        let oldest = duplicate.oldest();
        let latest = repeats.iter().rposition(|repeat| duplicate.may_be_of(repeat)).unwrap_or(0);
        // Of several transmissions of the same bytes, one is the duplicate: the last, since the
        // ones before it have been answered.
        let chosen = duplicate.chosen(repeats.make_contiguous());
        let mut places = 0..;
        repeats.retain_mut(|repeat| {
            let place = places.next().unwrap_or(usize::MAX);
            if chosen[place] {
                if repeat.state != RepeatState::Filled && !repeat.is_of_copy(answer) {
                    outcome.spurious += 1;
                    let is_counted =
                        matches!(repeat.state, RepeatState::Needless | RepeatState::Missing);
                    outcome.overtaken += u64::from(repeat.overtaken && !is_counted);
                }
                return false;
            }
            if place < latest && repeat.state == RepeatState::Needless {
                if *held_back {
                    outcome.spurious += 1;
                    return false;
                }
                repeat.state = RepeatState::Missing;
            }
            !repeat.to.is_before(oldest)
        });
        *awaited = repeats.iter().filter(|repeat| repeat.is_awaited()).count();
        outcome
    }

    /// Corrects the counts when the capture ends. A needless retransmission that could not have
    /// been answered yet counts as not lost, since nothing shows that it was lost. It could not
    /// have been answered if the last ACK came less than `rtt` after it. The same holds if its
    /// timestamp is newer than the last echo, provided that the left edge moved less than `rtt`
    /// before the last ACK.
    pub fn ended(&self, rtt: Option<Duration>) -> Corrections {
        let (Some(Remembered { in_order, answered, moved, .. }), Some(rtt)) =
            (self.0.as_deref(), rtt)
        else {
            return Corrections::default();
        };
        let echo = moved.filter(|(at, _)| answered.since(*at) < rtt).map(|(_, echo)| echo);
        let unanswered = in_order.iter().filter(|repeat| {
            let is_newer =
                echo.zip(repeat.stamp).is_some_and(|(echo, stamp)| is_older(echo, stamp));
            repeat.state == RepeatState::Needless && (is_newer || answered.since(repeat.at) < rtt)
        });
        Corrections { spurious: unanswered.count() as u64, overtaken: 0 }
    }
}

/// Data that a DSACK block reports to have arrived twice.
struct Duplicate<'a> {
    from: SequenceNumber,
    to: SequenceNumber,
    answer: &'a AckFacts,
}

impl Duplicate<'_> {
    /// Retransmissions that end before this number are forgotten.
    fn oldest(&self) -> SequenceNumber {
        self.answer.ack + BEHIND.wrapping_neg()
    }

    /// Whether this retransmission may be one of the two transmissions that arrived.
    ///
    /// A block may cover several segments that arrived together. If it comes sooner after a
    /// retransmission than any report ever came, it covers a copy that the network made of an
    /// earlier transmission.
    fn may_be_of(&self, repeat: &Repeat) -> bool {
        !repeat.to.is_before(self.oldest())
            && repeat.overlaps(self.from, self.to)
            && !repeat.is_sooner(self.answer, self.answer.quickest)
    }

    /// For each retransmission, whether it is the one that arrived twice. Of the candidates that
    /// overlap each other it is the last, unless that one filled the hole itself and another did
    /// not.
    fn chosen(&self, repeats: &[Repeat]) -> Vec<bool> {
        // Each candidate is compared only with those already chosen, and the chosen ones are
        // forgotten afterwards. However many overlap, one ACK costs little.
        let mut found = Vec::<usize>::new();
        for wants_filled in [false, true] {
            for (place, repeat) in repeats.iter().enumerate().rev() {
                if (repeat.state == RepeatState::Filled) != wants_filled || !self.may_be_of(repeat)
                {
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

/// Compares by the order of timestamps (RFC 7323, 5.2).
const fn is_older(echo: u32, stamp: u32) -> bool {
    (echo.wrapping_sub(stamp) as i32) < 0
}

impl Remembered {
    /// The index of the first awaited retransmission. The search starts at the end, since what was
    /// sent last is answered last.
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
        self.state == RepeatState::Awaited
    }

    /// Whether the echo of an ACK that fills the hole at the left edge is older than this
    /// retransmission. `None` where the ACK does not fill that hole, or a timestamp is missing.
    fn is_echoed(&self, answer: &AckFacts) -> Option<bool> {
        let moves_edge = !answer.una.is_before(self.from) && answer.una.is_before(answer.ack);
        let stamps = answer.echo.zip(self.stamp).filter(|_| moves_edge);
        stamps.map(|(echo, stamp)| is_older(echo, stamp))
    }

    /// Whether the DSACK follows the report of the data too soon for a second transmission. Two
    /// transmissions leave about a round trip apart and can hardly arrive so close together; a copy
    /// made by the network can.
    fn is_of_copy(&self, answer: &AckFacts) -> bool {
        let close =
            answer.rtt.map_or(Duration::ZERO, |rtt| Duration::from_nanos(rtt.as_nanos() / 4));
        self.state == RepeatState::Arrived && answer.at.since(self.reported) < close
    }

    /// `Some(true)` where the arrival was reported sooner than this transmission could have caused.
    fn is_answered_early(&self, answer: &AckFacts) -> Option<bool> {
        self.is_sooner(answer, answer.rtt).then_some(true)
    }

    /// Whether the answer came clearly sooner than `least` after this retransmission.
    fn is_sooner(&self, answer: &AckFacts, least: Option<Duration>) -> bool {
        least.is_some_and(|least| {
            answer.at.since(self.at) < Duration::from_nanos(least.as_nanos() / 10 * 9)
        })
    }
}

#[cfg(test)]
mod tests;
