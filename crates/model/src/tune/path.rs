//! A path, and what the settings of two hosts allow on it.

use super::HostSettings;
use crate::law::burst::SteadyPath;
use crate::law::window_scale::MAX_UNSCALED;
use crate::law::{Framing, bdp};
use crate::limit::{self, Limit};
use crate::units::{Bytes, Duration, Rate, Window, column};

/// A path to fill.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Path {
    /// The bottleneck's rate, as its link counts it.
    #[serde(rename = "rate_bps", with = "column::rate")]
    pub rate: Rate,
    /// Round-trip time without queues.
    #[serde(rename = "rtt_us", with = "column::micros")]
    pub rtt: Duration,
    /// Capacity of the bottleneck's queue.
    #[serde(rename = "queue_bytes", with = "column::bytes")]
    pub queue: Bytes,
    /// How data is segmented and framed.
    #[serde(flatten)]
    pub framing: Framing,
}

impl Path {
    /// A path whose queue holds one BDP and whose packets are 1500 bytes long.
    pub fn new(rate: Rate, rtt: Duration) -> Self {
        Path { rate, rtt, queue: bdp::bdp(rate, rtt), framing: Framing::IP_1500 }
    }

    /// Bytes in flight when the path is full and its queue empty.
    pub fn bdp(self) -> Bytes {
        bdp::bdp(self.rate, self.rtt)
    }

    /// The largest goodput.
    pub fn goodput(self) -> Rate {
        self.framing.goodput(self.rate)
    }

    /// What must be able to be in flight to fill the path: the BDP, and the burst that is on the
    /// link while its first acknowledgement is on its way (see `law/steady.rs`).
    pub(super) fn needed(self) -> Window {
        Window::new(self.bdp().saturating_add(self.steady().burst_at_most(self.bdp())))
    }

    /// The path as a steady transfer meets it.
    pub(crate) fn steady(self) -> SteadyPath {
        SteadyPath { rate: self.rate, rtt: self.rtt, framing: self.framing }
    }

    /// What a connection should be able to have in flight, as a mean: the BDP plus an eighth of the
    /// queue. Less than the BDP leaves the link idle. Much more fills the queue: a send buffer of
    /// mean window W has up to 1.5 W in flight at its peaks (see [`crate::law::send_buffer`]), and
    /// what the queue cannot hold is lost at the end of slow start, which costs more than any
    /// buffer gains. Over 1 Gbit/s, 50 ms and a queue of one BDP, CUBIC, 12 s, Linux 6.18: buffers
    /// for BDP + queue gave 99 MB/s with 422 packets dropped, buffers for this target 116.6 MB/s
    /// with none.
    pub fn in_flight_target(self) -> Window {
        Window::new(self.bdp().saturating_add(Bytes::new(self.queue.get() / 8)))
    }
}

/// What settings allow on a path, by the window law.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Prediction {
    /// The largest window that the receiver advertises.
    #[serde(rename = "receive_window_bytes")]
    pub receive_window: Window,
    /// Bytes that the sender keeps in flight.
    #[serde(rename = "send_window_bytes")]
    pub send_window: Window,
    /// Steady goodput.
    #[serde(rename = "goodput_bps", with = "column::rate")]
    pub goodput: Rate,
    /// The limit.
    #[serde(with = "limit::term")]
    pub limited_by: Limit,
}

/// What the settings of `sender` and `receiver` should allow on `path`, without loss.
pub fn predict(path: Path, sender: &HostSettings, receiver: &HostSettings) -> Prediction {
    let scaled = sender.tcp_window_scaling && receiver.tcp_window_scaling;
    let sayable = if scaled { receiver.window_scale().largest() } else { MAX_UNSCALED };
    predict_with_window(path, sender, receiver.steady_window(path.framing.mss()).min(sayable))
}

/// What the settings of `sender` should allow on `path` towards a receiver that advertises
/// `receive_window`, without loss.
pub fn predict_with_window(
    path: Path,
    sender: &HostSettings,
    receive_window: Window,
) -> Prediction {
    let steady = path.steady();
    let by_window = steady.rate_of_window(receive_window);
    let by_buffer = steady.rate_of_send_buffer(sender.sndbuf(), sender.write);
    // Among equal ones the receive window comes first.
    let (goodput, limited_by) = if by_buffer < by_window {
        (by_buffer, Limit::SendBuffer)
    } else {
        (by_window, Limit::ReceiveWindow)
    };
    let limited_by = if goodput < path.goodput() { limited_by } else { Limit::Link };
    Prediction { receive_window, send_window: sender.send_window(), goodput, limited_by }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::MemTriple;
    use crate::law::KernelVersion;

    fn article(rmem_max: u64, wmem_max: u64, kernel: &str) -> Prediction {
        let host = |kernel: &str| HostSettings::defaults(kernel.parse::<KernelVersion>().unwrap());
        let sender =
            HostSettings { tcp_wmem: MemTriple::new(4096, 16_384, wmem_max), ..host(kernel) };
        let receiver =
            HostSettings { tcp_rmem: MemTriple::new(4096, 131_072, rmem_max), ..host(kernel) };
        predict(Path::new("1gbit".parse().unwrap(), "50ms".parse().unwrap()), &sender, &receiver)
    }

    /// Article B's steps over 1000 Mbit/s and 50 ms, and the same buffers on other kernels.
    #[test]
    fn article_b_step_by_step() {
        // B2, the defaults: the article saw 38.7M on its kernel, the trials 55.21 MB/s on 6.1 and
        // 6.12, 56.3 on 6.18.
        for kernel in ["6.1", "6.12", "6.18"] {
            let b2 = article(6_291_456, 4_194_304, kernel);
            assert_eq!(
                (b2.limited_by, format!("{:#}", b2.goodput).as_str()),
                (Limit::SendBuffer, "55.05 MB/s")
            );
        }
        // B3, the client's rmem alone: still the send buffer. 53.0M = 55.6 MB/s in the article.
        assert_eq!(article(13_107_200, 4_194_304, "5.10").limited_by, Limit::SendBuffer);
        // B4, both: the link.
        assert_eq!(article(13_107_200, 13_107_200, "5.10").limited_by, Limit::Link);
        // The server alone: the receive window, half of 6 MiB.
        let server_only = article(6_291_456, 13_107_200, "5.10");
        assert_eq!(
            (server_only.limited_by, server_only.receive_window.bytes().get()),
            (Limit::ReceiveWindow, 3_144_588)
        );
    }

    #[test]
    fn without_window_scaling_on_either_side_16_bits_are_all() {
        let path = Path::new("1gbit".parse().unwrap(), "50ms".parse().unwrap());
        let host = HostSettings::defaults(KernelVersion::new(6, 18));
        let off = HostSettings { tcp_window_scaling: false, ..host.clone() };
        for (sender, receiver) in [(&host, &off), (&off, &host)] {
            let prediction = predict(path, sender, receiver);
            assert_eq!(
                (prediction.receive_window, prediction.limited_by),
                (MAX_UNSCALED, Limit::ReceiveWindow)
            );
            assert_eq!(prediction.goodput.to_string(), "10.48 Mbit/s");
        }
    }
}
