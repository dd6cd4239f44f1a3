//! What a run has made outside of its namespaces, on disk before it is made, so that the next run
//! can clean up.
//!
//! Most of a run needs no journal: the kernel ends it with its processes (see [`crate::sandbox`]).
//! The journal is for the rest: directories on disk, and the run's first process in case it
//! outlived its supervisor.
//!
//! One file a run, in a directory that only this user can write: `/run/fullpipe` for root,
//! `$XDG_RUNTIME_DIR/fullpipe` or `/tmp/fullpipe-<uid>` else, or where somebody else has taken that
//! name the first directory of ours whose name begins so. One JSON object a line, each line synced
//! before the thing it names is made. The supervisor holds an `flock` on its file: **a journal is
//! stale exactly when its lock can be had**, no process id needs guessing about. Two runs at once
//! have two files.
//!
//! [`clean_stale`] trusts no line: it kills a process only if its start time, boot and PID
//! namespace are those noted (and by a pidfd, so that the process checked is the process killed),
//! and removes a directory only if it is named as we name them, is a directory, and is ours.

mod entry;
mod stale;

pub use entry::{Entry, Process};
pub use stale::{Action, Cleaned, clean_stale, clean_stale_in};

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::fcntl::{Flock, FlockArg};

/// How the names of our scratch directories begin; nothing else is ever removed.
const SCRATCH_PREFIX: &str = "fullpipe-scratch-";
const JOURNAL_PREFIX: &str = "run-";
const JOURNAL_SUFFIX: &str = ".journal";

/// Why a journal could not be kept or read.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// A file or directory refused an operation.
    #[error("{operation}: {}: {cause}; {hint}", path.display())]
    Io {
        /// What was tried.
        operation: &'static str,
        /// On which path.
        path: PathBuf,
        /// The system's answer.
        cause: io::Error,
        /// What to try.
        hint: &'static str,
    },
    /// The directory exists and somebody else could have put things there.
    #[error("use journal directory: {}: {problem}; remove it, or set XDG_RUNTIME_DIR to a directory of your own", path.display())]
    NotOurs {
        /// The directory.
        path: PathBuf,
        /// What is wrong with it.
        problem: &'static str,
    },
}

const FULL: &str = "check that there is room and that the file system can be written";

impl JournalError {
    pub(crate) fn io(operation: &'static str, path: &Path, cause: impl Into<io::Error>) -> Self {
        JournalError::Io { operation, path: path.into(), cause: cause.into(), hint: FULL }
    }
}

/// The directory of this user's journals; it need not exist yet.
pub fn directory() -> PathBuf {
    let uid = nix::unistd::geteuid();
    let run = Path::new("/run");
    // To the root of a user namespace that has not mapped the machine's, /run belongs to nobody.
    if uid.is_root() && fs::metadata(run).is_ok_and(|m| m.is_dir() && m.uid() == uid.as_raw()) {
        return run.join("fullpipe");
    }
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    // Someone else's runtime directory comes along with `su` and `sudo -E`; it is no place of ours.
    let ours = |path: &PathBuf| {
        path.is_absolute() && fs::metadata(path).is_ok_and(|m| m.uid() == uid.as_raw())
    };
    match runtime.filter(ours) {
        Some(path) => path.join("fullpipe"),
        None => temporary(Path::new("/tmp"), &format!("fullpipe-{uid}")),
    }
}

/// The directory `name` in `parent`, where anybody can make one first: then the first of ours whose
/// name begins so, or one that is free, which nobody could have known.
fn temporary(parent: &Path, name: &str) -> PathBuf {
    let usual = parent.join(name);
    match check(&usual) {
        Ok(()) => return usual,
        Err(_) if fs::symlink_metadata(&usual).is_err() => return usual,
        Err(_) => {}
    }
    let begin = format!("{name}-");
    let ours = |entry: fs::DirEntry| {
        let named = entry.file_name().to_str().is_some_and(|name| name.starts_with(&begin));
        (named && check(&entry.path()).is_ok()).then(|| entry.path())
    };
    let first = fs::read_dir(parent).into_iter().flatten().flatten().filter_map(ours).min();
    first.unwrap_or_else(|| parent.join(format!("{begin}{}", crate::clock::now().as_nanos())))
}

/// This user's [`directory`], made where missing and checked to be ours alone.
pub fn own_directory() -> Result<PathBuf, JournalError> {
    let directory = directory();
    prepare(&directory)?;
    Ok(directory)
}

/// Makes `directory` for this user only, or checks that it is so.
fn prepare(directory: &Path) -> Result<(), JournalError> {
    let made = DirBuilder::new().mode(0o700).create(directory);
    match made {
        Ok(()) => return Ok(()),
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
        Err(e) => return Err(JournalError::io("make journal directory", directory, e)),
    }
    check(directory)
}

fn check(directory: &Path) -> Result<(), JournalError> {
    let not_ours = |problem| Err(JournalError::NotOurs { path: directory.into(), problem });
    // Not following a link: whoever can place one could lead us anywhere.
    let metadata = fs::symlink_metadata(directory)
        .map_err(|e| JournalError::io("look at journal directory", directory, e))?;
    if !metadata.is_dir() {
        return not_ours("it is not a directory");
    }
    if metadata.uid() != nix::unistd::geteuid().as_raw() {
        return not_ours("it belongs to another user");
    }
    if metadata.mode() & 0o077 != 0 {
        return not_ours("others have rights on it");
    }
    Ok(())
}

/// A run's own journal, locked as long as this value lives in the process that made it.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    lock: Flock<File>,
}

impl Journal {
    /// Makes and locks a journal in this user's [`directory`].
    pub fn create() -> Result<Journal, JournalError> {
        Journal::create_in(&directory())
    }

    /// The same in a directory of the caller's choice, which is made where missing.
    pub(crate) fn create_in(directory: &Path) -> Result<Journal, JournalError> {
        prepare(directory)?;
        let mut attempt = crate::clock::now().as_nanos();
        loop {
            let name = format!("{JOURNAL_PREFIX}{}-{attempt}{JOURNAL_SUFFIX}", std::process::id());
            attempt += 1;
            let path = directory.join(name);
            let file =
                match OpenOptions::new().append(true).create_new(true).mode(0o600).open(&path) {
                    Ok(file) => file,
                    Err(e) if e.kind() == io::ErrorKind::AlreadyExists => continue,
                    Err(e) => return Err(JournalError::io("make journal", &path, e)),
                };
            // Between the two calls a run that cleans may lock the file, find nothing in it and
            // remove it.
            let lock = Flock::lock(file, FlockArg::LockExclusive)
                .map_err(|(_, errno)| JournalError::io("lock journal", &path, errno))?;
            if lock.metadata().is_ok_and(|m| m.nlink() > 0) {
                let journal = Journal { path, lock };
                if let Err(error) = journal.writer().note(&Entry::run()) {
                    // Nothing stands in it, so nothing is lost with it.
                    let _ = fs::remove_file(&journal.path);
                    return Err(error);
                }
                return Ok(journal);
            }
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A way to add entries that another process may use: it does not hold the lock.
    pub fn writer(&self) -> JournalWriter {
        JournalWriter { path: self.path.clone() }
    }

    /// Closes this process's copy of the locked descriptor without unlocking: for a forked child.
    pub(crate) fn leave_to_parent(self) -> JournalWriter {
        use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
        let writer = self.writer();
        let raw = self.lock.as_raw_fd();
        // `Flock` unlocks when dropped, and the lock is the parent's as much as this copy's.
        std::mem::forget(self.lock);
        // SAFETY: the owner was just forgotten, so the descriptor has exactly this one.
        drop(unsafe { OwnedFd::from_raw_fd(raw) });
        writer
    }

    /// Removes what the entries name, then the journal; `Err` leaves it for the next
    /// [`clean_stale`].
    pub fn finish(self) -> Result<Cleaned, JournalError> {
        stale::clean(&self.path)
    }
}

/// Adds entries to a run's journal.
#[derive(Debug, Clone)]
pub struct JournalWriter {
    path: PathBuf,
}

impl JournalWriter {
    /// Writes `entry` and waits until it is on disk. Call it before making the thing that it names.
    pub fn note(&self, entry: &Entry) -> Result<(), JournalError> {
        let mut line = serde_json::to_vec(entry)
            .map_err(|e| JournalError::io("write journal", &self.path, e))?;
        line.push(b'\n');
        // Opened each time: entries are few, and a descriptor kept would have to be kept out of
        // every child.
        let file = OpenOptions::new().append(true).open(&self.path);
        let written = file.and_then(|mut file| {
            file.write_all(&line)?;
            file.sync_data()
        });
        written.map_err(|e| JournalError::io("write journal", &self.path, e))
    }

    /// Makes a directory for this user only that goes with the run, in the system's place for
    /// temporary files.
    pub fn scratch_directory(&self, purpose: &str) -> Result<PathBuf, JournalError> {
        let run = self.path.file_stem().unwrap_or_default().to_string_lossy();
        let purpose: String =
            purpose.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').collect();
        let number = crate::clock::now().as_nanos();
        let parent = std::env::temp_dir();
        // The journal's line must mean the same wherever the next run starts.
        let parent = fs::canonicalize(&parent)
            .map_err(|e| JournalError::io("find temporary directory", &parent, e))?;
        let path = parent.join(format!("{SCRATCH_PREFIX}{run}-{purpose}-{number}"));
        self.note(&Entry::Directory { path: path.clone() })?;
        let made = DirBuilder::new().mode(0o700).create(&path);
        made.map_err(|e| JournalError::io("make scratch directory", &path, e))?;
        Ok(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_name_that_somebody_else_took_is_done_without() {
        let place = tempfile::tempdir().unwrap();
        let usual = place.path().join("fullpipe-7");
        assert_eq!(temporary(place.path(), "fullpipe-7"), usual, "nobody has it");
        // Not ours: as a directory of another user is, but for what it takes to make one.
        fs::create_dir(&usual).unwrap();
        fs::set_permissions(&usual, fs::Permissions::from_mode(0o777)).unwrap();
        let other = place.path().join("fullpipe-7-0");
        fs::create_dir(&other).unwrap();
        fs::set_permissions(&other, fs::Permissions::from_mode(0o777)).unwrap();
        let found = temporary(place.path(), "fullpipe-7");
        assert!(found != usual && found != other, "{}", found.display());
        let journal = Journal::create_in(&found).unwrap();
        assert_eq!(
            temporary(place.path(), "fullpipe-7"),
            found,
            "the next run finds what this one leaves"
        );
        drop(journal);
        assert_eq!(clean_stale_in(&found).unwrap().len(), 1);
    }
}
