//! How busy a thread of the link has been lately (pure).

use fullpipe_model::units::{Duration, Instant};

/// The length of a window.
const WINDOW: Duration = Duration::from_millis(10);
/// With more events than this in a window the thread does not spin.
const CALM_EVENTS: u32 = 40;

/// A thread's activity in the present window and in the one before.
#[derive(Debug, Default)]
pub(super) struct Pace {
    since: Instant,
    events: u32,
    waited: Duration,
    last_events: u32,
    last_load: u32,
}

impl Pace {
    /// Begins at `now`, without activity.
    pub fn starting_at(now: Instant) -> Self {
        Pace { since: now, ..Pace::default() }
    }

    /// Counts `events` up to `now`; returns whether a window has ended.
    pub fn record(&mut self, events: usize, now: Instant) -> bool {
        self.events = self.events.saturating_add(events.try_into().unwrap_or(u32::MAX));
        let span = now.since(self.since);
        if span < WINDOW {
            return false;
        }
        let worked = span.saturating_sub(self.waited).as_nanos();
        let load = worked.saturating_mul(100) / span.as_nanos().max(1);
        *self = Pace {
            since: now,
            last_events: self.events,
            last_load: u32::try_from(load).unwrap_or(100),
            ..Pace::default()
        };
        true
    }

    /// Counts a sleep of `span`.
    pub fn waited(&mut self, span: Duration) {
        self.waited = self.waited.saturating_add(span);
    }

    /// Whether there are few events.
    pub fn is_calm(&self) -> bool {
        self.last_events.max(self.events) <= CALM_EVENTS
    }

    /// The share of the last window in which it was awake, in hundredths.
    pub fn load(&self) -> u32 {
        self.last_load
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: u64) -> Instant {
        Instant::from_nanos(micros * 1000)
    }

    #[test]
    fn the_load_is_what_was_not_slept() {
        let mut pace = Pace::starting_at(at(0));
        assert!(!pace.record(1, at(4000)));
        pace.waited(Duration::from_millis(3));
        assert!(pace.record(1, at(10_000)));
        assert_eq!(pace.load(), 70);
        pace.waited(Duration::from_secs(1));
        assert!(pace.record(0, at(1_010_000)));
        assert_eq!(pace.load(), 0);
    }

    #[test]
    fn many_events_are_not_calm_until_a_window_has_few() {
        let mut pace = Pace::starting_at(at(0));
        assert!(pace.is_calm());
        pace.record(41, at(1));
        assert!(!pace.is_calm());
        pace.record(0, at(10_000));
        assert!(!pace.is_calm(), "the window before had them");
        pace.record(0, at(20_000));
        assert!(pace.is_calm());
    }
}
