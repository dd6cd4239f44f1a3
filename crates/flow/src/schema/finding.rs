//! The parts of a connection: intervals, findings, and stretches of its time.

use super::{Cell, Column, Kind, Place, Record};
use crate::account::AccountSpan;
use crate::connection::Direction;
use crate::diagnosis::{Explanation, OfDirection};
use crate::finding::Finding;
use crate::finding::words;
use crate::limit::Interval;

/// Intervals of a connection.
pub enum Intervals {}
/// Findings of a connection.
pub enum Findings {}
/// What lies behind a connection's limits.
pub enum SubCauses {}
/// Stretches of a connection's time.
pub enum Spans {}

impl Record for Intervals {
    type Row<'r> = OfDirection<&'r Interval>;
}
impl Record for Findings {
    type Row<'r> = OfDirection<Finding>;
}

impl Record for SubCauses {
    type Row<'r> = OfDirection<Explanation>;
}

impl Record for Spans {
    type Row<'r> = AccountSpan;
}

type I = Column<Intervals>;
type S = Column<SubCauses>;
type F = Column<Findings>;

const DIRECTION: &str = "whose data: `client_to_server` or `server_to_client`";

/// A span of time of one direction, what held its data and the numbers that decided it.
pub static INTERVALS: &[I] = &[
    I::new("direction", Kind::Text, "", DIRECTION, |row| Cell::text(row.direction.name())),
    I::new("start_ns", Kind::Number, "", "when it starts, since 1970", |row| {
        Cell::number(row.what.start.as_nanos())
    }),
    I::new("length_us", Kind::Number, "", "how long it is", |row| Cell::micros(row.what.length)),
    I::new(
        "candidates",
        Kind::Objects,
        "",
        "limits with their shares, the first limit first",
        |row| Cell::Candidates(&row.what.candidates),
    ),
    I::new("limit", Kind::Text, "", "the first of them", |row| {
        Cell::word(row.what.candidates.first().map(|first| first.limit.name()))
    })
    .at(Place::Rows),
    I::new(
        "cause",
        Kind::Text,
        "the limit is no congestion window",
        "`slow_start` or `loss`, of a congestion window",
        |row| Cell::word(row.what.candidates.first().and_then(|first| first.limit.cause())),
    )
    .at(Place::Rows),
    I::new("share", Kind::Fraction, "", "for what part of the interval", |row| {
        Cell::fraction(row.what.candidates.first().map(|first| first.share))
    })
    .at(Place::Rows),
    I::new("goodput_bps", Kind::Number, "", "payload newly acknowledged, by time", |row| {
        Cell::rate(row.what.evidence.goodput)
    }),
    I::new("in_flight_bytes", Kind::Number, "", "most payload in flight", |row| {
        Cell::bytes(row.what.evidence.in_flight)
    }),
    I::new("in_flight_mean_bytes", Kind::Number, "from samples", "mean payload in flight", |row| {
        Cell::bytes(row.what.evidence.in_flight_mean)
    }),
    I::new("window_bytes", Kind::Number, "not seen", "the receive window that bounded it", |row| {
        Cell::window(row.what.evidence.window)
    }),
    I::new(
        "rtt_us",
        Kind::Number,
        "nothing was acknowledged",
        "the least round trip in it",
        |row| Cell::micros(row.what.evidence.rtt),
    ),
    I::new(
        "window_full",
        Kind::Fraction,
        "",
        "part of the time in which the next segment did not fit",
        |row| Cell::fraction(row.what.evidence.window_full),
    ),
    I::new("idle", Kind::Fraction, "", "part of the time in which nothing was in flight", |row| {
        Cell::fraction(row.what.evidence.idle)
    }),
    I::new("retransmissions", Kind::Number, "", "segments sent again", |row| {
        Cell::number(row.what.evidence.retransmissions)
    }),
    I::new(
        "sndbuf_limited",
        Kind::Fraction,
        "from a capture",
        "part of the time that the send buffer took",
        |row| Cell::fraction(row.what.evidence.sndbuf_limited),
    ),
    I::new(
        "unread_bytes",
        Kind::Number,
        "from a capture",
        "received and not read by the application",
        |row| Cell::bytes(row.what.evidence.unread),
    ),
    I::new("beside_bps", Kind::Number, NO_OTHERS, BESIDE, |row| {
        Cell::rate(row.what.evidence.beside)
    }),
];

/// Where nothing passed beside a connection, and what did.
const NO_OTHERS: &str = "from samples, or there was none";
const BESIDE: &str = "what other connections of the same two hosts carried the same way";

/// Stretches of a connection's time, one after another without a gap: who had each, and for what.
pub static SPANS: &[Column<Spans>] = &[
    Column::new("start_ns", Kind::Number, "", "when it starts, since 1970", |row| {
        Cell::number(row.start.as_nanos())
    }),
    Column::new("length_us", Kind::Number, "", "how long it is", |row| Cell::micros(row.length)),
    Column::new(
        "owner",
        Kind::Text,
        "",
        "who had it, and so who can give it back: the names of the account's parts",
        |row| Cell::text(row.owner.name()),
    ),
    Column::new("cause", Kind::Text, "", "for what: the names of the account's parts", |row| {
        Cell::text(row.cause.name())
    }),
    Column::new(
        "direction",
        Kind::Text,
        "no data was on its way",
        "whose data was on its way: `client_to_server` or `server_to_client`",
        |row| Cell::word(row.direction.map(Direction::name)),
    ),
];

const NOT_KNOWN: &str = "not known";
const REMEDY_NAME: &str = "the same as a name that does not change";
const NOT_FIRST: &str = "not the first limit of its direction";

/// What a verdict means: a claim, its numbers, and what would change it.
pub static FINDINGS: &[F] = &[
    F::new("direction", Kind::Text, "", DIRECTION, |row| Cell::text(row.direction.name())),
    F::new("limit", Kind::Text, "", "what limited the data", |row| {
        Cell::text(row.what.limit.name())
    }),
    F::new(
        "cause",
        Kind::Text,
        "the limit is no congestion window",
        "`slow_start` or `loss`, of a congestion window",
        |row| Cell::word(row.what.limit.cause()),
    ),
    F::new("share", Kind::Fraction, "", "for what part of its time", |row| {
        Cell::fraction(row.what.share)
    }),
    F::new("confidence", Kind::Fraction, NOT_FIRST, "how often such a verdict is right", |row| {
        Cell::fraction(row.what.confidence)
    }),
    F::new(
        "headline",
        Kind::Text,
        NOT_FIRST,
        "the answer in a few words: the limit, or `probably A or B` where it is a guess",
        |row| Cell::word(row.what.headline.map(|headline| headline.to_string())),
    ),
    F::new(
        "either",
        Kind::Objects,
        "not a guess",
        "the two limits of a guess, the likelier first, each with how likely the judge finds it",
        |row| Cell::Candidates(&row.what.either),
    ),
    F::new("doubt", Kind::Text, "not a guess", "why it is no more than a guess", |row| {
        Cell::word(row.what.doubt.as_ref().map(words::doubt))
    }),
    F::new("claim", Kind::Text, "", "a sentence with the numbers", |row| {
        Cell::text(words::claim(&row.what))
    }),
    F::new(
        "allowed_bps",
        Kind::Number,
        NOT_KNOWN,
        "what the window allows at the round trip then",
        |row| Cell::rate(row.what.evidence.allowed),
    )
    .at(Place::At("evidence.allowed_bps")),
    F::new(
        "burst_bps",
        Kind::Number,
        "no drops from bursts, or a queue",
        "how fast bursts passed a path that dropped from them without a queue",
        |row| Cell::rate(row.what.evidence.burst),
    )
    .at(Place::At("evidence.burst_bps")),
    F::new(
        "flights",
        Kind::Number,
        "something held it, or it is long",
        "how many flights a short transfer took that nothing held",
        |row| Cell::Number(row.what.evidence.flights.map(u64::from)),
    )
    .at(Place::At("evidence.flights")),
    F::new(
        "elsewhere_bps",
        Kind::Number,
        "not a fifth more",
        "the most that other intervals carried",
        |row| Cell::rate(row.what.evidence.elsewhere),
    )
    .at(Place::At("evidence.elsewhere_bps")),
    F::new("goodput_bps", Kind::Number, "", "mean goodput while it was the limit", |row| {
        Cell::rate(row.what.evidence.goodput)
    })
    .at(Place::At("evidence.goodput_bps")),
    F::new("in_flight_bytes", Kind::Number, "", "median payload in flight", |row| {
        Cell::bytes(row.what.evidence.in_flight)
    })
    .at(Place::At("evidence.in_flight_bytes")),
    F::new(
        "retransmissions",
        Kind::Number,
        "",
        "segments retransmitted while it was the limit",
        |row| Cell::number(row.what.evidence.retransmissions),
    )
    .at(Place::At("evidence.retransmissions")),
    F::new("rtt_path_us", Kind::Number, NOT_KNOWN, "the path's round trip", |row| {
        Cell::micros(row.what.evidence.rtt_path)
    })
    .at(Place::At("evidence.rtt_path_us")),
    F::new("rtt_us", Kind::Number, NOT_KNOWN, "median round trip while it was the limit", |row| {
        Cell::micros(row.what.evidence.rtt)
    })
    .at(Place::At("evidence.rtt_us")),
    F::new("time_us", Kind::Number, "", "for how long it was the limit", |row| {
        Cell::micros(row.what.evidence.time)
    })
    .at(Place::At("evidence.time_us")),
    F::new("window_bytes", Kind::Number, NOT_KNOWN, "the median receive window", |row| {
        Cell::window(row.what.evidence.window)
    })
    .at(Place::At("evidence.window_bytes")),
    F::new(
        "reasons",
        Kind::Objects,
        "",
        "the numbers by which the trained judge came to it",
        |row| Cell::Reasons(&row.what.reasons),
    ),
    F::new(
        "rivals",
        Kind::Objects,
        "",
        "what would have explained it as well, and for what part of that time",
        |row| Cell::Candidates(&row.what.rivals),
    ),
    F::new("remedy", Kind::Text, "", "what would change it", |row| {
        Cell::text(words::remedy(row.what.remedy))
    }),
    F::new("remedy_name", Kind::Text, "", REMEDY_NAME, |row| Cell::text(row.what.remedy.name())),
    F::new(
        "changes",
        Kind::Objects,
        "",
        "the same as sysctls to set, each to at least `to`; `command` never lowers one",
        |row| Cell::Changes(&row.what.changes),
    ),
    F::new(
        "idle",
        Kind::Fraction,
        NO_PACE,
        "the part of the time, 0 to 1, in which TCP had nothing to send; of a reader, in which it kept ACKs back",
        |row| Cell::Fraction(row.what.evidence.idle),
    )
    .at(Place::At("evidence.idle")),
    F::new(
        "period_us",
        Kind::Number,
        NO_PACE,
        "how often the application writes, by a clock",
        |row| Cell::micros(row.what.evidence.period),
    )
    .at(Place::At("evidence.period_us")),
    F::new("beside_bps", Kind::Number, NO_OTHERS, BESIDE, |row| {
        Cell::rate(row.what.evidence.beside)
    })
    .at(Place::At("evidence.beside_bps")),
    F::new(
        "paced_bps",
        Kind::Number,
        NOT_PACED,
        "the rate at which the sender spaces data",
        |row| Cell::rate(row.what.evidence.paced),
    )
    .at(Place::At("evidence.paced_bps")),
    F::new(
        "carries_bps",
        Kind::Number,
        "no drops of a full link left a window that grows back",
        "what the link carries when it is full",
        |row| Cell::rate(row.what.evidence.carries),
    )
    .at(Place::At("evidence.carries_bps")),
    F::new(
        "drops_after_bytes",
        Kind::Number,
        "drops are not too regular for chance, or another limit is named",
        "after how much data a full queue or policer dropped each time",
        |row| Cell::bytes(row.what.evidence.drops_after),
    )
    .at(Place::At("evidence.drops_after_bytes")),
];

/// Of which findings nothing shows that the sender spaces its data.
const NOT_PACED: &str = "the path may have spaced the data, or nothing did";

/// Of which findings the application's pace is not known.
const NO_PACE: &str = "its pauses do not prove that the application sets the pace";

const OF_OTHERS: &str = "of other sub-causes";

/// What lies behind a limit: a claim, its numbers, and what would change it.
pub static SUB_CAUSES: &[S] = &[
    S::new("direction", Kind::Text, "", DIRECTION, |row| Cell::text(row.direction.name())),
    S::new(
        "sub_cause",
        Kind::Text,
        "",
        "`no_answer`, `path_mtu`, `window_scale`, `policer`, `sharing`, `timeouts`, `idle_restart`, `delayed_ack`, `application_window`, `ack_path`, `host_reordering`, `reordering`",
        |row| Cell::text(row.what.sub_cause.name()),
    ),
    S::new("claim", Kind::Text, "", "a sentence with the numbers", |row| {
        Cell::text(words::sub_cause(&row.what.sub_cause))
    }),
    S::new("remedy", Kind::Text, "", "what would change it", |row| {
        Cell::text(words::remedy(row.what.remedy))
    }),
    S::new("remedy_name", Kind::Text, "", REMEDY_NAME, |row| Cell::text(row.what.remedy.name())),
    S::new("count", Kind::Number, OF_OTHERS, "how often it happened", |row| {
        Cell::Number(row.what.sub_cause.numbers().count)
    }),
    S::new(
        "time_us",
        Kind::Number,
        OF_OTHERS,
        "the time that it took; of `ack_path`, the mean wait of an ACK",
        |row| Cell::micros(row.what.sub_cause.numbers().time),
    ),
    S::new("rate_bps", Kind::Number, OF_OTHERS, "a rate that it holds payload to", |row| {
        Cell::rate(row.what.sub_cause.numbers().rate)
    }),
    S::new(
        "amount_bytes",
        Kind::Number,
        OF_OTHERS,
        "a policer's burst; most in flight before a pause, or before an answer",
        |row| Cell::bytes(row.what.sub_cause.numbers().amount),
    ),
];
