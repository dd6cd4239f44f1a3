//! Of what was sent again, whether the first sending arrived after all.
//!
//! Whether it was needless, and whether the first sending was overtaken, three things tell:
//!
//! * *The echo* (Eifel, RFC 3522): the ACK that moves the left edge echoes the timestamp of the segment that filled it. One
//!   older than the retransmission's is that of an earlier sending.
//! * *Time*: an answer sooner than any round trip is not one to the retransmission.
//! * *DSACK* (RFC 2883; RFC 3708 reasons from it): the data arrived twice. Where the echo said that the retransmission
//!   filled the hole, what came twice is a copy that the network made, and nothing is revised.
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
    /// The least time from data to its acknowledgement.
    pub rtt: Option<Duration>,
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
    pub fn arrived_twice(&mut self, from: SequenceNumber, to: SequenceNumber, ack: SequenceNumber) -> Outcome {
        let mut outcome = Outcome::default();
        let Some(Remembered { in_order: repeats }) = self.0.as_deref_mut() else { return outcome };
        let oldest = ack + BEHIND.wrapping_neg();
        // A block may be of several that came together.
        repeats.retain(|repeat| {
            let is_meant = !repeat.to.is_before(oldest) && repeat.from.is_before(to) && from.is_before(repeat.to);
            if is_meant && repeat.state != State::Filled {
                outcome.spurious += 1;
                outcome.overtaken += u64::from(repeat.overtaken && repeat.state != State::Needless);
            }
            !is_meant && !repeat.to.is_before(oldest)
        });
        outcome
    }
}

impl Repeat {
    /// Whether the echo of an ACK that fills the hole at the left edge is older than this; `None`: it is not there.
    fn is_echoed(&self, answer: &Answer) -> Option<bool> {
        let moves_edge = !answer.una.is_before(self.from) && answer.una.is_before(answer.ack);
        let stamps = answer.echo.zip(self.stamp).filter(|_| moves_edge);
        stamps.map(|(echo, stamp)| (echo.wrapping_sub(stamp) as i32) < 0)
    }

    /// `Some` where what arrived was told of sooner than it could be had this been it.
    fn is_answered_early(&self, answer: &Answer) -> Option<bool> {
        let least = Duration::from_nanos(answer.rtt?.as_nanos() / 10 * 9);
        (answer.at.since(self.at) < least).then_some(true)
    }
}
