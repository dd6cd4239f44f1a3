//! How long the slow start of a short transfer takes, and what would shorten it.

use super::thresholds::HALF_OF_RATE;

/// The segments of a first flight (RFC 6928).
pub(super) const FIRST_FLIGHT: u32 = 10;

/// A transfer that begins with ten segments and doubles with each round trip, on a path of which
/// nothing else makes use.
#[derive(Debug, Clone, Copy)]
pub(super) struct SlowStart {
    segments: u32,
    /// Seconds for which one segment passes, and a round trip.
    each: f64,
    rtt: f64,
    /// How many flights wait for the ACK of the one before.
    pub waits: u32,
    /// Seconds from its first segment to its last.
    pub time: f64,
}

impl SlowStart {
    /// Of so many segments that pass in `passing` seconds, one after the other.
    pub fn new(segments: u32, passing: f64, rtt: f64) -> Self {
        let each = passing / f64::from(segments.max(1));
        let (time, waits) = takes(segments, each, rtt);
        SlowStart { segments, each, rtt, waits, time }
    }

    /// The seconds that twice the rate would save: half of the time that the bytes take, as far as
    /// the next flight does not wait for its ACK then.
    pub fn by_rate(&self) -> f64 {
        self.time - takes(self.segments, HALF_OF_RATE * self.each, self.rtt).0
    }

    /// The seconds that a first flight of the transfer's size would save.
    pub fn by_window(&self) -> f64 {
        self.time - f64::from(self.segments) * self.each
    }
}

fn takes(segments: u32, each: f64, rtt: f64) -> (f64, u32) {
    let (mut left, mut flight) = (f64::from(segments), f64::from(FIRST_FLIGHT));
    let (mut time, mut waits) = (0.0, 0);
    while left > flight {
        waits += u32::from(flight * each < rtt);
        time += rtt.max(flight * each);
        left -= flight;
        flight *= 2.0;
    }
    (time + left * each, waits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn nothing_saves_more_than_there_is_and_a_path_of_no_delay_has_no_waits(
            segments in 1_u32..60, passing in 1e-4_f64..1.0, rtt in 1e-4_f64..0.3,
        ) {
            let start = SlowStart::new(segments, passing, rtt);
            prop_assert!(start.by_rate() >= -1e-9 && start.by_rate() <= passing / 2.0 + 1e-9);
            prop_assert!(start.by_window() >= -1e-9);
            prop_assert!(start.time >= passing - 1e-9);
            let near = SlowStart::new(segments, passing, 0.0);
            prop_assert!(near.waits == 0 && (near.by_rate() - passing / 2.0).abs() < 1e-9);
        }
    }

    #[test]
    fn a_slow_start_waits_as_often_as_flights_are_shorter_than_the_round_trip() {
        // 37 segments in 24 ms over 13 ms: ten pass in 6.5 ms, twenty in 13.
        let start = SlowStart::new(37, 0.0240, 0.0128);
        assert_eq!(start.waits, 1);
        assert!(start.by_window() > start.by_rate(), "{start:?}");
        assert_eq!(SlowStart::new(10, 0.02, 0.1).by_window(), 0.0);
    }
}
