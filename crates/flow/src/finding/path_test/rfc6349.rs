//! A run in the terms of RFC 6349.

use super::{Measured, PathTestRun};
use fullpipe_model::law::rfc6349::{
    bottleneck_of, buffer_delay, efficiency, ideal_throughput, minimum_window, transfer_time_ratio,
};
use fullpipe_model::observe::TcpInfo;
use fullpipe_model::units::{Bytes, Duration, Rate, Window, column};

/// The metrics of one run.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Rfc6349 {
    /// Path MTU.
    #[serde(rename = "mtu_bytes", with = "column::bytes")]
    pub mtu: Bytes,
    /// Baseline round trip.
    #[serde(rename = "baseline_rtt_us", with = "column::micros")]
    pub baseline: Duration,
    /// Bottleneck bandwidth, counted in Ethernet frames.
    #[serde(rename = "bottleneck_bandwidth_bps", with = "column::rate")]
    pub bottleneck: Rate,
    /// Bandwidth-delay product: the least receive window and send buffer.
    #[serde(rename = "bdp_bytes", with = "column::bytes")]
    pub bdp: Bytes,
    /// The largest receive window of a connection in this run.
    #[serde(rename = "window_bytes", with = "column::window_optional")]
    pub window: Option<Window>,
    /// The largest send buffer of a connection in this run.
    #[serde(rename = "send_buffer_bytes", with = "column::bytes_optional")]
    pub send_buffer: Option<Bytes>,
    /// Ideal TCP throughput, all connections together.
    #[serde(rename = "ideal_throughput_bps", with = "column::rate")]
    pub ideal: Rate,
    /// Actual TCP throughput.
    #[serde(rename = "actual_throughput_bps", with = "column::rate")]
    pub actual: Rate,
    /// Ideal transfer time of what was transferred.
    #[serde(rename = "ideal_time_us", with = "column::micros")]
    pub ideal_time: Duration,
    /// Actual transfer time.
    #[serde(rename = "actual_time_us", with = "column::micros")]
    pub actual_time: Duration,
    /// TCP Transfer Time Ratio.
    pub transfer_time_ratio: Option<f64>,
    /// Bytes transmitted, retransmissions included.
    #[serde(rename = "transmitted_bytes", with = "column::bytes")]
    pub transmitted: Bytes,
    /// Bytes retransmitted.
    #[serde(rename = "retransmitted_bytes", with = "column::bytes")]
    pub retransmitted: Bytes,
    /// TCP Efficiency in percent.
    pub efficiency_percent: Option<f64>,
    /// Average round trip: the mean of one value for each second.
    #[serde(rename = "average_rtt_us", with = "column::micros_optional")]
    pub average: Option<Duration>,
    /// Buffer Delay in percent.
    pub buffer_delay_percent: Option<f64>,
}

impl Rfc6349 {
    /// The metrics of a run, with the path's bottleneck bandwidth as it is known (a contract's) or
    /// as another run reached it. `None` where the run had no round trip or no MTU to go by.
    pub fn new(run: &PathTestRun<'_>, measured: &Measured, bottleneck: Rate) -> Option<Rfc6349> {
        let (mtu, baseline) = (measured.mtu?, measured.base_rtt?);
        // The kernel tunes both ends of each connection; what they reached is what TCP had.
        let ideal = ideal_throughput(bottleneck, mtu, Window::UNLIMITED, baseline);
        let ideal_time = ideal.time_for(measured.received)?;
        let sent = run.count_of_senders(|info| info.bytes_sent);
        let again = run.count_of_senders(|info| info.bytes_retrans);
        let buffers = run.connections.iter().flat_map(|one| &one.sender.samples);
        Some(Rfc6349 {
            mtu,
            baseline,
            bottleneck,
            bdp: minimum_window(bottleneck, baseline),
            window: measured.window,
            send_buffer: buffers.filter_map(|sample| Some(sample.memory?.sndbuf)).max(),
            ideal,
            actual: measured.goodput,
            ideal_time,
            actual_time: measured.time,
            transfer_time_ratio: transfer_time_ratio(measured.time, ideal_time),
            transmitted: sent,
            retransmitted: again,
            efficiency_percent: efficiency(sent, again),
            average: measured.loaded_rtt,
            buffer_delay_percent: measured
                .loaded_rtt
                .and_then(|average| buffer_delay(average, baseline)),
        })
    }
}

impl PathTestRun<'_> {
    /// The last values of a counter of each connection's sender, added up.
    fn count_of_senders(&self, get: fn(&TcpInfo) -> Option<Bytes>) -> Bytes {
        let counts = self.connections.iter().filter_map(|seen| {
            seen.sender.samples.iter().rev().find_map(|sample| get(sample.info.as_ref()?))
        });
        counts.fold(Bytes::ZERO, Bytes::saturating_add)
    }
}

impl Measured {
    /// The bandwidth of an Ethernet link that carries what this run reached in its steady half.
    pub fn reached_bandwidth(&self) -> Option<Rate> {
        let (mtu, mss) = (self.mtu?, self.mss?);
        Some(bottleneck_of(self.steady, mtu, mtu.saturating_sub(mss)))
    }
}
