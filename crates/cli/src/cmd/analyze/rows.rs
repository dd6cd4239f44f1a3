//! Connections as lines or rows: JSON lines, CSV, Parquet.

use super::{Analyze, packets::InFile};
use crate::failure::{Failure, Kind};
use crate::parquet::Table;
use fullpipe_flow::connection::Connection;
use fullpipe_flow::diagnosis::DiagnosedConnection;
use fullpipe_kernel::folder::Pending;
use fullpipe_report::analysis::{self, columns};
use std::fs::File;
use std::io::{BufWriter, StdoutLock, Write};
use std::path::{Path, PathBuf};

/// Where rows go.
pub enum Rows {
    Lines(BufWriter<StdoutLock<'static>>),
    Csv { out: BufWriter<StdoutLock<'static>>, headed: bool },
    Parquet(Box<Stored>),
}

impl Rows {
    /// Rows in the format that was asked for.
    ///
    /// # Errors
    /// A Parquet file that cannot be made.
    pub fn new(analyze: &Analyze) -> Result<Self, Failure> {
        let out = || BufWriter::new(std::io::stdout().lock());
        Ok(match &analyze.parquet {
            Some(file) => Rows::Parquet(Box::new(Stored::new(file, &columns())?)),
            None if analyze.csv => Rows::Csv { out: out(), headed: false },
            None => Rows::Lines(out()),
        })
    }

    /// What a row needs of a connection.
    pub fn explain(&self) -> fn(Connection) -> DiagnosedConnection {
        match self {
            Rows::Lines(_) => |connection| DiagnosedConnection::from_capture(connection).with_findings(),
            Rows::Csv { .. } | Rows::Parquet(_) => DiagnosedConnection::from_capture,
        }
    }

    /// Writes connections of a file.
    ///
    /// # Errors
    /// Those of the output.
    pub fn write(&mut self, file: &str, connections: &[DiagnosedConnection]) -> Result<(), Failure> {
        match self {
            Rows::Lines(out) => Ok(print_lines(file, connections, out)?),
            Rows::Csv { out, headed } => Ok(print_csv(file, connections, headed, out)?),
            Rows::Parquet(stored) => {
                analysis::rows(file, connections).try_for_each(|row| stored.row(row.into_iter().map(|(_, cell)| cell)))
            }
        }
    }

    /// Ends the output.
    ///
    /// # Errors
    /// Those of the output.
    pub fn finish(self) -> Result<(), Failure> {
        match self {
            Rows::Lines(mut out) | Rows::Csv { mut out, .. } => Ok(out.flush()?),
            Rows::Parquet(stored) => stored.finish(),
        }
    }
}

/// A Parquet file with its name, for messages.
pub struct Stored {
    table: Table<BufWriter<File>>,
    pending: Pending,
    file: PathBuf,
}

impl Stored {
    /// Begins the file, which has its name when it is complete.
    pub fn new(file: &Path, columns: &[(&str, analysis::Kind)]) -> Result<Self, Failure> {
        let pending = Pending::at(file).map_err(|error| not_written(file, error))?;
        let handle = pending.handle().map_err(|error| not_written(file, error))?;
        let table = Table::new(BufWriter::new(handle), columns).map_err(|error| not_written(file, error))?;
        Ok(Stored { table, pending, file: file.into() })
    }

    /// Adds a row.
    pub fn row(&mut self, cells: impl IntoIterator<Item = analysis::Cell>) -> Result<(), Failure> {
        self.table.row(cells).map_err(|error| not_written(&self.file, error))
    }

    /// Ends the file.
    pub fn finish(self) -> Result<(), Failure> {
        let Stored { table, pending, file } = self;
        table.finish().map_err(|error| not_written(&file, error))?;
        pending.commit().map_err(|error| not_written(&file, error))
    }
}

fn not_written(file: &Path, error: impl std::fmt::Display) -> Failure {
    let problem =
        format!("write {}: {error}; --parquet names a file that can be made, on a disk with room", file.display());
    Failure::new(Kind::Run, problem)
}

fn print_lines(file: &str, connections: &[DiagnosedConnection], out: &mut impl Write) -> std::io::Result<()> {
    for what in connections {
        serde_json::to_writer(&mut *out, &InFile { file, what })?;
        writeln!(out)?;
    }
    Ok(())
}

/// Rows, and the names of the columns before the first of all.
fn print_csv(
    file: &str,
    connections: &[DiagnosedConnection],
    headed: &mut bool,
    out: &mut impl Write,
) -> std::io::Result<()> {
    let mut line = String::new();
    for row in analysis::rows(file, connections) {
        if !*headed {
            let names: Vec<_> = row.iter().map(|(name, _)| *name).collect();
            writeln!(out, "{}", names.join(","))?;
            *headed = true;
        }
        line.clear();
        analysis::csv_line(&row, &mut line);
        out.write_all(line.as_bytes())?;
    }
    Ok(())
}
