//! Whether a sender that was idle began again with a small window (RFC 5681 section 4.1;
//! `tcp_cwnd_restart` in net/ipv4/tcp_output.c).
//!
//! It shows by what passes within a round trip, before any ACK can prompt more: no more than an
//! initial window, much less than passed in a round trip before, and then more, so that it was not
//! all that the application had.

use super::stall::{Stall, StallCause};

/// The initial window in segments (RFC 6928).
const INITIAL: u64 = 10;
/// How many times more must have passed in a round trip before.
const SHRINKS: u64 = 2;
/// The least retransmission timeout of Linux in µs. A shorter pause causes no restart.
const PAUSE_LEAST: u64 = 200_000;
/// The least size of a full segment (RFC 9293 section 3.7.1). Smaller ones are an application's
/// small writes.
const SEGMENT_LEAST: u64 = 536;

/// How much passed in each round trip.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Flights {
    since: u64,
    bytes: u64,
    largest: u64,
}

impl Flights {
    /// Notes data. `rtt` is the least round trip, in µs.
    pub fn sent(&mut self, at: u64, bytes: u64, rtt: u64) {
        if at.saturating_sub(self.since) > rtt {
            *self = Flights { since: at, bytes: 0, largest: self.largest() };
        }
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// The most that passed in a round trip.
    pub fn largest(&self) -> u64 {
        self.largest.max(self.bytes)
    }
}

/// A pause of the application, and what was sent after it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Restart {
    /// The pause, without a restart.
    pub stall: Stall,
    /// When data came again.
    resumed: u64,
    /// What passed in the first round trip, and the most before the pause.
    first: u64,
    before: u64,
    segment: u64,
}

impl Restart {
    pub fn new(stall: Stall, resumed: u64, before: u64, segment: i64) -> Self {
        Restart { stall, resumed, first: 0, before, segment: segment.max(1) as u64 }
    }

    /// Notes data from the segment that ended the pause on. Returns the stall once it is decided.
    pub fn sent(&mut self, at: u64, bytes: u64, rtt: u64) -> Option<Stall> {
        let after = at.saturating_sub(self.resumed);
        // The first flight passes within a part of the round trip.
        if after <= rtt / 4 * 3 {
            self.first = self.first.saturating_add(bytes);
            return None;
        }
        let is_small = self.first <= INITIAL * self.segment
            && self.first > INITIAL / 2 * self.segment
            && self.segment >= SEGMENT_LEAST
            && self.first.is_multiple_of(self.segment)
            && self.before >= SHRINKS.saturating_mul(self.first);
        let goes_on = after <= rtt.saturating_mul(2);
        let is_restart = is_small && goes_on && self.stall.length >= PAUSE_LEAST;
        let cause = if is_restart { StallCause::IdleRestart } else { self.stall.cause };
        Some(Stall { cause, ..self.stall })
    }
}
