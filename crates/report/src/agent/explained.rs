//! Which packets a connection's answer rests on.

use super::capture::{NAME, row, spoken_fields, verdict_fields};
use super::schema::{bounded, integer, list, maybe, object, text};
use super::{AnswerFields, fields, fit, json};
use crate::connection::comments::PlacedComments;
use fullpipe_flow::account::Cause;
use fullpipe_flow::diagnosis::DiagnosedConnection;
use serde_json::Value;

/// Packets that may fit into an answer.
const SHOWN: usize = 64;

/// The packets that a connection's answer rests on, each with what it shows, after the first `skip`
/// of them; those of one finding, or of one limit, where it is named. `placed` has the comments of
/// this connection alone.
pub fn explanation(
    explained: &DiagnosedConnection,
    placed: &PlacedComments,
    finding: Option<&str>,
    skip: usize,
) -> Value {
    let all =
        placed.all().filter(|(_, one)| finding.is_none_or(|name| one.span.cause.name() == name));
    let mut packets: Vec<Value> = Vec::new();
    let mut after = placed.left_out;
    for (number, comment) in all.skip(skip) {
        if packets.len() == SHOWN {
            after += 1;
            continue;
        }
        let span = &comment.span;
        let is_limit = matches!(span.cause, Cause::Transfer(_));
        packets.push(Value::Object(fields([
            ("packet", json(number)),
            (if is_limit { "limit" } else { "finding" }, json(span.cause.name())),
            ("owner", json(span.owner.name())),
            ("direction", json(span.direction)),
            ("length_us", json(span.length.as_micros())),
            ("shows", json(comment.sentence())),
        ])));
    }
    let mut told = AnswerFields::new();
    told.insert(
        "connection".into(),
        Value::Object(row(explained, &["id", "client", "server"], &NAME)),
    );
    told.insert("packets".into(), json(packets));
    let left_out = fields([("packets", json(after))]);
    let more = "packets are in the order of the capture: add how many are here to skip for the \
                next, or name one finding; of very many waits only the longest are kept";
    fit(told, &["packets"], left_out, more)
}

/// The schema of [`explanation`].
pub fn explanation_schema() -> Value {
    let packet = object(
        [
            ("packet", integer("its number in the capture, from 1, as Wireshark counts")),
            ("owner", text("whose the time was")),
            ("length_us", integer("how long the wait or the limit lasted")),
            ("shows", text("what is seen at this packet")),
        ],
        maybe([
            ("finding", text("what was waited for")),
            ("limit", text("what holds the data from here on")),
            ("direction", text("of the data")),
        ]),
    );
    let mut connection = spoken_fields(&NAME);
    connection.extend(verdict_fields());
    let connection = object(
        [
            ("id", integer("its number in the capture, from 0")),
            ("client", text("address and port of who opened it")),
            ("server", text("address and port of the other end")),
        ],
        connection,
    );
    object([("connection", connection), ("packets", list(packet))], bounded(AnswerFields::new()))
}
