//! A record on disk of what a run makes outside of its namespaces, written before it is made, so
//! that the next run can clean up.
//!
//! Most of a run needs no journal: the kernel ends it with its processes (see
//! [`crate::run::sandbox`]). The journal is for the rest: directories on disk, and the run's first
//! process in case it outlives its supervisor.
//!
//! Each run has one file, in a directory that only this user can write: `/run/fullpipe` for root,
//! otherwise `$XDG_RUNTIME_DIR/fullpipe` or `/tmp/fullpipe-<uid>`; if somebody else owns that name,
//! the first directory of ours whose name begins with it. Each line is a JSON object, synced before
//! the thing that it names is made. The supervisor holds an `flock` on its file, so **a journal is
//! stale exactly when its lock is free**, without guessing about process ids. Two runs at once have
//! two files.
//!
//! [`clean_stale`] trusts no line. It kills a process only if its start time, boot and PID
//! namespace match the entry (through a pidfd, so that the process checked is the process killed).
//! It removes a directory only if it has one of our names, is a directory, and belongs to us.

mod entry;
mod stale;

pub(crate) use entry::boot_id;
pub use entry::{Entry, Process};
pub use stale::{Action, Cleaned, clean_stale, clean_stale_in};

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::fcntl::{Flock, FlockArg};

/// Prefix of our scratch directories; nothing else is ever removed.
const SCRATCH_PREFIX: &str = "fullpipe-scratch-";
const JOURNAL_PREFIX: &str = "run-";
const JOURNAL_SUFFIX: &str = ".journal";

/// Why a journal could not be written or read.
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

/// The directory of this user's journals; it may not exist yet.
pub fn directory() -> PathBuf {
    let uid = nix::unistd::geteuid();
    let run = Path::new("/run");
    // For the root of a user namespace that has not mapped the machine's root, /run belongs to
    // nobody.
    if uid.is_root() && fs::metadata(run).is_ok_and(|m| m.is_dir() && m.uid() == uid.as_raw()) {
        return run.join("fullpipe");
    }
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    // `su` and `sudo -E` keep another user's runtime directory, which is not ours.
    let ours = runtime.filter(|path| {
        path.is_absolute() && fs::metadata(path).is_ok_and(|m| m.uid() == uid.as_raw())
    });
    match ours {
        Some(path) => path.join("fullpipe"),
        None => temporary(Path::new("/tmp"), &format!("fullpipe-{uid}")),
    }
}

/// The directory `name` in `parent`, where anybody can make one first. If somebody did, the first
/// directory of ours whose name begins with it, or a free name that nobody could have predicted.
fn temporary(parent: &Path, name: &str) -> PathBuf {
    let usual = parent.join(name);
    match check(&usual) {
        Ok(()) => return usual,
        Err(_) if fs::symlink_metadata(&usual).is_err() => return usual,
        Err(_) => {}
    }
    let begin = format!("{name}-");
    let ours = fs::read_dir(parent).into_iter().flatten().flatten().filter_map(|entry| {
        let named = entry.file_name().to_str().is_some_and(|name| name.starts_with(&begin));
        (named && check(&entry.path()).is_ok()).then(|| entry.path())
    });
    ours.min()
        .unwrap_or_else(|| parent.join(format!("{begin}{}", crate::host::clock::now().as_nanos())))
}

/// This user's [`directory`], created if it is missing and checked to belong to us alone.
pub fn own_directory() -> Result<PathBuf, JournalError> {
    let directory = directory();
    prepare(&directory)?;
    Ok(directory)
}

/// Makes `directory` for this user only, or checks that it is such a directory.
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
    // Links are not followed: whoever can place one could lead us anywhere.
    let metadata = fs::symlink_metadata(directory)
        .map_err(|e| JournalError::io("look at journal directory", directory, e))?;
    let problem = if !metadata.is_dir() {
        "it is not a directory"
    } else if metadata.uid() != nix::unistd::geteuid().as_raw() {
        "it belongs to another user"
    } else if metadata.mode() & 0o077 != 0 {
        "others have rights on it"
    } else {
        return Ok(());
    };
    Err(JournalError::NotOurs { path: directory.into(), problem })
}

/// The journal of a run, locked as long as this value lives in the process that made it.
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

    /// The same in a given directory, which is created if it is missing.
    pub(crate) fn create_in(directory: &Path) -> Result<Journal, JournalError> {
        prepare(directory)?;
        let mut attempt = crate::host::clock::now().as_nanos();
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
            // Between these two calls a cleaning run may lock the file, find it empty and remove
            // it.
            let lock = Flock::lock(file, FlockArg::LockExclusive)
                .map_err(|(_, errno)| JournalError::io("lock journal", &path, errno))?;
            if lock.metadata().is_ok_and(|m| m.nlink() > 0) {
                let journal = Journal { path, lock };
                if let Err(error) = journal.writer().note(&Entry::run()) {
                    // The file is empty, so nothing is lost.
                    let _ = fs::remove_file(&journal.path);
                    return Err(error);
                }
                return Ok(journal);
            }
        }
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A writer of entries for other processes: it does not hold the lock.
    pub fn writer(&self) -> JournalWriter {
        JournalWriter { path: self.path.clone() }
    }

    /// For a forked child: closes its copy of the locked descriptor without unlocking.
    pub(crate) fn leave_to_parent(self) -> JournalWriter {
        use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
        let writer = self.writer();
        let raw = self.lock.as_raw_fd();
        // Dropping `Flock` unlocks, and the parent shares this lock.
        std::mem::forget(self.lock);
        // SAFETY: the owner was just forgotten, so the descriptor has exactly this one.
        drop(unsafe { OwnedFd::from_raw_fd(raw) });
        writer
    }

    /// Removes what the entries name, then the journal; on `Err` it stays for the next
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
        // Opened each time: entries are few, and a descriptor that stays open would have to be
        // closed in every child.
        let file = OpenOptions::new().append(true).open(&self.path);
        let written = file.and_then(|mut file| {
            file.write_all(&line)?;
            file.sync_data()
        });
        written.map_err(|e| JournalError::io("write journal", &self.path, e))
    }

    /// Makes a directory for this user only, which is removed with the run, in the system's
    /// directory for temporary files.
    pub fn scratch_directory(&self, purpose: &str) -> Result<PathBuf, JournalError> {
        let run = self.path.file_stem().unwrap_or_default().to_string_lossy();
        let purpose: String =
            purpose.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').collect();
        let number = crate::host::clock::now().as_nanos();
        let parent = std::env::temp_dir();
        // The path must have the same meaning wherever the next run starts.
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
        // It exists, and it is not ours to use: the same situation as another user's directory,
        // which a test cannot make.
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
