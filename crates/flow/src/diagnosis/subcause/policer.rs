//! Policer: a token bucket in the path that drops data above its rate once the bucket is empty.
//!
//! There are three signs of it. What passes between any two losses may be what one rate makes in
//! that time ([`Policed`](crate::limit::Policed)), which proves it. A bucket that is larger than
//! what is sent at once lets its own rate pass: the rate from one loss to the next stays the same,
//! with no queue, which the trained judge finds. A smaller one lets bursts pass and drops their
//! tails: what passes is a bucket a round trip, whatever its rate is.

use super::DataSeen;
use crate::finding::{DroppedBursts, KnownPath};
use crate::limit::{Coverage, Interval, Limit, Verdict};
use fullpipe_model::units::{Bytes, Duration, Rate};

/// Least probability that the trained judge must give. In generated runs (seeds 5 and 12), 70 of 78
/// captures of policed transfers have 0.85 or more, and none of 538 others has as much as this.
const LIKELY: f64 = 0.8;
/// How often dropped bursts are a policer's, if the link is the limit: in 210 of 212 captures of
/// generated transfers and worlds (seeds 1, 2, 3, 13, 14, 9031 and 9032, and 24, 31, 32 and 33).
const LIKELY_BY_BURSTS: f64 = 0.99;

/// A token bucket, as far as a capture shows it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Policer {
    /// The probability of a policer: by its law, by the trained judge, or by its bursts.
    pub likely: f64,
    /// The rate at which its tokens arrive, in payload; where it drops the tails of bursts, no more
    /// than the least that it can be.
    pub rate: Rate,
    /// How much payload passed at once: before the first loss, or in a round trip.
    pub bucket: Bytes,
    /// Whether it drops the tails of bursts, so that its rate is not what limits the data.
    pub drops_tails: bool,
    /// The queueing delay: the median of the intervals' least round trips, above the least of all.
    pub queue: Duration,
}

impl Policer {
    pub(super) fn of(seen: DataSeen<'_>) -> Option<Self> {
        let verdict = seen.verdict?;
        let first =
            verdict.intervals.iter().position(|interval| interval.evidence.retransmissions > 0)?;
        Self::by_rate(seen, verdict, first)
            .or_else(|| Self::by_bursts(seen, verdict))
            .or_else(|| Self::by_law(verdict))
    }

    fn by_rate(seen: DataSeen<'_>, verdict: &Verdict, first: usize) -> Option<Self> {
        let likely = verdict.policed.map_or_else(|| verdict.policer(), |_| verdict.confidence);
        if likely < LIKELY {
            return None;
        }
        let carried = rate_after(verdict, first, seen.facts().stalls.timeout_wait)?;
        // Where timers took most of the time, what passed in the rest is more than its rate.
        let rate = verdict.policed.map_or(carried, |law| law.rate.min(carried));
        let bucket = bucket(verdict, first, rate);
        // A full bucket lets more than its rate pass at the start. BBR under random loss does not,
        // and its losses come at as even a rate.
        let has_start = verdict.coverage == Coverage::FromStart;
        let queue = queue(verdict);
        let drops_tails = seen.dropped_bursts().is_some();
        (bucket > Bytes::ZERO || !has_start).then_some(Policer {
            likely,
            rate,
            bucket,
            drops_tails,
            queue,
        })
    }

    fn by_bursts(seen: DataSeen<'_>, verdict: &Verdict) -> Option<Self> {
        let rate = seen.dropped_bursts()?.carried;
        let rtt = verdict.intervals.iter().filter_map(|interval| interval.evidence.rtt).min()?;
        let (bucket, queue) = (rate.over(rtt), queue(verdict));
        // It rests on the link being the limit.
        let likely = LIKELY_BY_BURSTS * verdict.confidence;
        (likely >= LIKELY).then_some(Policer { likely, rate, bucket, drops_tails: true, queue })
    }

    /// One of which only the law shows anything: its bucket was empty before what was captured.
    fn by_law(verdict: &Verdict) -> Option<Self> {
        let (rate, likely, queue) = (verdict.policed?.rate, verdict.confidence, queue(verdict));
        Some(Policer { likely, rate, bucket: Bytes::ZERO, drops_tails: false, queue })
    }
}

impl DataSeen<'_> {
    /// The bursts that the path drops from, where that limits the data.
    fn dropped_bursts(self) -> Option<DroppedBursts> {
        let verdict = self.verdict.filter(|one| one.limited_by().limit == Limit::Link)?;
        let path = KnownPath { rtt: self.connection.handshake_rtt, goodput_max: None };
        DroppedBursts::of(verdict, path)
    }
}

/// The rate once the bucket was empty. It excludes the time in which the sender waited for a timer,
/// when the bucket may have overflowed.
fn rate_after(verdict: &Verdict, first: usize, waited: Duration) -> Option<Rate> {
    let later = verdict.intervals.get(first + 1..)?;
    let bytes: Bytes = later.iter().map(Interval::carried).sum();
    let time: Duration = later.iter().map(|interval| interval.length).sum();
    bytes.per(time.saturating_sub(waited))
}

/// The most payload that passed beyond `rate` until the first loss.
fn bucket(verdict: &Verdict, first: usize, rate: Rate) -> Bytes {
    let (mut excess, mut most) = (0.0_f64, 0.0_f64);
    for interval in &verdict.intervals[..=first] {
        let refilled = rate.over(interval.length).as_f64();
        excess = (excess + interval.carried().as_f64() - refilled).max(0.0);
        most = most.max(excess);
    }
    Bytes::from_f64(most)
}

/// The median of the intervals' least round trips, minus the least of all.
fn queue(verdict: &Verdict) -> Duration {
    let mut rtts: Vec<Duration> = verdict.intervals.iter().filter_map(|i| i.evidence.rtt).collect();
    rtts.sort_unstable();
    let least = rtts.first().copied().unwrap_or(Duration::ZERO);
    rtts.get(rtts.len() / 2).map_or(Duration::ZERO, |median| median.saturating_sub(least))
}
