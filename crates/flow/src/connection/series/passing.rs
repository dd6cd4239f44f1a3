//! How the bytes of a direction pass: at which rate, and in which bursts and flights.

use super::Series;
use fullpipe_model::units::{Duration, Instant};

/// Events that pass before trains are timed. A request and its answer have fewer.
const UNTIMED: u8 = 6;
/// Bytes that pass so many times as fast as they would if they were spread evenly over the round
/// trip are of a burst.
const IN_A_BURST: f32 = 3.0;

impl Series {
    /// Notes that bytes passed: at the sender by an ACK, elsewhere by their segment. `new` of them
    /// were not reported before.
    pub(super) fn passed(&mut self, at: Instant, bytes: u64, new: u64) {
        self.current.train_events += 1;
        if self.untimed < UNTIMED {
            self.untimed += 1;
            return;
        }
        let even = self.even_time(new);
        let trains = self.trains.get_or_insert_default();
        if let Some((last, even)) = trains.last().zip(even) {
            let gap = at.since(last).as_secs_f64() as f32;
            if gap * IN_A_BURST <= even {
                self.current.burst = self.current.burst.saturating_add(new as u32);
                self.current.burst_time += gap;
            }
        }
        if let Some(rate) = trains.passed(at, bytes) {
            self.current.train_max = self.current.train_max.max(rate as f32);
        }
    }

    /// The seconds that `bytes` would take if what was in flight before they passed did so evenly
    /// over a round trip; `None` where nothing passed.
    fn even_time(&self, bytes: u64) -> Option<f32> {
        if bytes == 0 {
            return None;
        }
        let part = bytes as f32 / (bytes as f32 + self.in_flight() as f32);
        Some(self.least.get()?.as_secs_f64() as f32 * part)
    }

    /// Notes that bytes of a flight passed, at the sender by their ACK, `gap` after those before.
    /// They may begin a flight where the sender knows that the one before arrived. They do if they
    /// come later than a busy path lets segments follow each other.
    pub(super) fn pace(&mut self, gap: Duration, may_begin: bool) {
        let paced = self.spacing.pace(gap.as_secs_f64() as f32, may_begin);
        self.current.flights = self.current.flights.saturating_add(paced.flights);
        self.current.passing += paced.passing;
    }
}
