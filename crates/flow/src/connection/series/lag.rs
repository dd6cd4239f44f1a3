//! The round trip between the capture point and the sender, from the ACKs that its data echoes.

use super::Series;
use fullpipe_model::units::{Duration, Instant};

/// Number of echoes from which the lag is inferred where no handshake was captured. An application
/// that pauses makes single echoes late. Fewer suffice if data is acknowledged here much sooner
/// than an ACK is echoed, which happens only at the receiver.
const ECHOES_LEAST: u32 = 16;
const ECHOES_AT_RECEIVER: u32 = 4;
/// An echo that is quicker than the lag by this part of it is none.
const ECHO_PART: u64 = 16;
/// If the lag is below 1/20 of the round trip, or below this time, the capture was taken at the
/// sender.
const NEAR: u64 = 20;
const LAG_LEAST: Duration = Duration::from_micros(500);
/// A queue lengthens the lag up to so many times: 1.5 MB before 12 Mbit/s on a path of 16 ms do.
const LAG_MOST: u64 = 64;

impl Series {
    /// Notes the TSecr of data that came `gap` after the data before it.
    pub(super) fn echoed(&mut self, at: Instant, echo: u32, gap: Duration) {
        while let Some(stamps) = self.stamps.as_deref_mut() {
            let Some(&(value, since)) = stamps.of_acks.front() else { break };
            if (value.wrapping_sub(echo) as i32) > 0 {
                break;
            }
            stamps.of_acks.pop_front();
            if value != echo {
                continue;
            }
            let round_trip = at.since(since);
            let quickest = stamps.quickest.map_or(round_trip, |least| least.min(round_trip));
            stamps.quickest = Some(quickest);
            if self.is_lag_open {
                self.guess_lag(quickest);
            } else {
                self.measure_lag(round_trip, gap);
            }
        }
    }

    /// Uses data that echoes an ACK. No sender answers sooner than in the round trip from here to
    /// it, so after some echoes the quickest is the lag.
    fn guess_lag(&mut self, quickest: Duration) {
        let Some(stamps) = self.stamps.as_deref_mut() else { return };
        stamps.echoes += 1;
        let whole = quickest.saturating_add(self.least.get().unwrap_or(Duration::ZERO));
        let is_near = quickest < LAG_LEAST || quickest.as_nanos() < whole.as_nanos() / NEAR;
        let is_at_receiver =
            self.least.get().is_some_and(|least| least.as_nanos() < quickest.as_nanos() / NEAR);
        if is_near {
            // At the sender.
            self.is_lag_open = false;
            self.stamps = None;
        } else if stamps.echoes >= if is_at_receiver { ECHOES_AT_RECEIVER } else { ECHOES_LEAST } {
            self.is_lag_open = false;
            self.adopt_lag(quickest);
        }
    }

    /// Adopts a lag that was inferred late. Round trips measured before lack the part between the
    /// capture point and the sender, so the lag is added to them.
    fn adopt_lag(&mut self, lag: Duration) {
        (self.lag, self.lag_least) = (lag, lag);
        self.least.delay(lag);
        self.current.rtt.delay(lag);
        self.closed.iter_mut().for_each(|closed| closed.rtt.delay(lag));
        self.widen();
    }

    /// Updates the lag. Data came `round_trip` after the ACK that it echoes, and `gap` after the
    /// data before it. Time beyond the least round trip has one of two reasons. Either there is a
    /// queue, and data then comes without gaps, or the sender had nothing to send.
    fn measure_lag(&mut self, round_trip: Duration, gap: Duration) {
        let excess = round_trip.saturating_sub(self.lag_least);
        let queued = gap.saturating_mul(2) < excess;
        self.lag = if queued {
            round_trip.min(self.lag_least.saturating_mul(LAG_MOST))
        } else {
            self.lag_least
        };
    }

    /// The current round trip between the capture point and the sender.
    pub fn lag(&self) -> Duration {
        self.lag
    }

    /// How soon the sender may act on what the other end says: no later than in the quickest echo.
    /// A handshake is slower by what its hosts took, and not by [`ECHO_PART`].
    pub fn lag_of_messages(&self) -> Duration {
        let quickest = self.stamps.as_ref().and_then(|stamps| stamps.quickest);
        let least = self.lag.saturating_sub(Duration::from_nanos(self.lag.as_nanos() / ECHO_PART));
        let is_near = self.lag == self.lag_least && quickest.is_some_and(|one| one >= least);
        quickest.filter(|_| is_near).map_or(self.lag, |quickest| quickest.min(self.lag))
    }
}
