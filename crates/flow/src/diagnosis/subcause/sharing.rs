//! Several connections share a link: what one of them loses, another one gains. Their sum is
//! therefore much steadier than each.

use crate::limit::{Cause, Limit, Verdict};
use fullpipe_model::units::{Duration, Instant, Rate};

/// Number of parts into which a connection's time is cut, and the least length of one. A part is
/// several round trips long, so that late acknowledgements do not matter.
const PARTS: usize = 24;
const PART_LEAST: Duration = Duration::from_millis(100);
/// The most that the sum may vary, as a fraction of this connection's own variation.
const STEADIER: f64 = 0.5;
/// How far the others' rate must fall when this one's rises: the coefficient of correlation.
const OPPOSED: f64 = -0.6;
/// The fraction of this connection's time in which another one must send too.
const TOGETHER: f64 = 0.5;

/// A link that several connections share.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sharing {
    /// How many connections, this one included.
    pub connections: u64,
    /// Their rate together.
    pub total: Rate,
    /// This connection's fraction of that rate.
    pub part: f64,
}

/// Whether the path limited the connection, for long enough to compare.
pub fn may_share(verdict: &Verdict) -> bool {
    let limit = verdict.limited_by().limit;
    let by_path = matches!(limit, Limit::Link | Limit::CongestionWindow(Cause::Loss));
    by_path && verdict.time >= PART_LEAST.saturating_mul(PARTS as u64)
}

/// Finds whether connection `one` shares a link with the others.
pub fn sharing(all: &[&Verdict], one: usize) -> Option<Sharing> {
    let verdict = all[one];
    let start = verdict.intervals.first()?.start;
    let part = Duration::from_nanos(verdict.time.as_nanos() / PARTS as u64);
    let own = rates(verdict, start, part);
    let mut rest = [0.0; PARTS];
    let mut connections = 1;
    for (at, other) in all.iter().enumerate().filter(|(at, _)| *at != one) {
        let other_rates = rates(other, start, part);
        let together = other_rates.iter().filter(|rate| **rate > 0.0).count();
        if at != one && together as f64 >= TOGETHER * PARTS as f64 {
            rest.iter_mut().zip(other_rates).for_each(|(sum, rate)| *sum += rate);
            connections += 1;
        }
    }
    let sum: [f64; PARTS] = std::array::from_fn(|at| own[at] + rest[at]);
    let is_steadier = spread(&sum) <= STEADIER * spread(&own);
    let total = mean(&sum);
    (connections > 1 && is_steadier && correlation(&own, &rest) <= OPPOSED).then(|| Sharing {
        connections,
        total: Rate::from_bits_per_sec(total as u64),
        part: mean(&own) / total,
    })
}

/// Its rate in each part of the time from `start`, in bits a second.
fn rates(verdict: &Verdict, start: Instant, part: Duration) -> [f64; PARTS] {
    let mut bytes = [0.0; PARTS];
    let length = part.as_secs_f64();
    for interval in &verdict.intervals {
        let [from, to] = [interval.start, interval.start + interval.length]
            .map(|at| at.since(start).as_secs_f64() - start.since(at).as_secs_f64());
        let carried = interval.carried();
        let first = (from / length).floor().max(0.0) as usize;
        let last = (to / length).floor().clamp(-1.0, PARTS as f64 - 1.0);
        for (at, sum) in bytes.iter_mut().enumerate().skip(first) {
            if at as f64 > last {
                break;
            }
            let inside = to.min((at + 1) as f64 * length) - from.max(at as f64 * length);
            *sum += carried.as_f64() * (inside / (to - from).max(1e-9)).clamp(0.0, 1.0);
        }
    }
    bytes.map(|bytes| bytes * 8.0 / length.max(1e-9))
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The standard deviation.
fn spread(values: &[f64]) -> f64 {
    let mean = mean(values);
    (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / values.len() as f64).sqrt()
}

/// The correlation of two series, -1 to 1; 0 where one of them does not change.
fn correlation(a: &[f64], b: &[f64]) -> f64 {
    let (mean_a, mean_b) = (mean(a), mean(b));
    let pairs = a.iter().zip(b).map(|(a, b)| (a - mean_a) * (b - mean_b));
    let scale = spread(a) * spread(b) * a.len() as f64;
    if scale > 0.0 { pairs.sum::<f64>() / scale } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limit::{Candidate, Evidence, Interval, Source};

    /// A transfer of 10 s from `start` in milliseconds. `mbit` gives the rate of each 50 ms in
    /// Mbit/s.
    fn transfer(start: u64, mbit: impl Fn(f64) -> f64) -> Verdict {
        let intervals = (0..200).map(|number: u64| Interval {
            start: Instant::from_nanos((start + number * 50) * 1_000_000),
            length: Duration::from_millis(50),
            candidates: vec![Candidate { limit: Limit::Link, share: 1.0 }],
            evidence: Evidence {
                goodput: Rate::from_bits_per_sec((mbit(number as f64) * 1e6) as u64),
                ..Evidence::default()
            },
        });
        Verdict::new(Source::Capture, intervals.collect())
    }

    fn wave(number: f64) -> f64 {
        (number / 20.0).sin()
    }

    #[test]
    fn what_one_loses_the_other_gets() {
        let (a, b) =
            (transfer(0, |n| 50.0 + 20.0 * wave(n)), transfer(0, |n| 50.0 - 19.0 * wave(n)));
        let found = sharing(&[&a, &b], 0).unwrap();
        assert_eq!(found.connections, 2);
        assert!((found.total.as_f64() - 100e6).abs() < 2e6 && (found.part - 0.5).abs() < 0.05);
        assert!(sharing(&[&a, &b], 1).is_some());
    }

    #[test]
    fn near_miss_transfers_that_do_not_push_each_other_aside_share_nothing() {
        let a = transfer(0, |n| 50.0 + 20.0 * wave(n));
        let steady = transfer(0, |_| 50.0);
        let alike = transfer(0, |n| 50.0 + 20.0 * wave(n));
        let earlier = transfer(20_000, |n| 50.0 - 20.0 * wave(n));
        for (name, other) in [("steady", steady), ("alike", alike), ("at another time", earlier)] {
            assert_eq!(sharing(&[&a, &other], 0), None, "{name}");
            assert_eq!(sharing(&[&other, &a], 0), None, "{name}");
        }
    }
}
