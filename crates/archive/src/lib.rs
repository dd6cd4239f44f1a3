//! An archive of captures becomes a folder of rows in Parquet.
//!
//! * [`CaptureRows`] analyses captures one after another, and writes the rows of each kind into
//!   [`DayTables`]: files of a folder, one or more for each day. This is what a worker of a cluster
//!   does; it knows nothing of where the rows belong.
//! * [`Archive`] is a folder of this machine: [`Sources`] name the captures, which are analysed in
//!   groups by threads, and a manifest says which groups are done. Whenever a run ends, by a signal
//!   or a full disk, each capture is in the manifest with all its rows, or not at all;
//!   [`Archive::open`] with `resume` goes on.
//!
//! A capture that cannot be read is a line of the manifest and never the end of a run. Nothing is
//! printed here: an [`Observer`] is told what happens, and says when a run has to end.
#![forbid(unsafe_code)]

mod capture_rows;
mod day_tables;
mod folder;
mod groups;
mod list;
mod manifest;
mod parts;
mod run;

pub use capture_rows::{CaptureOutcome, CaptureRows};
pub use day_tables::{DayTable, DayTables, TableError};
pub use folder::FolderError;
pub use list::{SourceList, Sources};
pub use manifest::{ManifestError, RowSettings, Totals};
pub use run::{Archive, ArchiveError, CaptureOpener, Finished, Observer};
