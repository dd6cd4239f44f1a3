//! What a window above TCP carries: the receiving program grants what may be sent, a step at a
//! time, as SSH's channels (RFC 4254 section 5.2), HTTP/2's streams (RFC 9113 section 5.2) and
//! clients with a fixed number of requests under way do.
//!
//! The sender has at most `W` bytes under way beyond what was granted. A step `s` is granted once
//! all of it has arrived, so it takes a round trip and its own time on the link until it releases
//! the next one, and the window holds `W / s` whole steps meanwhile: `⌊W / s⌋ · s / (RTT + s / R)`,
//! at most `R`.
//!
//! It no longer holds where the receiving program takes its data later than it arrives.

use crate::units::{Bytes, Duration, Rate};
use serde::{Deserialize, Serialize};

/// A window above TCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct GrantedWindow {
    /// What may be sent beyond what was granted.
    #[serde(rename = "window_bytes", with = "crate::units::column::bytes")]
    pub window: Bytes,
    /// What the receiving program grants at a time: at least 1 B.
    #[serde(rename = "step_bytes", with = "crate::units::column::bytes")]
    pub step: Bytes,
}

impl GrantedWindow {
    /// The payload rate over a path of `rate` (payload, too) and `rtt`.
    ///
    /// ```
    /// use fullpipe_model::law::GrantedWindow;
    /// use fullpipe_model::units::Bytes;
    /// let ssh = GrantedWindow { window: Bytes::new(2 << 20), step: Bytes::new(32 << 10) };
    /// let (link, rtt) = ("1gbit".parse().unwrap(), "167ms".parse().unwrap());
    /// // Eleven or twelve MiB/s, whatever the buffers of TCP are.
    /// assert_eq!(ssh.rate(link, rtt).to_string(), "100.3 Mbit/s");
    /// ```
    pub fn rate(self, rate: Rate, rtt: Duration) -> Rate {
        let step = self.step.as_f64().max(1.0);
        let whole = (self.window.as_f64() / step).floor() * step;
        let bits = rate.as_f64().max(1.0);
        let cycle = rtt.as_secs_f64() + step * 8.0 / bits;
        Rate::from_bits_per_sec_f64((whole * 8.0 / cycle).min(rate.as_f64()))
    }

    /// The least window, in whole steps of this size, that fills a path.
    pub fn filling(self, rate: Rate, rtt: Duration) -> GrantedWindow {
        let step = self.step.max(Bytes::new(1));
        let held = rate.over(rtt).saturating_add(step);
        let steps = held.get().div_ceil(step.get());
        GrantedWindow { window: Bytes::new(steps.saturating_mul(step.get())), step }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The filling window fills the path, one step less does not, and a larger window never
        /// carries less.
        #[test]
        fn the_least_window_that_fills_a_path_does(
            mbit in 1_u64..10_000, millis in 1_u64..400, step in 1_u64..1_000_000,
            less in 1_u64..1_000,
        ) {
            let (rate, rtt) =
                (Rate::from_bits_per_sec(mbit * 1_000_000), Duration::from_millis(millis));
            let any = GrantedWindow { window: Bytes::ZERO, step: Bytes::new(step) };
            let filling = any.filling(rate, rtt);
            let carried = filling.rate(rate, rtt).as_f64();
            prop_assert!(carried >= 0.999_999 * rate.as_f64() - 1.0, "{filling:?} {carried}");
            let smaller = Bytes::new(filling.window.get().saturating_sub(less * step));
            let smaller = GrantedWindow { window: smaller, ..filling };
            prop_assert!(smaller.rate(rate, rtt).as_f64() < rate.as_f64(), "{smaller:?}");
        }
    }
}
