//! How long the narrowest link before the capture point takes for a byte.

use fullpipe_model::units::Duration;

/// From this segment of a message on, its segments follow each other as the link forwards them: the
/// first ones may wait for the application, and later ones for windows.
pub(super) const BURST_FROM: u8 = 3;
/// A segment takes no longer on a link that people wait at: 2,500 bytes at 1 Mbit/s.
const MAX_TIME: Duration = Duration::from_millis(20);

/// The least time for 1,024 bytes that follow others, in ns, in the lowest 24 bits: a link that
/// people wait at takes no more. At the sender's own capture, and where a card delivers several
/// segments at a time, it is none. Above them, in units of [`UNIT`], the bytes with which messages
/// began before anything was seen. Many connections are open at once.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace(u32);

const UNKNOWN: u32 = (1 << 24) - 1;
const UNIT: u32 = 64;

/// Nothing was seen.
impl Default for Pace {
    fn default() -> Self {
        Pace(UNKNOWN)
    }
}

impl Pace {
    /// A segment of this length came so long after the one before it.
    #[inline]
    pub fn see(&mut self, gap: Duration, length: u32) {
        let time = gap.as_nanos().saturating_mul(1024) / u64::from(length.max(1));
        let time = u32::try_from(time).unwrap_or(UNKNOWN).min(UNKNOWN - 1);
        if time < self.0 & UNKNOWN {
            self.0 = self.0 & !UNKNOWN | time;
        }
    }

    /// A message begins with so many bytes.
    pub fn begins(&mut self, length: u32) {
        if self.0 & UNKNOWN == UNKNOWN {
            let units = (self.0 >> 24).saturating_add(length / UNIT).min(255);
            self.0 = units << 24 | UNKNOWN;
        }
    }

    /// How long a segment of this length takes; none where nothing was seen.
    pub fn time_of(self, length: u32) -> Duration {
        match self.0 & UNKNOWN {
            UNKNOWN => Duration::ZERO,
            time => Duration::from_nanos(u64::from(length) * u64::from(time) / 1024).min(MAX_TIME),
        }
    }

    /// How long those took with which messages began before anything was seen.
    pub fn time_before(self) -> Duration {
        self.time_of((self.0 >> 24) * UNIT)
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
        assert_eq!(pace.time_before(), Duration::ZERO, "no message began before");
        pace.see(Duration::ZERO, 1448);
        assert_eq!(pace.time_of(1448), Duration::ZERO, "two came at a time");
        pace.see(Duration::MAX, 0);
        assert_eq!(pace.time_of(1448), Duration::ZERO);
    }
    #[test]
    fn what_began_before_anything_was_known_is_told_later() {
        let mut pace = Pace::default();
        pace.begins(640);
        assert_eq!(pace.time_before(), Duration::ZERO);
        pace.see(Duration::from_micros(4096), 1024);
        assert_eq!(pace.time_before(), Duration::from_micros(2560));
        pace.begins(640);
        assert_eq!(pace.time_before(), Duration::from_micros(2560), "it is known by now");
        pace.see(Duration::MAX, 1);
        assert_eq!(pace.time_of(1024), Duration::from_micros(4096));
    }
}
