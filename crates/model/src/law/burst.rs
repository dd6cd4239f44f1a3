//! How much a sender sends at once on a path.
//!
//! How large a burst is follows from the pacing rate (`tcp_tso_autosize`). A transfer that neither
//! loss nor delay has ended slow start of has a congestion window of twice what is in flight
//! (`tcp_is_cwnd_limited`) and is paced at twice that window in each round trip
//! (`tcp_pacing_ss_ratio` = 200).

use crate::law::Framing;
use crate::units::{Bytes, Duration, Rate};

/// The most bytes of one packet before TSO cuts it: `GSO_LEGACY_MAX_SIZE` less `MAX_TCP_HEADER`
/// (320 on x86-64) and one (`sk_setup_caps`, net/core/sock.c).
const SUPER_PACKET_MAX: f64 = 65_536.0 - 320.0 - 1.0;
/// What is paced in a millisecond makes one burst: `sk_pacing_shift` is 10, a 1024th of a second.
const BURSTS_PER_SECOND: f64 = 1024.0;
/// Each 512 us of least round trip halve what a burst may have beyond its share of the pacing rate:
/// `tcp_tso_rtt_log` is 9, since Linux 5.18.
const RTT_HALVES_BURST: f64 = 512e-6;
/// Two for the congestion window over what is in flight, two for the pacing rate over the window.
const PACED_PER_FLIGHT: f64 = 4.0;
/// A receiver acknowledges every second segment (RFC 9293 section 3.8.6.3), and the least burst is
/// `tcp_min_tso_segs`.
pub(super) const LEAST_SEGMENTS: f64 = 2.0;
/// `tcp_tso_win_divisor`.
pub(super) const WINDOW_DIVISOR: f64 = 3.0;

/// A path as a steady transfer meets it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SteadyPath {
    /// The bottleneck's rate, as its link counts it.
    pub rate: Rate,
    /// Round-trip time without queues.
    pub rtt: Duration,
    /// How data is segmented and framed.
    pub framing: Framing,
}

impl SteadyPath {
    /// The largest goodput.
    pub fn goodput(self) -> Rate {
        self.framing.goodput(self.rate)
    }

    /// The time that `payload` takes on the link, in seconds.
    pub(super) fn on_link(self, payload: f64) -> f64 {
        payload * 8.0 / self.goodput().as_f64()
    }

    pub(super) fn mss(self) -> f64 {
        self.framing.mss().as_f64()
    }

    /// The largest packet before TSO cuts it, in bytes of data: whole segments.
    pub(super) fn super_packet(self) -> f64 {
        (SUPER_PACKET_MAX / self.mss()).floor().max(1.0) * self.mss()
    }

    /// The bytes that are sent at once with `in_flight` bytes in flight and a mean round trip of
    /// `rtt` seconds: `tcp_tso_autosize`.
    pub(super) fn burst(self, in_flight: f64, rtt: f64) -> f64 {
        let paced = PACED_PER_FLIGHT * in_flight / rtt / BURSTS_PER_SECOND;
        let halves = (self.rtt.as_secs_f64() / RTT_HALVES_BURST).floor();
        let near = if halves < 32.0 { SUPER_PACKET_MAX * 0.5f64.powf(halves) } else { 0.0 };
        let segments = ((paced + near).min(SUPER_PACKET_MAX) / self.mss()).floor();
        segments.max(LEAST_SEGMENTS) * self.mss()
    }

    /// The largest burst of a sender that `bdp` bytes in flight would keep busy if it sent them one
    /// by one: the longest packet, or a third of the window that it needs.
    pub(crate) fn burst_at_most(self, bdp: Bytes) -> Bytes {
        let half = bdp.as_f64() / (WINDOW_DIVISOR - 1.0) + LEAST_SEGMENTS * self.mss();
        Bytes::from_f64(half.min(self.super_packet()))
    }
}
