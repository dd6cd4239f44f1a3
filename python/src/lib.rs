//! The native half of the Python package `fullpipe`: captures in, Arrow record batches out.
//!
//! `analyze` only notes what to analyse. The analysis runs when a library asks the returned
//! [`rows::Rows`] for its C stream (Arrow's PyCapsule interface), as pyarrow, polars, pandas and
//! DuckDB do. The columns are those of [`fullpipe_flow::schema`], the batches are made by
//! `fullpipe-columnar`, and nothing is kept beyond the batch that is being made. A worker's files
//! are written by `fullpipe-archive`. Python's global lock is released while captures are read; it
//! is taken only to read from a file object and to look for Ctrl-C.
//!
//! No unsafe code is written here. `forbid(unsafe_code)` is impossible, because what the macros of
//! pyo3 generate allows itself some.

mod batches;
mod columns;
mod group;
mod input;
mod options;
mod package;
mod rows;
