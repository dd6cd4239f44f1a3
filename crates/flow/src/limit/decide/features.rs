//! What a capture shows, interval by interval.

use crate::limit::least::Least;
use crate::limit::verdict::{Candidate, Evidence, Interval};
use fullpipe_model::units::{Bytes, Duration, Instant, Rate, Window};
use std::num::NonZeroU64;

/// The largest of the windows that were noted, in eight bytes: many connections are open at once.
/// It is kept one byte larger, so that a window of zero is one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PeakWindow(Option<NonZeroU64>);

impl From<Option<Window>> for PeakWindow {
    fn from(window: Option<Window>) -> Self {
        PeakWindow(
            window.and_then(|window| NonZeroU64::new(window.bytes().get().saturating_add(1))),
        )
    }
}

impl PeakWindow {
    /// The largest; `None` before the first is noted.
    pub fn get(self) -> Option<Window> {
        self.0.map(|more| Window::new(Bytes::new(more.get() - 1)))
    }
}

/// What a capture shows of the sender in one interval.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Features {
    pub start: Instant,
    pub length: Duration,
    /// New payload sent, and payload newly acknowledged.
    pub sent: u64,
    pub delivered: u64,
    /// What other connections of the same two hosts carried the same way, between its segments.
    pub beside: u64,
    pub segments: u32,
    pub retransmissions: u32,
    /// New payload that did not follow soon upon an ACK.
    pub unprompted: u64,
    /// Segments of new payload that were not full although more could have been sent.
    pub short: u32,
    /// Whether a silence as long as a timeout ended with data that repaired something.
    pub recovered: bool,
    /// Whether a silence as long as a timeout ended with data whose IP identification shows that
    /// earlier packets did not pass.
    pub follows_gap: bool,
    /// ACKs that moved the left edge of the window.
    pub acks: u32,
    /// The largest segment so far. What is larger was merged from many.
    pub segment: u16,
    pub in_flight_max: Bytes,
    /// The highest rate of a train, in bits a second.
    pub train_max: f32,
    /// Seconds in which the bytes of a flight passed, one after the other: at the sender, from its
    /// first ACK to its last, elsewhere from its first segment to its last. For short transfers
    /// only.
    pub passing: f32,
    /// Bytes that passed at least three times as fast as they would if they were spread evenly over
    /// the round trip, and the seconds that they took.
    pub burst: u32,
    pub burst_time: f32,
    /// How many flights of new data began, each after a pause in which the ACK of the flight before
    /// was awaited.
    pub flights: u16,
    /// Number of events from which `train_max` was taken.
    pub train_events: u32,
    /// Bytes acknowledged while the window closed by as much: the application had not read them
    /// yet.
    pub unread: u32,
    /// Bytes in flight times nanoseconds.
    pub in_flight_time: f64,
    /// Nanoseconds in which the next segment did not fit into the receive window.
    pub full: u64,
    /// Milliseconds for which the receiver kept ACKs back, as data waited to be read.
    pub late_acks: u16,
    /// Nanoseconds with nothing in flight although the window had room.
    pub idle: u64,
    pub window_max: PeakWindow,
    /// The least round-trip time measured.
    pub rtt: Least,
}

impl Features {
    /// Whether no data was sent, delivered or awaited. The number that a FIN takes is none.
    pub fn is_silent(&self) -> bool {
        self.segments == 0 && self.delivered <= 1 && self.in_flight_max == Bytes::ZERO
    }

    /// Whether something was sent again.
    pub(super) fn is_lossy(&self) -> bool {
        self.retransmissions > 0
    }

    /// Whether its round trip is at least this much longer than the path's own.
    pub(super) fn is_delayed(&self, base: Duration, least: Duration) -> bool {
        self.rtt.get().is_some_and(|rtt| rtt.saturating_sub(base) >= least)
    }

    /// Adds an interval that follows.
    pub fn absorb(&mut self, later: &Features) {
        self.length = self.length.saturating_add(later.length);
        self.sent += later.sent;
        self.delivered += later.delivered;
        self.beside += later.beside;
        self.segments += later.segments;
        self.retransmissions += later.retransmissions;
        self.unprompted += later.unprompted;
        self.short += later.short;
        self.recovered |= later.recovered;
        self.follows_gap |= later.follows_gap;
        self.acks += later.acks;
        self.segment = self.segment.max(later.segment);
        self.in_flight_max = self.in_flight_max.max(later.in_flight_max);
        self.train_events += later.train_events;
        self.unread = self.unread.saturating_add(later.unread);
        self.train_max = self.train_max.max(later.train_max);
        self.passing += later.passing;
        self.burst = self.burst.saturating_add(later.burst);
        self.burst_time += later.burst_time;
        self.flights = self.flights.saturating_add(later.flights);
        self.in_flight_time += later.in_flight_time;
        self.full += later.full;
        self.idle += later.idle;
        self.late_acks = self.late_acks.saturating_add(later.late_acks);
        self.window_max = self.window_max.max(later.window_max);
        if let Some(rtt) = later.rtt.get() {
            self.rtt.note(rtt);
        }
    }

    /// Mean bytes in flight over the interval.
    pub(super) fn in_flight_mean(&self) -> f64 {
        if self.length == Duration::ZERO {
            0.0
        } else {
            self.in_flight_time / self.length.as_nanos() as f64
        }
    }

    /// The fraction of the interval that `nanos` takes.
    pub(super) fn part(&self, nanos: u64) -> f64 {
        if self.length == Duration::ZERO {
            0.0
        } else {
            (nanos as f64 / self.length.as_nanos() as f64).min(1.0)
        }
    }

    /// The interval with these candidates.
    pub fn interval(&self, candidates: Vec<Candidate>) -> Interval {
        Interval { start: self.start, length: self.length, candidates, evidence: self.evidence() }
    }

    /// The same numbers, for people.
    pub(super) fn evidence(&self) -> Evidence {
        Evidence {
            goodput: Bytes::new(self.delivered).per(self.length).unwrap_or(Rate::ZERO),
            in_flight: self.in_flight_max,
            in_flight_mean: (self.length > Duration::ZERO)
                .then(|| Bytes::from_f64(self.in_flight_time / self.length.as_nanos() as f64)),
            window: self.window_max.get(),
            rtt: self.rtt.get(),
            window_full: self.part(self.full),
            idle: self.part(self.idle),
            retransmissions: self.retransmissions.into(),
            sndbuf_limited: None,
            unread: None,
            beside: Bytes::new(self.beside).per(self.length).filter(|_| self.beside > 0),
        }
    }
}
