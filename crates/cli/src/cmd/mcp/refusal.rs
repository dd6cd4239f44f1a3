//! Why a tool has no answer.

use fullpipe_report::agent::{Origin, sentence};
use fullpipe_report::table::escape::in_line;
use serde_json::{Value, json};

/// Why a tool has no answer: operation, subject, cause, what to try.
#[derive(Debug, Clone, PartialEq)]
pub struct Refusal {
    operation: &'static str,
    subject: String,
    cause: Value,
    hint: &'static str,
}

/// Characters of a subject, which the client itself named.
const SUBJECT_MAX: usize = 300;
/// Characters of a cause.
const CAUSE_MAX: usize = 600;

impl Refusal {
    /// A refusal; the cause is the system's or our own.
    pub fn new(
        operation: &'static str,
        subject: impl ToString,
        cause: impl ToString,
        hint: &'static str,
    ) -> Refusal {
        let cause = json!(cut(&cause.to_string(), CAUSE_MAX));
        Refusal { operation, subject: cut(&subject.to_string(), SUBJECT_MAX), cause, hint }
    }

    /// A refusal whose cause may repeat what stands in a file.
    pub fn of_file(
        operation: &'static str,
        subject: impl ToString,
        cause: impl ToString,
        hint: &'static str,
    ) -> Refusal {
        let cause = sentence(Origin::File, &cause.to_string());
        Refusal { cause, ..Refusal::new(operation, subject, "", hint) }
    }

    /// It as the client gets it.
    pub fn to_json(&self) -> Value {
        let Refusal { operation, subject, cause, hint } = self;
        json!({"error": {"operation": operation, "subject": subject, "cause": cause, "try": hint}})
    }
}

fn cut(text: &str, most: usize) -> String {
    in_line(text).chars().take(most).collect()
}
