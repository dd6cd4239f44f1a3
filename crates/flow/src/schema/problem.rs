//! A capture of an archive that was not read to its end.

use super::{Cell, Column, Kind, Record, SCHEMA_VERSION};

/// Problems of captures.
pub enum CaptureProblems {}

/// A capture and its problem.
#[derive(Debug, Clone, Copy)]
pub struct CaptureProblem<'r> {
    /// The capture's name.
    pub file: &'r str,
    /// The problem.
    pub problem: &'r str,
    /// Rows of the capture that are stored all the same.
    pub rows: u64,
}

impl Record for CaptureProblems {
    type Row<'r> = CaptureProblem<'r>;
}

type P = Column<CaptureProblems>;

/// What could not be read of an archive.
pub static CAPTURE_PROBLEMS: &[P] = &[
    P::new("schema", Kind::Number, "", "version of this table", |_| Cell::number(SCHEMA_VERSION)),
    P::new("file", Kind::Text, "", "the capture's name, as given", |row| Cell::text(row.file)),
    P::new(
        "problem",
        Kind::Text,
        "",
        "why it was not read to its end, or is not in its rows as it is now",
        |row| Cell::text(row.problem),
    ),
    P::new("stored_rows", Kind::Number, "", "its rows that are stored all the same", |row| {
        Cell::number(row.rows)
    }),
];
