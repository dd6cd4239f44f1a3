//! The module that Python imports: its functions and types.

use crate::columns::{Column, columns_of_rows};
use crate::group::{write_group, write_problems};
use crate::input::Input;
use crate::options::{options_of, source_of, word};
use crate::rows::Rows;
use pyo3::prelude::*;

/// What `fullpipe/__init__.py` takes over; the documentation for users is there and in its stubs.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("SCHEMA_VERSION", fullpipe_flow::schema::SCHEMA_VERSION)?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<Rows>()?;
    module.add_class::<Column>()?;
    module.add_function(wrap_pyfunction!(analyze, module)?)?;
    module.add_function(wrap_pyfunction!(write_group, module)?)?;
    module.add_function(wrap_pyfunction!(write_problems, module)?)?;
    module.add_function(wrap_pyfunction!(columns_of, module)?)
}

/// Notes what to analyse; see the stubs for each option.
#[pyfunction]
#[pyo3(signature = (
    source, *, rows = "connections", filter = None, capture_point = "auto", layer = "inner",
    labels = "sack", threads = 1, problems = "raise", name = None
))]
#[allow(clippy::too_many_arguments, reason = "they are keywords in Python")]
fn analyze(
    source: &Bound<'_, PyAny>,
    rows: &str,
    filter: Option<&str>,
    capture_point: &str,
    layer: &str,
    labels: &str,
    threads: usize,
    problems: &str,
    name: Option<&str>,
) -> PyResult<Rows> {
    let kind = source_of(rows)?;
    let options = options_of(filter, capture_point, layer, labels, threads)?;
    let raises = word("problems", problems, &[("raise", true), ("keep", false)])?;
    Ok(Rows::new(Input::of(source, name)?, kind, options, raises))
}

/// The columns of a kind of row.
#[pyfunction]
#[pyo3(name = "columns", signature = (rows = "connections"))]
fn columns_of(rows: &str) -> PyResult<Vec<Column>> {
    Ok(columns_of_rows(source_of(rows)?))
}
