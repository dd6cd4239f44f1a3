//! What a capture says, as an answer: its connections, or all of one.

use super::schema::{bounded, integer, list, maybe, number, object, text, with_columns};
use super::{AnswerFields, QuotedFrom, fields, fit, json, quoted, sentence};
use crate::Layout;
use crate::connection::account::{WaitAnswer, answer};
use crate::connection::analysis::{self, Report};
use fullpipe_flow::Language;
use fullpipe_flow::connection::Direction;
use fullpipe_flow::diagnosis::{DiagnosedConnection, SubCause};
use fullpipe_flow::finding::Finding;
use fullpipe_flow::schema::{CONNECTIONS, ConnectionRow};
use serde_json::{Value, json};

/// What is asked of a capture.
#[derive(Debug, Clone, Copy, Default)]
pub struct Asked {
    /// All of the connection with this number.
    pub connection: Option<u64>,
    /// The connections after so many of those that lost most.
    pub skip: usize,
}

/// Columns of a connection in a list.
const LISTED: [&str; 13] = [
    "id",
    "client",
    "server",
    "direction",
    "duration_us",
    "lost_us",
    "unique_payload_bytes",
    "goodput_bps",
    "limited_by",
    "limit_share",
    "limit_confidence",
    "waited_for",
    "owner",
];

/// Columns of a connection that is told whole, after those of a list.
const DETAILED: [&str; 15] = [
    "handshake_rtt_us",
    "rtt_min_us",
    "rtt_p50_us",
    "rtt_p95_us",
    "window_p50_bytes",
    "in_flight_max_bytes",
    "retransmission",
    "lost_segments",
    "spurious_retransmissions",
    "close",
    "captured_at",
    "protocol",
    "requests",
    "server_wait_us",
    "warnings",
];

/// Columns that the ends' own first words fill.
const SPOKEN: [&str; 7] = [
    "server_name",
    "client_program",
    "server_program",
    "protocol_version",
    "tls_version",
    "alpn_offered",
    "alpn_chosen",
];

/// The one of them that tells a connection from others.
pub(super) const NAME: [&str; 1] = ["server_name"];

/// Connections that may fit into an answer.
const SHOWN: usize = 24;
/// Parts of a list of one connection that may fit.
const PARTS: usize = 12;

/// What a capture says: the connections that lost most, or all of one. `None` where it has no
/// connection of that number.
pub fn analysis(report: &Report, asked: Asked) -> Option<Value> {
    let mut told = fields([
        ("packets", json(report.counts.packets)),
        ("connections_total", json(report.total())),
        ("problem", report.problem.as_deref().map_or(Value::Null, problem)),
    ]);
    let remarks = remarks(report);
    if !remarks.is_empty() {
        told.insert("remarks".into(), json(remarks));
    }
    if report.counts.samples > 0 {
        told.insert("samples".into(), json(report.counts.samples));
    }
    if let Some(id) = asked.connection {
        let mut all = report.connections.iter();
        let only = all.find(|explained| explained.connection.id == id)?;
        return Some(whole(told, only));
    }
    match &report.connections[..] {
        [only] if report.total() == 1 => Some(whole(told, only)),
        all => Some(listed(told, report, all, asked.skip)),
    }
}

/// What is to be known of the capture as a whole, so that nobody takes what is missing for lost.
fn remarks(report: &Report) -> Vec<String> {
    let counts = &report.counts;
    let mut all = analysis::remarks(counts, Language::English);
    for (count, what) in [
        (counts.forced_out, Layout::default().labels().forced_out),
        (counts.untracked, "packets are of connections beyond the limit, and left out"),
    ] {
        if count > 0 {
            all.push(format!("{count} {what}"));
        }
    }
    all
}

/// Why a capture was not read to its end. It may repeat what stands in a file.
fn problem(problem: &str) -> Value {
    sentence(QuotedFrom::Capture, problem)
}

fn listed(
    mut told: AnswerFields,
    report: &Report,
    all: &[DiagnosedConnection],
    skip: usize,
) -> Value {
    let mut order: Vec<_> = all.iter().collect();
    order.sort_by_cached_key(|explained| (explained.rank(), explained.connection.id));
    let chosen = order.iter().skip(skip).take(SHOWN);
    let rows: Vec<_> =
        chosen.map(|explained| Value::Object(row(explained, &LISTED, &SPOKEN))).collect();
    let after = report.total().saturating_sub((skip + rows.len()) as u64);
    told.insert("connections".into(), json(rows));
    let left_out = fields([("connections", json(after))]);
    let more = "the connections that lost most come first: add how many are here to skip for the \
                next, give filter for fewer, or connection (its id) for all of one";
    fit(told, &["connections", "remarks"], left_out, more)
}

/// All of one connection.
fn whole(mut told: AnswerFields, explained: &DiagnosedConnection) -> Value {
    let names: Vec<&str> = LISTED.into_iter().chain(DETAILED).collect();
    told.insert("connection".into(), Value::Object(row(explained, &names, &SPOKEN)));
    let mut left_out = AnswerFields::new();
    for (name, all) in [
        ("account", account(explained)),
        ("limits", explained.limits().iter().map(json).collect()),
        ("findings", findings(explained)),
        ("sub_causes", sub_causes(explained)),
    ] {
        let after = all.len().saturating_sub(PARTS);
        left_out.insert(name.into(), json(after));
        told.insert(name.into(), json(&all[..all.len() - after]));
    }
    let more = "the parts that took least are left out; `fullpipe analyze FILE --connection N \
                --json` has them all";
    fit(told, &["limits", "account", "sub_causes", "findings", "remarks"], left_out, more)
}

/// The columns of these names, what the ends said of themselves, and the answer.
pub(super) fn row(
    explained: &DiagnosedConnection,
    names: &[&str],
    spoken: &[&str],
) -> AnswerFields {
    let direction = explained.connection.bulk();
    let row = ConnectionRow { file: "", diagnosed: explained, direction };
    let mut told = AnswerFields::new();
    for column in CONNECTIONS.iter().filter(|column| names.contains(&column.name)) {
        let value = json((column.get)(&row));
        if !value.is_null() {
            told.insert(column.name.into(), value);
        }
    }
    for column in CONNECTIONS.iter().filter(|column| spoken.contains(&column.name)) {
        if let Value::String(said) = json((column.get)(&row)) {
            told.insert(column.name.into(), quoted(QuotedFrom::Capture, &said));
        }
    }
    told.extend(verdict(explained));
    told
}

/// What took the time, what would change it, and who must act: made of numbers and our own words.
pub(super) fn verdict(explained: &DiagnosedConnection) -> AnswerFields {
    let language = Language::English;
    let account = explained.account();
    let answered = account.as_ref().and_then(|account| answer(explained, account, language));
    if let Some(WaitAnswer { claim, remedy, who, .. }) = answered {
        return fields([("claim", json(claim)), ("remedy", json(remedy)), ("who_acts", json(who))]);
    }
    // Samples have no account: what their counters say of the data.
    let findings = explained.findings();
    let first = findings.first().filter(|_| account.is_none()).map(|first| &first.what);
    fields([
        ("claim", first.map_or(Value::Null, |one| json(language.claim(one)))),
        ("remedy", first.map_or(Value::Null, |one| json(language.remedy(one.remedy)))),
    ])
}

fn account(explained: &DiagnosedConnection) -> Vec<Value> {
    let account = explained.account();
    account.iter().flat_map(|account| &account.parts).map(json).collect()
}

fn findings(explained: &DiagnosedConnection) -> Vec<Value> {
    let findings = explained.findings();
    findings.iter().map(|one| finding(one.direction, &one.what)).collect()
}

fn finding(direction: Direction, finding: &Finding) -> Value {
    let reasons: Vec<_> = finding.reasons.iter().map(json).collect();
    let words: Vec<_> = reasons.iter().filter_map(|reason| reason.get("words")).collect();
    let changes: Vec<_> = finding.changes.iter().map(|change| change_of(&json(change))).collect();
    Value::Object(fields([
        ("direction", json(direction)),
        ("limit", json(finding.limit.name())),
        ("share", json(finding.share)),
        ("confidence", json(finding.confidence)),
        ("claim", json(Language::English.claim(finding))),
        ("why", json(words)),
        ("remedy", json(Language::English.remedy(finding.remedy))),
        ("changes", json(changes)),
    ]))
}

/// A change without its command and its reason, which are long.
pub(super) fn change_of(change: &Value) -> Value {
    let names = ["host", "setting", "from", "to"];
    let part = names.map(|name| (name, change.get(name).cloned().unwrap_or_default()));
    Value::Object(fields(part))
}

/// What lies behind the limits. What a recording of a host says may name its programs and devices.
fn sub_causes(explained: &DiagnosedConnection) -> Vec<Value> {
    let all = explained.explanations().into_iter();
    let told = all.map(|one| {
        let words = Language::English.sub_cause(&one.what.sub_cause);
        let words = match one.what.sub_cause {
            SubCause::Packets(_) => json(words),
            SubCause::Socket(_) | SubCause::Machine(_) => sentence(QuotedFrom::File, &words),
        };
        Value::Object(fields([
            ("direction", json(one.direction)),
            ("name", json(one.what.sub_cause.name())),
            ("words", words),
        ]))
    });
    told.collect()
}

/// The schema of [`analysis()`].
pub fn analysis_schema() -> Value {
    let mut row = with_columns(AnswerFields::new(), CONNECTIONS, &LISTED);
    row.extend(with_columns(AnswerFields::new(), CONNECTIONS, &DETAILED));
    row.extend(spoken_fields(&SPOKEN));
    row.extend(verdict_fields());
    let of_row = json!({"$ref": "#/$defs/connection"});
    let direction = text("of the data");
    let mut schema = object(
        [
            ("packets", integer("packets of the capture")),
            ("connections_total", integer("TCP connections of the capture, as filtered")),
        ],
        bounded(maybe([
            ("samples", integer("samples of sockets, where they are the evidence")),
            (
                "problem",
                super::schema::sentence(QuotedFrom::Capture, "why it was not read to its end"),
            ),
            ("remarks", list(text("what is to be known of the capture as a whole"))),
            ("connections", list(of_row.clone())),
            ("connection", of_row),
            ("account", list(part_schema())),
            ("limits", list(limit_schema(direction.clone()))),
            ("findings", list(finding_schema(direction.clone()))),
            ("sub_causes", list(sub_cause_schema(direction))),
        ])),
    );
    schema["$defs"] = json!({"connection": object([], row)});
    schema
}

/// The fields of what the ends say of themselves.
pub(super) fn spoken_fields(names: &[&str]) -> AnswerFields {
    let columns = CONNECTIONS.iter().filter(|column| names.contains(&column.name));
    let named = columns.map(|column| {
        (column.name.to_owned(), super::schema::quoted(QuotedFrom::Capture, column.meaning))
    });
    named.collect()
}

/// The fields of a verdict.
pub(super) fn verdict_fields() -> AnswerFields {
    maybe([
        ("claim", text("what took the time, and for how much of it")),
        ("remedy", text("what would change it")),
        ("who_acts", text("who has to act")),
    ])
}

fn part_schema() -> Value {
    object(
        [
            ("owner", text("whose the time was")),
            ("cause", text("what for")),
            ("time_us", integer("how long")),
            ("lost_us", integer("what a remedy gives back of it")),
        ],
        maybe([("direction", text("of the data"))]),
    )
}

fn limit_schema(direction: Value) -> Value {
    object(
        [
            ("direction", direction),
            ("limit", text("what held the data")),
            ("share", number("of its time, 0 to 1")),
        ],
        maybe([("cause", text("of a congestion window: slow_start or loss"))]),
    )
}

fn finding_schema(direction: Value) -> Value {
    let change = change_schema();
    object(
        [
            ("direction", direction),
            ("limit", text("what held the data")),
            ("share", number("of its time, 0 to 1")),
            ("claim", text("with the numbers")),
        ],
        maybe([
            ("confidence", number("how often verdicts like this one are right, 0 to 1")),
            ("why", list(text("a number that led to the verdict"))),
            ("remedy", text("what would change it")),
            ("changes", list(change)),
        ]),
    )
}

/// A setting to change.
pub(super) fn change_schema() -> Value {
    object(
        [("setting", text("a sysctl, or another setting")), ("to", text("its new value"))],
        maybe([
            ("host", text("sender or receiver")),
            ("from", text("its present value, or what it seems to be")),
        ]),
    )
}

fn sub_cause_schema(direction: Value) -> Value {
    let of_host = super::schema::sentence(QuotedFrom::File, "in words, with names of its host");
    let words = json!({"anyOf": [text("in words"), of_host]});
    object(
        [("direction", direction), ("name", text("its name")), ("words", words)],
        AnswerFields::new(),
    )
}
