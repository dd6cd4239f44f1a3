//! A scenario becomes two hosts, a link between them, a transfer over it, captures, socket samples, and results.
//!
//! The only room that combines the shells. [`run`] is the door; it must be called inside
//! [`fullpipe_kernel::sandbox`], whose end takes everything with it that a run has made.
//!
//! * [`preset`]: the scenarios that come with the program.
//! * [`hosts`], [`program`], [`sampler`], [`hog`]: what a run is made of.
//! * [`met`]: which of a path's rules the transfer meets.
//! * [`carrier`]: our link or the kernel's netem between the hosts.
//! * [`experiment`]: one run, in order.
//! * [`edge`]: from the link's streams to the capture at a host's edge.
//! * [`tell`]: from an outcome to its row.
//! * [`tuning`]: a plan for a scenario, and the scenario with the plan.
//! * [`results`]: the directory that keeps it all.
//! * [`guest`]: the same in virtual time, inside a kernel of our own.
//! * [`sweep`]: many runs, in guests several at once; [`cache`]: those that were done before.
#![forbid(unsafe_code)]

pub mod cache;
pub mod carrier;
pub mod edge;
pub mod experiment;
pub mod guest;
pub mod hog;
pub mod hosts;
pub mod met;
pub mod preset;
pub mod program;
pub mod results;
pub mod sampler;
pub mod sweep;
pub mod tell;
pub mod tuning;

use cache::Cache;
use experiment::ExperimentError;
use fullpipe_flow::row::Row;
use fullpipe_kernel::journal::JournalError;
use fullpipe_model::scenario::Scenario;
use fullpipe_model::units::{Bytes, Duration};
use guest::kernel::Kernel;
use guest::{GuestError, Limits};
use results::ResultsError;
use std::num::NonZeroUsize;
use std::path::PathBuf;

pub use sweep::{FailedRun, Sweep, run};

/// What carries a run, and by whose clock.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Engine {
    /// This machine's kernel, in real time.
    #[default]
    Real,
    /// A guest for each run, in virtual time: [`guest`]. These are the kernels to choose from.
    Virtual(Vec<Kernel>),
    /// This process is in such a guest.
    Guest,
}

/// How to run scenarios.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Where to keep results; `None`: nothing is kept but what is returned.
    pub out: Option<PathBuf>,
    /// Go on with what an interrupted sweep of the same scenarios has left in `out`.
    pub resume: bool,
    /// Keep both edges' captures among the results.
    pub keep_captures: bool,
    /// What carries the runs.
    pub engine: Engine,
    /// What bounds a guest.
    pub limits: Limits,
    /// Guests at once, where memory allows; `None`: one for each CPU. Runs in real time are made one at a time.
    pub jobs: Option<NonZeroUsize>,
    /// Where runs that were done before are looked up, and new ones kept.
    pub cache: Option<Cache>,
}

/// What is going on. Runs are numbered from 0, in the scenarios' order; several may go on at once.
#[derive(Debug, Clone, Copy)]
pub enum Event<'a> {
    /// A run starts.
    Started {
        /// Its number.
        index: usize,
        /// What is run.
        scenario: &'a Scenario,
    },
    /// A run goes on.
    Progress {
        /// Its number.
        index: usize,
        /// Since its start.
        elapsed: Duration,
        /// Body bytes so far, where the client tells.
        body: Bytes,
    },
    /// A run has ended, done or failed: just now, or before (it is resumed, or from the cache).
    Finished {
        /// Its number.
        index: usize,
    },
    /// The next row: these come in the scenarios' order, whichever run ended first.
    Row(&'a Row),
}

/// Why the lab stopped, or why one of its runs failed.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// A run failed.
    #[error("{name}: {cause}")]
    Run {
        /// Which.
        name: String,
        /// Why.
        cause: ExperimentError,
    },
    /// A run in a guest failed.
    #[error("{name}: {cause}")]
    Guest {
        /// Which.
        name: String,
        /// Why.
        cause: Box<GuestError>,
    },
    /// This program or a kernel could not be read, or a thread not be had.
    #[error("{operation}: {cause}")]
    Prepare {
        /// What was tried.
        operation: &'static str,
        /// The system's answer.
        cause: std::io::Error,
    },
    /// Results could not be kept.
    #[error(transparent)]
    Results(#[from] ResultsError),
    /// The journal refused what had to be noted in it.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

impl LabError {
    /// Whether the user ended it.
    pub fn is_interrupt(&self) -> bool {
        match self {
            LabError::Run { cause, .. } => matches!(cause, ExperimentError::Interrupted),
            LabError::Guest { cause, .. } => cause.is_interrupt(),
            LabError::Prepare { .. } | LabError::Results(_) | LabError::Journal(_) => false,
        }
    }

    /// Whether it is of one run, so that others may still be done; an interrupt is of all of them.
    pub(crate) fn is_of_one_run(&self) -> bool {
        let is_run = match self {
            LabError::Run { .. } => true,
            LabError::Guest { cause, .. } => !matches!(**cause, GuestError::Journal(_)),
            LabError::Prepare { .. } | LabError::Results(_) | LabError::Journal(_) => false,
        };
        is_run && !self.is_interrupt()
    }

    /// What went wrong, in one line and without the name of the run.
    pub(crate) fn cause(&self) -> String {
        let cause = match self {
            LabError::Run { cause, .. } => cause.to_string(),
            LabError::Guest { cause, .. } => cause.to_string(),
            other => other.to_string(),
        };
        cause.replace('\n', " ")
    }
}

/// A folder that is gone when this value is.
#[derive(Debug)]
pub(crate) struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed here stands in the journal, and the supervisor tries again.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
