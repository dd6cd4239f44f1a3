//! Why results cannot be written or resumed.

use fullpipe_kernel::folder::NotOurs;
use std::path::{Path, PathBuf};

/// Why results could not be written.
#[derive(Debug, thiserror::Error)]
pub enum ResultsError {
    /// A file or folder.
    #[error("{operation} {path}: {cause}; free some space, or choose another place with --out", path = path.display())]
    File {
        /// The operation.
        operation: &'static str,
        /// Its file or folder.
        path: PathBuf,
        /// The kernel's answer.
        cause: std::io::Error,
    },
    /// The directory already contains something.
    #[error("write results to {path}: there is something in it already; choose another place with --out", path = .0.display())]
    NotEmpty(PathBuf),
    /// The directory already contains an interrupted sweep of the same runs.
    #[error(
        "write results to {path}: {done} of {total} runs of these scenarios are there; go on with --resume, or choose \
         another place with --out",
        path = folder.display()
    )]
    Resumable {
        /// The results directory.
        folder: PathBuf,
        /// Runs that are done.
        done: usize,
        /// Planned runs.
        total: usize,
    },
    /// The directory belongs to another user, who could make root write anywhere.
    #[error("use results directory {0}; choose another place with --out")]
    NotOurs(#[from] NotOurs),
    /// The sweep in the directory cannot be resumed.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
}

impl ResultsError {
    pub(super) fn file(operation: &'static str, path: &Path, cause: std::io::Error) -> Self {
        ResultsError::File { operation, path: path.into(), cause }
    }

    /// Whether another place would do, as opposed to a file or folder that failed.
    pub fn is_choice(&self) -> bool {
        !matches!(self, ResultsError::File { .. })
    }
}

/// Why a directory's sweep cannot be resumed.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// There is no manifest, or it is not valid.
    #[error("resume sweep in {path}: {cause}; choose another place with --out", path = .path.display())]
    Unreadable {
        /// The results directory.
        path: PathBuf,
        /// The problem of its `sweep.json`.
        cause: std::io::Error,
    },
    /// It is another sweep.
    #[error(
        "resume sweep in {path}: {difference}; give the same scenarios and options (and the same build of fullpipe and \
         kernel, in virtual time), or choose another place with --out",
        path = .path.display()
    )]
    Other {
        /// The results directory.
        path: PathBuf,
        /// The first difference.
        difference: String,
    },
}
