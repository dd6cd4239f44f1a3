//! How long the narrowest link before the capture point takes for a byte.

use fullpipe_model::units::Duration;

/// From this segment of a message on, its segments follow each other as the link forwards them: the
/// first ones may wait for the application, and later ones for windows.
pub(super) const BURST_FROM: u8 = 3;
/// A segment takes no longer on a link that people wait at: 2,500 bytes at 1 Mbit/s.
const MAX_TIME: Duration = Duration::from_millis(20);

/// The least time for 1,024 bytes that follow others, in ns. At the sender's own capture, and where
/// a card delivers several segments at a time, it is none.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace(u32);

/// Nothing was seen.
impl Default for Pace {
    fn default() -> Self {
        Pace(u32::MAX)
    }
}

impl Pace {
    /// A segment of this length came so long after the one before it.
    #[inline]
    pub fn see(&mut self, gap: Duration, length: u32) {
        let time = gap.as_nanos().saturating_mul(1024) / u64::from(length.max(1));
        self.0 = self.0.min(u32::try_from(time).unwrap_or(u32::MAX));
    }

    /// How long a segment of this length takes; none where nothing was seen.
    pub fn time_of(self, length: u32) -> Duration {
        match self.0 {
            u32::MAX => Duration::ZERO,
            time => Duration::from_nanos(u64::from(length) * u64::from(time) / 1024).min(MAX_TIME),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_gap_counts_and_bounds_hold() {
        let mut pace = Pace::default();
        assert_eq!(pace.time_of(1448), Duration::ZERO, "nothing was seen");
        for gap in [9_000, 5_792, 7_000] {
            pace.see(Duration::from_micros(gap), 1448);
        }
        // 2 Mbit/s.
        assert_eq!(pace.time_of(1448), Duration::from_micros(5_792));
        assert_eq!(pace.time_of(u32::MAX), MAX_TIME);
        pace.see(Duration::ZERO, 1448);
        assert_eq!(pace.time_of(1448), Duration::ZERO, "two came at a time");
        pace.see(Duration::MAX, 0);
        assert_eq!(pace.time_of(1448), Duration::ZERO);
    }
}
