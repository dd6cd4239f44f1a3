//! Rows of the schema's tables as Parquet files and Arrow record batches.
//!
//! A [`Layout`] has the columns of a file or a batch: those of one table of
//! [`fullpipe_flow::schema`], or of several side by side. [`ParquetTable`] writes rows of cells to
//! a file; `Batch` collects them for Arrow (the feature `arrow`). A [`RowKind`] says which rows a
//! connection gives, a [`RowSource`] which rows a capture gives. This is a separate crate to keep
//! both dependencies away from those who do not need them.
//!
//! ```
//! # #[cfg(feature = "arrow")] {
//! use fullpipe_columnar::{Batch, Layout};
//! use fullpipe_flow::schema::RunRow;
//! use fullpipe_flow::schema::RUNS;
//! let row = RunRow { name: "b2".into(), ..RunRow::default() };
//! let mut batch = Batch::new(Layout::of(RUNS));
//! batch.push(Layout::cells(RUNS, &row))?;
//! let batch = batch.finish()?;
//! assert_eq!(batch.num_rows(), 1);
//! assert_eq!(batch.schema().field(1).name(), "name");
//! # }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

#[cfg(feature = "arrow")]
mod arrow;
mod layout;
mod parquet;
mod rows;

#[cfg(feature = "arrow")]
pub use arrow::{Batch, BatchError};
pub use layout::Layout;
pub use parquet::ParquetTable;
pub use rows::{RowKind, RowSource};
