//! The sender's clock, as its timestamps (RFC 7323) show it: whether data left its sender long
//! before it passed the capture point.

/// Ticks a second of the systems in use.
const FREQUENCIES: [u64; 4] = [1000, 250, 100, 10];
/// Time over which ticks are counted before the frequency is known, in µs, and the least ticks.
const COUNTED_LEAST: u64 = 50_000;
const TICKS_LEAST: u64 = 10;
/// How near the count must be to a frequency, in percent.
const NEAR: u64 = 20;

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct SendClock {
    /// The first data: its time and its TSval.
    first: Option<(u64, u32)>,
    last: Option<(u64, u32)>,
}

impl SendClock {
    /// Notes data at `at` µs with this TSval. Returns whether it left its sender in the first half
    /// of the time since the data before it.
    pub fn is_late(&mut self, at: u64, stamp: Option<u32>) -> bool {
        let Some(stamp) = stamp else { return false };
        let first = *self.first.get_or_insert((at, stamp));
        let Some((last_at, last)) = self.last.replace((at, stamp)) else { return false };
        let Some(frequency) = frequency(first, (last_at, last)) else { return false };
        let ticks = stamp.wrapping_sub(last);
        if ticks > u32::MAX / 2 {
            return false;
        }
        let elapsed = u64::from(ticks) * 1_000_000 / frequency;
        elapsed < at.saturating_sub(last_at) / 2
    }
}

/// Ticks a second, where the two stamps are far enough from each other and fit a known clock.
fn frequency((at, stamp): (u64, u32), (later_at, later): (u64, u32)) -> Option<u64> {
    let time = later_at.saturating_sub(at);
    let ticks = u64::from(later.wrapping_sub(stamp));
    if time < COUNTED_LEAST || ticks < TICKS_LEAST {
        return None;
    }
    let counted = ticks.saturating_mul(1_000_000) / time;
    FREQUENCIES
        .into_iter()
        .find(|known| counted.abs_diff(*known).saturating_mul(100) <= known * NEAR)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_that_waited_on_the_path_is_late() {
        let mut clock = SendClock::default();
        for ms in 0..100_u32 {
            assert!(!clock.is_late(u64::from(ms) * 1000, Some(7 + ms)));
        }
        let mut waited = clock;
        assert!(waited.is_late(600_000, Some(7 + 110)), "it left after 11 ms and came after 501");
        assert!(!clock.is_late(600_000, Some(7 + 600)), "it left when it came");
    }

    #[test]
    fn without_a_known_clock_nothing_is_late() {
        let mut clock = SendClock::default();
        assert!(!clock.is_late(0, Some(1)));
        assert!(!clock.is_late(1_000_000, Some(2)), "too few ticks");
        assert!(!clock.is_late(2_000_000, Some(700_002)), "no system counts so");
        assert!(!clock.is_late(9_000_000, None));
    }
}
