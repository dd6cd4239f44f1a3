//! Answers for programs that read language, such as those of `fullpipe mcp`.
//!
//! Such a reader cannot tell a sentence of ours from one that a stranger wrote into a packet. So
//! nothing that comes from a capture, a file or a process stands in a sentence here: it stands
//! alone, under a key that begins with `from_`, in characters that mean nothing to anybody, and is
//! short ([`quoted()`]). Everything else is made of our own words and of numbers.
//!
//! An answer has at most [`ANSWER_MAX`] bytes, whatever it is about. What does not fit is left out
//! and counted, and the answer says how to ask for it ([`fit`]). Each kind of answer has its JSON
//! Schema beside it.

mod bounded;
mod capture;
mod compared;
mod explained;
mod live;
mod path;
mod quoted;
mod schema;

pub use bounded::{ANSWER_MAX, fit};
pub use capture::{Asked, analysis, analysis_schema};
pub use compared::{captures, compared_schema, results};
pub use explained::{explanation, explanation_schema};
pub use live::{LiveLook, live, live_schema};
pub use path::{calculation, calculation_schema, host_plan, host_plan_schema};
pub use quoted::{QuotedFrom, quoted, sentence};

use serde_json::{Map, Value};

/// An answer, or a part of it.
type AnswerFields = Map<String, Value>;

/// `value` as JSON; `null` where that fails, which nothing here does.
fn json(value: impl serde::Serialize) -> Value {
    serde_json::to_value(value).unwrap_or(Value::Null)
}

/// AnswerFields of these names and values; those that are `null` are left out.
fn fields<const N: usize>(pairs: [(&str, Value); N]) -> AnswerFields {
    let known = pairs.into_iter().filter(|(_, value)| !value.is_null());
    known.map(|(name, value)| (name.to_owned(), value)).collect()
}

#[cfg(test)]
mod tests;
