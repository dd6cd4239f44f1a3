//! Captures that are analysed together, into Parquet files: what a worker of a cluster does.
//!
//! [`write_group`] gives one capture after another to [`CaptureRows`], without Python's lock. Files
//! of the disk are opened here; for every other place Python gives a function that opens the
//! capture.

use crate::input::PythonFile;
use crate::options::{options_of, source_of};
use fullpipe_analyze::Capture;
use fullpipe_archive::{CaptureOutcome, CaptureRows, TableError};
use fullpipe_columnar::{Layout, ParquetTable};
use fullpipe_flow::schema::{CAPTURE_PROBLEMS, CaptureProblem};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::types::PyIterator;
use std::fs::File;
use std::io::{self, BufWriter, Read};
use std::path::PathBuf;

/// The most that is asked of an opened capture at a time.
const BLOCK: usize = 8 << 20;

/// A capture of the group: its name, its size, and its path or a function that opens it.
type ListedCapture = (String, u64, Py<PyAny>);
/// What was read of a capture: the rows of each kind, and why they are not all.
type CaptureResult = (Vec<u64>, Option<String>);
/// A file of rows: kind, day, path, rows.
type RowFile = (&'static str, String, PathBuf, u64);

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
) -> PyResult<(Vec<CaptureResult>, Vec<RowFile>)> {
    let options = options_of(filter, capture_point, layer, labels, 1)?;
    let kinds = kinds.iter().map(|kind| source_of(kind)).collect::<PyResult<Vec<_>>>()?;
    let mut rows = CaptureRows::new(&folder, "rows", &kinds, options);
    let captures = captures.try_iter()?.unbind();
    py.detach(|| {
        let mut done = Vec::new();
        while let Some(listed) = next_of(&captures)? {
            let check = || Ok(Python::attach(|py| py.check_signals())?);
            let outcome = rows.add::<Ended>(&listed.0, || Ok(open(&listed)?), check)?;
            let CaptureOutcome { rows, problem } = outcome;
            done.push((rows, problem));
        }
        let mut parts = Vec::new();
        for (kind, tables) in rows.finish().map_err(Ended::from)? {
            for table in tables {
                let (day, rows) = (table.date(), table.rows());
                parts.push((kind.name(), day, table.keep(), rows));
            }
        }
        Ok((done, parts))
    })
}

/// What ends a group before its time, as Python has it.
struct Ended(PyErr);

impl From<PyErr> for Ended {
    fn from(error: PyErr) -> Self {
        Ended(error)
    }
}

impl From<TableError> for Ended {
    fn from(error: TableError) -> Self {
        let problem = format!("write rows to {error}; give $TMPDIR a disk with free space");
        Ended(PyOSError::new_err(problem))
    }
}

impl From<Ended> for PyErr {
    fn from(ended: Ended) -> Self {
        ended.0
    }
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

fn next_of(captures: &Py<PyIterator>) -> PyResult<Option<ListedCapture>> {
    Python::attach(|py| {
        let next = captures.bind(py).clone().next().transpose()?;
        next.map(|listed| listed.extract::<ListedCapture>()).transpose()
    })
}

/// Opens a capture, or makes one whose reading says why it cannot be opened.
fn open((name, size, source): &ListedCapture) -> PyResult<Capture> {
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
