//! Rows, as Arrow's PyCapsule interface hands them over.

use crate::batches::{Batches, Problems};
use crate::input::Input;
use arrow_array::RecordBatchReader;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_schema::ffi::FFI_ArrowSchema;
use fullpipe_analyze::Options;
use fullpipe_columnar::RowSource;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use std::sync::PoisonError;

/// What is to be analysed, and how. Each request for the stream begins the analysis anew.
#[pyclass(module = "fullpipe")]
pub struct Rows {
    input: Input,
    kind: RowSource,
    options: Options,
    raises: bool,
    problems: Problems,
}

impl Rows {
    /// The rows of `input`; nothing is read yet.
    pub fn new(input: Input, kind: RowSource, options: Options, raises: bool) -> Self {
        Rows { input, kind, options, raises, problems: Problems::default() }
    }

    fn batches(&mut self) -> PyResult<Batches> {
        self.problems = Problems::default();
        let problems = Problems::clone(&self.problems);
        let captures = self.input.captures()?;
        Batches::new(captures, self.kind, self.options.clone(), problems, self.raises)
            .map_err(|error| PyRuntimeError::new_err(error.to_string()))
    }
}

#[pymethods]
impl Rows {
    /// The stream of record batches. The columns are always those of the schema, so a requested
    /// schema is ignored, as the interface permits.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &mut self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let stream = FFI_ArrowArrayStream::new(Box::new(self.batches()?));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    /// The columns and their types.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let nothing = Box::new(std::iter::empty());
        let problems = Problems::default();
        let schema = Batches::new(nothing, self.kind, self.options.clone(), problems, false)
            .map_err(|error| PyRuntimeError::new_err(error.to_string()))?
            .schema();
        let schema = FFI_ArrowSchema::try_from(schema.as_ref())
            .map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    /// Captures that the latest stream did not read to their ends.
    #[getter]
    fn problems(&self) -> Vec<(String, String)> {
        self.problems.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
