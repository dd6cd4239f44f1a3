//! Why runs fail.

use crate::experiment::ExperimentError;
use crate::guest::GuestError;
use crate::results::ResultsError;
use fullpipe_kernel::journal::JournalError;

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
