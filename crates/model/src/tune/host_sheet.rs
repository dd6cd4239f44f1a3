//! What the settings of one host can fill, as receiver and as sender, whatever its peer has.

use super::sheet::{receive_end, send_end};
use super::{EndSheet, HostSettings, Path};
use crate::units::{Duration, Rate, column};

/// What a host's settings allow one connection on a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct HostSheet {
    /// The bottleneck's rate.
    #[serde(rename = "rate_bps", with = "column::rate")]
    pub rate: Rate,
    /// Round-trip time without queues.
    #[serde(rename = "rtt_us", with = "column::micros")]
    pub rtt: Duration,
    /// When it receives: its window.
    pub receive: EndSheet,
    /// When it sends: its send buffer.
    pub send: EndSheet,
}

impl HostSheet {
    /// What `host` fills on `path`.
    ///
    /// ```
    /// use fullpipe_model::law::KernelVersion;
    /// use fullpipe_model::tune::{HostSettings, HostSheet, Path};
    /// let path = Path::new("1gbit".parse().unwrap(), "50ms".parse().unwrap());
    /// let sheet = HostSheet::new(path, &HostSettings::defaults(KernelVersion::new(6, 1)));
    /// assert_eq!(sheet.send.goodput.to_string(), "440.4 Mbit/s");
    /// ```
    pub fn new(path: Path, host: &HostSettings) -> Self {
        HostSheet {
            rate: path.rate,
            rtt: path.rtt,
            receive: receive_end(path, host.steady_window(path.framing.mss())),
            send: send_end(path, host.sndbuf(), host.write),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::law::KernelVersion;
    use crate::limit::Limit;
    use crate::tune::predict;
    use proptest::prelude::*;

    proptest! {
        /// Two such hosts get what the worse of their ends allows: the prediction for both.
        #[test]
        fn the_worse_end_is_the_prediction(
            bits in 1_000_000_u64..100_000_000_000, micros in 100_u64..400_000, old: bool,
        ) {
            let kernel = if old { KernelVersion::new(6, 1) } else { KernelVersion::new(6, 18) };
            let host = HostSettings::defaults(kernel);
            let path = Path::new(Rate::from_bits_per_sec(bits), Duration::from_micros(micros));
            let sheet = HostSheet::new(path, &host);
            let prediction = predict(path, &host, &host);
            prop_assert_eq!(sheet.receive.goodput.min(sheet.send.goodput), prediction.goodput);
            let full = sheet.receive.limited_by == Limit::Link && sheet.send.limited_by == Limit::Link;
            prop_assert_eq!(full, prediction.limited_by == Limit::Link);
        }
    }
}
