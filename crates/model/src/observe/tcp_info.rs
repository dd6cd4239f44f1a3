//! The kernel's `struct tcp_info` (`include/uapi/linux/tcp.h`), as `INET_DIAG_INFO` and
//! `getsockopt(TCP_INFO)` return it.
//!
//! The struct has only grown at its end: the first 104 bytes are in every Linux since 2.6, and what
//! follows depends on the kernel. Fields beyond the given bytes are absent. Field names are the
//! kernel's without `tcpi_`.

use super::{CongestionState, TcpState};
use crate::units::{Bytes, Duration, Rate, Window, column};

/// What the kernel knows about one connection.
#[derive(Debug, Clone, PartialEq, Default, serde::Serialize, serde::Deserialize)]
pub struct TcpInfo {
    /// State of the connection.
    pub state: TcpState,
    /// State of the congestion control.
    pub ca_state: CongestionState,
    /// Timeouts in a row for the oldest segment.
    pub retransmits: u8,
    /// Zero-window or keep-alive probes not answered.
    pub probes: u8,
    /// Exponent of the retransmission timer's back-off.
    pub backoff: u8,
    /// `TCPI_OPT_*`: 1 timestamps, 2 SACK, 4 window scale, 8 ECN, 16 ECN seen, 32 data in the SYN.
    pub options: u8,
    /// Window scale of the peer's window (RFC 7323).
    pub snd_wscale: u8,
    /// Window scale of our window (RFC 7323).
    pub rcv_wscale: u8,
    /// Whether the application limited `delivery_rate`, rather than the path.
    pub delivery_rate_app_limited: bool,
    /// Retransmission timeout (RFC 6298).
    #[serde(rename = "rto_us", with = "column::micros")]
    pub rto: Duration,
    /// Delayed-ACK timeout.
    #[serde(rename = "ato_us", with = "column::micros")]
    pub ato: Duration,
    /// Largest segment that we send, without headers.
    #[serde(rename = "snd_mss_bytes", with = "column::bytes")]
    pub snd_mss: Bytes,
    /// Largest segment that the peer seems to send.
    #[serde(rename = "rcv_mss_bytes", with = "column::bytes")]
    pub rcv_mss: Bytes,
    /// Segments sent and not acknowledged (or the accept queue's length, when listening).
    pub unacked: u32,
    /// Of them, selectively acknowledged (or the accept queue's limit, when listening).
    pub sacked: u32,
    /// Of them, believed lost.
    pub lost: u32,
    /// Of them, retransmitted.
    pub retrans: u32,
    /// Not used since Linux 4.15.
    pub fackets: u32,
    /// Time since data was sent (the kernel gives milliseconds).
    #[serde(rename = "last_data_sent_us", with = "column::micros")]
    pub last_data_sent: Duration,
    /// Linux never sets it.
    #[serde(rename = "last_ack_sent_us", with = "column::micros")]
    pub last_ack_sent: Duration,
    /// Time since data was received.
    #[serde(rename = "last_data_recv_us", with = "column::micros")]
    pub last_data_recv: Duration,
    /// Time since an ACK was received.
    #[serde(rename = "last_ack_recv_us", with = "column::micros")]
    pub last_ack_recv: Duration,
    /// Path MTU.
    #[serde(rename = "pmtu_bytes", with = "column::bytes")]
    pub pmtu: Bytes,
    /// Current limit of the window that we advertise.
    #[serde(rename = "rcv_ssthresh_bytes", with = "column::window")]
    pub rcv_ssthresh: Window,
    /// Smoothed round-trip time (SRTT, RFC 6298).
    #[serde(rename = "rtt_us", with = "column::micros")]
    pub rtt: Duration,
    /// Its mean deviation.
    #[serde(rename = "rttvar_us", with = "column::micros")]
    pub rttvar: Duration,
    /// Slow-start threshold in segments.
    pub snd_ssthresh: u32,
    /// Congestion window in segments.
    pub snd_cwnd: u32,
    /// MSS that we advertise.
    #[serde(rename = "advmss_bytes", with = "column::bytes")]
    pub advmss: Bytes,
    /// Reordering that is tolerated, in segments.
    pub reordering: u32,
    /// The receiver's own estimate of the round-trip time; zero without one.
    #[serde(rename = "rcv_rtt_us", with = "column::micros")]
    pub rcv_rtt: Duration,
    /// What the application reads in a round trip (receive buffer autotuning).
    #[serde(rename = "rcv_space_bytes", with = "column::bytes")]
    pub rcv_space: Bytes,
    /// Segments retransmitted over the connection's life.
    pub total_retrans: u32,
    /// Pacing rate; absent where unlimited.
    #[serde(
        rename = "pacing_rate_bps",
        default,
        skip_serializing_if = "Option::is_none",
        with = "column::rate_optional"
    )]
    pub pacing_rate: Option<Rate>,
    /// `SO_MAX_PACING_RATE`; absent where unlimited.
    #[serde(
        rename = "max_pacing_rate_bps",
        default,
        skip_serializing_if = "Option::is_none",
        with = "column::rate_optional"
    )]
    pub max_pacing_rate: Option<Rate>,
    /// Bytes acknowledged by the peer.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "column::bytes_optional")]
    pub bytes_acked: Option<Bytes>,
    /// Bytes received in order.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "column::bytes_optional")]
    pub bytes_received: Option<Bytes>,
    /// Segments sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub segs_out: Option<u32>,
    /// Segments received.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub segs_in: Option<u32>,
    /// Written by the application and not yet sent.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "column::bytes_optional")]
    pub notsent_bytes: Option<Bytes>,
    /// Least round-trip time of the last five minutes; absent without a measurement.
    #[serde(
        rename = "min_rtt_us",
        default,
        skip_serializing_if = "Option::is_none",
        with = "column::micros_optional"
    )]
    pub min_rtt: Option<Duration>,
    /// Segments with data received.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_segs_in: Option<u32>,
    /// Segments with data sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_segs_out: Option<u32>,
    /// Most recent rate at which data was delivered.
    #[serde(
        rename = "delivery_rate_bps",
        default,
        skip_serializing_if = "Option::is_none",
        with = "column::rate_optional"
    )]
    pub delivery_rate: Option<Rate>,
    /// Time with data to send or in flight; includes the two below (resolution: a jiffy).
    #[serde(
        rename = "busy_time_us",
        default,
        skip_serializing_if = "Option::is_none",
        with = "column::micros_optional"
    )]
    pub busy_time: Option<Duration>,
    /// Of it, limited by the peer's receive window.
    #[serde(
        rename = "rwnd_limited_us",
        default,
        skip_serializing_if = "Option::is_none",
        with = "column::micros_optional"
    )]
    pub rwnd_limited: Option<Duration>,
    /// Of it, limited by the send buffer: nothing left to send while the application was blocked.
    #[serde(
        rename = "sndbuf_limited_us",
        default,
        skip_serializing_if = "Option::is_none",
        with = "column::micros_optional"
    )]
    pub sndbuf_limited: Option<Duration>,
    /// Segments delivered, retransmissions included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivered: Option<u32>,
    /// Of them, marked by ECN.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivered_ce: Option<u32>,
    /// Payload bytes sent, retransmissions included.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "column::bytes_optional")]
    pub bytes_sent: Option<Bytes>,
    /// Payload bytes retransmitted.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "column::bytes_optional")]
    pub bytes_retrans: Option<Bytes>,
    /// DSACK blocks received: retransmissions that were not needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dsack_dups: Option<u32>,
    /// Reordering events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reord_seen: Option<u32>,
    /// Segments received out of order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rcv_ooopack: Option<u32>,
    /// The peer's receive window, scaled.
    #[serde(
        rename = "snd_wnd_bytes",
        default,
        skip_serializing_if = "Option::is_none",
        with = "column::window_optional"
    )]
    pub snd_wnd: Option<Window>,
    /// Our receive window, scaled.
    #[serde(
        rename = "rcv_wnd_bytes",
        default,
        skip_serializing_if = "Option::is_none",
        with = "column::window_optional"
    )]
    pub rcv_wnd: Option<Window>,
    /// Times that the flow label was changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rehash: Option<u32>,
    /// Retransmission timeouts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_rto: Option<u16>,
    /// Recoveries from retransmission timeouts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_rto_recoveries: Option<u16>,
    /// Time spent in them.
    #[serde(
        rename = "total_rto_time_us",
        default,
        skip_serializing_if = "Option::is_none",
        with = "column::micros_optional"
    )]
    pub total_rto_time: Option<Duration>,
}

/// Why bytes are not a `struct tcp_info`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseTcpInfoError {
    /// Shorter than that of any Linux since 2.6.
    #[error(
        "reading struct tcp_info: {length} bytes, at least 104 expected; is this the payload of INET_DIAG_INFO?"
    )]
    TooShort {
        /// Bytes given.
        length: usize,
    },
}

impl TcpInfo {
    /// Reads the bytes of the kernel's struct, native-endian. Fields after those known are ignored.
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseTcpInfoError> {
        let mut fields = Fields { rest: bytes };
        Self::read_base(&mut fields)
            .map(|base| base.read_extension(&mut fields))
            .ok_or(ParseTcpInfoError::TooShort { length: bytes.len() })
    }

    /// Payload bytes in flight by RFC 6675's estimate: sent, not acknowledged in any way, not lost,
    /// plus retransmitted.
    pub fn in_flight(&self) -> Bytes {
        let left = self.sacked.saturating_add(self.lost);
        let segments = self.unacked.saturating_sub(left).saturating_add(self.retrans);
        Bytes::new(u64::from(segments) * self.snd_mss.get())
    }

    fn read_base(fields: &mut Fields<'_>) -> Option<Self> {
        let [state, ca_state, retransmits, probes, backoff, options, scales, flags] =
            fields.take()?;
        // Bit fields start at the least significant bit on little-endian machines and at the most
        // significant on others.
        let (low, high) = (scales & 15, scales >> 4);
        let (snd_wscale, rcv_wscale) =
            if cfg!(target_endian = "little") { (low, high) } else { (high, low) };
        let app_limited = if cfg!(target_endian = "little") { flags & 1 } else { flags >> 7 };
        Some(TcpInfo {
            state: TcpState::from_number(state),
            ca_state: CongestionState::from_number(ca_state),
            retransmits,
            probes,
            backoff,
            options,
            snd_wscale,
            rcv_wscale,
            delivery_rate_app_limited: app_limited == 1,
            rto: fields.micros()?,
            ato: fields.micros()?,
            snd_mss: fields.bytes()?,
            rcv_mss: fields.bytes()?,
            unacked: fields.count()?,
            sacked: fields.count()?,
            lost: fields.count()?,
            retrans: fields.count()?,
            fackets: fields.count()?,
            last_data_sent: fields.millis()?,
            last_ack_sent: fields.millis()?,
            last_data_recv: fields.millis()?,
            last_ack_recv: fields.millis()?,
            pmtu: fields.bytes()?,
            rcv_ssthresh: fields.window()?,
            rtt: fields.micros()?,
            rttvar: fields.micros()?,
            snd_ssthresh: fields.count()?,
            snd_cwnd: fields.count()?,
            advmss: fields.bytes()?,
            reordering: fields.count()?,
            rcv_rtt: fields.micros()?,
            rcv_space: fields.bytes()?,
            total_retrans: fields.count()?,
            ..TcpInfo::default()
        })
    }

    fn read_extension(self, fields: &mut Fields<'_>) -> Self {
        TcpInfo {
            pacing_rate: fields.rate(),
            max_pacing_rate: fields.rate(),
            bytes_acked: fields.long_bytes(),
            bytes_received: fields.long_bytes(),
            segs_out: fields.count(),
            segs_in: fields.count(),
            notsent_bytes: fields.bytes(),
            min_rtt: fields.micros().filter(|rtt| rtt.as_micros() != u64::from(u32::MAX)),
            data_segs_in: fields.count(),
            data_segs_out: fields.count(),
            delivery_rate: fields.rate(),
            busy_time: fields.long_micros(),
            rwnd_limited: fields.long_micros(),
            sndbuf_limited: fields.long_micros(),
            delivered: fields.count(),
            delivered_ce: fields.count(),
            bytes_sent: fields.long_bytes(),
            bytes_retrans: fields.long_bytes(),
            dsack_dups: fields.count(),
            reord_seen: fields.count(),
            rcv_ooopack: fields.count(),
            snd_wnd: fields.window(),
            rcv_wnd: fields.window(),
            rehash: fields.count(),
            total_rto: fields.short_count(),
            total_rto_recoveries: fields.short_count(),
            total_rto_time: fields.millis(),
            ..self
        }
    }
}

/// Reads one field after the other; after the end of the bytes every field is `None`.
struct Fields<'a> {
    rest: &'a [u8],
}

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        if let Some((field, rest)) = self.rest.split_first_chunk::<N>() {
            self.rest = rest;
            Some(*field)
        } else {
            self.rest = &[];
            None
        }
    }

    fn short_count(&mut self) -> Option<u16> {
        self.take().map(u16::from_ne_bytes)
    }

    fn count(&mut self) -> Option<u32> {
        self.take().map(u32::from_ne_bytes)
    }

    fn long(&mut self) -> Option<u64> {
        self.take().map(u64::from_ne_bytes)
    }

    fn bytes(&mut self) -> Option<Bytes> {
        self.count().map(|count| Bytes::new(count.into()))
    }

    fn long_bytes(&mut self) -> Option<Bytes> {
        self.long().map(Bytes::new)
    }

    fn window(&mut self) -> Option<Window> {
        self.bytes().map(Window::new)
    }

    fn micros(&mut self) -> Option<Duration> {
        self.count().map(|count| Duration::from_micros(count.into()))
    }

    fn long_micros(&mut self) -> Option<Duration> {
        self.long().map(Duration::from_micros)
    }

    fn millis(&mut self) -> Option<Duration> {
        self.count().map(|count| Duration::from_millis(count.into()))
    }

    /// Bytes a second; the kernel's "unlimited" (all ones) does not fit into a rate and becomes
    /// `None`.
    fn rate(&mut self) -> Option<Rate> {
        self.long().map(Bytes::new).and_then(Rate::from_bytes_per_sec)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Bytes of a struct in which each `u32` after the first eight bytes holds its own offset.
    fn offsets(length: usize) -> Vec<u8> {
        let mut bytes = vec![1, 3, 0, 0, 0, 7, 0xa7, 1];
        bytes.extend((8u32..).step_by(4).take(length.div_ceil(4)).flat_map(u32::to_ne_bytes));
        bytes.truncate(length);
        bytes
    }

    fn long_at(offset: u64) -> u64 {
        if cfg!(target_endian = "little") {
            offset | (offset + 4) << 32
        } else {
            offset << 32 | (offset + 4)
        }
    }

    /// Offsets by `offsetof` over `include/uapi/linux/tcp.h` of Linux 6.18.
    #[test]
    fn fields_are_where_the_kernel_puts_them() {
        let info = TcpInfo::parse(&offsets(248)).unwrap();
        assert_eq!(info.state, TcpState::Established);
        assert_eq!(info.ca_state, CongestionState::Recovery);
        assert_eq!((info.snd_wscale, info.rcv_wscale), (7, 10));
        assert!(info.delivery_rate_app_limited);
        assert_eq!(info.rto, Duration::from_micros(8));
        assert_eq!(info.unacked, 24);
        assert_eq!(info.last_data_sent, Duration::from_millis(44));
        assert_eq!(info.rtt, Duration::from_micros(68));
        assert_eq!(info.snd_cwnd, 80);
        assert_eq!(info.total_retrans, 100);
        assert_eq!(info.bytes_acked, Some(Bytes::new(long_at(120))));
        assert_eq!(info.notsent_bytes, Some(Bytes::new(144)));
        assert_eq!(info.min_rtt, Some(Duration::from_micros(148)));
        assert_eq!(info.busy_time, Some(Duration::from_micros(long_at(168))));
        assert_eq!(info.sndbuf_limited, Some(Duration::from_micros(long_at(184))));
        assert_eq!(info.delivered, Some(192));
        assert_eq!(info.bytes_retrans, Some(Bytes::new(long_at(208))));
        assert_eq!(info.rcv_ooopack, Some(224));
        assert_eq!(info.snd_wnd, Some(Window::new(Bytes::new(228))));
        assert_eq!(info.rcv_wnd, Some(Window::new(Bytes::new(232))));
        assert_eq!(info.rehash, Some(236));
        assert_eq!(info.total_rto, Some(240));
        assert_eq!(info.total_rto_time, Some(Duration::from_millis(244)));
    }

    #[test]
    fn what_an_older_kernel_does_not_give_is_absent() {
        let info = TcpInfo::parse(&offsets(104)).unwrap();
        assert_eq!(info.total_retrans, 100);
        assert_eq!((info.pacing_rate, info.busy_time, info.snd_wnd), (None, None, None));
        // Cut inside of busy_time: neither it nor anything after it.
        let info = TcpInfo::parse(&offsets(172)).unwrap();
        assert!(info.delivery_rate.is_some());
        assert_eq!((info.busy_time, info.rwnd_limited, info.delivered), (None, None, None));
        assert_eq!(TcpInfo::parse(&offsets(103)), Err(ParseTcpInfoError::TooShort { length: 103 }));
    }

    #[test]
    fn unlimited_pacing_and_unmeasured_rtt_are_absent() {
        let info = TcpInfo::parse(&[0xff; 248]).unwrap();
        assert_eq!((info.pacing_rate, info.min_rtt), (None, None));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let info = TcpInfo::parse(&bytes);
            prop_assert_eq!(info.is_ok(), bytes.len() >= 104);
            if let Ok(info) = info {
                let _ = info.in_flight();
            }
        }
    }
}
