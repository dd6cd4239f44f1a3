//! Finds the silences in one direction's data as packets pass, and what each waited for.
//!
//! The recorder calls [`Silences::acknowledged`] with each ACK of the data and [`Silences::sent`]
//! with each segment of it. A silence longer than two round trips (the least) and 100 ms is a
//! stall. Two causes show only afterwards: data that was still in flight is acknowledged (the path
//! was slow) or sent again (it was lost), and a sender that was idle begins again with a small
//! window or not.

use super::restart::{Flights, Restart};
use super::send_clock::SendClock;
use super::stall::{Resumed, Room, Silence, Stall, StallCause, held_back, keep_longest};
use fullpipe_model::units::Rate;

/// The shortest stall, in µs.
const STALL_LEAST: u64 = 100_000;
/// What a sender needs to answer, besides the round trip to it, in µs.
const ANSWERS_IN: u64 = 10_000;

/// A segment of the data, by places in it. Times are in µs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sent {
    pub at: u64,
    pub start: i64,
    pub end: i64,
    pub resumed: Resumed,
    /// IP identifications show that packets before it did not pass the capture point.
    pub follows_gap: bool,
    /// It ends a write (PSH).
    pub is_pushed: bool,
    /// TSval (RFC 7323).
    pub stamp: Option<u32>,
    /// The largest segment so far.
    pub segment: u32,
    /// The handshake's round trip.
    pub path_rtt: Option<u64>,
    /// The round trip between the capture point and the sender, where it is known.
    pub lag: Option<u64>,
}

/// An ACK of the data.
#[derive(Debug, Clone, Copy)]
pub(super) struct Acked {
    pub at: u64,
    pub ack: i64,
    /// In bytes, where its scale is known.
    pub window: Option<i64>,
    pub is_zero: bool,
    /// The round trip that it ends, in µs.
    pub rtt: Option<u64>,
}

/// What happened since the last data.
#[derive(Debug, Clone, Copy, Default)]
struct Since {
    acked: Option<u64>,
    /// When the window last became large enough.
    opened: Option<u64>,
    was_closed: bool,
    was_zero: bool,
    is_unread: bool,
    is_pushed: bool,
    segments: u64,
}

/// One direction's silences.
#[derive(Debug, Clone, Default)]
pub(super) struct Silences {
    last: Option<u64>,
    since: Since,
    /// The highest number sent, the highest acknowledged, the end of the window.
    next: i64,
    acked: i64,
    edge: Option<i64>,
    is_zero: bool,
    segment: i64,
    /// The least round trip in µs. A smoothed one would be another at each place of the path.
    least: Option<u64>,
    clock: SendClock,
    flights: Flights,
    /// A stall whose data in flight is not accounted for, and where that data ends.
    pending: Option<(Stall, i64)>,
    restart: Option<Restart>,
    found: Vec<Stall>,
}

impl Silences {
    /// Notes an ACK.
    pub fn acknowledged(&mut self, acked: Acked) {
        let Acked { at, ack, window, is_zero, rtt } = acked;
        if let Some(rtt) = rtt {
            self.least = Some(self.least.map_or(rtt, |least| least.min(rtt)));
        }
        if ack > self.next && self.last.is_some() {
            self.passed_unseen(at, ack);
        }
        let was_closed = self.is_closed();
        let advances = ack > self.acked;
        self.acked = self.acked.max(ack);
        self.is_zero = is_zero;
        // An ACK that was overtaken says nothing new of the window (RFC 9293 section 3.10.7.4).
        if let Some(window) = window.filter(|_| ack == self.acked) {
            self.edge = Some(ack.saturating_add(window));
        }
        let is_closed = self.is_closed();
        if advances {
            self.since.acked = Some(at);
        }
        self.since.was_zero |= is_zero;
        self.since.was_closed |= is_closed;
        // Acknowledged without room for more, or room without an acknowledgement.
        self.since.is_unread |= was_closed && advances == is_closed;
        if is_closed {
            self.since.opened = None;
        } else if was_closed {
            self.since.opened = Some(at);
        }
        if let Some((stall, _)) = self.pending.filter(|(_, end)| self.acked >= *end) {
            self.pending = None;
            self.found.push(Stall { cause: held_back(stall.length), ..stall });
        }
    }

    /// Notes that data up to `end` passed without being captured, no later than `at`.
    fn passed_unseen(&mut self, at: u64, end: i64) {
        self.last = Some(at);
        self.next = end;
        self.since = Since::default();
    }

    /// Notes a segment. At most `most` stalls are kept, the longest.
    pub fn sent(&mut self, sent: Sent, most: usize) {
        let Sent { at, start, end, .. } = sent;
        self.segment = self.segment.max(sent.segment.into());
        let rtt = self.least.max(sent.path_rtt);
        self.settle(&sent, rtt);
        let left_early = self.clock.is_late(at, sent.stamp);
        if let Some(last) = self.last {
            let least = rtt.unwrap_or(0);
            if at.saturating_sub(last) > STALL_LEAST.max(least.saturating_mul(2)) {
                self.stalled(&sent, last, left_early);
            }
        }
        self.flights.sent(at, (end - start) as u64, rtt.unwrap_or(0));
        self.last = Some(at);
        self.next = self.next.max(end);
        self.since = Since {
            was_closed: self.is_closed(),
            was_zero: self.is_zero,
            segments: self.segments_in_flight(),
            is_pushed: sent.is_pushed,
            ..Since::default()
        };
        // Rarely, so that it costs nothing.
        if self.found.len() > most.saturating_mul(2) {
            keep_longest(&mut self.found, most);
        }
    }

    /// How many stalls it holds.
    pub fn len(&self) -> usize {
        self.found.len()
    }

    /// The stalls in order of time, with what each cost at this goodput; at most `most` of them.
    pub fn finish(mut self, goodput: Option<Rate>, most: usize) -> Vec<Stall> {
        self.found.extend(self.pending.map(|(stall, _)| stall));
        self.found.extend(self.restart.map(|restart| restart.stall));
        keep_longest(&mut self.found, most);
        self.found.sort_unstable_by_key(|stall| stall.start);
        let rate = goodput.map_or(0, Rate::bits_per_sec);
        for stall in &mut self.found {
            let bits = u128::from(stall.length) * u128::from(rate) / 1_000_000;
            stall.cost = u64::try_from(bits / 8).unwrap_or(u64::MAX);
        }
        self.found
    }

    /// Decides stalls that only data after them explains.
    fn settle(&mut self, sent: &Sent, rtt: Option<u64>) {
        if let Some((stall, end)) = self.pending {
            let repeats = sent.resumed != Resumed::New && sent.start < end;
            if repeats {
                let cause = match sent.resumed {
                    Resumed::Timer => StallCause::RetransmissionTimeout,
                    Resumed::Overtaken => StallCause::PacketDelay,
                    Resumed::Fast | Resumed::New => StallCause::Unknown,
                };
                self.pending = None;
                self.found.push(Stall { cause, ..stall });
            }
        }
        if let Some(restart) = &mut self.restart {
            let bytes = (sent.end - sent.start) as u64;
            if let Some(stall) = restart.sent(sent.at, bytes, rtt.unwrap_or(0)) {
                self.found.push(stall);
                self.restart = None;
            }
        }
    }

    /// Adds the stall from `last` to this segment.
    fn stalled(&mut self, sent: &Sent, last: u64, left_early: bool) {
        let rtt = self.least.max(sent.path_rtt).unwrap_or(0);
        let length = sent.at - last;
        let room = match (self.since.was_closed, self.since.opened) {
            (false, _) => Room::Open,
            (true, Some(at)) => Room::Opened(sent.at.saturating_sub(at)),
            (true, None) => Room::Closed,
        };
        let silence = Silence {
            length,
            rtt,
            reaction: sent.lag.unwrap_or(rtt) + rtt / 4 + ANSWERS_IN,
            resumed: sent.resumed,
            // Behind a segment that does not end a write there was more, and this is it.
            follows_gap: sent.follows_gap && !self.since.is_pushed && sent.start <= self.next,
            left_early,
            room,
            is_zero: self.since.was_zero,
            is_unread: self.since.is_unread,
            acked: self.since.acked.map(|at| sent.at.saturating_sub(at)),
            in_flight: self.next > self.acked,
            segments_before: self.since.segments,
            segments_after: self.segments_in_flight(),
        };
        let cause = silence.cause();
        let stall = Stall {
            start: last,
            length,
            cause: cause.unwrap_or(StallCause::Unknown),
            cost: 0,
            sequence: sent.start,
        };
        match cause {
            None => self.found.extend(self.pending.replace((stall, self.next)).map(|(old, _)| old)),
            Some(StallCause::SenderApplication) => {
                let mut restart =
                    Restart::new(stall, sent.at, self.flights.largest(), self.segment);
                restart.sent(sent.at, (sent.end - sent.start) as u64, rtt);
                self.found.extend(self.restart.replace(restart).map(|old| old.stall));
            }
            Some(_) => self.found.push(stall),
        }
    }

    /// Whether the window has no room for a segment.
    fn is_closed(&self) -> bool {
        let room = self.edge.map(|edge| edge - self.next);
        self.is_zero || room.is_some_and(|room| room < self.segment.max(1))
    }

    fn segments_in_flight(&self) -> u64 {
        let bytes = self.next.saturating_sub(self.acked).max(0) as u64;
        bytes.div_ceil(self.segment.max(1) as u64)
    }
}
