//! Why runs fail.

use crate::experiment::ExperimentError;
use crate::guest::GuestError;
use crate::results::ResultsError;
use fullpipe_kernel::run::journal::JournalError;

/// Why the lab stopped, or why one of its runs failed.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// A run failed.
    #[error("{name}: {cause}")]
    Run {
        /// The run.
        name: String,
        /// The cause.
        cause: ExperimentError,
    },
    /// A run in a guest failed.
    #[error("{name}: {cause}")]
    Guest {
        /// The run.
        name: String,
        /// The cause.
        cause: Box<GuestError>,
    },
    /// This program or a kernel could not be read, or a thread not be started.
    #[error("{operation}: {cause}")]
    Prepare {
        /// The operation.
        operation: &'static str,
        /// The system's answer.
        cause: std::io::Error,
    },
    /// Results could not be written.
    #[error(transparent)]
    Results(#[from] ResultsError),
    /// The journal could not be written.
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

    /// Whether it concerns one run only, so that others can go on; an interrupt concerns all of
    /// them.
    pub(crate) fn is_of_one_run(&self) -> bool {
        let is_run = match self {
            LabError::Run { .. } => true,
            LabError::Guest { cause, .. } => !matches!(**cause, GuestError::Journal(_)),
            LabError::Prepare { .. } | LabError::Results(_) | LabError::Journal(_) => false,
        };
        is_run && !self.is_interrupt()
    }

    /// The cause in one line, without the name of the run.
    pub(crate) fn cause(&self) -> String {
        let cause = match self {
            LabError::Run { cause, .. } => cause.to_string(),
            LabError::Guest { cause, .. } => cause.to_string(),
            other => other.to_string(),
        };
        cause.replace('\n', " ")
    }
}
