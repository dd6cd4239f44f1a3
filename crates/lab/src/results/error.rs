//! Why results cannot be written or resumed.

use crate::sweep::Shard;
use fullpipe_kernel::file::folder::NotOurs;
use std::path::{Path, PathBuf};

/// Why results could not be written.
#[derive(Debug, thiserror::Error)]
pub enum ResultsError {
    /// A file or folder.
    #[error("{operation} {path}: {cause}; free some space, or choose another place with --output", path = path.display())]
    File {
        /// The operation.
        operation: &'static str,
        /// Its file or folder.
        path: PathBuf,
        /// The kernel's answer.
        cause: std::io::Error,
    },
    /// The directory already contains something.
    #[error("write results to {path}: there is something in it already; choose another place with --output", path = .0.display())]
    NotEmpty(PathBuf),
    /// The directory already contains an interrupted sweep of the same runs.
    #[error(
        "write results to {path}: {done} of {total} runs of these scenarios are there; go on with --resume, or choose \
         another place with --output",
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
    #[error("use results directory {0}; choose another place with --output")]
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
    #[error("resume sweep in {path}: {cause}; choose another place with --output", path = .path.display())]
    Unreadable {
        /// The results directory.
        path: PathBuf,
        /// The problem of its `sweep.json`.
        cause: std::io::Error,
    },
    /// It is another sweep.
    #[error(
        "resume sweep in {path}: {difference}; give the same scenarios and options (and the same build of fullpipe and \
         kernel, in virtual time), or choose another place with --output",
        path = .path.display()
    )]
    Other {
        /// The results directory.
        path: PathBuf,
        /// The first difference.
        difference: String,
    },
}

/// Why the results of shards are not put together.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    /// No shard was given.
    #[error("merge shards: none is given")]
    Nothing,
    /// It holds no results, or they cannot be read.
    #[error("read shard {path}: {cause}; give folders that `fullpipe lab run --shard` has written", path = .path.display())]
    Unreadable {
        /// The folder.
        path: PathBuf,
        /// The problem.
        cause: std::io::Error,
    },
    /// It is not one of several.
    #[error(
        "merge {path}: it has a whole sweep; give folders that `fullpipe lab run --shard` has written",
        path = .0.display()
    )]
    Whole(PathBuf),
    /// Some of its runs are not done.
    #[error(
        "merge shard {shard} in {path}: {done} of its {total} runs are done; finish it by the same command with --output {path} \
         --resume",
        path = .path.display()
    )]
    Unfinished {
        /// The folder.
        path: PathBuf,
        /// Which shard.
        shard: Shard,
        /// Runs that are done, in order.
        done: usize,
        /// Runs of the shard.
        total: usize,
    },
    /// Two of them are not of the same sweep.
    #[error(
        "merge {a} and {b}: they are of different sweeps: {difference}; make all shards from the same scenarios with the \
         same options (and the same build of fullpipe and kernel, in virtual time)",
        a = .paths[0].display(),
        b = .paths[1].display()
    )]
    Different {
        /// Both folders.
        paths: [PathBuf; 2],
        /// The first difference.
        difference: String,
    },
    /// Two are the same shard.
    #[error(
        "merge {a} and {b}: both are shard {shard}; give each shard once",
        a = .paths[0].display(),
        b = .paths[1].display()
    )]
    Twice {
        /// Which shard.
        shard: Shard,
        /// Both folders.
        paths: [PathBuf; 2],
    },
    /// Shards are missing.
    #[error("merge {of} shards: {} missing; run `fullpipe lab run --shard NUMBER/{of}` for each, or give its folder", listed(.missing, *.of))]
    Missing {
        /// Their numbers, from 1.
        missing: Vec<usize>,
        /// How many shards the sweep has.
        of: usize,
    },
    /// The directory could not be written.
    #[error(transparent)]
    Results(#[from] ResultsError),
}

/// "3/16 and 7/16 are", and no more names than a line takes.
fn listed(missing: &[usize], of: usize) -> String {
    const NAMED: usize = 10;
    let names: Vec<String> =
        missing.iter().take(NAMED).map(|number| format!("{number}/{of}")).collect();
    match &names[..] {
        [one] => format!("{one} is"),
        _ if missing.len() > NAMED => {
            format!("{} and {} more are", names.join(", "), missing.len() - NAMED)
        }
        [others @ .., last] => format!("{} and {last} are", others.join(", ")),
        [] => "none is".into(),
    }
}
