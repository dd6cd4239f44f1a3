//! Intervals of another length than the verdict's, with the limits of those that they overlap.

use super::{Candidate, Interval};
use fullpipe_model::limit::Limit;
use fullpipe_model::units::Instant;

/// Gives each of `spans` the candidates of `judged`, each with its part of the time. Both are in
/// order of time.
pub(crate) fn recut(judged: &[Interval], mut spans: Vec<Interval>) -> Vec<Interval> {
    let mut from = 0;
    for span in &mut spans {
        while judged.get(from).is_some_and(|one| one.start + one.length <= span.start) {
            from += 1;
        }
        // Silence may follow the last judged interval.
        let over = &judged[from.min(judged.len().saturating_sub(1))..];
        span.candidates = candidates(over, span.start, span.start + span.length);
    }
    spans
}

/// The candidates of the intervals that overlap the time from `start` to `end`; if none does, those
/// of the first.
fn candidates(judged: &[Interval], start: Instant, end: Instant) -> Vec<Candidate> {
    let overlapping = judged.iter().take_while(|one| one.start < end);
    let all: f64 = overlapping.clone().map(|one| overlap(one, start, end)).sum();
    if all <= 0.0 {
        return judged.first().map_or_else(unknown, |first| first.candidates.clone());
    }
    let mut found: Vec<Candidate> = Vec::new();
    for one in overlapping {
        let part = overlap(one, start, end) / all;
        for candidate in &one.candidates {
            let share = candidate.share * part;
            match found.iter_mut().find(|known| known.limit == candidate.limit) {
                Some(known) => known.share += share,
                None => found.push(Candidate { share, ..*candidate }),
            }
        }
    }
    found.sort_by(|a, b| b.share.total_cmp(&a.share));
    found
}

/// For how many seconds from `start` to `end` the interval lasts.
fn overlap(one: &Interval, start: Instant, end: Instant) -> f64 {
    (one.start + one.length).min(end).since(one.start.max(start)).as_secs_f64()
}

fn unknown() -> Vec<Candidate> {
    vec![Candidate { limit: Limit::Unknown, share: 1.0 }]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limit::Evidence;
    use Limit::{Link, SendBuffer};
    use fullpipe_model::units::Duration;

    fn interval(millis: (u64, u64), limit: Option<Limit>) -> Interval {
        let candidates = limit.into_iter().map(|limit| Candidate { limit, share: 1.0 }).collect();
        Interval {
            start: Instant::from_nanos(millis.0 * 1_000_000),
            length: Duration::from_millis(millis.1 - millis.0),
            candidates,
            evidence: Evidence::default(),
        }
    }

    fn shares(spans: &[(u64, u64)]) -> Vec<Vec<(Limit, f64)>> {
        let judged = [interval((0, 100), Some(Link)), interval((100, 200), Some(SendBuffer))];
        let spans = spans.iter().map(|span| interval(*span, None)).collect();
        let pairs = |one: &Interval| one.candidates.iter().map(|c| (c.limit, c.share)).collect();
        recut(&judged, spans).iter().map(pairs).collect()
    }

    #[test]
    fn a_shorter_interval_has_the_limit_of_the_one_around_it() {
        let found = shares(&[(0, 50), (50, 100), (100, 150), (150, 200)]);
        let one = |limit| vec![(limit, 1.0)];
        assert_eq!(found, [one(Link), one(Link), one(SendBuffer), one(SendBuffer)]);
    }

    #[test]
    fn a_longer_one_has_the_limits_of_all_that_it_overlaps() {
        assert_eq!(shares(&[(0, 400)]), [vec![(Link, 0.5), (SendBuffer, 0.5)]]);
        assert_eq!(shares(&[(75, 200)]), [vec![(SendBuffer, 0.8), (Link, 0.2)]]);
    }

    #[test]
    fn silence_has_the_limit_before_it() {
        assert_eq!(shares(&[(0, 200), (200, 300)])[1], [(SendBuffer, 1.0)]);
        assert_eq!(recut(&[], vec![interval((0, 1), None)])[0].limit(), Limit::Unknown);
    }
}
