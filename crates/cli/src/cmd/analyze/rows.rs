//! Connections as lines or rows: JSON lines, CSV, Parquet.

use super::{Analyze, buffered_out};
use crate::cmd::stored::Stored;
use crate::failure::{Failure, Kind};
use crate::sentence::Sentence;
use fullpipe_columnar::{RowKind, RowSource};
use fullpipe_flow::diagnosis::DiagnosedConnection;
use fullpipe_flow::schema::{CONNECTIONS, Versioned, connection_rows, csv_header, csv_line};
use fullpipe_report::table::escape;
use serde::Serialize;
use std::io::{BufWriter, IsTerminal as _, StdoutLock, Write};

/// A value together with the name of its file.
#[derive(Serialize)]
struct InFile<'a, T> {
    file: &'a str,
    #[serde(flatten)]
    what: T,
}

/// The destination of rows.
pub enum Rows {
    Lines(BufWriter<StdoutLock<'static>>),
    Csv { out: BufWriter<StdoutLock<'static>>, headed: bool, shown: bool },
    Parquet(RowKind, Box<Stored>),
}

impl Rows {
    /// Rows in the format that the options select.
    ///
    /// # Errors
    /// The Parquet file cannot be made.
    pub fn new(analyze: &Analyze) -> Result<Self, Failure> {
        Ok(match &analyze.parquet {
            Some(file) => {
                let RowSource::Connection(kind) = analyze.rows.into() else {
                    return Err(Failure::new(Kind::Usage, no_file()));
                };
                Rows::Parquet(kind, Box::new(Stored::new(file, &kind.layout())?))
            }
            None if analyze.csv => Rows::Csv {
                out: buffered_out(),
                headed: false,
                shown: std::io::stdout().is_terminal(),
            },
            None => Rows::Lines(buffered_out()),
        })
    }

    /// Whether a row has findings.
    pub fn has_findings(&self) -> bool {
        match self {
            Rows::Lines(_) => true,
            Rows::Csv { .. } => false,
            Rows::Parquet(kind, _) => kind.needs_findings(),
        }
    }

    /// Writes the connections of one file.
    ///
    /// # Errors
    /// The output fails.
    pub fn write(
        &mut self,
        file: &str,
        connections: &[DiagnosedConnection],
    ) -> Result<(), Failure> {
        match self {
            Rows::Lines(out) => Ok(print_lines(file, connections, out)?),
            Rows::Csv { out, headed, shown } => {
                // In a file the name is data; a terminal would obey it.
                let file = if *shown { escape::in_line(file) } else { file.into() };
                Ok(print_csv(&file, connections, headed, out)?)
            }
            Rows::Parquet(kind, stored) => connections
                .iter()
                .try_for_each(|diagnosed| kind.rows(file, diagnosed, |cells| stored.row(cells))),
        }
    }

    /// Ends the output.
    ///
    /// # Errors
    /// The output fails.
    pub fn finish(self) -> Result<(), Failure> {
        match self {
            Rows::Lines(mut out) | Rows::Csv { mut out, .. } => Ok(out.flush()?),
            Rows::Parquet(_, stored) => stored.finish(),
        }
    }
}

/// Why rows of many recordings are no file.
fn no_file() -> Sentence {
    Sentence::new(
        "analyze: --rows workloads needs a folder: give --parquet one, with `/` at its end",
        "analyze：--rows workloads 需要文件夹：请给 --parquet 一个以 `/` 结尾的文件夹",
    )
}

fn print_lines(
    file: &str,
    connections: &[DiagnosedConnection],
    out: &mut impl Write,
) -> std::io::Result<()> {
    for what in connections {
        serde_json::to_writer(&mut *out, &Versioned::new(InFile { file, what }))?;
        writeln!(out)?;
    }
    Ok(())
}

/// Prints rows, with the names of the columns before the first.
fn print_csv(
    file: &str,
    connections: &[DiagnosedConnection],
    headed: &mut bool,
    out: &mut impl Write,
) -> std::io::Result<()> {
    let mut line = String::new();
    for row in connections.iter().flat_map(|diagnosed| connection_rows(file, diagnosed)) {
        if !std::mem::replace(headed, true) {
            out.write_all(csv_header(CONNECTIONS).as_bytes())?;
        }
        line.clear();
        csv_line(CONNECTIONS, &row, &mut line);
        out.write_all(line.as_bytes())?;
    }
    Ok(())
}
