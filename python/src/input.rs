//! What is to be analysed: paths, bytes, or a file object of Python.

use fullpipe_analyze::{Capture, Error};
use pyo3::exceptions::{PyKeyboardInterrupt, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;
use std::io::{self, Cursor, Read};
use std::path::PathBuf;
use std::sync::Arc;

/// The most that is asked of a user's file object at a time: each call takes Python's lock.
const CHUNK: usize = 1 << 18;

/// What is to be analysed.
pub enum Input {
    /// Files, one after another.
    Paths(Vec<PathBuf>),
    /// A capture in memory.
    Bytes(String, Arc<[u8]>),
    /// An open file, which can be read once.
    File(String, Option<Py<PyAny>>),
}

impl Input {
    /// What `source` is: bytes, an object with `read`, a path, or paths. `name` is for bytes and
    /// objects, which have none.
    ///
    /// # Errors
    /// It is none of these; or its only file cannot be opened.
    pub fn of(source: &Bound<'_, PyAny>, name: Option<&str>) -> PyResult<Input> {
        let named = |otherwise: &str| name.unwrap_or(otherwise).to_owned();
        if let Ok(bytes) = source.cast::<PyBytes>() {
            return Ok(Input::Bytes(named("bytes"), bytes.as_bytes().into()));
        }
        if source.hasattr("read")? {
            return Ok(Input::File(named("file object"), Some(source.clone().unbind())));
        }
        if name.is_some() {
            return Err(PyValueError::new_err(
                "analyze: name= is for bytes and open files; paths have their own names",
            ));
        }
        if let Ok(path) = source.extract::<PathBuf>() {
            if let Err(cause) = std::fs::File::open(&path) {
                return Err(os_error(path, cause));
            }
            return Ok(Input::Paths(vec![path]));
        }
        let paths = source.try_iter().and_then(|items| {
            items.map(|item| item?.extract::<PathBuf>()).collect::<PyResult<Vec<_>>>()
        });
        paths.map(Input::Paths).map_err(|_| {
            let what = source.get_type();
            PyTypeError::new_err(format!(
                "analyze {what}: give a path, paths, bytes, or a file that is open for reading bytes"
            ))
        })
    }

    /// Its captures, each with its name.
    ///
    /// # Errors
    /// It is a file object that was read before.
    pub fn captures(&mut self) -> PyResult<Captures> {
        Ok(match self {
            Input::Paths(paths) => {
                let captures = paths.clone().into_iter().map(|path| {
                    let name = path.display().to_string();
                    (name, Capture::file(path).or_recording())
                });
                Box::new(captures)
            }
            Input::Bytes(name, bytes) => one(name, Cursor::new(Arc::clone(bytes))),
            Input::File(name, file) => {
                let file = file.take().ok_or_else(|| {
                    PyRuntimeError::new_err(
                        "analyze: the file object was read already; call analyze again with a new one",
                    )
                })?;
                one(name, PythonFile::new(file, CHUNK))
            }
        })
    }
}

/// Captures that are opened one after another.
pub type Captures = Box<dyn Iterator<Item = (String, Capture)> + Send>;

fn one(name: &str, source: impl Read + Send + 'static) -> Captures {
    let capture = Capture::reader(name, source).or_recording();
    Box::new(std::iter::once((name.to_owned(), capture)))
}

/// The exception of Python for `cause`, with the words of the command line.
fn os_error(path: PathBuf, cause: io::Error) -> PyErr {
    let kind = cause.kind();
    let words = Error::Open { path, cause }.to_string();
    io::Error::new(kind, words).into()
}

/// Reads an open file of Python.
pub struct PythonFile {
    file: Py<PyAny>,
    /// The most that is asked for at a time.
    most: usize,
    /// What Python gave: its own bytes, which nobody changes.
    chunk: Option<PyBackedBytes>,
    /// How much of the chunk was passed on.
    taken: usize,
}

impl PythonFile {
    pub fn new(file: Py<PyAny>, most: usize) -> Self {
        PythonFile { file, most, chunk: None, taken: 0 }
    }

    fn fetch(&mut self) -> PyResult<()> {
        Python::attach(|py| {
            // Python can free what was read before the next comes.
            self.chunk = None;
            let read = self.file.bind(py).call_method1("read", (self.most,));
            let read = read.inspect_err(|error| interrupt_again(py, error))?;
            let bytes = read.cast_into::<PyBytes>().map_err(|_| {
                PyTypeError::new_err(
                    "the file's read() does not give bytes; open it with mode 'rb'",
                )
            })?;
            self.chunk = Some(bytes.into());
            self.taken = 0;
            Ok(())
        })
    }
}

/// Lets Python raise a `KeyboardInterrupt` once more. The stream of Arrow cannot carry it: it would
/// become an error as any other, which callers may handle, and Ctrl-C would be lost.
pub fn interrupt_again(py: Python<'_>, error: &PyErr) {
    if error.is_instance_of::<PyKeyboardInterrupt>(py) {
        // If even this fails, the error of the stream still ends the analysis.
        let _ = py.import("_thread").and_then(|module| module.call_method0("interrupt_main"));
    }
}

impl Read for PythonFile {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.chunk.as_ref().is_none_or(|chunk| self.taken == chunk.len()) {
            self.fetch().map_err(io::Error::other)?;
        }
        let chunk: &[u8] = self.chunk.as_deref().unwrap_or_default();
        let left = &chunk[self.taken..];
        let length = left.len().min(into.len());
        into[..length].copy_from_slice(&left[..length]);
        self.taken += length;
        Ok(length)
    }
}
