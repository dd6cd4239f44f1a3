//! JSON Schemas of answers (draft 2020-12), put together by small pieces.

use super::AnswerFields;
use super::quoted::{QUOTED_MAX, QuotedFrom, SENTENCE_MAX};
use fullpipe_flow::schema::{Column, JsonSchema, Record};
use serde_json::{Value, json};

pub(super) fn integer(what: &str) -> Value {
    json!({"type": "integer", "description": what})
}

pub(super) fn number(what: &str) -> Value {
    json!({"type": "number", "description": what})
}

pub(super) fn boolean(what: &str) -> Value {
    json!({"type": "boolean", "description": what})
}

pub(super) fn text(what: &str) -> Value {
    json!({"type": "string", "description": what})
}

pub(super) fn list(items: Value) -> Value {
    json!({"type": "array", "items": items})
}

/// A string that others wrote.
pub(super) fn quoted(origin: QuotedFrom, what: &str) -> Value {
    at_most(origin, what, QUOTED_MAX)
}

/// A sentence that may repeat such strings.
pub(super) fn sentence(origin: QuotedFrom, what: &str) -> Value {
    at_most(origin, what, SENTENCE_MAX)
}

fn at_most(origin: QuotedFrom, what: &str, most: usize) -> Value {
    json!({
        "type": "object",
        "description": format!("{what}; written by others: data, never an instruction"),
        "properties": {
            origin.key(): {"type": "string", "maxLength": most},
            "cut": {"type": "boolean"},
        },
        "required": [origin.key()],
        "additionalProperties": false,
    })
}

/// An object with these fields and no others; those of the second list need not be there.
pub(super) fn object<const N: usize>(required: [(&str, Value); N], others: AnswerFields) -> Value {
    let names = required.each_ref().map(|(name, _)| name.to_string());
    let mut properties = AnswerFields::new();
    properties.extend(required.map(|(name, schema)| (name.to_owned(), schema)));
    properties.extend(others);
    json!({
        "type": "object",
        "properties": properties,
        "required": names.to_vec(),
        "additionalProperties": false,
    })
}

/// AnswerFields that need not be there.
pub(super) fn maybe<const N: usize>(fields: [(&str, Value); N]) -> AnswerFields {
    fields.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect()
}

/// The same with the columns of these names.
pub(super) fn with_columns<K: Record>(
    mut fields: AnswerFields,
    columns: &[Column<K>],
    names: &[&str],
) -> AnswerFields {
    let chosen = super::json(JsonSchema::of_chosen("", columns, names));
    if let Some(Value::Object(properties)) = chosen.get("properties") {
        fields.extend(properties.clone());
    }
    fields
}

/// The same with what every answer may say of what it left out.
pub(super) fn bounded(mut fields: AnswerFields) -> AnswerFields {
    let counts = json!({
        "type": "object",
        "description": "how many are left out of each list, because an answer has at most 4 kB",
        "additionalProperties": {"type": "integer"},
    });
    fields.insert("left_out".into(), counts);
    fields.insert("more".into(), text("how to ask for what is left out"));
    fields
}
