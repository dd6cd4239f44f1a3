//! Retransmission timeouts: the sender waited for its timer (RFC 6298), because nothing else
//! reported the loss.

use super::{DataSeen, LEAST_PART};
use fullpipe_model::units::Duration;

/// Timeouts that took a good part of the time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Timeouts {
    /// How many.
    pub count: u64,
    /// Total length of the silences that they ended.
    pub time: Duration,
    /// That time as a fraction of the whole transfer's, at most 1.
    pub part: f64,
}

impl Timeouts {
    pub(super) fn of(seen: DataSeen<'_>) -> Option<Self> {
        let stalls = seen.facts().stalls;
        let part = seen.part(stalls.timeout_wait).min(1.0);
        let timeouts = Timeouts { count: stalls.timeouts.into(), time: stalls.timeout_wait, part };
        (timeouts.count > 0 && part >= LEAST_PART).then_some(timeouts)
    }
}
