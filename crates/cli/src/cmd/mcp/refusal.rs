//! Why a tool has no answer.

use fullpipe_report::agent::{QuotedFrom, sentence};
use fullpipe_report::table::escape::in_line;
use serde_json::{Value, json};

/// Why a tool has no answer: operation, subject, cause, what to try.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolRefusal {
    operation: &'static str,
    subject: String,
    cause: Value,
    hint: &'static str,
}

/// Characters of a subject, which the client itself named.
const SUBJECT_MAX: usize = 300;
/// Characters of a cause.
const CAUSE_MAX: usize = 600;

impl ToolRefusal {
    /// A refusal; the cause is the system's or our own.
    pub fn new(
        operation: &'static str,
        subject: impl ToString,
        cause: impl ToString,
        hint: &'static str,
    ) -> ToolRefusal {
        let cause = json!(cut(&cause.to_string(), CAUSE_MAX));
        ToolRefusal { operation, subject: cut(&subject.to_string(), SUBJECT_MAX), cause, hint }
    }

    /// A refusal whose cause may repeat what stands in a file.
    pub fn of_file(
        operation: &'static str,
        subject: impl ToString,
        cause: impl ToString,
        hint: &'static str,
    ) -> ToolRefusal {
        let cause = sentence(QuotedFrom::File, &cause.to_string());
        ToolRefusal { cause, ..ToolRefusal::new(operation, subject, "", hint) }
    }

    /// It as the client gets it.
    pub fn to_json(&self) -> Value {
        let ToolRefusal { operation, subject, cause, hint } = self;
        json!({"error": {"operation": operation, "subject": subject, "cause": cause, "try": hint}})
    }
}

fn cut(text: &str, most: usize) -> String {
    in_line(text).chars().take(most).collect()
}
