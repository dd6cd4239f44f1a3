//! How long to wait before the next attempt.

use fullpipe_model::units::Duration;

const FIRST: Duration = Duration::from_millis(100);
const MOST: Duration = Duration::from_secs(10);

/// Pauses that double, from 100 ms to 10 s.
#[derive(Debug, Clone)]
pub(super) struct Backoff(Duration);

impl Backoff {
    pub fn new() -> Backoff {
        Backoff(FIRST)
    }

    /// The next pause. It is shorter by up to a quarter, as `random` says, so that carriers that
    /// broke together do not come back together.
    pub fn next(&mut self, random: u8) -> Duration {
        let pause = self.0;
        self.0 = pause.saturating_mul(2).min(MOST);
        Duration::from_nanos(pause.as_nanos() - pause.as_nanos() / 1024 * u64::from(random))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_ten_seconds_and_differ() {
        let mut backoff = Backoff::new();
        let pauses: Vec<Duration> = (0..9).map(|_| backoff.next(0)).collect();
        assert_eq!((pauses[0], pauses[1], pauses[8]), (FIRST, FIRST.saturating_mul(2), MOST));
        let shorter = Backoff::new().next(255);
        assert!(shorter < FIRST && shorter >= Duration::from_millis(75), "{shorter}");
    }
}
