//! The answer: intervals, and their sum over the connection.

use super::Limit;
use super::confidence::{self, Coverage, Source};
use super::judge::{INTERVALS_LEAST, Opinion, Traits, turns_from};

use fullpipe_model::units::{Bytes, Duration, Instant, Rate, Window, column};
use std::collections::BTreeMap;

/// A limit and the part of the time that is given to it.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Candidate {
    /// What held the sender.
    #[serde(flatten)]
    pub limit: Limit,
    /// For what part of the time, 0 to 1.
    pub share: f64,
}

/// The numbers behind one interval's decision. What the source cannot tell is absent.
#[derive(Debug, Clone, Copy, PartialEq, Default, serde::Serialize, serde::Deserialize)]
pub struct Evidence {
    /// Payload newly acknowledged, by time.
    #[serde(rename = "goodput_bps", with = "column::rate")]
    pub goodput: Rate,
    /// Most payload in flight.
    #[serde(rename = "in_flight_bytes", with = "column::bytes")]
    pub in_flight: Bytes,
    /// Mean payload in flight over the interval's time (captures only).
    #[serde(default, rename = "in_flight_mean_bytes", with = "column::bytes_optional")]
    pub in_flight_mean: Option<Bytes>,
    /// The receive window that bounded it.
    #[serde(default, rename = "window_bytes", with = "column::window_optional")]
    pub window: Option<Window>,
    /// The least round-trip time seen in the interval.
    #[serde(default, rename = "rtt_us", with = "column::micros_optional")]
    pub rtt: Option<Duration>,
    /// Part of the time in which the next segment did not fit into the receive window.
    pub window_full: f64,
    /// Part of the time in which nothing was in flight.
    pub idle: f64,
    /// Segments retransmitted.
    pub retransmissions: u64,
    /// Part of the time in which the kernel counted the send buffer as the limit (samples only).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sndbuf_limited: Option<f64>,
    /// Received and not read by the peer's application (samples of the receiver only).
    #[serde(default, rename = "unread_bytes", with = "column::bytes_optional")]
    pub unread: Option<Bytes>,
}

/// A span of time, what held the sender in it, and why we think so.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Interval {
    /// When it starts, on the evidence's clock.
    #[serde(rename = "start_ns", with = "column::instant")]
    pub start: Instant,
    /// How long it is.
    #[serde(rename = "length_us", with = "column::micros")]
    pub length: Duration,
    /// Most likely first; shares sum to 1. Never empty. From a capture the first has all of the
    /// interval, and those behind it nothing: each is what the evidence would be told to mean if
    /// those before it were not there.
    pub candidates: Vec<Candidate>,
    /// The numbers.
    #[serde(flatten)]
    pub evidence: Evidence,
}

impl Interval {
    /// The most likely limit.
    pub fn limit(&self) -> Limit {
        self.candidates.first().map_or(Limit::Unknown, |candidate| candidate.limit)
    }

    /// Gives the time of one limit to another; the one that lost it stays as what else it could
    /// have been.
    fn turn(&mut self, from: Limit, to: Limit) {
        let part = |limit| move |one: &&mut Candidate| one.limit == limit;
        let Some(lost) = self.candidates.iter_mut().find(part(from)) else { return };
        let share = std::mem::take(&mut lost.share);
        if share == 0.0 {
            return;
        }
        match self.candidates.iter_mut().find(part(to)) {
            Some(won) => won.share += share,
            None => self.candidates.push(Candidate { limit: to, share }),
        }
        self.candidates.sort_by(|a, b| b.share.total_cmp(&a.share));
    }
}

/// What held the sender over a connection's life, from its first data to the last data's
/// acknowledgement.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Verdict {
    /// What it rests on.
    pub source: Source,
    /// What of the transfer was seen.
    pub coverage: Coverage,
    /// How often verdicts like this one are right about the limit that they name first, 0 to 1.
    pub confidence: f64,
    /// Time covered.
    #[serde(rename = "time_us", with = "column::micros")]
    pub time: Duration,
    /// Limits by their share of that time, largest first; shares sum to 1. Empty where no data was
    /// sent.
    pub shares: Vec<Candidate>,
    /// The same over the second half of the bytes: without the start-up, which dominates short
    /// transfers.
    pub steady: Vec<Candidate>,
    /// In order of time.
    pub intervals: Vec<Interval>,
    /// What the trained judge looked at.
    #[serde(skip)]
    pub traits: Traits,
}

impl Verdict {
    /// Sums intervals up.
    pub fn new(source: Source, intervals: Vec<Interval>) -> Self {
        let time = intervals
            .iter()
            .fold(Duration::ZERO, |sum, interval| sum.saturating_add(interval.length));
        let steady = shares_of(second_half(&intervals));
        let shares = shares_of(&intervals);
        let verdict = Verdict {
            source,
            coverage: Coverage::FromStart,
            confidence: 0.0,
            time,
            shares,
            steady,
            intervals,
            traits: Traits::default(),
        };
        verdict.with_coverage(Coverage::FromStart)
    }

    /// Of a transfer of which so much was seen.
    pub(crate) fn with_coverage(self, coverage: Coverage) -> Self {
        let Candidate { limit, share } = self.limited_by();
        Verdict {
            coverage,
            confidence: confidence::of(self.source, coverage, limit, share),
            ..self
        }
    }

    /// With what the trained judge makes of these traits. `has_queue`: round trips stood above the
    /// path's. `possible` says which limits the evidence allows. Transfers that are too short to
    /// have a shape stay as they are.
    pub(crate) fn weighed(
        self,
        traits: Traits,
        has_queue: bool,
        possible: impl Fn(Limit) -> bool,
    ) -> Self {
        if self.intervals.len() < INTERVALS_LEAST {
            return self;
        }
        let Some(opinion) = Opinion::of(self.source, &traits, possible) else {
            return Verdict { traits, ..self };
        };
        let Candidate { limit: by_rules, .. } = self.limited_by();
        let (limit, share) = opinion.first();
        let mut verdict = Verdict { traits, ..self };
        if limit != by_rules {
            let Some(least) = turns_from(by_rules, limit, has_queue) else { return verdict };
            if share < least {
                verdict.confidence = opinion.likely(by_rules);
                return verdict;
            }
            for interval in &mut verdict.intervals {
                interval.turn(by_rules, limit);
                interval.turn(Limit::Unknown, limit);
            }
            verdict.shares = shares_of(&verdict.intervals);
            verdict.steady = shares_of(second_half(&verdict.intervals));
        }
        verdict.confidence = opinion.likely(verdict.limited_by().limit);
        verdict
    }

    /// Goodput over the second half of the bytes: what a transfer comes to once it has started up,
    /// and nearly the mean of one that is long. `None` where no data was acknowledged.
    pub fn steady_goodput(&self) -> Option<Rate> {
        let steady = second_half(&self.intervals);
        let time: f64 = steady.iter().map(|interval| interval.length.as_secs_f64()).sum();
        let bytes: f64 = steady.iter().map(carried).sum();
        (bytes > 0.0 && time > 0.0).then(|| Rate::from_bits_per_sec((bytes * 8.0 / time) as u64))
    }

    /// The most that an interval carried, of those that are not cut short; where something was
    /// repaired, with those around it. `None` where no data was acknowledged.
    pub fn peak_goodput(&self) -> Option<Rate> {
        self.peak_where(|_| true).filter(|rate| *rate > Rate::ZERO)
    }

    /// The most that one of these intervals carried, of those that are not cut short (as the last
    /// one is). One ACK of a filled hole acknowledges what several intervals carried: where
    /// something was repaired, an interval counts with those around it.
    pub(crate) fn peak_where(&self, is_meant: impl Fn(&Interval) -> bool) -> Option<Rate> {
        let mut lengths: Vec<Duration> =
            self.intervals.iter().map(|interval| interval.length).collect();
        lengths.sort_unstable();
        let least =
            Duration::from_nanos(lengths.get(lengths.len().saturating_sub(1) / 2)?.as_nanos() / 2);
        let whole = (0..self.intervals.len()).filter(|at| self.intervals[*at].length >= least);
        whole.filter(|at| is_meant(&self.intervals[*at])).map(|at| self.rate_at(at)).max()
    }

    /// What the path carried in interval `at`. One ACK of a filled hole acknowledges what several
    /// intervals carried: where something was repaired, it is the mean over the intervals around.
    pub(crate) fn rate_at(&self, at: usize) -> Rate {
        const BEFORE: usize = 2;
        const AROUND: usize = 4;
        let near = &self.intervals[at.saturating_sub(BEFORE)..=at];
        if near.iter().all(|interval| interval.evidence.retransmissions == 0) {
            return self.intervals[at].evidence.goodput;
        }
        let last = (at + AROUND + 1).min(self.intervals.len());
        let taken = &self.intervals[at.saturating_sub(AROUND)..last];
        let time = taken.iter().map(|interval| interval.length).sum::<Duration>();
        let goodput = |interval: &Interval| interval.evidence.goodput.over(interval.length);
        taken.iter().map(goodput).sum::<Bytes>().per(time).unwrap_or(Rate::ZERO)
    }

    /// What held the sender for the largest share of the time, and that share; `Unknown` where no
    /// data was sent.
    pub fn limited_by(&self) -> Candidate {
        self.shares.first().copied().unwrap_or(Candidate { limit: Limit::Unknown, share: 0.0 })
    }

    /// The same over the second half of the bytes.
    pub fn steadily_limited_by(&self) -> Candidate {
        self.steady.first().copied().unwrap_or(Candidate { limit: Limit::Unknown, share: 0.0 })
    }

    /// Of the time that `limit` held, for what part each other candidate would have explained it as
    /// well: largest first.
    pub fn rivals(&self, limit: Limit) -> Vec<Candidate> {
        let mut seconds = BTreeMap::<Limit, f64>::new();
        let mut all = 0.0;
        for interval in self.intervals.iter().filter(|interval| interval.limit() == limit) {
            all += interval.length.as_secs_f64();
            for rival in interval.candidates.iter().skip(1) {
                *seconds.entry(rival.limit).or_default() += interval.length.as_secs_f64();
            }
        }
        let part = |(limit, time)| Candidate { limit, share: time / all };
        let mut rivals: Vec<Candidate> =
            seconds.into_iter().filter(|(_, time)| *time > 0.0).map(part).collect();
        rivals.sort_by(|a, b| b.share.total_cmp(&a.share));
        rivals
    }

    /// Mean payload in flight over all of the time; absent where the source cannot tell.
    pub fn in_flight_mean(&self) -> Option<Bytes> {
        let mut weighted = 0.0;
        for interval in &self.intervals {
            weighted += interval.evidence.in_flight_mean?.as_f64() * interval.length.as_secs_f64();
        }
        (self.time > Duration::ZERO).then(|| Bytes::from_f64(weighted / self.time.as_secs_f64()))
    }

    /// The share of the time that a limit has.
    pub fn share(&self, limit: Limit) -> f64 {
        self.shares
            .iter()
            .find(|candidate| candidate.limit == limit)
            .map_or(0.0, |candidate| candidate.share)
    }
}

/// The bytes that an interval carried.
fn carried(interval: &Interval) -> f64 {
    interval.evidence.goodput.over(interval.length).as_f64()
}

/// The intervals that carried the second half of the bytes, with the one in which it begins.
fn second_half(intervals: &[Interval]) -> &[Interval] {
    let half: f64 = intervals.iter().map(carried).sum::<f64>() / 2.0;
    let mut before = 0.0;
    let from = intervals.iter().position(|interval| {
        before += carried(interval);
        before > half
    });
    &intervals[from.unwrap_or(0)..]
}

fn shares_of(intervals: &[Interval]) -> Vec<Candidate> {
    let mut seconds = BTreeMap::<Limit, f64>::new();
    for interval in intervals {
        for candidate in &interval.candidates {
            *seconds.entry(candidate.limit).or_default() +=
                candidate.share * interval.length.as_secs_f64();
        }
    }
    let all: f64 = seconds.values().sum();
    let mut shares: Vec<Candidate> = seconds
        .into_iter()
        .filter(|(_, time)| *time > 0.0)
        .map(|(limit, time)| Candidate { limit, share: time / all })
        .collect();
    shares.sort_by(|a, b| b.share.total_cmp(&a.share));
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(millis: u64, mbit: u64, retransmissions: u64) -> Interval {
        Interval {
            start: Instant::ZERO,
            length: Duration::from_millis(millis),
            candidates: vec![Candidate { limit: Limit::Link, share: 1.0 }],
            evidence: Evidence {
                goodput: Rate::from_bits_per_sec(mbit * 1_000_000),
                retransmissions,
                ..Evidence::default()
            },
        }
    }

    fn peak(intervals: &[(u64, u64, u64)]) -> Option<u64> {
        let intervals = intervals
            .iter()
            .map(|(millis, mbit, again)| interval(*millis, *mbit, *again))
            .collect();
        let verdict = Verdict::new(Source::Capture, intervals);
        verdict.peak_goodput().map(|rate| rate.bits_per_sec() / 1_000_000)
    }

    #[test]
    fn the_peak_is_what_the_path_carried_and_not_what_one_ack_told_of() {
        assert_eq!(peak(&[(10, 5, 0), (10, 7, 0), (10, 6, 0)]), Some(7));
        let hole = [
            (10, 5, 0),
            (10, 5, 0),
            (10, 0, 1),
            (10, 0, 0),
            (10, 18, 0),
            (10, 6, 0),
            (10, 6, 0),
            (10, 6, 0),
            (10, 6, 0),
        ];
        assert_eq!(peak(&hole), Some(6), "a filled hole");
        assert_eq!(
            peak(&[(10, 5, 0), (10, 7, 0), (1, 90, 0)]),
            Some(7),
            "the last one is cut short"
        );
        assert_eq!(peak(&[(10, 5, 1), (10, 7, 1)]), Some(6), "both together");
        assert_eq!(peak(&[(10, 0, 0)]), None);
        assert_eq!(peak(&[]), None);
    }
}
