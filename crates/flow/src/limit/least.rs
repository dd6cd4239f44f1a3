//! The minimum of some times, in eight bytes: many connections are open at once.

use fullpipe_model::units::Duration;
use std::num::NonZeroU64;

/// The minimum of the times that were noted, in nanoseconds. A time is stored as one nanosecond at
/// least.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Least(Option<NonZeroU64>);

impl Least {
    /// Notes one more time.
    pub fn note(&mut self, time: Duration) {
        let nanos = NonZeroU64::new(time.as_nanos()).unwrap_or(NonZeroU64::MIN);
        self.0 = Some(self.0.map_or(nanos, |least| least.min(nanos)));
    }

    /// Adds `by` to every time that was noted.
    pub fn delay(&mut self, by: Duration) {
        self.0 = self.0.map(|least| least.saturating_add(by.as_nanos()));
    }

    /// The minimum; `None` before the first time is noted.
    pub fn get(self) -> Option<Duration> {
        self.0.map(|nanos| Duration::from_nanos(nanos.get()))
    }
}
