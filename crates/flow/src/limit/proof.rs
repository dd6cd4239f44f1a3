//! What proves a limit, or rules one out, before any statistics.
//!
//! **A queue that stands is a full link.** If every round trip of an interval is longer than the
//! path's own, every segment waited in a queue, so whatever drains that queue was never idle: it
//! carried what it can. More in flight, from a larger window, buffer or write, would only wait, too
//! (Little's law). Where that holds for nearly all of the time, at one rate, the link is the limit,
//! whatever else was full: the window that a good plan sets is just above path and queue, and is
//! full all of the time.
//!
//! Three things look like it and are not. A reader that is slow delays its acknowledgements, but
//! its window closes. A burst, from a woken writer or a merging card, delays its own last segments,
//! but is gone after a few. And a sender that pauses has no queue while it does.

use super::percentiles::Sorted;
use super::thresholds::{
    FEW_SEGMENTS, QUEUE_LEAST, QUEUE_PART, QUEUED_NEARLY_ALL, QUEUED_SINCE, RATE_STEADY,
};
use fullpipe_model::units::Duration;

/// What one interval shows of the path.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment {
    /// Its length in seconds.
    pub length: f64,
    /// What was delivered in it and around it, in bits a second.
    pub rate: f64,
    /// The least round trip; `None` where none was measured.
    pub rtt: Option<Duration>,
    /// Something at a host is seen to hold the sender.
    pub is_held: bool,
}

/// Whether a queue stood before a link that delivered at one rate, for nearly all of the time since
/// it first did. `base` is the path's own round trip, `segment` the size of a segment in bytes.
pub(super) fn is_full_link(moments: &[Moment], base: Duration, segment: f64) -> bool {
    let least = |moment: &Moment| {
        let few = FEW_SEGMENTS as f64 * segment * 8.0 / moment.rate.max(1.0);
        let part = base.as_secs_f64() * QUEUE_PART;
        QUEUE_LEAST.max(Duration::from_secs_f64(part.max(few.min(1e3))))
    };
    let is_queued = |moment: &Moment| {
        moment.rtt.is_some_and(|rtt| rtt.saturating_sub(base) >= least(moment))
    };
    let Some(since) = moments.iter().position(is_queued) else { return false };
    let later = &moments[since..];
    let lasts = time(later.iter());
    if lasts < QUEUED_SINCE * time(moments.iter()) {
        return false;
    }
    // Nobody times a segment that was sent twice, so an interval full of repairs says nothing.
    let seen = time(later.iter().filter(|one| one.rtt.is_some() || one.is_held));
    let queued = time(later.iter().filter(|one| is_queued(one) && !one.is_held));
    // The last of the data drains at any rate.
    let carrying = &later[..later.len() - later.len().min(later.len() / 10 + 1)];
    let rates = Sorted::new(carrying.iter().map(|moment| moment.rate));
    queued >= QUEUED_NEARLY_ALL * seen
        && 2.0 * seen >= lasts
        && rates.percentile(10) >= RATE_STEADY * rates.percentile(90)
}

fn time<'a>(moments: impl Iterator<Item = &'a Moment>) -> f64 {
    moments.map(|moment| moment.length).sum()
}
