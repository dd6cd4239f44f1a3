//! What limited a run, interval by interval, as its kernel knew it.

use super::{Cell, Column, Kind, Record};
use crate::limit::truth::TruthInterval;

/// Rows of truth.
pub enum TruthIntervals {}

impl Record for TruthIntervals {
    type Row<'r> = TruthInterval;
}

type C = Column<TruthIntervals>;

/// What a sender waited for between two samples of its socket.
pub static TRUTH_INTERVALS: &[C] = &[
    C::new("local", Kind::Text, "", "the sending socket's own end", |row| {
        Cell::text(row.local.to_string())
    }),
    C::new("remote", Kind::Text, "", "the other end", |row| Cell::text(row.remote.to_string())),
    C::new("start_ns", Kind::Number, "", "when it starts, since 1970", |row| {
        Cell::number(row.start.as_nanos())
    }),
    C::new("length_us", Kind::Number, "", "how long it is", |row| Cell::micros(row.length)),
    C::new(
        "limits",
        Kind::Objects,
        "",
        "what limited the transfer, the largest share first; `unknown` where the numbers that \
         follow do not decide",
        |row| Cell::Candidates(&row.limits),
    ),
    C::new(
        "waits",
        Kind::Objects,
        "",
        "what the sending kernel counted: a `reason`, the `phase` of congestion control, and \
         `time_ns`",
        |row| Cell::Waits(&row.waits),
    ),
    C::new(
        "link_busy",
        Kind::Fraction,
        "the link's rate is not known",
        "for what part of the last round trip, and at least of the interval, the link was sending",
        |row| Cell::fraction(row.link_busy),
    ),
    C::new(
        "unread",
        Kind::Fraction,
        "the receiving kernel did not count",
        "for what part of the same time data waited for the receiving application",
        |row| Cell::fraction(row.unread),
    ),
];
