//! Delayed ACK and Nagle: a write that does not fill a segment waits until everything before it is
//! acknowledged (RFC 9293 section 3.7.4), and the receiver delays exactly that ACK (section
//! 3.8.6.3).

use super::{DataSeen, LEAST_PART};
use fullpipe_model::units::Duration;

/// Fewer may be chance.
const COUNT_LEAST: u64 = 3;
/// The least fraction of the delayed ACKs that a small write awaited. An application that writes at
/// arbitrary times also follows a few of them at once.
const OF_LATE: f64 = 0.5;

/// Small writes that waited for a delayed ACK.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DelayedAck {
    /// How many.
    pub count: u64,
    /// How much later than the quickest those ACKs came, in total.
    pub time: Duration,
    /// That time as a fraction of the whole transfer's, at most 1.
    pub part: f64,
}

impl DelayedAck {
    pub(super) fn of(seen: DataSeen<'_>) -> Option<Self> {
        let stalls = seen.facts().stalls;
        let part = seen.part(stalls.awaited_ack_wait).min(1.0);
        let count = stalls.awaited_acks.into();
        let is_mostly = f64::from(stalls.awaited_acks) >= OF_LATE * f64::from(stalls.late_acks);
        let found = DelayedAck { count, time: stalls.awaited_ack_wait, part };
        (count >= COUNT_LEAST && is_mostly && part >= LEAST_PART).then_some(found)
    }
}
