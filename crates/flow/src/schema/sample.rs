//! An observation of a socket.

use super::{Cell, Column, Kind, Place, Record};
use fullpipe_model::observe::{Sample, SocketMemory, TcpInfo};
use fullpipe_model::units::{Bytes, Duration, Rate, Window};

/// Rows of samples.
pub enum Samples {}

impl Record for Samples {
    type Row<'r> = Sample;
}

type C = Column<Samples>;

const OLD: &str = "the kernel is too old, or it was not requested";
const NOT_ASKED: &str = "not requested";

const fn info(
    name: &'static str,
    at: &'static str,
    meaning: &'static str,
    get: for<'r> fn(&'r Sample) -> Cell<'r>,
) -> C {
    C::new(name, Kind::Number, OLD, meaning, get).at(Place::At(at))
}

fn of(row: &Sample, get: impl Fn(&TcpInfo) -> Option<u64>) -> Cell<'_> {
    Cell::Number(row.info.as_ref().and_then(get))
}

fn micros(row: &Sample, get: impl Fn(&TcpInfo) -> Option<Duration>) -> Cell<'_> {
    Cell::micros(row.info.as_ref().and_then(get))
}

fn rate(row: &Sample, get: impl Fn(&TcpInfo) -> Option<Rate>) -> Cell<'_> {
    Cell::rate(row.info.as_ref().and_then(get))
}

fn bytes(row: &Sample, get: impl Fn(&TcpInfo) -> Option<Bytes>) -> Cell<'_> {
    Cell::bytes(row.info.as_ref().and_then(get))
}

fn memory(row: &Sample, get: impl Fn(&SocketMemory) -> Bytes) -> Cell<'_> {
    Cell::bytes(row.memory.as_ref().map(get))
}

/// What `ss -tinm` shows of a socket at an instant; of `struct tcp_info` what verdicts use.
pub static SAMPLES: &[C] = &[
    C::new(
        "at_ns",
        Kind::Number,
        "",
        "when it was taken, by the clock of the program that took it",
        |row| Cell::number(row.at.as_nanos()),
    ),
    C::new("local", Kind::Text, "", "the socket's own end", |row| {
        Cell::text(row.local.to_string())
    }),
    C::new("remote", Kind::Text, "", "the other end", |row| Cell::text(row.remote.to_string())),
    C::new("rqueue_bytes", Kind::Number, "", "received and not read by the application", |row| {
        Cell::bytes(row.rqueue)
    }),
    C::new(
        "wqueue_bytes",
        Kind::Number,
        "",
        "written by the application and not acknowledged",
        |row| Cell::bytes(row.wqueue),
    ),
    C::new("congestion_control", Kind::Text, NOT_ASKED, "name of the congestion control", |row| {
        Cell::word(row.congestion_control.as_deref())
    }),
    info("rto_us", "info.rto_us", "retransmission timeout", |row| {
        micros(row, |info| Some(info.rto))
    }),
    info("snd_mss_bytes", "info.snd_mss_bytes", "largest segment that it sends", |row| {
        bytes(row, |info| Some(info.snd_mss))
    }),
    info("unacked", "info.unacked", "segments sent and not acknowledged", |row| {
        of(row, |info| Some(info.unacked.into()))
    }),
    info("sacked", "info.sacked", "of them, reported by SACK", |row| {
        of(row, |info| Some(info.sacked.into()))
    }),
    info("lost", "info.lost", "of them, considered lost", |row| {
        of(row, |info| Some(info.lost.into()))
    }),
    info("retrans", "info.retrans", "of them, sent again and not acknowledged", |row| {
        of(row, |info| Some(info.retrans.into()))
    }),
    info("rtt_us", "info.rtt_us", "smoothed round trip", |row| micros(row, |info| Some(info.rtt))),
    info("rttvar_us", "info.rttvar_us", "its mean deviation", |row| {
        micros(row, |info| Some(info.rttvar))
    }),
    info("snd_ssthresh", "info.snd_ssthresh", "slow start threshold, in segments", |row| {
        of(row, |info| Some(info.snd_ssthresh.into()))
    }),
    info("snd_cwnd", "info.snd_cwnd", "congestion window, in segments", |row| {
        of(row, |info| Some(info.snd_cwnd.into()))
    }),
    info("total_retrans", "info.total_retrans", "segments sent again so far", |row| {
        of(row, |info| Some(info.total_retrans.into()))
    }),
    info("pacing_rate_bps", "info.pacing_rate_bps", "pacing rate", |row| {
        rate(row, |info| info.pacing_rate)
    }),
    info("bytes_acked", "info.bytes_acked", "bytes acknowledged so far", |row| {
        bytes(row, |info| info.bytes_acked)
    }),
    info("bytes_received", "info.bytes_received", "bytes received so far", |row| {
        bytes(row, |info| info.bytes_received)
    }),
    info("rcv_wnd_bytes", "info.rcv_wnd_bytes", "receive window that it advertised last", |row| {
        bytes(row, |info| info.rcv_wnd.map(Window::bytes))
    }),
    info("rcv_rtt_us", "info.rcv_rtt_us", "round trip as its receiver estimates it", |row| {
        micros(row, |info| Some(info.rcv_rtt))
    }),
    info(
        "notsent_bytes",
        "info.notsent_bytes",
        "bytes in the send queue that were not sent yet",
        |row| bytes(row, |info| info.notsent_bytes),
    ),
    info("min_rtt_us", "info.min_rtt_us", "least round trip", |row| {
        micros(row, |info| info.min_rtt)
    }),
    info("delivery_rate_bps", "info.delivery_rate_bps", "the latest delivery rate", |row| {
        rate(row, |info| info.delivery_rate)
    }),
    info("busy_time_us", "info.busy_time_us", "time with data to send or unacknowledged", |row| {
        micros(row, |info| info.busy_time)
    }),
    info(
        "rwnd_limited_us",
        "info.rwnd_limited_us",
        "of it, limited by the receive window",
        |row| micros(row, |info| info.rwnd_limited),
    ),
    info(
        "sndbuf_limited_us",
        "info.sndbuf_limited_us",
        "of it, limited by the send buffer",
        |row| micros(row, |info| info.sndbuf_limited),
    ),
    info("bytes_sent", "info.bytes_sent", "bytes sent so far, including retransmissions", |row| {
        bytes(row, |info| info.bytes_sent)
    }),
    info("bytes_retrans", "info.bytes_retrans", "of them, sent again", |row| {
        bytes(row, |info| info.bytes_retrans)
    }),
    C::new(
        "rmem_alloc_bytes",
        Kind::Number,
        NOT_ASKED,
        "memory of data received and not read",
        |row| memory(row, |memory| memory.rmem_alloc),
    )
    .at(Place::At("memory.rmem_alloc_bytes")),
    C::new("rcvbuf_bytes", Kind::Number, NOT_ASKED, "receive buffer", |row| {
        memory(row, |memory| memory.rcvbuf)
    })
    .at(Place::At("memory.rcvbuf_bytes")),
    C::new("sndbuf_bytes", Kind::Number, NOT_ASKED, "send buffer", |row| {
        memory(row, |memory| memory.sndbuf)
    })
    .at(Place::At("memory.sndbuf_bytes")),
    C::new(
        "wmem_queued_bytes",
        Kind::Number,
        NOT_ASKED,
        "memory of the write queue: what fills the send buffer",
        |row| memory(row, |memory| memory.wmem_queued),
    )
    .at(Place::At("memory.wmem_queued_bytes")),
    C::new(
        "backlog_bytes",
        Kind::Number,
        NOT_ASKED,
        "memory of segments that wait for the socket's lock",
        |row| memory(row, |memory| memory.backlog),
    )
    .at(Place::At("memory.backlog_bytes")),
];
