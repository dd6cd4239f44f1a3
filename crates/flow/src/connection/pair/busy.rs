//! For how much of the time what is between two places was busy.
//!
//! A packet that waits is behind others; until it has left, what they wait for is busy. So that is
//! busy from one packet to the next wherever the next one comes before the first has left. It is
//! what one capture has to infer from acknowledgements, and two see.

use fullpipe_model::units::Duration;

/// Data that passed both places.
#[derive(Debug, Clone, Copy)]
pub(super) struct SentData {
    /// When it passed the first place, in nanoseconds.
    pub at: i64,
    /// How long it took to the second, beyond the fastest.
    pub waited: i64,
}

/// Fewer segments of data say nothing of what they waited for.
const LEAST: usize = 20;
/// A packet counts as delayed if so many before it and after it were, too: what delays each packet
/// by itself lets some of them pass.
const AROUND: usize = 16;
/// Hosts delay a packet by up to so much, or by one part in so many of the round trip.
const NOISE: i64 = 200_000;
const NOISE_PART: u64 = 50;

/// The part of the time, from the first data to the last, in which data waited: 0 to 1. `data` is
/// in the order in which it passed the first place.
pub(super) fn busy_part(data: &[SentData], round_trip: Duration) -> Option<f64> {
    let [first, .., last] = data else { return None };
    if data.len() < LEAST || first.at >= last.at {
        return None;
    }
    let noise = NOISE.max((round_trip.as_nanos() / NOISE_PART) as i64);
    let covered = data.windows(2).enumerate().map(|(at, pair)| {
        let around = &data[at.saturating_sub(AROUND)..(at + AROUND + 1).min(data.len())];
        let waited = around.iter().map(|one| one.waited).min().unwrap_or(0);
        (pair[1].at - pair[0].at).clamp(0, (waited - noise).max(0))
    });
    Some(covered.sum::<i64>() as f64 / (last.at - first.at) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: i64 = 1_000_000;
    const ROUND_TRIP: Duration = Duration::from_millis(40);

    /// Bursts of `burst` packets, one every `period`, through a link that takes `each` for one; and
    /// the part of the time in which it was busy.
    fn through_link(burst: i64, period: i64, each: i64) -> (Vec<SentData>, f64) {
        let (mut free, mut busy, mut data) = (0_i64, 0, Vec::new());
        for number in 0..2000 {
            let at = number / burst * period;
            let leaves = free.max(at) + each;
            data.push(SentData { at, waited: leaves - at - each });
            (free, busy) = (leaves, busy + each);
        }
        let last = data[data.len() - 1].at;
        (data, (busy as f64 / last as f64).min(1.0))
    }

    proptest! {
        /// It is never more than the link was busy, and of a link that is always behind nearly all.
        #[test]
        fn a_link_was_busy_for_at_least_so_much(
            burst in 1_i64..200,
            period in 1_i64..100,
            load in 0.05_f64..3.0,
        ) {
            let period = period * MS;
            let each = ((period as f64 * load / burst as f64) as i64).max(1);
            let (data, busy) = through_link(burst, period, each);
            let found = busy_part(&data, ROUND_TRIP).unwrap_or(0.0);
            prop_assert!(found <= busy + 0.02, "{found} of {busy}");
            if load > 1.2 && data.len() as i64 / burst >= 50 {
                prop_assert!(found >= 0.8, "{found} of {busy}");
            }
        }

        /// What delays each packet by itself is no queue.
        #[test]
        fn jitter_is_not_busy(waits in prop::collection::vec(0_i64..10 * MS, 2000)) {
            let data = waits.iter().zip(0..);
            let data: Vec<SentData> =
                data.map(|(waited, at)| SentData { at: at * 100_000, waited: *waited }).collect();
            prop_assert!(busy_part(&data, ROUND_TRIP).unwrap() < 0.5);
        }
    }
}
