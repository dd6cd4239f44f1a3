//! Two captures, or two results of the lab, beside each other.

use super::capture::{NAME, row, spoken_fields, verdict_fields};
use super::schema::{bounded, integer, list, maybe, number, object, text, with_columns};
use super::{AnswerFields, QuotedFrom, fields, fit, json, quoted, sentence};
use crate::connection::analysis::Report;
use crate::runs::compare::Comparison;
use fullpipe_flow::diagnosis::DiagnosedConnection;
use fullpipe_flow::schema::CONNECTIONS;
use serde_json::Value;

/// Figures of a connection that are compared.
const FIGURES: [&str; 10] = [
    "goodput_bps",
    "duration_us",
    "lost_us",
    "unique_payload_bytes",
    "handshake_rtt_us",
    "rtt_p50_us",
    "rtt_p95_us",
    "window_p50_bytes",
    "in_flight_max_bytes",
    "lost_segments",
];
/// What stands beside them.
const BESIDE: [&str; 6] = ["id", "client", "server", "limited_by", "limit_share", "owner"];
/// Differences that may fit.
const SHOWN: usize = 40;

/// The connection that carried most of one capture beside that of another, or those of these
/// numbers; `None` where there is none.
pub fn captures(sides: [(&Report, Option<u64>); 2]) -> Option<Value> {
    let [a, b] = sides.map(|(report, id)| chosen(report, id));
    let (a, b) = (a?, b?);
    let [of_a, of_b] = [a, b].map(|one| row(one, &FIGURES, &[]));
    let changes: Vec<Value> = FIGURES
        .iter()
        .filter_map(|figure| {
            let [a, b] = [&of_a, &of_b].map(|one| one.get(*figure).and_then(Value::as_f64));
            Some(changed(figure, a?, b?))
        })
        .collect();
    let [side_a, side_b] = [(a, sides[0].0), (b, sides[1].0)].map(|(one, report)| {
        Value::Object(fields([
            ("connections_total", json(report.total())),
            ("problem", report.problem.as_deref().map_or(Value::Null, problem)),
            ("connection", Value::Object(row(one, &BESIDE, &NAME))),
        ]))
    });
    let told = fields([("a", side_a), ("b", side_b), ("changes", json(changes))]);
    Some(fit(told, &["changes"], AnswerFields::new(), "analyze has all figures of each capture"))
}

fn problem(problem: &str) -> Value {
    sentence(QuotedFrom::Capture, problem)
}

/// The connection of this number, or the one that carried most.
fn chosen(report: &Report, id: Option<u64>) -> Option<&DiagnosedConnection> {
    let mut all = report.connections.iter();
    match id {
        Some(id) => all.find(|one| one.connection.id == id),
        // Of equals the first.
        None => all.rev().max_by_key(|one| carried(one)),
    }
}

/// Payload in both directions, once.
fn carried(one: &DiagnosedConnection) -> u64 {
    let facts = [&one.connection.client_to_server, &one.connection.server_to_client];
    facts.map(|facts| facts.unique_payload.get()).into_iter().fold(0, u64::saturating_add)
}

fn changed(figure: &str, a: f64, b: f64) -> Value {
    let relative = (a != 0.0).then(|| (b - a) / a);
    Value::Object(fields([
        ("figure", json(figure)),
        ("a", json(a)),
        ("b", json(b)),
        ("relative", json(relative)),
    ]))
}

/// Two results of the lab.
pub fn results(comparison: &Comparison) -> Value {
    let all = json(comparison);
    let [mut changes, limits] = ["changes", "limits"].map(|name| {
        let rows = all.get(name).and_then(Value::as_array).into_iter().flatten();
        rows.map(named).collect::<Vec<_>>()
    });
    let after = changes.len().saturating_sub(SHOWN);
    changes.truncate(SHOWN);
    let [rows_a, rows_b] =
        ["a", "b"].map(|side| json(all.get(side).and_then(|one| one.get("rows"))));
    let told = fields([
        ("rows_a", rows_a),
        ("rows_b", rows_b),
        ("rows_compared", json(comparison.compared())),
        ("changes", json(changes)),
        ("limits", json(limits)),
    ]);
    let left_out = fields([("changes", json(after))]);
    let more = "goodput comes first, then the largest change; `fullpipe lab compare A B --json` \
                has all of them";
    fit(told, &["changes", "limits"], left_out, more)
}

/// A row of a comparison, with the name that its scenario gave it as a quotation.
fn named(row: &Value) -> Value {
    let name = row.get("name").and_then(Value::as_str).unwrap_or_default();
    let names = ["figure", "a", "b", "relative", "noise"];
    let mut told = fields(names.map(|name| (name, row.get(name).cloned().unwrap_or_default())));
    told.extend(fields([
        ("name", quoted(QuotedFrom::File, name)),
        ("is_worse", row.get("worse").cloned().unwrap_or_default()),
    ]));
    Value::Object(told)
}

/// The schema of [`captures`] and of [`results`].
pub fn compared_schema() -> Value {
    let problem = super::schema::sentence(QuotedFrom::Capture, "why it was not read to its end");
    let mut connection = with_columns(AnswerFields::new(), CONNECTIONS, &BESIDE);
    connection.extend(spoken_fields(&NAME));
    connection.extend(verdict_fields());
    let side = object(
        [
            ("connections_total", integer("TCP connections of the capture")),
            ("connection", object([], connection)),
        ],
        maybe([("problem", problem)]),
    );
    let change = object(
        [
            ("figure", text("whose unit is the end of its name")),
            ("a", number("its value, or the mean of its runs, in A")),
            ("b", number("the same in B")),
        ],
        maybe([
            ("name", super::schema::quoted(QuotedFrom::File, "of the row of results")),
            ("relative", number("the change as a fraction of A")),
            ("noise", text("of results: whether it is more than chance")),
            ("is_worse", super::schema::boolean("of results: whether B is worse")),
        ]),
    );
    let limit = object(
        [
            ("name", super::schema::quoted(QuotedFrom::File, "of the row of results")),
            ("a", text("what limited it in A")),
            ("b", text("what limited it in B")),
        ],
        AnswerFields::new(),
    );
    object(
        [("changes", list(change))],
        bounded(maybe([
            ("a", side.clone()),
            ("b", side),
            ("rows_a", integer("of results: rows of A")),
            ("rows_b", integer("of results: rows of B")),
            ("rows_compared", integer("of results: rows of the same name")),
            ("limits", list(limit)),
        ])),
    )
}
