//! One run of the lab, with its scenario's values beside it.
//!
//! Counts are of packets. A column is from the capture of the end at which its event can be seen:
//! the sender's for what the sender did (retransmission, window full, round-trip times), the
//! receiver's for what reached and left the receiver (duplicate ACK, out of order, zero window,
//! packets).

mod clock;
mod failed;
mod limited;
mod stored;

pub use clock::Clock;

use super::{Cell, Column, Kind, Place, Record, Version};
use crate::limit::Candidate;
use fullpipe_model::limit::{Cause, Limit};
use fullpipe_model::scenario::{LinkEngine, Scenario};
use fullpipe_model::units::{Bytes, Duration, Rate, Window};
use stored::Stored;

/// Rows of runs.
pub enum Runs {}
/// Rows of scenarios, beside those of their runs.
pub enum Scenarios {}

impl Record for Runs {
    type Row<'r> = RunRow;
}
impl Record for Scenarios {
    type Row<'r> = Scenario;
}

type R = Column<Runs>;
type S = Column<Scenarios>;

/// The column of a limit's share.
const fn share(name: &'static str, get: for<'r> fn(&'r RunRow) -> Cell<'r>) -> R {
    R::new(
        name,
        Kind::Fraction,
        "it never limited the transfer",
        "share of the time for which it was the limit",
        get,
    )
    .at(Place::Rows)
}

fn share_of(row: &RunRow, limit: Limit) -> Cell<'_> {
    let found = row.limits.iter().find(|candidate| candidate.limit == limit);
    Cell::fraction(found.map(|candidate| candidate.share))
}

/// Declares the row and its table at once: a field with its type, the column's name, when it is
/// absent and what it means; or, where a field is not one column of its type, how it is read and
/// its columns.
macro_rules! run_row {
    ($(
        $(#[doc = $doc:literal])*
        $field:ident: $type:ty
        $(= $name:literal, $null:literal, $meaning:literal)?
        $([$($serde:tt)*] $($column:expr),+)?;
    )*) => {
        /// What one run showed. The row of a failed run ([`RunRow::error`]) says what was run and
        /// why it failed; its figures are zero or absent here and are not written.
        #[derive(Debug, Clone, PartialEq, Default, serde::Deserialize)]
        #[serde(default)]
        pub struct RunRow {
            $(
                $(#[doc = $doc])*
                $(#[doc = $meaning] #[serde(rename = $name, deserialize_with = "Stored::read")])?
                $(#[serde($($serde)*)])?
                pub $field: $type,
            )*
        }

        /// One run: what was run, what it showed, and what the laws allow.
        pub static RUNS: &[R] = &[
            $(
                $(R::new($name, <$type as Stored>::KIND, $null, $meaning, |row| {
                    row.$field.cell()
                }),)?
                $($($column,)+)?
            )*
            share("limit_receive_window", |row| share_of(row, Limit::ReceiveWindow)),
            share("limit_receiver_application", |row| share_of(row, Limit::ReceiverApplication)),
            share("limit_send_buffer", |row| share_of(row, Limit::SendBuffer)),
            share("limit_sender_application", |row| share_of(row, Limit::SenderApplication)),
            share("limit_congestion_window_slow_start", |row| {
                share_of(row, Limit::CongestionWindow(Cause::SlowStart))
            }),
            share("limit_congestion_window_loss", |row| {
                share_of(row, Limit::CongestionWindow(Cause::Loss))
            }),
            share("limit_link", |row| share_of(row, Limit::Link)),
            share("limit_application_window", |row| share_of(row, Limit::ApplicationWindow)),
            share("limit_unknown", |row| share_of(row, Limit::Unknown)),
        ];
    };
}

run_row! {
    /// The version of the columns with which it was written.
    schema: Version
        [default = "Version::unsaid"]
        R::new("schema", Kind::Number, "", "version of this table", |row| {
            Cell::number(row.schema.0)
        });
    name: String = "name", "", "scenario, case and place in the matrix";
    repetition: u32 = "repetition", "", "number of the repetition, from 1";
    engine: Clock = "engine", "", "the clock of the run: `real` or `virtual`";
    link_engine: LinkEngine = "link_engine", "", "what carried the packets: `own` or `netem`";
    cached: bool = "cached", "", "from the cache, not run anew";
    kernel: String = "kernel", "", "release of the kernel under test";
    congestion_control: Option<String> =
        "congestion_control",
        "not sampled",
        "of the sender's socket";
    rtt_nominal: Duration = "rtt_nominal_us", "", "the link's configured round trip";
    rate_nominal: Option<Rate> =
        "rate_nominal_bps",
        "no rate was configured",
        "the link's configured rate, in IP packets";
    handshake_rtt: Option<Duration> =
        "handshake_rtt_us",
        "not captured",
        "time from SYN to SYN-ACK";
    rtt_min: Option<Duration> =
        "rtt_min_us",
        "nothing was acknowledged",
        "least round trip of data";
    rtt_p50: Option<Duration> =
        "rtt_p50_us",
        "nothing was acknowledged",
        "median round trip of data, queueing included";
    rtt_p99: Option<Duration> = "rtt_p99_us", "nothing was acknowledged", "99 % are at most this";
    window_max: Option<Window> =
        "window_max_bytes",
        "none was seen",
        "largest receive window that was advertised";
    in_flight_max: Bytes = "in_flight_max_bytes", "", "most payload in flight at the sender";
    in_flight_mean: Option<Bytes> =
        "in_flight_mean_bytes",
        "no data",
        "mean payload in flight at the sender: goodput times round trip";
    receive_queue_mean: Option<Bytes> =
        "receive_queue_mean_bytes",
        "not sampled",
        "mean of what was received and not read, all connections together, by the samples";
    receive_queue_max: Option<Bytes> = "receive_queue_max_bytes", "not sampled", "the most of that";
    receive_memory_mean: Option<Bytes> =
        "receive_memory_mean_bytes",
        "not sampled",
        "mean of the memory that it took, with the kernel's overhead";
    receive_memory_max: Option<Bytes> =
        "receive_memory_max_bytes",
        "not sampled",
        "the most of that";
    body: Bytes = "body_bytes", "", "payload that the receiving application received";
    duration: Duration = "duration_us", "", "from the response's first byte to its last";
    complete: bool = "complete", "", "the whole response arrived; otherwise its time ran out";
    goodput: Rate = "goodput_bps", "", "payload over that time";
    steady_goodput: Option<Rate> =
        "steady_goodput_bps",
        "no data",
        "the same over the second half of the bytes, without slow start";
    frames: Option<Rate> =
        "frames_bps",
        "no time passed",
        "whole Ethernet frames, both ways: capinfos's data rate";
    law: Option<Rate> =
        "law_bps",
        "nothing bounds it",
        "steady goodput that the laws predict without loss: in virtual time over netem from the \
         scenario alone, else for the window seen";
    law_term: Option<Limit> =
        "law_term",
        "nothing bounds it",
        "which term of the law: `receive_window`, `send_buffer`, `congestion_window` or `link`";
    packets: u64 = "packets", "", "packets, both ways, at the receiver";
    retransmission: u64 = "retransmission", "", "segments that the sender sent again";
    duplicate_ack: u64 = "duplicate_ack", "", "duplicate ACKs of the receiver";
    out_of_order: u64 = "out_of_order", "", "segments that arrived out of order";
    window_full: u64 = "window_full", "", "segments that filled the receive window to its edge";
    zero_window: u64 = "zero_window", "", "ACKs with a window of zero";
    queue_dropped: u64 =
        "queue_dropped",
        "",
        "packets that the link dropped because its queue was full";
    lost: u64 = "lost", "", "packets that the link lost at random";
    /// What limited the transfer for the largest share of its time, from the capture at the sender.
    limited_by: Limit
        [flatten, deserialize_with = "limited::by_capture"]
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
        );
    limit_share: f64 = "limit_share", "", "the share of its time for which it did";
    limit_confidence: Option<f64> =
        "limit_confidence",
        "it is not known",
        "how often verdicts like this one are right";
    headline: Option<String> =
        "headline",
        "no data",
        "the answer in a few words: the limit, or `probably A or B` where it is a guess";
    /// Every limit and its share, largest first.
    limits: Vec<Candidate>
        [default]
        R::new("limits", Kind::Objects, "", "every limit with its share, largest first", |row| {
            Cell::Candidates(&row.limits)
        })
        .at(Place::Json("limits"));
    finding: Option<String> =
        "finding",
        "no data",
        "a sentence with the numbers: what limited it, and what would change it";
    /// The same question answered from the sockets' TCP_INFO.
    limited_by_sockets: Option<Limit>
        [flatten, deserialize_with = "limited::by_sockets"]
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
        );
    limit_share_sockets: Option<f64> = "limit_share_sockets", "not sampled", "the share of that";
    connect: Option<Duration> = "connect_us", "iperf3, wget, pv", "curl's time_connect";
    starttransfer: Option<Duration> =
        "starttransfer_us",
        "iperf3, wget, pv",
        "curl's time_starttransfer";
    total: Option<Duration> = "total_us", "iperf3, wget, pv", "curl's time_total";
    link_late_p50: Duration =
        "link_late_p50_us",
        "",
        "half of the packets left the link this much late or less";
    link_late_p99: Duration = "link_late_p99_us", "", "99 % of them";
    link_late_max: Duration = "link_late_max_us", "", "the latest packet";
    quiet: bool =
        "quiet",
        "",
        "the machine was quiet enough for the link to keep its times, and for writer and reader \
         to get a CPU";
    notes: Vec<String> =
        "notes",
        "",
        "what a reader must know: why it was not quiet, what could not be set up";
    reference_goodput: Option<Rate> =
        "reference_goodput_bps",
        "they published none",
        "goodput that somebody else measured: `[reference]`";
    reference_frames: Option<Rate> =
        "reference_frames_bps",
        "they published none",
        "the same if they counted whole frames";
    reference_ratio: Option<f64> =
        "reference_ratio",
        "they published none",
        "ours divided by theirs; for a run that was cut short, of the steady goodput";
    reference_note: Option<String> = "reference_note", "there is none", "what they say about it";
    reference_cause: Option<String> =
        "reference_cause",
        "the row shows no cause",
        "what was changed to show why this differs from the reference";
    error: Option<String> =
        "error",
        "it did not fail",
        "why the run failed: such a row has no figures";
}

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
