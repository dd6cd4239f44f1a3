//! Body bytes by interval, with time as an argument.

use fullpipe_model::units::{Bytes, Duration, Rate, column};
use serde::Serialize;

/// Body bytes that were read in a span of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Interval {
    /// Its beginning, since the start of the download.
    #[serde(rename = "start_us", serialize_with = "column::micros::serialize")]
    pub start: Duration,
    /// Its length; only the last one may be shorter than requested.
    #[serde(rename = "length_us", serialize_with = "column::micros::serialize")]
    pub length: Duration,
    /// Body bytes read in it.
    #[serde(rename = "body_bytes", serialize_with = "column::bytes::serialize")]
    pub body: Bytes,
}

impl Interval {
    /// Its mean rate; `None` if it has no length. Ignore a short last interval: one read in a
    /// millisecond is not a rate.
    pub fn rate(&self) -> Option<Rate> {
        self.body.per(self.length)
    }
}

/// Counts bytes by interval. Call [`Intervals::advance`] up to the time of each read, then
/// [`Intervals::count`]; [`Intervals::finish`] ends the last interval. Intervals without bytes are
/// kept, because a stall is a result.
#[derive(Debug)]
pub(super) struct Intervals {
    length: Duration,
    start: Duration,
    body: Bytes,
    ended: Vec<Interval>,
}

impl Intervals {
    pub(super) fn new(length: Duration) -> Self {
        Intervals { length, start: Duration::ZERO, body: Bytes::ZERO, ended: Vec::new() }
    }

    /// When the current interval ends.
    pub(super) fn ends_at(&self) -> Duration {
        self.start.saturating_add(self.length)
    }

    /// Ends the intervals before `now` and returns them.
    pub(super) fn advance(&mut self, now: Duration) -> &[Interval] {
        let before = self.ended.len();
        while now >= self.ends_at() {
            self.end(self.length);
        }
        &self.ended[before..]
    }

    /// Counts `body` in the current interval.
    pub(super) fn count(&mut self, body: Bytes) {
        self.body += body;
    }

    /// Ends the download: ends the intervals up to `now` and returns them.
    pub(super) fn finish(&mut self, now: Duration) -> &[Interval] {
        let before = self.ended.len();
        self.advance(now);
        let rest = now.saturating_sub(self.start);
        if rest > Duration::ZERO || self.body > Bytes::ZERO {
            self.end(rest);
        }
        &self.ended[before..]
    }

    /// All intervals that have ended.
    pub(super) fn into_all(self) -> Vec<Interval> {
        self.ended
    }

    fn end(&mut self, length: Duration) {
        self.ended.push(Interval { start: self.start, length, body: self.body });
        self.start = self.start.saturating_add(length);
        self.body = Bytes::ZERO;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_byte_is_in_one_interval_and_no_time_is_left_out(
            length_us in 1_000u64..1_000_000,
            reads in prop::collection::vec((0u64..3_000_000, 0u64..1 << 40), 0..50),
            tail_us in 0u64..3_000_000,
        ) {
            let length = Duration::from_micros(length_us);
            let mut intervals = Intervals::new(length);
            let (mut now, mut sum) = (Duration::ZERO, Bytes::ZERO);
            for (gap_us, body) in reads {
                now = now + Duration::from_micros(gap_us);
                intervals.advance(now);
                intervals.count(Bytes::new(body));
                sum += Bytes::new(body);
            }
            now = now + Duration::from_micros(tail_us);
            intervals.finish(now);
            let all = intervals.into_all();
            prop_assert_eq!(all.iter().map(|interval| interval.body).sum::<Bytes>(), sum);
            prop_assert_eq!(all.iter().map(|interval| interval.length).sum::<Duration>(), now);
            for pair in all.windows(2) {
                prop_assert_eq!(pair[0].start + length, pair[1].start);
                prop_assert_eq!(pair[0].length, length);
            }
        }
    }
}
