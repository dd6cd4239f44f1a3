//! From what a capture showed in each interval to what held the sender.

use super::{Candidate, Verdict, verdict::Source};
use super::{CongestionCause, Evidence, Interval, Limit, PathHint};
use fullpipe_model::units::{Bytes, Duration, Instant, Rate, Window};

/// What a capture showed of the sender in one interval.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Features {
    pub start: Instant,
    pub length: Duration,
    /// New payload sent, and payload newly acknowledged.
    pub sent: u64,
    pub delivered: u64,
    pub segments: u32,
    pub retransmissions: u32,
    /// New segments shorter than the largest, the last of the connection apart.
    pub small: u32,
    /// The largest segment so far.
    pub segment: Bytes,
    pub in_flight_max: Bytes,
    /// Bytes in flight times nanoseconds.
    pub in_flight_time: f64,
    /// Nanoseconds in which the next segment did not fit into the receive window.
    pub full: u64,
    /// Nanoseconds with nothing in flight although the window had room.
    pub idle: u64,
    pub window_min: Option<Window>,
    pub window_max: Option<Window>,
    /// The least round-trip time measured.
    pub rtt: Option<Duration>,
}

impl Features {
    /// Nothing sent, delivered or awaited.
    pub fn is_silent(&self) -> bool {
        self.segments == 0 && self.delivered == 0 && self.in_flight_max == Bytes::ZERO
    }

    /// Adds an interval that follows.
    pub fn absorb(&mut self, later: &Features) {
        self.length = self.length.saturating_add(later.length);
        self.sent += later.sent;
        self.delivered += later.delivered;
        self.segments += later.segments;
        self.retransmissions += later.retransmissions;
        self.small += later.small;
        self.segment = self.segment.max(later.segment);
        self.in_flight_max = self.in_flight_max.max(later.in_flight_max);
        self.in_flight_time += later.in_flight_time;
        self.full += later.full;
        self.idle += later.idle;
        self.window_min = least(self.window_min, later.window_min);
        self.window_max = self.window_max.max(later.window_max);
        self.rtt = least(self.rtt, later.rtt);
    }

    fn part(&self, nanos: u64) -> f64 {
        if self.length == Duration::ZERO { 0.0 } else { (nanos as f64 / self.length.as_nanos() as f64).min(1.0) }
    }

    fn evidence(&self) -> Evidence {
        Evidence {
            goodput: Bytes::new(self.delivered).per(self.length).unwrap_or(Rate::ZERO),
            in_flight: self.in_flight_max,
            window: self.window_max,
            rtt: self.rtt,
            window_full: self.part(self.full),
            idle: self.part(self.idle),
            retransmissions: self.retransmissions.into(),
            sndbuf_limited: None,
            unread: None,
        }
    }
}

fn least<T: Ord>(a: Option<T>, b: Option<T>) -> Option<T> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

/// What held the sender in each interval. `rtt` is the path's without queues, as far as it was seen.
pub(crate) fn decide(features: &[Features], rtt: Option<Duration>, hint: PathHint) -> Verdict {
    let _ = (rtt, hint, CongestionCause::Loss);
    let intervals = features
        .iter()
        .map(|f| Interval {
            start: f.start,
            length: f.length,
            candidates: vec![Candidate { limit: Limit::Unknown, share: 1.0 }],
            evidence: f.evidence(),
        })
        .collect();
    Verdict::new(Source::Capture, intervals)
}
