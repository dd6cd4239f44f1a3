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
    AT_QUEUED_RATE, FEW_SEGMENTS, QUEUE_LEAST, QUEUE_PART, QUEUED_MOST, QUEUED_NEARLY_ALL,
    QUEUED_SINCE, RATE_STEADY,
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

impl Moment {
    /// Whether a queue stood in it. `base` and `segment` are as in [`is_full_link`].
    fn is_queued(&self, base: Duration, segment: f64) -> bool {
        let few = FEW_SEGMENTS as f64 * segment * 8.0 / self.rate.max(1.0);
        let part = base.as_secs_f64() * QUEUE_PART;
        let least = QUEUE_LEAST.max(Duration::from_secs_f64(part.max(few.min(1e3))));
        self.rtt.is_some_and(|rtt| rtt.saturating_sub(base) >= least)
    }
}

/// Whether a queue stood before a link that delivered at one rate, for nearly all of the time since
/// it first did. `base` is the path's own round trip, `segment` the size of a segment in bytes.
pub(super) fn is_full_link(moments: &[Moment], base: Duration, segment: f64) -> bool {
    let Some(since) = moments.iter().position(|one| one.is_queued(base, segment)) else {
        return false;
    };
    let later = &moments[since..];
    let lasts = time(later.iter());
    if lasts < QUEUED_SINCE * time(moments.iter()) {
        return false;
    }
    // Nobody times a segment that was sent twice, so an interval full of repairs says nothing.
    let seen = time(later.iter().filter(|one| one.rtt.is_some() || one.is_held));
    let queued = later.iter().filter(|one| one.is_queued(base, segment) && !one.is_held);
    // What carries as much as it does with a queue is as full.
    let full =
        AT_QUEUED_RATE * Sorted::new(queued.clone().map(|moment| moment.rate)).percentile(50);
    let filled = time(later.iter().filter(|one| {
        let is_full = one.rate >= full || one.is_queued(base, segment);
        one.rtt.is_some() && !one.is_held && is_full
    }));
    // The last of the data drains at any rate.
    let carrying = &later[..later.len() - later.len().min(later.len() / 10 + 1)];
    let rates = Sorted::new(carrying.iter().map(|moment| moment.rate));
    time(queued) >= QUEUED_MOST * seen
        && filled >= QUEUED_NEARLY_ALL * seen
        && 2.0 * seen >= lasts
        && rates.percentile(10) >= RATE_STEADY * rates.percentile(90)
}

fn time<'a>(moments: impl Iterator<Item = &'a Moment>) -> f64 {
    moments.map(|moment| moment.length).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: Duration = Duration::from_millis(20);

    fn moments(count: usize, of: impl Fn(usize) -> Moment) -> Vec<Moment> {
        (0..count).map(of).collect()
    }

    /// Ten milliseconds at a gigabit a second, with a queue of two milliseconds.
    fn full() -> Moment {
        let rtt = Some(Duration::from_millis(22));
        Moment { length: 0.01, rate: 1e9, rtt, is_held: false }
    }

    fn proves(moments: &[Moment]) -> bool {
        is_full_link(moments, BASE, 1448.0)
    }

    #[test]
    fn a_queue_that_stands_at_one_rate_is_a_full_link() {
        assert!(proves(&moments(100, |_| full())));
        let slow_start = Moment { rate: 1e8, rtt: Some(BASE), ..full() };
        assert!(proves(&moments(100, |at| if at < 40 { slow_start } else { full() })));
        let drained = Moment { rtt: Some(BASE), ..full() };
        assert!(proves(&moments(100, |at| if at % 4 == 0 { drained } else { full() })));
    }

    #[test]
    fn near_misses_prove_nothing() {
        let without = Moment { rtt: Some(BASE), ..full() };
        let held = Moment { is_held: true, ..full() };
        let slower = Moment { rate: 5e8, ..full() };
        let unseen = Moment { rtt: None, ..full() };
        for (other, what) in [
            (without, "no queue for half of the time"),
            (held, "a host holds the sender for half of the time"),
            (slower, "two rates"),
        ] {
            let mixed = moments(100, |at| if at % 2 == 0 { other } else { full() });
            assert!(!proves(&mixed), "{what}");
        }
        assert!(!proves(&moments(100, |at| if at % 3 == 0 { full() } else { unseen })));
        let late = moments(100, |at| if at < 60 { without } else { full() });
        assert!(!proves(&late), "a queue for the last part only");
        assert!(!proves(&[]));
        // Four segments at 1 Mbit/s delay their own acknowledgements by more than that.
        let slow = Moment { rate: 1e6, ..full() };
        assert!(!proves(&moments(100, |_| slow)));
    }
}
