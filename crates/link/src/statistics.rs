//! Statistics of a running link.
//!
//! In JSON every number has its unit in its name, and the names are those of a run's `link.json`.

use super::lateness::Lateness;
use fullpipe_model::link::Counters;
use fullpipe_model::link::rule::Match;
use fullpipe_model::units::{Bytes, Duration, Instant, Rate, column};

/// The driver's counters, in addition to the model's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct DriverCounters {
    /// Frames read, super-packets counted once.
    pub frames_read: u64,
    /// Frames delivered.
    pub frames_written: u64,
    /// Frames that were not valid packets.
    pub malformed: u64,
    /// Writes that the host's device refused.
    pub write_errors: u64,
    /// How often reading stopped because the ring was full: packets then wait in a queue that the
    /// model does not know.
    pub ring_full: u64,
    /// Packets dropped because the memory of a rule's link was full, which the model does not know
    /// about.
    #[serde(default)]
    pub ring_dropped: u64,
}

/// Statistics of one rule's link up to a moment; its direction's statistics include them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct RuleStatistics {
    /// The packets that it matches.
    #[serde(rename = "match")]
    pub matches: Match,
    /// The model's counters.
    #[serde(flatten)]
    pub link: Counters,
    /// Bytes that wait for its transmitter now.
    #[serde(rename = "queue_bytes", with = "column::bytes")]
    pub queue: Bytes,
}

/// Statistics of one direction up to a moment.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct DirectionStatistics {
    /// The model's counters.
    #[serde(flatten)]
    pub link: Counters,
    /// The driver's counters.
    #[serde(flatten)]
    pub driver: DriverCounters,
    /// Bytes that wait for the transmitter now.
    #[serde(rename = "queue_bytes", with = "column::bytes")]
    pub queue: Bytes,
    /// Packets on the link now, waiting and propagating.
    pub inside_packets: u64,
    /// The lateness that half of the packets did not exceed so far.
    #[serde(rename = "late_p50_us", with = "column::micros")]
    pub late_p50: Duration,
    /// The lateness that 99 % of the packets did not exceed so far.
    #[serde(rename = "late_p99_us", with = "column::micros")]
    pub late_p99: Duration,
    /// The maximum so far.
    #[serde(rename = "late_max_us", with = "column::micros")]
    pub late_max: Duration,
    /// The part of the rules' links, in the order of the rules; all other packets took the default
    /// link.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<RuleStatistics>,
}

impl DirectionStatistics {
    fn departed_since(&self, earlier: &DirectionStatistics) -> Bytes {
        Bytes::new(self.link.departed_bytes.saturating_sub(earlier.link.departed_bytes))
    }

    /// Takes the quantiles from `lateness`.
    pub(super) fn with_lateness(self, lateness: &Lateness) -> Self {
        let [late_p50, late_p99] = [0.5, 0.99].map(|q| lateness.quantile(q));
        DirectionStatistics { late_p50, late_p99, late_max: lateness.max(), ..self }
    }
}

/// Statistics of a link up to a moment.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct Statistics {
    /// When they were taken, by the clock of the run.
    #[serde(rename = "at_ns", with = "column::instant")]
    pub at: Instant,
    /// The direction of the data.
    pub to_client: DirectionStatistics,
    /// The direction of the acknowledgements.
    pub to_server: DirectionStatistics,
}

impl Statistics {
    /// IP rates to the client and to the server since `earlier`; `None` if no time has passed.
    pub fn rates_since(&self, earlier: &Statistics) -> Option<[Rate; 2]> {
        let passed = self.at.since(earlier.at);
        Some([
            self.to_client.departed_since(&earlier.to_client).per(passed)?,
            self.to_server.departed_since(&earlier.to_server).per(passed)?,
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_those_between_two_questions() {
        let at = |nanos, to_client: u64, to_server: u64| {
            let direction = |bytes| DirectionStatistics {
                link: Counters { departed_bytes: bytes, ..Counters::default() },
                ..DirectionStatistics::default()
            };
            Statistics {
                at: Instant::from_nanos(nanos),
                to_client: direction(to_client),
                to_server: direction(to_server),
            }
        };
        let (earlier, later) = (at(0, 1000, 0), at(500_000_000, 126_000, 625));
        let mbit = |bits| Rate::from_bits_per_sec(bits);
        assert_eq!(later.rates_since(&earlier), Some([mbit(2_000_000), mbit(10_000)]));
        assert_eq!(later.rates_since(&later), None);
    }
}
