//! The results directory: everything that runs showed, in files that other programs can read.
//!
//! ```text
//! DIR/
//!   rows.jsonl          one row for each run, in the scenarios' order
//!   environment.json    machine, kernel, privilege, program
//!   sweep.json          every planned run; a later `--resume` compares its own plan with it
//!   001-NAME/
//!     row.json          its row
//!     scenario.json     the scenario that ran
//!     transfer.json     how the client saw it, with byte counts for each interval
//!     link.json         what the link carried and dropped, and how late it was; `epoch_ns` is what
//!                       a capture's time has beyond that of samples and of link.log
//!     verdict.json      what limited it, interval by interval, by capture and by sockets
//!     server.samples.jsonl, client.samples.jsonl
//!     truth.jsonl       what limited it as its kernel knew it, with --truth
//!     server.pcap, client.pcap      with --keep-captures
//!     link.log likewise: each packet and its fate, see `fullpipe_model::link::log`
//! ```
//!
//! Nothing in it is ever incomplete: a run's folder is called `part-001-NAME` until all of its
//! files are there, its row included. The name of a complete folder begins with a digit, so the two
//! cannot be confused, whatever the scenario is called. So the folders say which runs are done, in
//! whatever order they ended. `rows.jsonl` grows by one write a row, as soon as all rows before it
//! are there; it is written anew from the folders when a sweep is resumed.
//!
//! # A boundary
//! Root runs experiments, and another user may be able to reach the directory. A user who could
//! replace a file in it by a symbolic link would make root write to the link's target. So:
//! * The directory is opened once ([`Folder`](fullpipe_kernel::file::folder::Folder)). Its last
//!   name must not be a link, and it must belong to this user. Everything in it is found, made and
//!   renamed relative to that descriptor.
//! * A run's folder is made by us, and only we may write to it; its descriptor is checked to be
//!   that of our folder. What writes into it by a path (captures, logs) gets a path through the
//!   descriptor, so no name above it matters.
//! * No existing file is opened for writing (`O_EXCL`); a file is replaced by renaming another.
//! * A directory that is made where others can write has mode 0700.
//! * A name from a scenario becomes the name of one file: no `/`, no control character, not too
//!   long for a file system.

mod directory;
mod environment;
mod error;
mod files;
mod manifest;
mod merge;
mod run_folder;
mod writer;

pub use directory::{check_results_folder, claim_results_folder};
pub(crate) use environment::Environment;
pub use error::{MergeError, ResultsError};
pub(crate) use manifest::{Manifest, Planned};
pub use merge::{Merged, merge_shards};
pub(crate) use run_folder::{ROW, RunFolder, row};
pub(crate) use writer::Results;

#[cfg(test)]
mod tests;
