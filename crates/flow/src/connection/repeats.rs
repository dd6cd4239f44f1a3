//! Of what was sent again, whether the first sending arrived after all.
//!
//! Whether it was needless, and whether the first sending was overtaken, three things tell:
//!
//! * *The echo* (Eifel, RFC 3522): the ACK that moves the left edge echoes the timestamp of the segment that filled it. One
//!   older than the retransmission's is that of an earlier sending.
//! * *Time*: an answer sooner than any round trip is not one to the retransmission.
//! * *DSACK* (RFC 2883; RFC 3708 reasons from it): the data arrived twice. Where the echo said that the retransmission
//!   filled the hole, what came twice is a copy that the network made, and nothing is revised. Linux holds ACKs back above a
//!   hole ("SACK compression"), and one that was held back tells of the last repetition only: those sent before it whose
//!   first sending had arrived are taken to have come with it.
//!
//! A packet was lost for each retransmission until DSACK says otherwise, even where the first sending arrived: then it was
//! the retransmission that did not.
//!
//! Where data above it had arrived when it was sent again, an earlier sending that arrives after all was overtaken.

use crate::segment::{Segment, SequenceNumber};
use fullpipe_model::units::{Duration, Instant};
use std::collections::VecDeque;

/// Retransmissions that are remembered.
const MOST: usize = 256;
/// Linux holds an ACK back for a twentieth of the round trip, and not for longer than this (`tcp_comp_sack_delay_ns`).
const HELD_BACK: Duration = Duration::from_millis(1);
/// DSACK comes up to a round trip after the ACK: for so many bytes what was sent twice is remembered.
const BEHIND: u32 = 1 << 20;

/// What is known of a retransmission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Its data has not arrived, as far as it was told.
    Awaited,
    /// Its data arrived; by which sending is not known.
    Arrived,
    /// It filled the hole itself.
    Filled,
    /// An earlier sending filled the hole.
    Needless,
    /// The same, and what was sent after it came twice before it did: it was lost itself, as far as was told.
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
}

/// What was sent again, in the order of sending. Most connections never send again, and many are open at once: until then
/// it is a null pointer.
#[derive(Debug, Clone, Default)]
pub(super) struct Repeats(Option<Box<Remembered>>);

#[derive(Debug, Clone, Default)]
struct Remembered {
    in_order: VecDeque<Repeat>,
    /// When the last ACK came, and whether it came so long after the one before that it may have been held back.
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
}

/// What is to be revised: retransmissions that were not necessary, and how many sendings before them were overtaken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Outcome {
    pub spurious: u64,
    pub overtaken: u64,
}

impl Repeats {
    /// A retransmission of what had not arrived; `overtaken`: it is the first, and data above it had.
    pub fn sent_again(&mut self, at: Instant, segment: &Segment, overtaken: bool) {
        let (from, to) = (segment.seq, segment.end());
        let repeats = &mut self.0.get_or_insert_default().in_order;
        if repeats.len() >= MOST {
            repeats.pop_front();
        }
        let stamp = segment.options.timestamps.map(|(value, _)| value);
        repeats.push_back(Repeat { from, to, at, stamp, overtaken, state: State::Awaited });
    }

    /// An ACK; `has` tells what SACK blocks, its own with them, reported.
    pub fn answered(&mut self, answer: &Answer, has: impl Fn(SequenceNumber, SequenceNumber) -> bool) -> Outcome {
        let mut outcome = Outcome::default();
        if let Some(remembered) = self.0.as_deref_mut() {
            let held = answer.rtt.map_or(HELD_BACK, |rtt| HELD_BACK.min(Duration::from_nanos(rtt.as_nanos() / 20)));
            remembered.held_back = answer.at.since(remembered.answered) >= held;
            remembered.answered = answer.at;
            if answer.una.is_before(answer.ack) {
                remembered.moved = answer.echo.map(|echo| (answer.at, echo));
            }
        }
        // What else one ACK tells to have arrived came the way of what filled the hole at its edge: by which of the sendings
        // the first retransmission tells, those after it may be needless without the first sending having arrived.
        let mut at_edge = None;
        let awaited = self.0.iter_mut().flat_map(|repeats| repeats.in_order.iter_mut());
        for repeat in awaited.filter(|repeat| repeat.state == State::Awaited) {
            if answer.ack.is_before(repeat.to) && !has(repeat.from, repeat.to) {
                continue;
            }
            let own = repeat.is_echoed(answer);
            at_edge = at_edge.or(own);
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
    pub fn arrived_twice(&mut self, from: SequenceNumber, to: SequenceNumber, answer: &Answer) -> Outcome {
        let mut outcome = Outcome::default();
        let Some(Remembered { in_order: repeats, held_back, .. }) = self.0.as_deref_mut() else { return outcome };
        let oldest = answer.ack + BEHIND.wrapping_neg();
        // A block may be of several that came together. Told sooner than anything was after a retransmission, it is of a copy
        // that the network made of an earlier sending.
        let is_meant = |repeat: &Repeat| {
            let is_of_it = !repeat.to.is_before(oldest) && repeat.from.is_before(to) && from.is_before(repeat.to);
            is_of_it && !repeat.is_sooner(answer, answer.quickest)
        };
        let latest = repeats.iter().rposition(is_meant).unwrap_or(0);
        let mut places = 0..;
        repeats.retain_mut(|repeat| {
            let is_before = places.next().is_some_and(|place: usize| place < latest);
            if is_meant(repeat) {
                if repeat.state != State::Filled {
                    outcome.spurious += 1;
                    let is_told = matches!(repeat.state, State::Needless | State::Missing);
                    outcome.overtaken += u64::from(repeat.overtaken && !is_told);
                }
                return false;
            }
            if is_before && repeat.state == State::Needless {
                if *held_back {
                    outcome.spurious += 1;
                    return false;
                }
                repeat.state = State::Missing;
            }
            !repeat.to.is_before(oldest)
        });
        outcome
    }

    /// The capture ended: what was sent again needlessly and could not be answered before, since only what was sent earlier
    /// was (by a round trip of at least `rtt`, or by the last echo), was not lost as far as anything says.
    pub fn ended(&self, rtt: Option<Duration>) -> Outcome {
        let (Some(Remembered { in_order, answered, moved, .. }), Some(rtt)) = (self.0.as_deref(), rtt) else {
            return Outcome::default();
        };
        let echo = moved.filter(|(at, _)| answered.since(*at) < rtt).map(|(_, echo)| echo);
        let is_unanswered = |repeat: &&Repeat| {
            let is_newer = echo.zip(repeat.stamp).is_some_and(|(echo, stamp)| is_older(echo, stamp));
            repeat.state == State::Needless && (is_newer || answered.since(repeat.at) < rtt)
        };
        Outcome { spurious: in_order.iter().filter(is_unanswered).count() as u64, overtaken: 0 }
    }
}

/// By the order of timestamps (RFC 7323, 5.2).
const fn is_older(echo: u32, stamp: u32) -> bool {
    (echo.wrapping_sub(stamp) as i32) < 0
}

impl Repeat {
    /// Whether the echo of an ACK that fills the hole at the left edge is older than this; `None`: it is not there.
    fn is_echoed(&self, answer: &Answer) -> Option<bool> {
        let moves_edge = !answer.una.is_before(self.from) && answer.una.is_before(answer.ack);
        let stamps = answer.echo.zip(self.stamp).filter(|_| moves_edge);
        stamps.map(|(echo, stamp)| is_older(echo, stamp))
    }

    /// `Some` where what arrived was told of sooner than it could be had this been it.
    fn is_answered_early(&self, answer: &Answer) -> Option<bool> {
        self.is_sooner(answer, answer.rtt).then_some(true)
    }

    /// Whether the answer came clearly sooner than `least` after this.
    fn is_sooner(&self, answer: &Answer, least: Option<Duration>) -> bool {
        least.is_some_and(|least| answer.at.since(self.at) < Duration::from_nanos(least.as_nanos() / 10 * 9))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::Flags;
    use fullpipe_model::units::Bytes;

    const RTT: Option<Duration> = Some(Duration::from_millis(60));

    fn at(micros: u64) -> Instant {
        Instant::ZERO + Duration::from_micros(micros)
    }

    const fn seq(number: u32) -> SequenceNumber {
        SequenceNumber(number)
    }

    fn sent(from: u32, stamp: u32) -> Segment {
        let end = std::net::SocketAddr::from(([0; 4], 0));
        Segment {
            source: end,
            destination: end,
            ip_id: None,
            ce: false,
            seq: seq(from),
            ack: seq(0),
            flags: Flags::ACK,
            window: 0,
            payload: Bytes::new(1000),
            options: crate::segment::Options { timestamps: Some((stamp, 0)), ..Default::default() },
            is_broken: false,
        }
    }

    /// Repairs of 1000 bytes each, sent every 100 us from time 0 with the timestamp 100, whose first sendings are reported
    /// 10 ms later, above a hole at 0.
    fn needless(count: u32) -> Repeats {
        let mut repeats = Repeats::default();
        for index in 1..=count {
            repeats.sent_again(at(u64::from(index) * 100), &sent(index * 1000, 100), true);
        }
        let outcome = repeats.answered(&ack(10_000, (0, 0), None), |_, _| true);
        assert_eq!(outcome, Outcome { spurious: 0, overtaken: count.into() });
        repeats
    }

    fn ack(micros: u64, (una, ack): (u32, u32), echo: Option<u32>) -> Answer {
        Answer { at: at(micros), una: seq(una), ack: seq(ack), echo, rtt: RTT, quickest: RTT }
    }

    /// Three came; the receiver answered `spacing` microseconds after the first, for the third.
    fn told_of_first_and_third(spacing: u64) -> u64 {
        let mut repeats = needless(3);
        let mut spurious = 0;
        for (micros, index) in [(70_000, 1), (70_000 + spacing, 3)] {
            let answer = ack(micros, (0, 0), None);
            repeats.answered(&answer, |_, _| false);
            let twice = (seq(index * 1000), seq(index * 1000 + 1000));
            spurious += repeats.arrived_twice(twice.0, twice.1, &answer).spurious;
        }
        spurious
    }

    #[test]
    fn an_ack_that_was_held_back_tells_of_what_came_before_it_too() {
        assert_eq!(told_of_first_and_third(1_200), 3);
        assert_eq!(told_of_first_and_third(600), 2, "nothing was held back: the second one was lost");
    }

    #[test]
    fn a_copy_of_the_first_sending_says_nothing_of_the_second() {
        let mut repeats = needless(1);
        let early = ack(11_000, (0, 0), None);
        assert_eq!(repeats.arrived_twice(seq(1000), seq(2000), &early), Outcome::default());
        let later = ack(70_000, (0, 0), None);
        assert_eq!(repeats.arrived_twice(seq(1000), seq(2000), &later), Outcome { spurious: 1, overtaken: 0 });
    }

    #[test]
    fn what_could_not_be_answered_before_the_capture_ended_was_not_lost() {
        let mut repeats = needless(2);
        assert_eq!(repeats.ended(RTT).spurious, 2, "no round trip has passed");
        // Two round trips later, what was sent before them is acknowledged: a queue stands.
        repeats.answered(&ack(120_000, (0, 500), Some(99)), |_, _| false);
        assert_eq!(repeats.ended(RTT).spurious, 2);
        repeats.answered(&ack(130_000, (500, 600), Some(101)), |_, _| false);
        assert_eq!(repeats.ended(RTT).spurious, 0, "DSACK would have come by now");
    }
}
