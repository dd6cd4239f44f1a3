//! How fast bytes passed when they passed without a pause, over a whole transfer.

use super::Features;
use crate::limit::thresholds::{
    MUCH_IN_BURSTS, TRAIN_RATE_MOST, TRAIN_RATE_MOST_OF_ACKS, TRAINS_ALIKE,
};
use fullpipe_model::units::Rate;

/// The rate of trains: the median of the fastest of each interval. `None` where these differ, or
/// where a train of twice that rate would be too short to be timed. Then most include a pause.
pub(super) fn train_rate(features: &[Features], is_at_sender: bool) -> Option<Rate> {
    let mut rates: Vec<f64> =
        features.iter().map(|f| f.train_max.into()).filter(|rate| *rate > 0.0).collect();
    rates.sort_by(f64::total_cmp);
    let (median, high) = (*rates.get(rates.len() / 2)?, *rates.get(rates.len() * 9 / 10)?);
    let segment = features.iter().map(|f| f.segment).max()?;
    let most = if is_at_sender { TRAIN_RATE_MOST_OF_ACKS } else { TRAIN_RATE_MOST };
    let is_timed = median <= f64::from(segment) * most;
    (is_timed && high <= TRAINS_ALIKE * median).then(|| Rate::from_bits_per_sec_f64(median))
}

/// The rate of bursts, where much passes in them: they pass much faster than if they were
/// spread evenly over the round trip. A link that is always busy spreads them.
pub(super) fn burst_rate(features: &[Features]) -> Option<Rate> {
    let burst: f64 = features.iter().map(|f| f64::from(f.burst)).sum();
    let time: f64 = features.iter().map(|f| f64::from(f.burst_time)).sum();
    let all: u64 = features.iter().map(|f| f.delivered).sum();
    let is_much = burst >= MUCH_IN_BURSTS * all as f64;
    (is_much && time > 0.0).then(|| Rate::from_bits_per_sec_f64(8.0 * burst / time))
}
