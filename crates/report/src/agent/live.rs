//! What limits this host's connections, as an answer.

use super::schema::{self, bounded, integer, list, object, text, with_columns};
use super::{AnswerFields, QuotedFrom, fields, fit, json, quoted, sentence};
use fullpipe_flow::Language;
use fullpipe_flow::diagnosis::live::LiveConnection;
use fullpipe_flow::diagnosis::{Explanation, SubCause};
use fullpipe_flow::schema::{LIVE_CONNECTIONS, LiveRow};
use fullpipe_model::units::Instant;
use serde_json::Value;

/// What was found of a host's connections.
#[derive(Debug, Clone, Copy)]
pub struct LiveLook<'a> {
    /// How many connections the host has.
    pub total: usize,
    /// How many of the selected ones were busy.
    pub busy: usize,
    /// Those that were followed, the worst first.
    pub connections: &'a [LiveConnection],
    /// What the machine itself dropped or held back meanwhile.
    pub machine: &'a [Explanation],
}

/// Columns of a live connection.
const COLUMNS: [&str; 14] = [
    "local",
    "remote",
    "role",
    "limited_by",
    "limit_cause",
    "limit_share",
    "limit_confidence",
    "time_us",
    "held_us",
    "lost_us",
    "goodput_bps",
    "acts",
    "headline",
    "remedy",
];

/// What limits this host's connections.
pub fn live(look: LiveLook<'_>) -> Value {
    let rows: Vec<_> = look.connections.iter().map(row).collect();
    let machine: Vec<_> = look.machine.iter().map(cause).collect();
    let after = look.busy.saturating_sub(rows.len());
    let told = fields([
        ("connections_total", json(look.total)),
        ("connections_busy", json(look.busy)),
        ("connections", json(rows)),
        ("machine", json(machine)),
    ]);
    let left_out = fields([("connections", json(after))]);
    let more = "the worst come first: give filter for fewer, for example `peer 192.0.2.7` or \
                `port 443`";
    fit(told, &["connections", "machine"], left_out, more)
}

fn row(one: &LiveConnection) -> Value {
    let mut told = AnswerFields::new();
    let row = LiveRow { looked: Instant::from_nanos(0), connection: one };
    for column in LIVE_CONNECTIONS.iter().filter(|column| COLUMNS.contains(&column.name)) {
        let value = json((column.get)(&row));
        if !value.is_null() {
            told.insert(column.name.into(), value);
        }
    }
    let causes: Vec<_> = one.answer.causes.iter().map(cause).collect();
    told.insert("causes".into(), json(causes));
    if let Some(process) = &one.process {
        told.insert("pid".into(), json(process.pid));
        told.insert("process".into(), quoted(QuotedFrom::Host, &process.name));
    }
    Value::Object(told)
}

/// A cause with its settings. Its words name programs and devices.
fn cause(one: &Explanation) -> Value {
    let words = Language::English.sub_cause(&one.sub_cause);
    let words = match one.sub_cause {
        SubCause::Machine(_) => sentence(QuotedFrom::Host, &words),
        SubCause::Packets(_) | SubCause::Socket(_) => json(words),
    };
    Value::Object(fields([("name", json(one.sub_cause.name())), ("words", words)]))
}

/// The schema of [`live`].
pub fn live_schema() -> Value {
    let words = serde_json::json!({
        "anyOf": [text("in words"), schema::sentence(QuotedFrom::Host, "in words, with names")],
    });
    let cause = object([("name", text("its name")), ("words", words)], AnswerFields::new());
    let mut row = with_columns(AnswerFields::new(), LIVE_CONNECTIONS, &COLUMNS);
    row.insert("causes".into(), list(cause.clone()));
    row.insert("pid".into(), integer("the process that has it open"));
    row.insert("process".into(), schema::quoted(QuotedFrom::Host, "its name"));
    object(
        [
            ("connections_total", integer("TCP connections of this host")),
            ("connections_busy", integer("those that moved data or waited to")),
            ("connections", list(object([], row))),
            ("machine", list(cause)),
        ],
        bounded(AnswerFields::new()),
    )
}
