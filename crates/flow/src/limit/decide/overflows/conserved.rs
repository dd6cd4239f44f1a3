//! Whether the connections between two hosts take from each other what they carry.
//!
//! Connections that lose segments by chance know nothing of each other: what one carries says
//! nothing of the others. What is full has one sum for all of them, so one has less whenever the
//! others have more, whether a queue drops what is too much or a policer.

use super::super::{Features, Path};
use crate::limit::{CongestionCause, Limit, Pace, Verdict};
use std::array::from_fn;

/// The transfer is cut into so many spans of equal length. One connection's luck may last for some
/// round trips, and what is under way blurs shorter spans.
const SPANS: [usize; 3] = [12, 24, 48];
/// A span takes at least so many round trips.
const ROUND_TRIPS: f64 = 4.0;
/// By so many standard deviations of chance (Fisher 1915: the inverse hyperbolic tangent of a
/// correlation, times the root of the number of independent spans less three) it is below zero:
/// chance does that in one of 4,000. It was less in each of 237 captures of connections of 2 to 8
/// that lost 0.1 to 5 % by chance, and more in 12 of 22 behind policers that they shared (worlds
/// 42/0033, 43/0018, 44/0020, on which it was made).
const DEVIATIONS: f64 = 3.5;
/// How sure it is.
const CONSERVED: f64 = 0.65;

/// The verdict, unless it is loss to a path whose connections have one sum together.
pub(super) fn overrule(verdict: Verdict, features: &[Features], path: Path) -> Verdict {
    let is_loss = verdict.limited_by().limit == Limit::CongestionWindow(CongestionCause::Loss);
    let rtt = path.hint.rtt.or(path.rtt).filter(|_| is_loss && !path.is_reordered);
    if !rtt.is_some_and(|rtt| have_one_sum(features, rtt.as_secs_f64())) {
        return verdict;
    }
    let mut verdict = verdict.proven_to_be(Limit::Link).no_surer_than(CONSERVED);
    verdict.pace = Some(Pace::OneSum);
    verdict
}

/// Whether this connection has less whenever those beside it have more; `rtt` is in seconds.
fn have_one_sum(features: &[Features], rtt: f64) -> bool {
    let time: f64 = features.iter().map(|f| f.length.as_secs_f64()).sum();
    let is_shared = features.iter().any(|f| f.beside > 0);
    is_shared
        && SPANS.iter().any(|count| {
            let span = time / *count as f64;
            let [own, beside] = spans(features, span, *count);
            // How it begins and how it ends are not the path's.
            let inner = 1..count - 1;
            let (own, beside) = (&own[inner.clone()], &beside[inner]);
            let deviations =
                correlation(own, beside).atanh() * (independent(own, beside) - 3.0).sqrt();
            span >= ROUND_TRIPS * rtt && deviations <= -DEVIATIONS
        })
}

/// How many of the spans are independent of those before them (Bartlett 1935): a window that is
/// small in one of them is not large in the next.
fn independent(own: &[f64], beside: &[f64]) -> f64 {
    let [one, other] = [own, beside].map(|all| correlation(&all[1..], &all[..all.len() - 1]));
    let both = one.max(0.0) * other.max(0.0);
    own.len() as f64 * (1.0 - both) / (1.0 + both)
}

/// What this connection and those beside it carried in each of `count` spans of this many seconds.
fn spans(features: &[Features], span: f64, count: usize) -> [Vec<f64>; 2] {
    let mut carried: [Vec<f64>; 2] = from_fn(|_| vec![0.0; count]);
    let mut begin = 0.0;
    for f in features {
        let length = f.length.as_secs_f64();
        let end = begin + length;
        let mut at = begin;
        while at < end && span > 0.0 {
            let place = ((at / span) as usize).min(count - 1);
            let until = if place + 1 == count { end } else { end.min((place + 1) as f64 * span) };
            // A span that ends within a rounding of here is over.
            let until = if until > at { until } else { end };
            let part = (until - at) / length;
            carried[0][place] += f.delivered as f64 * part;
            carried[1][place] += f.beside as f64 * part;
            at = until;
        }
        begin = end;
    }
    carried
}

/// Pearson's correlation, a little less than 1 at most; 0 where one of them does not change.
fn correlation(one: &[f64], other: &[f64]) -> f64 {
    let [a, b] = [one, other].map(|all| all.iter().sum::<f64>() / all.len() as f64);
    let (both, own, others) = one.iter().zip(other).fold((0.0, 0.0, 0.0), |sums, (x, y)| {
        let (x, y) = (x - a, y - b);
        (sums.0 + x * y, sums.1 + x * x, sums.2 + y * y)
    });
    let correlation = both / (own * others).sqrt();
    if correlation.is_finite() { correlation.clamp(-0.999, 0.999) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullpipe_model::units::Duration;
    use proptest::prelude::*;

    /// Intervals of 20 ms, in which so much is carried and passes beside it.
    fn intervals(carried: impl Iterator<Item = (f64, f64)>) -> Vec<Features> {
        let intervals = carried.map(|(delivered, beside)| Features {
            length: Duration::from_millis(20),
            delivered: (delivered * 100_000.0) as u64,
            beside: (beside * 100_000.0) as u64,
            ..Features::default()
        });
        intervals.collect()
    }

    /// What connections carry whose windows grow by a twentieth, and halve by chance; a share of
    /// one sum, where there is one.
    fn windows(seed: u64, others: usize, one_sum: bool) -> Vec<Features> {
        let mut random = seed;
        let mut next = move || {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (random >> 33) as f64 / (1_u64 << 31) as f64
        };
        let mut all = vec![1.0_f64; others + 1];
        intervals((0..1000).map(|_| {
            for window in &mut all {
                *window = if next() < 0.05 { *window / 2.0 } else { *window + 0.05 };
            }
            let sum: f64 = all.iter().sum();
            let whole = if one_sum { sum } else { 1.0 };
            (all[0] / whole, (sum - all[0]) / whole)
        }))
    }

    proptest! {
        #[test]
        fn what_is_full_has_one_sum(seed in any::<u64>(), others in 1_usize..8) {
            prop_assert!(have_one_sum(&windows(seed, others, true), 0.02));
        }
    }

    #[test]
    fn chance_makes_no_sum() {
        let found = (0..2000).filter(|seed| have_one_sum(&windows(*seed, 3, false), 0.02)).count();
        assert!(found <= 3, "{found} of 2000");
    }

    #[test]
    fn turns_of_an_application_are_no_sum() {
        let turns = (0..1000).map(|at| if at / 100 % 2 == 0 { (1.0, 0.0) } else { (0.0, 0.0) });
        assert!(!have_one_sum(&intervals(turns), 0.02));
        assert!(!have_one_sum(&intervals(std::iter::repeat_n((1.0, 3.0), 1000)), 0.02));
        assert!(!have_one_sum(&[], 0.02));
        let alone = windows(1, 0, true);
        assert!(!have_one_sum(&alone, 0.02), "nothing is beside it");
    }
}
