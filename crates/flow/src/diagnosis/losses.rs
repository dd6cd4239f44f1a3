//! Where a transfer lost its segments: on the path, or in a queue that was full.
//!
//! A queue that overflows drops much in a short time, and more would drop more. What is lost on the
//! path is lost whatever the sender does. Whoever repeats a transfer has to tell them apart: the
//! former comes by itself where the queue is as large, the latter has to be imposed. The verdict of
//! each interval says which it was, because it is the link's while a queue stands.

use crate::limit::{Interval, Limit, Verdict};
use fullpipe_model::units::{Bytes, Probability};

/// Episodes of loss in which a queue must have dropped before its habits are judged.
const EPISODES_LEAST: usize = 3;
/// A queue that dropped while less than this part of its most was in flight did not drop because it
/// was full. A full queue always holds the same, but for a packet or what a change of rate does.
const FULL_FROM: f64 = 0.7;

/// What became of a direction's segments that did not arrive.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Losses {
    /// Share of the segments sent while the link was not the limit.
    pub path: Option<Probability>,
    /// How many these were.
    pub path_segments: u64,
    /// How many of them were lost together, on average.
    pub run: Option<f64>,
    /// Share of all segments that were lost while the link was the limit.
    pub overflow: Option<Probability>,
    /// Whether the queue drops before it is full; `None` where too few losses show it.
    pub drops_early: Option<bool>,
}

impl Losses {
    /// Counts the losses of a verdict's intervals. `real` is how many of the retransmissions were
    /// of lost data, 0 to 1.
    pub fn of(verdict: &Verdict, mss: Bytes, real: f64) -> Losses {
        let (full, free): (Vec<&Interval>, Vec<&Interval>) =
            verdict.intervals.iter().partition(|interval| interval.limit() == Limit::Link);
        let (dropped, of_link) = (lost(&full) * real, segments(&full, mss));
        let (lost, of_path) = (lost(&free) * real, segments(&free, mss));
        Losses {
            path: share(lost, of_path + lost),
            path_segments: lost.round() as u64,
            run: run(&free),
            overflow: share(dropped, of_link + of_path + dropped + lost),
            drops_early: drops_early(&verdict.intervals),
        }
    }
}

/// The share of segments that was lost; `None` where there are none.
fn share(lost: f64, all: f64) -> Option<Probability> {
    (all >= 1.0).then(|| Probability::new((lost / all).min(1.0))).flatten()
}

fn lost(intervals: &[&Interval]) -> f64 {
    intervals.iter().map(|interval| interval.evidence.retransmissions as f64).sum()
}

/// How many segments were acknowledged.
fn segments(intervals: &[&Interval], mss: Bytes) -> f64 {
    intervals.iter().map(|one| one.carried().as_f64()).sum::<f64>() / mss.as_f64().max(1.0)
}

/// How many segments were lost together: those sent again in a round trip with loss, compared with
/// what independent losses would be.
fn run(intervals: &[&Interval]) -> Option<f64> {
    let again = lost(intervals);
    let lossy = intervals.iter().filter(|one| one.is_lossy()).count();
    if lossy == 0 {
        return None;
    }
    // Of independent losses, so many fall into an interval that has any (Poisson).
    let each = again / intervals.len() as f64;
    let independent = each / (1.0 - (-each).exp());
    Some((again / lossy as f64 / independent).max(1.0))
}

/// Whether less was in flight before most of the link's losses than at the most.
fn drops_early(intervals: &[Interval]) -> Option<bool> {
    let mut before = Vec::new();
    for (at, interval) in intervals.iter().enumerate().skip(1) {
        let begins = interval.is_lossy() && !intervals[at - 1].is_lossy();
        if begins && interval.limit() == Limit::Link {
            let flights = [&intervals[at - 1], interval].map(|one| one.evidence.in_flight.as_f64());
            before.push(flights[0].max(flights[1]));
        }
    }
    let most = before.iter().copied().fold(0.0, f64::max);
    before.sort_by(f64::total_cmp);
    let median = before.get(before.len() / 2).filter(|_| before.len() >= EPISODES_LEAST)?;
    Some(*median < FULL_FROM * most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limit::{Candidate, Cause, Evidence, Source};
    use fullpipe_model::units::{Duration, Instant, Rate};

    const MSS: Bytes = Bytes::new(1448);

    /// Intervals of 100 ms that carry 100 segments each: limit, segments sent again, segments in
    /// flight.
    fn verdict(intervals: &[(Limit, u64, u64)]) -> Verdict {
        let interval = |(number, (limit, again, flight)): (usize, &(Limit, u64, u64))| Interval {
            start: Instant::from_nanos(number as u64 * 100_000_000),
            length: Duration::from_millis(100),
            candidates: vec![Candidate { limit: *limit, share: 1.0 }],
            evidence: Evidence {
                goodput: Rate::from_bits_per_sec(1448 * 8 * 1000),
                in_flight: Bytes::new(flight * MSS.get()),
                retransmissions: *again,
                ..Evidence::default()
            },
        };
        Verdict::new(Source::Capture, intervals.iter().enumerate().map(interval).collect())
    }

    const LOSS: Limit = Limit::CongestionWindow(Cause::Loss);

    #[test]
    fn a_queue_that_overflowed_in_slow_start_is_not_the_paths_loss() {
        let mut all = vec![(Limit::Link, 0, 300), (Limit::Link, 140, 300)];
        all.extend((0..40).map(|number| (LOSS, u64::from(number % 10 == 0), 100)));
        let losses = Losses::of(&verdict(&all), MSS, 1.0);
        // 4 of 4004 segments, and 140 of all 4344.
        assert!((losses.path.unwrap().get() - 0.001).abs() < 1e-5, "{losses:?}");
        assert!((losses.overflow.unwrap().get() - 140.0 / 4344.0).abs() < 1e-5);
        assert_eq!((losses.path_segments, losses.run, losses.drops_early), (4, Some(1.0), None));
    }

    #[test]
    fn a_queue_that_drops_before_it_is_full_is_told_from_one_that_is() {
        let sawtooth = |flights: &[u64]| {
            let each = flights.iter().flat_map(|flight| {
                [(Limit::Link, 0, flight - 1), (Limit::Link, 1, *flight), (Limit::Link, 0, 50)]
            });
            Losses::of(&verdict(&each.collect::<Vec<_>>()), MSS, 1.0).drops_early
        };
        assert_eq!(sawtooth(&[300, 120, 130, 125]), Some(true));
        assert_eq!(sawtooth(&[300, 298, 299, 300]), Some(false));
        assert_eq!(sawtooth(&[300, 120]), None, "too few");
    }

    #[test]
    fn nothing_sent_has_no_share() {
        assert_eq!(Losses::of(&verdict(&[]), MSS, 1.0), Losses::default());
    }
}
