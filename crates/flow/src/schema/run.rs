//! One run of the lab, with its scenario's values beside it.

use super::{Cell, Column, Kind, Place, Record};
use crate::row::Row;
use fullpipe_model::limit::{Cause, Limit};
use fullpipe_model::scenario::Scenario;

/// Rows of runs.
pub enum Runs {}
/// Rows of scenarios, beside those of their runs.
pub enum Scenarios {}

impl Record for Runs {
    type Row<'r> = Row;
}
impl Record for Scenarios {
    type Row<'r> = Scenario;
}

type R = Column<Runs>;
type S = Column<Scenarios>;

/// The column of a limit's share.
macro_rules! share {
    ($name:literal, $limit:expr) => {
        R::new(
            $name,
            Kind::Fraction,
            "it never limited the transfer",
            "share of the time for which it was the limit",
            |row| share_of(row, $limit),
        )
        .at(Place::Rows)
    };
}

fn share_of(row: &Row, limit: Limit) -> Cell<'_> {
    let found = row.limits.iter().find(|candidate| candidate.limit == limit);
    Cell::fraction(found.map(|candidate| candidate.share))
}

/// One run: what was run, what it showed, and what the laws allow.
pub static RUNS: &[R] = &[
    R::new("schema", Kind::Number, "", "version of this table", |row| Cell::number(row.schema.0)),
    R::new("name", Kind::Text, "", "scenario, case and place in the matrix", |row| {
        Cell::text(row.name.as_str())
    }),
    R::new("repetition", Kind::Number, "", "number of the repetition, from 1", |row| {
        Cell::number(row.repetition)
    }),
    R::new("engine", Kind::Text, "", "the clock of the run: `real` or `virtual`", |row| {
        Cell::text(row.engine.name())
    }),
    R::new("link_engine", Kind::Text, "", "what carried the packets: `own` or `netem`", |row| {
        Cell::text(row.link_engine.name())
    }),
    R::new("cached", Kind::Boolean, "", "from the cache, not run anew", |row| {
        Cell::Boolean(Some(row.cached))
    }),
    R::new("kernel", Kind::Text, "", "release of the kernel under test", |row| {
        Cell::text(row.kernel.as_str())
    }),
    R::new("congestion_control", Kind::Text, "not sampled", "of the sender's socket", |row| {
        Cell::word(row.congestion_control.as_deref())
    }),
    R::new("rtt_nominal_us", Kind::Number, "", "the link's configured round trip", |row| {
        Cell::micros(row.rtt_nominal)
    }),
    R::new(
        "rate_nominal_bps",
        Kind::Number,
        "no rate was configured",
        "the link's configured rate, in IP packets",
        |row| Cell::rate(row.rate_nominal),
    ),
    R::new("handshake_rtt_us", Kind::Number, "not captured", "time from SYN to SYN-ACK", |row| {
        Cell::micros(row.handshake_rtt)
    }),
    R::new(
        "rtt_min_us",
        Kind::Number,
        "nothing was acknowledged",
        "least round trip of data",
        |row| Cell::micros(row.rtt_min),
    ),
    R::new(
        "rtt_p50_us",
        Kind::Number,
        "nothing was acknowledged",
        "median round trip of data, queueing included",
        |row| Cell::micros(row.rtt_p50),
    ),
    R::new(
        "rtt_p99_us",
        Kind::Number,
        "nothing was acknowledged",
        "99 % are at most this",
        |row| Cell::micros(row.rtt_p99),
    ),
    R::new(
        "window_max_bytes",
        Kind::Number,
        "none was seen",
        "largest receive window that was advertised",
        |row| Cell::window(row.window_max),
    ),
    R::new(
        "in_flight_max_bytes",
        Kind::Number,
        "",
        "most payload in flight at the sender",
        |row| Cell::bytes(row.in_flight_max),
    ),
    R::new(
        "in_flight_mean_bytes",
        Kind::Number,
        "no data",
        "mean payload in flight at the sender: goodput times round trip",
        |row| Cell::bytes(row.in_flight_mean),
    ),
    R::new(
        "receive_queue_mean_bytes",
        Kind::Number,
        "not sampled",
        "mean of what was received and not read, all connections together, by the samples",
        |row| Cell::bytes(row.receive_queue_mean),
    ),
    R::new("receive_queue_max_bytes", Kind::Number, "not sampled", "the most of that", |row| {
        Cell::bytes(row.receive_queue_max)
    }),
    R::new(
        "receive_memory_mean_bytes",
        Kind::Number,
        "not sampled",
        "mean of the memory that it took, with the kernel's overhead",
        |row| Cell::bytes(row.receive_memory_mean),
    ),
    R::new("receive_memory_max_bytes", Kind::Number, "not sampled", "the most of that", |row| {
        Cell::bytes(row.receive_memory_max)
    }),
    R::new(
        "body_bytes",
        Kind::Number,
        "",
        "payload that the receiving application received",
        |row| Cell::bytes(row.body),
    ),
    R::new("duration_us", Kind::Number, "", "from the response's first byte to its last", |row| {
        Cell::micros(row.duration)
    }),
    R::new(
        "complete",
        Kind::Boolean,
        "",
        "the whole response arrived; otherwise its time ran out",
        |row| Cell::Boolean(Some(row.complete)),
    ),
    R::new("goodput_bps", Kind::Number, "", "payload over that time", |row| {
        Cell::rate(row.goodput)
    }),
    R::new(
        "steady_goodput_bps",
        Kind::Number,
        "no data",
        "the same over the second half of the bytes, without slow start",
        |row| Cell::rate(row.steady_goodput),
    ),
    R::new(
        "frames_bps",
        Kind::Number,
        "no time passed",
        "whole Ethernet frames, both ways: capinfos's data rate",
        |row| Cell::rate(row.frames),
    ),
    R::new(
        "law_bps",
        Kind::Number,
        "nothing bounds it",
        "steady goodput that the laws predict without loss: in virtual time over netem from the scenario alone, else for the window seen",
        |row| Cell::rate(row.law),
    ),
    R::new(
        "law_term",
        Kind::Text,
        "nothing bounds it",
        "which term of the law: `receive_window`, `send_buffer`, `congestion_window` or `link`",
        |row| Cell::word(row.law_term.map(Limit::name)),
    ),
    R::new("packets", Kind::Number, "", "packets, both ways, at the receiver", |row| {
        Cell::number(row.packets)
    }),
    R::new("retransmission", Kind::Number, "", "segments that the sender sent again", |row| {
        Cell::number(row.retransmission)
    }),
    R::new("duplicate_ack", Kind::Number, "", "duplicate ACKs of the receiver", |row| {
        Cell::number(row.duplicate_ack)
    }),
    R::new("out_of_order", Kind::Number, "", "segments that arrived out of order", |row| {
        Cell::number(row.out_of_order)
    }),
    R::new(
        "window_full",
        Kind::Number,
        "",
        "segments that filled the receive window to its edge",
        |row| Cell::number(row.window_full),
    ),
    R::new("zero_window", Kind::Number, "", "ACKs with a window of zero", |row| {
        Cell::number(row.zero_window)
    }),
    R::new(
        "queue_dropped",
        Kind::Number,
        "",
        "packets that the link dropped because its queue was full",
        |row| Cell::number(row.queue_dropped),
    ),
    R::new("lost", Kind::Number, "", "packets that the link lost at random", |row| {
        Cell::number(row.lost)
    }),
    R::new(
        "limited_by",
        Kind::Text,
        "",
        "what limited the transfer, by the capture at the sender",
        |row| Cell::text(row.limited_by.name()),
    ),
    R::new(
        "limit_cause",
        Kind::Text,
        "the limit is no congestion window",
        "`slow_start` or `loss`, of a congestion window",
        |row| Cell::word(row.limited_by.cause()),
    ),
    R::new("limit_share", Kind::Fraction, "", "the share of its time for which it did", |row| {
        Cell::fraction(row.limit_share)
    }),
    R::new(
        "limit_confidence",
        Kind::Fraction,
        "it is not known",
        "how often verdicts like this one are right",
        |row| Cell::fraction(row.limit_confidence),
    ),
    R::new(
        "headline",
        Kind::Text,
        "no data",
        "the answer in a few words: the limit, or `probably A or B` where it is a guess",
        |row| Cell::word(row.headline.as_deref()),
    ),
    R::new("limits", Kind::Objects, "", "every limit with its share, largest first", |row| {
        Cell::Candidates(&row.limits)
    })
    .at(Place::Json("limits")),
    R::new(
        "finding",
        Kind::Text,
        "no data",
        "a sentence with the numbers: what limited it, and what would change it",
        |row| Cell::word(row.finding.as_deref()),
    ),
    R::new(
        "limited_by_sockets",
        Kind::Text,
        "not sampled",
        "the same question answered from the sockets' TCP_INFO",
        |row| Cell::word(row.limited_by_sockets.map(Limit::name)),
    ),
    R::new(
        "limit_cause_sockets",
        Kind::Text,
        "the limit is no congestion window",
        "the cause of that",
        |row| Cell::word(row.limited_by_sockets.and_then(Limit::cause)),
    ),
    R::new("limit_share_sockets", Kind::Fraction, "not sampled", "the share of that", |row| {
        Cell::fraction(row.limit_share_sockets)
    }),
    R::new("connect_us", Kind::Number, "iperf3, wget, pv", "curl's time_connect", |row| {
        Cell::micros(row.connect)
    }),
    R::new(
        "starttransfer_us",
        Kind::Number,
        "iperf3, wget, pv",
        "curl's time_starttransfer",
        |row| Cell::micros(row.starttransfer),
    ),
    R::new("total_us", Kind::Number, "iperf3, wget, pv", "curl's time_total", |row| {
        Cell::micros(row.total)
    }),
    R::new(
        "link_late_p50_us",
        Kind::Number,
        "",
        "half of the packets left the link this much late or less",
        |row| Cell::micros(row.link_late_p50),
    ),
    R::new("link_late_p99_us", Kind::Number, "", "99 % of them", |row| {
        Cell::micros(row.link_late_p99)
    }),
    R::new("link_late_max_us", Kind::Number, "", "the latest packet", |row| {
        Cell::micros(row.link_late_max)
    }),
    R::new(
        "quiet",
        Kind::Boolean,
        "",
        "the machine was quiet enough for the link to keep its times, and for writer and reader to get a CPU",
        |row| Cell::Boolean(Some(row.quiet)),
    ),
    R::new(
        "notes",
        Kind::Texts,
        "",
        "what a reader must know: why it was not quiet, what could not be set up",
        |row| Cell::Texts(&row.notes),
    ),
    R::new(
        "reference_goodput_bps",
        Kind::Number,
        "they published none",
        "goodput that somebody else measured: `[reference]`",
        |row| Cell::rate(row.reference_goodput),
    ),
    R::new(
        "reference_frames_bps",
        Kind::Number,
        "they published none",
        "the same if they counted whole frames",
        |row| Cell::rate(row.reference_frames),
    ),
    R::new(
        "reference_ratio",
        Kind::Fraction,
        "they published none",
        "ours divided by theirs; for a run that was cut short, of the steady goodput",
        |row| Cell::fraction(row.reference_ratio),
    ),
    R::new("reference_note", Kind::Text, "there is none", "what they say about it", |row| {
        Cell::word(row.reference_note.as_deref())
    }),
    R::new(
        "reference_cause",
        Kind::Text,
        "the row shows no cause",
        "what was changed to show why this differs from the reference",
        |row| Cell::word(row.reference_cause.as_deref()),
    ),
    R::new(
        "error",
        Kind::Text,
        "it did not fail",
        "why the run failed: such a row has no figures",
        |row| Cell::word(row.error.as_deref()),
    ),
    share!("limit_receive_window", Limit::ReceiveWindow),
    share!("limit_receiver_application", Limit::ReceiverApplication),
    share!("limit_send_buffer", Limit::SendBuffer),
    share!("limit_sender_application", Limit::SenderApplication),
    share!("limit_congestion_window_slow_start", Limit::CongestionWindow(Cause::SlowStart)),
    share!("limit_congestion_window_loss", Limit::CongestionWindow(Cause::Loss)),
    share!("limit_link", Limit::Link),
    share!("limit_unknown", Limit::Unknown),
];

/// A scenario's values, as numbers.
pub static SCENARIOS: &[S] = &[
    S::new("seed", Kind::Number, "", "seed of the link's randomness", |row| {
        Cell::number(row.path.seed)
    })
    .at(Place::Rows),
    S::new("mtu_bytes", Kind::Number, "", "largest IP packet of the path", |row| {
        Cell::bytes(row.path.mtu)
    })
    .at(Place::Rows),
    S::new("size_bytes", Kind::Number, "", "size of the file", |row| {
        Cell::bytes(row.transfer.size)
    })
    .at(Place::Rows),
    S::new("duration_max_us", Kind::Number, "", "the transfer is stopped after this long", |row| {
        Cell::micros(row.transfer.duration)
    })
    .at(Place::Rows),
    S::new(
        "read_rate_bps",
        Kind::Number,
        "not set",
        "the receiving application reads no faster",
        |row| Cell::rate(row.transfer.read_rate),
    )
    .at(Place::Rows),
    S::new(
        "write_rate_bps",
        Kind::Number,
        "not set",
        "the sending application writes no faster",
        |row| Cell::rate(row.transfer.write_rate),
    )
    .at(Place::Rows),
    S::new(
        "receive_buffer_bytes",
        Kind::Number,
        "not set",
        "SO_RCVBUF of the receiving application",
        |row| Cell::bytes(row.transfer.receive_buffer),
    )
    .at(Place::Rows),
    S::new(
        "send_buffer_bytes",
        Kind::Number,
        "not set",
        "SO_SNDBUF of the sending application",
        |row| Cell::bytes(row.transfer.send_buffer),
    )
    .at(Place::Rows),
    S::new("sample_interval_us", Kind::Number, "", "how often sockets are observed", |row| {
        Cell::micros(row.sample_interval)
    })
    .at(Place::Rows),
    S::new("snaplen_bytes", Kind::Number, "", "what is captured of each packet", |row| {
        Cell::bytes(row.capture.snaplen)
    })
    .at(Place::Rows),
];
