//! Pauses between tries of what failed, where nobody waits for it.

use fullpipe_model::units::Duration;
use std::hash::{BuildHasher, RandomState};

/// The pause after the first failure; it doubles with each further one.
const PAUSE_MIN: Duration = Duration::from_secs(1);
/// The longest one.
pub const PAUSE_MAX: Duration = Duration::from_secs(60);

/// The pause after so many failures, and no less than `least`, varied by a quarter: the hosts that
/// send to one place shall not all come back at once.
pub fn after(failures: u32, least: Duration) -> Duration {
    let doubled = PAUSE_MIN.saturating_mul(1 << failures.saturating_sub(1).min(16));
    // A RandomState has a seed of its own.
    let random = RandomState::new().hash_one(failures) as f64 / u64::MAX as f64;
    let pause = doubled.min(PAUSE_MAX).max(least);
    Duration::from_secs_f64(pause.as_secs_f64() * (0.75 + 0.5 * random))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_minute() {
        for (failures, seconds) in [(1, 1.0), (2, 2.0), (5, 16.0), (7, 60.0), (4_000, 60.0)] {
            let pause = after(failures, Duration::from_millis(100)).as_secs_f64();
            assert!((0.75 * seconds..=1.25 * seconds).contains(&pause), "{failures}: {pause}");
        }
        assert!(after(1, Duration::from_secs(30)) >= Duration::from_secs(22));
    }
}
