//! How late the emulator was: the difference between when a packet was due and when it was
//! delivered.
//!
//! An emulator in user space depends on the scheduler, so its own error belongs to every result. It
//! is kept in a bounded histogram with a resolution of a microsecond up to 20 ms, with the exact
//! maximum.

use fullpipe_model::units::Duration;

const BUCKETS: usize = 20_000;

/// A histogram of lateness.
#[derive(Debug, Clone)]
pub struct Lateness {
    buckets: Vec<u32>,
    count: u64,
    max: Duration,
}

impl Default for Lateness {
    fn default() -> Self {
        Lateness { buckets: vec![0; BUCKETS + 1], count: 0, max: Duration::ZERO }
    }
}

impl Lateness {
    /// If 1 % of the packets are later than this, the figures depend on the machine as well as on
    /// the link: its run was not quiet. A round trip of 50 ms is then 1 % longer.
    pub const QUIET_MAX: Duration = Duration::from_micros(500);

    /// Counts `packets` that were `late`.
    pub fn record(&mut self, late: Duration, packets: u32) {
        let bucket = usize::try_from(late.as_micros()).unwrap_or(BUCKETS).min(BUCKETS);
        self.buckets[bucket] = self.buckets[bucket].saturating_add(packets);
        self.count += u64::from(packets);
        self.max = self.max.max(late);
    }

    /// Adds what `other` counted.
    pub fn merge(&mut self, other: &Lateness) {
        for (mine, theirs) in self.buckets.iter_mut().zip(&other.buckets) {
            *mine = mine.saturating_add(*theirs);
        }
        self.count += other.count;
        self.max = self.max.max(other.max);
    }

    /// The lateness that a share `q` (0 to 1) of the packets did not exceed, rounded up to a
    /// microsecond; the maximum if it is beyond 20 ms. Zero without packets.
    pub fn quantile(&self, q: f64) -> Duration {
        let target = (q.clamp(0.0, 1.0) * self.count as f64).ceil() as u64;
        let mut seen = 0;
        for (bucket, count) in self.buckets.iter().enumerate().take(BUCKETS) {
            seen += u64::from(*count);
            if seen >= target.max(1) {
                return Duration::from_micros(bucket as u64 + 1).min(self.max);
            }
        }
        self.max
    }

    /// The worst.
    pub fn max(&self) -> Duration {
        self.max
    }

    /// Packets counted.
    pub fn count(&self) -> u64 {
        self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_a_known_distribution() {
        let mut lateness = Lateness::default();
        assert_eq!(lateness.quantile(0.5), Duration::ZERO);
        for micros in 0..1000 {
            lateness.record(Duration::from_micros(micros), 1);
        }
        lateness.record(Duration::from_millis(70), 1);
        assert_eq!(lateness.quantile(0.5), Duration::from_micros(501));
        assert_eq!(lateness.quantile(0.99), Duration::from_micros(991));
        assert_eq!(lateness.quantile(1.0), Duration::from_millis(70));
        assert_eq!(lateness.max(), Duration::from_millis(70));
    }
}
