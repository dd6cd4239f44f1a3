//! The least of some times, in eight bytes: many connections are open at once.

use fullpipe_model::units::Duration;
use std::num::NonZeroU64;

/// The least of the times that were noted, in nanoseconds; none is less than one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Least(Option<NonZeroU64>);

impl Least {
    /// One more.
    pub fn note(&mut self, time: Duration) {
        let nanos = NonZeroU64::new(time.as_nanos()).unwrap_or(NonZeroU64::MIN);
        self.0 = Some(self.0.map_or(nanos, |least| least.min(nanos)));
    }

    /// All of them were longer by so much.
    pub fn delay(&mut self, by: Duration) {
        self.0 = self.0.map(|least| least.saturating_add(by.as_nanos()));
    }

    /// The least, `None` before the first.
    pub fn get(self) -> Option<Duration> {
        self.0.map(|nanos| Duration::from_nanos(nanos.get()))
    }
}
