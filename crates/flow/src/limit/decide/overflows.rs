//! Drops of a full link's own queue, and the congestion window that is smaller after them.
//!
//! More in flight than the path holds without a queue waits in one. What is dropped then was
//! dropped because the link is full, by a queue that ended or by one that drops early (FQ-CoDel,
//! RED). Over a long path the window takes seconds to grow back, in which the link has room; all
//! the same, a faster link would have dropped later, and nothing else gives anything.

mod conserved;

use super::queues::standing_queues;
use super::trains::train_rate;
use super::{Features, Path};
use crate::limit::percentiles::Sorted;
use crate::limit::thresholds::{
    AT_MOST_FULL, BEYOND, CARRIES_AFTER_DROPS, EPISODES_LEAST, QUEUED_RATES_LEAST,
    QUIET_AFTER_DROPS, SAME_EPISODE,
};
use crate::limit::{CongestionCause, Limit, Pace, Verdict};
use fullpipe_model::units::{Bytes, Duration, Rate};

/// How sure it is: of the seven captures that it turned of those on which it was made (worlds of
/// seeds 31 to 41 and 501, causes of seed 1, shared links), five are right and none was before.
const AFTER_DROPS: f64 = 0.65;

/// The verdict, unless it is loss that a full link made.
pub(super) fn overrule(verdict: Verdict, features: &[Features], path: Path) -> Verdict {
    let is_loss = verdict.limited_by().limit == Limit::CongestionWindow(CongestionCause::Loss);
    let rtt = path.hint.rtt.or(path.rtt).filter(|_| is_loss && !path.is_reordered);
    let rate = path.hint.rate.or_else(|| train_rate(features, path.is_at_sender));
    let rate = rate.or_else(|| queued_rate(features, rtt));
    if let Some((_, rate)) =
        rtt.zip(rate).filter(|(rtt, rate)| are_overflows(features, *rtt, *rate))
    {
        return verdict.proven_to_be(Limit::Link).after_drops(rate);
    }
    match path.drops.after.filter(|_| is_loss && !path.is_reordered) {
        Some(after) => {
            let mut verdict = verdict.proven_to_be(Limit::Link).no_surer_than(AFTER_DROPS);
            verdict.pace = Some(Pace::DropsAfter(after));
            verdict
        }
        None => conserved::overrule(verdict, features, path),
    }
}

impl Verdict {
    /// The verdict for a link that carries this and dropped what its queue had no room for.
    pub(in crate::limit) fn after_drops(self, rate: Rate) -> Self {
        let mut verdict = self.no_surer_than(AFTER_DROPS);
        verdict.pace = Some(Pace::AfterDrops(rate));
        verdict
    }
}

/// Whether everything that was dropped was dropped while more was in flight than a path holds that
/// carries this.
pub(in crate::limit) fn are_overflows(features: &[Features], rtt: Duration, rate: Rate) -> bool {
    let segment = features.iter().map(|f| f.segment).max().unwrap_or_default();
    let holds = rate.over(rtt).saturating_add(Bytes::new(BEYOND * u64::from(segment)));
    let episodes = episodes(features, rtt);
    let Some((_, last)) = episodes.last() else { return false };
    let mut before = episodes.iter().map(|(from, _)| &features[from.saturating_sub(2)..=*from]);
    let is_full = before.all(|near| near.iter().any(|f| f.in_flight_max >= holds));
    if !is_full || carried_at_most(features) > AT_MOST_FULL * rate.as_f64() {
        return false;
    }
    // ACKs of what was repaired acknowledge what came before.
    let after = &features[(last + 3).min(features.len())..];
    let carried = 8.0 * after.iter().map(|f| f.delivered as f64).sum::<f64>();
    let is_quiet = time(after) >= QUIET_AFTER_DROPS * time(features)
        && carried >= CARRIES_AFTER_DROPS * rate.as_f64() * time(after);
    is_quiet || episodes.len() >= EPISODES_LEAST
}

/// What was carried while a queue stood, which is all that the link carries: the median. An ACK of
/// what was repaired acknowledges what came before. `None` where other connections had a part.
fn queued_rate(features: &[Features], rtt: Option<Duration>) -> Option<Rate> {
    let stands = standing_queues(features, rtt);
    let queued = (1..features.len()).filter(|at| {
        stands[*at] && features[at - 1..=*at].iter().all(|f| !f.is_lossy() && f.beside == 0)
    });
    let rates: Vec<f64> = queued.map(|at| carried(&features[at..=at])).collect();
    let is_known = rates.len() >= QUEUED_RATES_LEAST;
    is_known.then(|| Rate::from_bits_per_sec_f64(Sorted::new(rates).percentile(50)))
}

/// What was carried in them, in bits a second.
fn carried(of: &[Features]) -> f64 {
    8.0 * of.iter().map(|f| f.delivered as f64).sum::<f64>() / time(of)
}

/// The most that was carried, in bits a second, apart from the fastest tenth of the intervals. An
/// ACK of what was repaired acknowledges what came before.
fn carried_at_most(features: &[Features]) -> f64 {
    let plain = (0..features.len()).filter(|at| {
        let near = &features[at.saturating_sub(3)..=*at];
        near.iter().all(|f| f.retransmissions == 0)
    });
    let rates = plain.map(|at| carried(&features[at..=at]));
    Sorted::new(rates.filter(|rate| rate.is_finite())).percentile(90)
}

/// The seconds that these intervals take.
fn time(of: &[Features]) -> f64 {
    of.iter().map(|f| f.length).sum::<Duration>().as_secs_f64()
}

/// The first and the last interval of each time in which something was repaired.
fn episodes(features: &[Features], rtt: Duration) -> Vec<(usize, usize)> {
    let mut episodes: Vec<(usize, usize)> = Vec::new();
    for at in (0..features.len()).filter(|at| features[*at].is_lossy()) {
        match episodes.last_mut() {
            Some((_, last)) if !are_apart(&features[*last + 1..at], rtt) => *last = at,
            _ => episodes.push((at, at)),
        }
    }
    episodes
}

/// Whether intervals without a repair lie between two times of loss for so long that these are two.
fn are_apart(between: &[Features], rtt: Duration) -> bool {
    time(between) > rtt.saturating_mul(SAME_EPISODE).as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 20 ms of a path that holds 100,000 bytes at 40 Mbit/s, with so many in flight; something is
    /// repaired where it says so.
    fn interval(flight: u64, is_lossy: bool) -> Features {
        Features {
            length: Duration::from_millis(20),
            segment: 1448,
            segments: 50,
            retransmissions: is_lossy.into(),
            delivered: flight.min(100_000),
            in_flight_max: Bytes::new(flight),
            train_max: 40e6,
            ..Features::default()
        }
    }

    const RTT: Duration = Duration::from_millis(20);

    fn found(features: &[Features]) -> bool {
        train_rate(features, false).is_some_and(|rate| are_overflows(features, RTT, rate))
    }

    /// A drop after `before` intervals with `most` in flight, and growth from `least` after it.
    fn dropped_at(most: u64, least: u64) -> Vec<Features> {
        let grows = (0..10).map(|at| interval(most * (at + 1) / 10, false));
        let after = (0..60).map(|at| interval(least + 200 * at, false));
        grows.chain([interval(most, true)]).chain(after).collect()
    }

    #[test]
    fn a_drop_with_more_in_flight_than_the_path_holds_is_the_links() {
        assert!(found(&dropped_at(140_000, 70_000)));
        assert!(!found(&dropped_at(101_000, 70_000)), "one segment more is no queue");
        assert!(!found(&dropped_at(60_000, 40_000)), "nothing waited when it was dropped");
        assert!(!found(&dropped_at(140_000, 20_000)), "something else holds it since");
        assert!(!found(&dropped_at(140_000, 70_000)[..14]), "who knows what comes");
        assert!(!found(&dropped_at(140_000, 70_000)[..10]), "nothing was dropped");
        let mut faster = dropped_at(140_000, 70_000);
        faster.iter_mut().for_each(|f| f.train_max = 20e6);
        assert!(!found(&faster), "it carried more than what is taken for all that passes");
    }

    /// Four times a growing flight that ends in a drop.
    fn teeth(from: u64) -> Vec<Features> {
        (0..80).map(|at| interval(from + 3_500 * (at % 20), at % 20 == 19)).collect()
    }

    #[test]
    fn each_time_of_loss_has_to_be_the_links() {
        let mut chance = dropped_at(140_000, 70_000);
        chance[40].retransmissions = 1;
        assert!(!found(&chance), "a drop without a queue");
        assert!(found(&teeth(60_000)), "each drop with a queue");
        assert!(!found(&teeth(30_000)));
    }

    /// After a drop a queue of 5 ms stands for a while, and shows what the link carries.
    #[test]
    fn a_queue_that_stood_shows_what_the_link_carries() {
        let queued = |rtt: u64, beside: u64| {
            let mut features = dropped_at(140_000, 70_000);
            for f in &mut features[30..40] {
                (f.delivered, f.beside, f.train_max) = (100_000, beside, 0.0);
                f.rtt.note(Duration::from_millis(rtt));
            }
            queued_rate(&features, Some(RTT))
        };
        assert_eq!(queued(25, 0), Some(Rate::from_bits_per_sec(40_000_000)));
        assert_eq!(queued(20, 0), None, "no queue");
        assert_eq!(queued(25, 1), None, "others had a part");
    }
}
