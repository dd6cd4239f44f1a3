//! Intervals for a page: neighbours with the same first limit are one.

use fullpipe_flow::limit::{Candidate, Evidence, Interval};
use fullpipe_model::units::{Duration, Rate};

/// Most intervals of one direction; a page is a thousand or two pixels wide.
const MOST: usize = 1_000;

/// The intervals, with neighbours that name the same limit put together. Where more than a thousand
/// remain, neighbours are put together whatever they name, and their shares say it.
pub(super) fn neighbours(intervals: &[Interval]) -> Vec<Interval> {
    let mut merged: Vec<Interval> = Vec::new();
    for interval in intervals {
        match merged.last_mut().filter(|last| last.limit() == interval.limit()) {
            Some(last) => absorb(last, interval),
            None => merged.push(interval.clone()),
        }
    }
    while merged.len() > MOST {
        let pairs = merged.chunks(2).map(|pair| {
            let mut first = pair[0].clone();
            pair[1..].iter().for_each(|second| absorb(&mut first, second));
            first
        });
        merged = pairs.collect();
    }
    merged
}

/// The mean of `a` and `b`, of which `b` has this share of the weight.
fn mean(a: f64, b: f64, weight: f64) -> f64 {
    a + (b - a) * weight
}

/// Adds `later` to an interval: shares, rates and fractions by time, extremes as extremes.
fn absorb(interval: &mut Interval, later: &Interval) {
    let (own, other) = (interval.length.as_secs_f64(), later.length.as_secs_f64());
    let weight = if own + other > 0.0 { other / (own + other) } else { 0.5 };
    for candidate in &mut interval.candidates {
        candidate.share *= 1.0 - weight;
    }
    for Candidate { limit, share } in later.candidates.iter().copied() {
        let share = share * weight;
        match interval.candidates.iter_mut().find(|candidate| candidate.limit == limit) {
            Some(candidate) => candidate.share += share,
            None => interval.candidates.push(Candidate { limit, share }),
        }
    }
    interval.candidates.sort_by(|a, b| b.share.total_cmp(&a.share));
    let end = later.start + later.length;
    interval.length = end.since(interval.start).max(interval.length);
    let (a, b) = (&interval.evidence, &later.evidence);
    interval.evidence = Evidence {
        goodput: Rate::from_bits_per_sec_f64(mean(a.goodput.as_f64(), b.goodput.as_f64(), weight)),
        in_flight: a.in_flight.max(b.in_flight),
        in_flight_mean: a.in_flight_mean.max(b.in_flight_mean),
        window: a.window.max(b.window),
        rtt: least(a.rtt, b.rtt),
        window_full: mean(a.window_full, b.window_full, weight),
        idle: mean(a.idle, b.idle, weight),
        retransmissions: a.retransmissions + b.retransmissions,
        sndbuf_limited: a
            .sndbuf_limited
            .zip(b.sndbuf_limited)
            .map(|(a, b)| mean(a, b, weight))
            .or(a.sndbuf_limited)
            .or(b.sndbuf_limited),
        unread: a.unread.max(b.unread),
        beside: a.beside.or(b.beside).map(|_| {
            let [a, b] = [a, b].map(|one| one.beside.map_or(0.0, Rate::as_f64));
            Rate::from_bits_per_sec_f64(mean(a, b, weight))
        }),
    };
}

fn least(a: Option<Duration>, b: Option<Duration>) -> Option<Duration> {
    a.into_iter().chain(b).min()
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullpipe_flow::limit::Limit;
    use fullpipe_model::units::Instant;

    fn interval(at: u64, limit: Limit, bps: u64) -> Interval {
        Interval {
            start: Instant::from_nanos(at * 1_000_000),
            length: Duration::from_millis(1),
            candidates: vec![Candidate { limit, share: 1.0 }],
            evidence: Evidence { goodput: Rate::from_bits_per_sec(bps), ..Evidence::default() },
        }
    }

    #[test]
    fn neighbours_with_one_limit_are_one_and_their_goodput_is_the_mean() {
        let all = [
            interval(0, Limit::Link, 100),
            interval(1, Limit::Link, 300),
            interval(2, Limit::SendBuffer, 50),
        ];
        let merged = neighbours(&all);
        assert_eq!(merged.len(), 2);
        assert_eq!(merged[0].length, Duration::from_millis(2));
        assert_eq!(merged[0].evidence.goodput, Rate::from_bits_per_sec(200));
        assert_eq!(merged[1], all[2]);
    }

    #[test]
    fn a_restless_transfer_has_no_more_than_a_thousand_and_shares_stay_whole() {
        let limits = [Limit::Link, Limit::SendBuffer, Limit::ReceiveWindow];
        let all: Vec<_> = (0..10_000).map(|at| interval(at, limits[at as usize % 3], 1)).collect();
        let merged = neighbours(&all);
        assert!(merged.len() <= MOST && merged.len() > MOST / 4, "{}", merged.len());
        for one in &merged {
            let sum: f64 = one.candidates.iter().map(|candidate| candidate.share).sum();
            assert!((sum - 1.0).abs() < 1e-9, "{sum}");
        }
        let (first, last) = (&merged[0], &merged[merged.len() - 1]);
        assert_eq!(first.start, all[0].start);
        assert_eq!(last.start + last.length, all[9_999].start + all[9_999].length);
    }
}
