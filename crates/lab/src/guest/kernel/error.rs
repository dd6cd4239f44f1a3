//! Why a kernel could not be built.

use super::CacheError;
use super::patch::PatchError;
use std::io;
use std::path::{Path, PathBuf};

/// Why there is no kernel.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// Tools are not installed: exit code 3.
    #[error("build kernel: {missing} not found; install {} (on Debian: apt-get install {})", packages.join(", "), packages.join(" "))]
    Tools {
        /// What was looked for.
        missing: String,
        /// Debian's packages that have it.
        packages: Vec<&'static str>,
    },
    /// Debian's source is not to be had: exit code 3.
    #[error(
        "get kernel source: {cause}; apt-get install {package} as root, or give --source a tar file or a tree"
    )]
    NoSource {
        /// Debian's package.
        package: String,
        /// Why not.
        cause: Box<BuildError>,
    },
    /// There is no place for it.
    #[error(
        "find cache directory: neither XDG_CACHE_HOME nor HOME is set to an absolute path; set one"
    )]
    NoCache,
    /// The place is not this user's alone: exit code 3.
    #[error(transparent)]
    Cache(#[from] CacheError),
    /// A version that is none.
    #[error("build kernel: version '{0}' is not two numbers such as 6.12")]
    Version(String),
    /// A file.
    #[error("{operation} {path}: {cause}", path = path.display())]
    File {
        /// What was tried.
        operation: &'static str,
        /// With what.
        path: PathBuf,
        /// The system's answer.
        cause: io::Error,
    },
    /// The source could not be changed.
    #[error(transparent)]
    Patch(#[from] PatchError),
    /// A tool failed.
    #[error("{operation}: {program}: {status}; its last lines:\n{output}")]
    Tool {
        /// What was tried.
        operation: &'static str,
        /// The program.
        program: String,
        /// How it ended.
        status: String,
        /// The end of what it printed.
        output: String,
    },
    /// The configuration has lost a line: Kconfig knows better.
    #[error("configure kernel: this source does not take {0}; use a Linux from 6.1 to 6.12")]
    Config(String),
}

impl BuildError {
    pub(super) fn file(operation: &'static str, path: &Path, cause: io::Error) -> Self {
        BuildError::File { operation, path: path.into(), cause }
    }

    /// Whether a tool or a package is missing, rather than that something failed.
    pub fn is_missing(&self) -> bool {
        matches!(
            self,
            BuildError::Tools { .. } | BuildError::NoSource { .. } | BuildError::Cache(_)
        )
    }
}
