//! Helpers for tables of rows: names, missing figures, failed runs.

use crate::{Layout, table::paragraph};
use fullpipe_flow::Language;
use fullpipe_flow::schema::RunRow;
use fullpipe_model::units::Rate;

/// Shown for a missing figure.
pub(crate) const NONE: &str = "-";
/// Shown instead of the limit of a failed run.
pub(crate) fn failed(layout: Layout) -> String {
    layout.either("failed", "失败").into()
}

/// Why the run failed, and its notes, each on separate lines.
pub(crate) fn remarks(row: &RunRow, layout: Layout) -> String {
    let mut text = String::new();
    if let Some(error) = &row.error {
        text += &paragraph::fill(
            &format!("{}{} ", row.name, layout.either(": failed:", "：失败：")),
            error,
            layout.width,
        );
        text.push('\n');
    }
    for note in &row.notes {
        text += &paragraph::fill(&format!("{}: ", row.name), note, layout.width);
        text.push('\n');
    }
    text
}

/// The name, with the repetition if there are several, and a mark if the row was not quiet.
pub(crate) fn marked_name(row: &RunRow, rows: &[RunRow]) -> String {
    let repeated = rows.iter().filter(|other| other.name == row.name).count() > 1;
    let mark = if row.quiet { "" } else { " !" };
    if repeated {
        format!("{} #{}{mark}", row.name, row.repetition)
    } else {
        format!("{}{mark}", row.name)
    }
}

/// `send buffer 97 %`, or the two likeliest limits where the answer is no more than a guess.
pub fn limited_by(row: &RunRow) -> String {
    match &row.headline {
        Some(headline) if *headline != row.limited_by.to_string() => headline.clone(),
        _ => format!("{} {:.0} %", row.limited_by, row.limit_share * 100.0),
    }
}

/// The same in a language.
pub fn limited_by_in(row: &RunRow, language: Language) -> String {
    match language {
        Language::English => limited_by(row),
        Language::Chinese => {
            format!("{} {:.0} %", language.limit(row.limited_by), row.limit_share * 100.0)
        }
    }
}

/// How sure an answer is, in percent.
pub(crate) fn sure(confidence: Option<f64>) -> String {
    optional(confidence, |sure| format!("{:.0}", sure * 100.0))
}

pub(crate) fn optional<T>(value: Option<T>, show: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| NONE.into(), show)
}

/// Megabytes per second, with enough decimals for a transfer through a buffer of 4096 bytes.
pub(crate) fn small(rate: Rate) -> String {
    let megabytes = rate.as_f64() / 8e6;
    if megabytes < 10.0 { format!("{megabytes:.3}") } else { format!("{megabytes:.1}") }
}
