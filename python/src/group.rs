//! Captures that are analysed together, into Parquet files: what a worker of a cluster does.
//!
//! [`write_group`] reads one capture after another without Python's lock, and writes the rows of
//! each kind into [`DayTables`]. All kinds but packets come from one reading. Files of the disk are
//! opened here; for every other place Python gives a function that opens the capture.

use crate::days::{DayTables, Table};
use crate::input::PythonFile;
use crate::options::{Kind, options_of};
use fullpipe_analyze::{Capture, Error, Options, what_is_missing};
use fullpipe_columnar::{Layout, ParquetTable, RowKind};
use fullpipe_flow::Counts;
use fullpipe_flow::schema::{CAPTURE_PROBLEMS, CaptureProblem, PACKETS};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::types::PyIterator;
use std::fs::File;
use std::io::{self, BufWriter, Read};
use std::path::PathBuf;

/// The most that is asked of an opened capture at a time.
const BLOCK: usize = 8 << 20;
/// Packets between two looks for signals.
const PACKETS_BETWEEN: u64 = 1 << 16;

/// A capture of the group: its name, its size, and its path or a function that opens it.
type Listed = (String, u64, Py<PyAny>);
/// What was read of a capture: the rows of each kind, and why they are not all.
type Outcome = (Vec<u64>, Option<String>);
/// A file of rows: kind, days since 1970, path, rows.
type Part = (&'static str, u64, PathBuf, u64);

/// Analyses `captures` and writes files into `folder`. A capture that cannot be read is no error.
#[pyfunction]
#[pyo3(signature = (
    captures, folder, kinds, *, filter = None, capture_point = "auto", layer = "inner",
    labels = "sack"
))]
#[allow(clippy::too_many_arguments, reason = "they are keywords in Python")]
pub fn write_group(
    py: Python<'_>,
    captures: &Bound<'_, PyAny>,
    folder: PathBuf,
    kinds: Vec<String>,
    filter: Option<&str>,
    capture_point: &str,
    layer: &str,
    labels: &str,
) -> PyResult<(Vec<Outcome>, Vec<Part>)> {
    let options = options_of(filter, capture_point, layer, labels, 1)?;
    let kinds = kinds.iter().map(|kind| Kind::of(kind)).collect::<PyResult<Vec<_>>>()?;
    let tables =
        kinds.iter().map(|kind| DayTables::new(folder.clone(), kind.name(), kind.layout()));
    let options = kinds.iter().fold(options, |options, kind| kind.with_needs(options));
    let mut group = Group { options, tables: tables.collect(), kinds };
    let captures = captures.try_iter()?.unbind();
    py.detach(|| {
        let mut done = Vec::new();
        while let Some(listed) = next_of(&captures)? {
            done.push(group.capture(&listed)?);
        }
        Ok((done, group.finish()?))
    })
}

/// Writes a row for each capture with a problem: file, problem and rows that are stored.
#[pyfunction]
pub fn write_problems(path: PathBuf, problems: Vec<(String, String, u64)>) -> PyResult<()> {
    let write = || -> Result<(), Box<dyn std::error::Error>> {
        let out = BufWriter::new(File::create(&path)?);
        let mut table = ParquetTable::new(out, &Layout::of(CAPTURE_PROBLEMS))?;
        for (file, problem, rows) in &problems {
            let row = CaptureProblem { file, problem, rows: *rows };
            table.row(Layout::cells(CAPTURE_PROBLEMS, &row))?;
        }
        Ok(table.finish()?)
    };
    write().map_err(|cause| PyOSError::new_err(format!("write {}: {cause}", path.display())))
}

fn next_of(captures: &Py<PyIterator>) -> PyResult<Option<Listed>> {
    Python::attach(|py| {
        let next = captures.bind(py).clone().next().transpose()?;
        next.map(|listed| listed.extract::<Listed>()).transpose()
    })
}

/// The group under construction.
struct Group {
    options: Options,
    kinds: Vec<Kind>,
    /// One for each kind.
    tables: Vec<DayTables>,
}

impl Group {
    fn capture(&mut self, listed: &Listed) -> PyResult<Outcome> {
        let mut rows = vec![0; self.kinds.len()];
        let mut problem = None;
        if self.kinds.iter().any(|kind| matches!(kind, Kind::Of(_))) {
            problem = self.connections(listed, &mut rows)?;
        }
        if let Some(place) = self.kinds.iter().position(|kind| *kind == Kind::Packets) {
            let found = self.packets(listed, place, &mut rows[place])?;
            problem = problem.or(found);
        }
        Ok((rows, problem))
    }

    /// Writes what the connections of a capture give; returns its problem.
    fn connections(&mut self, listed: &Listed, rows: &mut [u64]) -> PyResult<Option<String>> {
        let name = &listed.0;
        let needs_findings = |kind: &Kind| matches!(kind, Kind::Of(kind) if kind.needs_findings());
        let capture = open(listed)?;
        let mut connections = if self.kinds.iter().any(needs_findings) {
            capture.connections(&self.options)
        } else {
            capture.connections_without_findings(&self.options)
        };
        while let Some(round) = connections.next_round() {
            Python::attach(|py| py.check_signals())?;
            let kinds = self.kinds.iter().zip(&mut self.tables).zip(&mut *rows);
            for ((kind, tables), count) in kinds {
                let Kind::Of(kind) = kind else { continue };
                add_rows(*kind, name, &round, tables, count)?;
            }
        }
        let (counts, errors) = connections.finish();
        Ok(what_is_missing(name, &counts, &errors))
    }

    /// Writes the packets of a capture; returns its problem.
    fn packets(
        &mut self,
        listed: &Listed,
        place: usize,
        rows: &mut u64,
    ) -> PyResult<Option<String>> {
        let (name, tables) = (&listed.0, &mut self.tables[place]);
        let mut errors: Vec<Error> = Vec::new();
        for packet in open(listed)?.labelled_packets(&self.options) {
            if rows.is_multiple_of(PACKETS_BETWEEN) {
                Python::attach(|py| py.check_signals())?;
            }
            match packet {
                Ok(packet) => {
                    let row = packet.row(name);
                    tables.row(row.at.as_nanos(), Layout::cells(PACKETS, &row))?;
                    *rows += 1;
                }
                Err(error) => errors.push(error),
            }
        }
        Ok(what_is_missing(name, &Counts::default(), &errors))
    }

    fn finish(self) -> io::Result<Vec<Part>> {
        let mut parts = Vec::new();
        for (kind, tables) in self.kinds.iter().zip(self.tables) {
            for Table { day, path, rows } in tables.finish()? {
                parts.push((kind.name(), day, path, rows));
            }
        }
        Ok(parts)
    }
}

fn add_rows(
    kind: RowKind,
    name: &str,
    round: &[fullpipe_flow::diagnosis::DiagnosedConnection],
    tables: &mut DayTables,
    count: &mut u64,
) -> io::Result<()> {
    for diagnosed in round {
        let start = diagnosed.connection.start.as_nanos();
        kind.rows(name, diagnosed, |cells| {
            *count += 1;
            tables.row(start, cells)
        })?;
    }
    Ok(())
}

/// Opens a capture, or makes one whose reading says why it cannot be opened.
fn open((name, size, source): &Listed) -> PyResult<Capture> {
    let size = *size;
    let path = Python::attach(|py| source.extract::<PathBuf>(py).ok());
    if let Some(path) = path {
        let open = move |path: &std::path::Path| {
            let file: Box<dyn Read + Send> =
                Box::new(Bounded { file: File::open(path)?, size, left: size });
            Ok(file)
        };
        return Ok(Capture::file(path).opened_by(open).or_recording());
    }
    let file = Python::attach(|py| source.call0(py))?;
    Ok(Capture::reader(name.as_str(), PythonFile::new(file, BLOCK)).or_recording())
}

/// Reads what the listing said that a file has. One that became shorter since then does not look
/// like a whole capture, and one that grows is read as far as it was.
struct Bounded {
    file: File,
    size: u64,
    left: u64,
}

impl Read for Bounded {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(into.len());
        let read = self.file.read(&mut into[..most])?;
        self.left -= read as u64;
        if read == 0 && most > 0 {
            let Bounded { size, left, .. } = self;
            let problem = format!("{} bytes came of {size}: it became shorter", *size - *left);
            return Err(io::Error::other(problem));
        }
        Ok(read)
    }
}
