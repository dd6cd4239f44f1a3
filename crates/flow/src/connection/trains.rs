//! How fast bytes pass when they pass without a pause: the rate of the narrowest link before the
//! capture point.
//!
//! A link that is always busy forwards one segment after the other, so the rate over a few segments
//! is the rate over a round trip. A sender limited by a window, a buffer or its application leaves
//! gaps: what it sends at once passes at the link's rate, and then nothing passes (packet trains:
//! Jain and Routhier, IEEE JSAC 1986).

use super::series::LateAcks;
use crate::limit::BlockPauses;
use fullpipe_model::units::{Duration, Instant};

/// How many events in a row make a train. With fewer, one delayed packet would be too much noise.
const EVENTS: usize = 8;
/// The least duration of a train. A shorter one comes from a card that merges packets, or a busy
/// host.
const TIME_LEAST: Duration = Duration::from_micros(500);

/// Where events follow each other faster than that, a train is up to so many times as many of them:
/// 512 segments take half a millisecond at 12 Gbit/s.
const STRIDE_MOST: u8 = 64;

/// The last events: the time of each, and how many bytes had passed by then.
#[derive(Debug, Clone, Default)]
pub(super) struct Trains {
    last: [(Instant, u64); EVENTS],
    next: u8,
    /// Of so many events one is kept, and how many there were since.
    stride: u8,
    since: u8,
    count: u64,
    bytes: u64,
    latest: Option<Instant>,
    /// Which part of the last hundreds of segments repaired something, 0 to 1.
    pub repaired: f64,
    /// Whether the latest new data was all that the sender had.
    pub ends_short: bool,
    /// Whether the receiver acknowledges late.
    pub late_acks: LateAcks,
    /// The pauses of the sender's writer.
    pub blocks: BlockPauses,
}

impl Trains {
    /// When the event before was; `None` before the first.
    pub fn last(&self) -> Option<Instant> {
        self.latest
    }

    /// Notes new data; it `ends_short` if it was all that the sender had.
    pub fn sent(&mut self, at: Instant, ends_short: bool) {
        self.ends_short = ends_short;
        self.late_acks.sent(at);
    }

    /// Notes that `bytes` passed, in a segment or by an ACK that reports them. Returns the rate of
    /// the last events in bits a second, if they are a train. ACKs that come faster than a train of
    /// [`EVENTS`] can be timed have often waited for each other, which says nothing of the link.
    pub fn passed(&mut self, at: Instant, bytes: u64, in_segment: bool) -> Option<f64> {
        self.bytes += bytes;
        self.latest = Some(at);
        self.since += 1;
        if self.since < self.stride {
            return None;
        }
        self.since = 0;
        let oldest = std::mem::replace(&mut self.last[usize::from(self.next)], (at, self.bytes));
        self.next = (self.next + 1) % EVENTS as u8;
        self.count += 1;
        let time = at.since(oldest.0);
        let is_train = self.count > EVENTS as u64 && time >= TIME_LEAST;
        if in_segment && self.count > EVENTS as u64 {
            self.stride = match () {
                () if time < TIME_LEAST => (self.stride.max(1) * 2).min(STRIDE_MOST),
                () if time > TIME_LEAST.saturating_mul(4) => self.stride / 2,
                () => self.stride,
            };
        }
        is_train.then(|| (self.bytes - oldest.1) as f64 * 8.0 / time.as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The fastest train of segments of 1000 bytes that come after these gaps, in Mbit/s.
    fn fastest(gaps: impl IntoIterator<Item = u64>) -> f64 {
        let mut trains = Trains::default();
        let mut at = Instant::ZERO;
        let mut most = 0.0_f64;
        for micros in gaps {
            at = at + Duration::from_micros(micros);
            most = most.max(trains.passed(at, 1000, true).unwrap_or(0.0));
        }
        most / 1e6
    }

    #[test]
    fn a_busy_link_passes_a_train_as_fast_as_everything() {
        assert!((fastest([100; 200]) - 80.0).abs() < 0.1);
    }

    #[test]
    fn near_miss_what_comes_at_once_and_then_pauses_passes_faster_than_everything() {
        let gaps = (0..200).map(|number| if number % 20 == 0 { 18_100 } else { 100 });
        assert!((fastest(gaps) - 80.0).abs() < 0.1, "the mean is 8 Mbit/s");
    }

    #[test]
    fn a_fast_link_is_timed_by_longer_trains() {
        // Two microseconds for 1000 bytes: 4 Gbit/s.
        assert!((fastest([2; 5000]) - 4000.0).abs() < 1.0);
        let slower = fastest(std::iter::repeat_n(2, 5000).chain([100; 5000]));
        assert!((slower - 4000.0).abs() < 1.0);
        // What comes at once and then pauses is timed where it takes long enough.
        let bursts = (0..20_000).map(|number| if number % 1000 == 0 { 8_000 } else { 8 });
        assert!((fastest(bursts) - 1000.0).abs() < 1.0, "the mean is 500 Mbit/s");
    }

    #[test]
    fn too_few_and_too_close_together_are_no_train() {
        assert_eq!(fastest([1000; EVENTS]), 0.0);
        assert_eq!(fastest([1; 100]), 0.0, "a card handed them up at once");
    }
}
