//! Where a queue stood, by the round trips of the intervals.

use super::Features;
use crate::limit::thresholds::{QUEUE_LEAST, QUEUE_PART};
use fullpipe_model::units::Duration;

/// The least time by which a queue delays a path of this round trip.
pub(crate) fn queue_least(base: Duration) -> Duration {
    QUEUE_LEAST.max(Duration::from_secs_f64(base.as_secs_f64() * QUEUE_PART))
}

/// Whether a queue stood for three round trips, for each interval.
pub(super) fn standing_queues(features: &[Features], base: Option<Duration>) -> Vec<bool> {
    let Some(base) = base else { return vec![false; features.len()] };
    let least = queue_least(base);
    let queued: Vec<bool> = features.iter().map(|f| f.is_delayed(base, least)).collect();
    let stands = (0..queued.len()).map(|at| {
        let around = at.checked_sub(1).and_then(|first| queued.get(first..at + 2));
        around.is_some_and(|around| around.iter().all(|is_queued| *is_queued))
    });
    stands.collect()
}
