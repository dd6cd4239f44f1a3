//! Cleans up after runs that could not do it themselves.

use std::fmt;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use fullpipe_model::units::Duration;
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};

use super::entry::{self, Entry, Process};
use super::{JOURNAL_PREFIX, JOURNAL_SUFFIX, JournalError, SCRATCH_PREFIX, check, directory};

/// How long a killed process may take to end; one stuck in the kernel must not block the next run.
const DEATH: Duration = Duration::from_secs(5);

/// What was done about one journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cleaned {
    /// The journal's file.
    pub journal: PathBuf,
    /// What was ended or removed, or could not be, in order.
    pub actions: Vec<Action>,
}

impl Cleaned {
    /// Whether everything that it named is gone.
    pub fn complete(&self) -> bool {
        !self.actions.iter().any(|action| matches!(action, Action::Failed { .. }))
    }
}

/// The outcome for one entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// A process was killed.
    Killed(Process),
    /// A directory was removed.
    Removed(PathBuf),
    /// A line was ignored, with the reason.
    Ignored {
        /// The line, shortened for printing.
        line: String,
        /// Why.
        reason: String,
    },
    /// Something is still there, with the reason.
    Failed {
        /// What.
        subject: String,
        /// Why.
        reason: String,
    },
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Action::Killed(process) => {
                write!(f, "killed process {} ({})", process.pid, process.role)
            }
            Action::Removed(path) => write!(f, "removed directory {}", path.display()),
            Action::Ignored { line, reason } => write!(f, "left alone '{line}': {reason}"),
            Action::Failed { subject, reason } => write!(f, "could not clean {subject}: {reason}"),
        }
    }
}

/// Cleans up after all runs of this user that ended without doing so; returns one item for each
/// journal.
///
/// Active runs are not touched. A journal stays if something that it names could not be removed.
pub fn clean_stale() -> Result<Vec<Cleaned>, JournalError> {
    clean_stale_in(&directory())
}

/// The same for journals in `directory`; returns nothing if it does not exist.
pub fn clean_stale_in(directory: &Path) -> Result<Vec<Cleaned>, JournalError> {
    let listing = match fs::read_dir(directory) {
        Ok(listing) => listing,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(JournalError::io("list journals", directory, e)),
    };
    check(directory)?;
    let mut cleaned = Vec::new();
    for item in listing {
        let path = item.map_err(|e| JournalError::io("list journals", directory, e))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if !name.starts_with(JOURNAL_PREFIX) || !name.ends_with(JOURNAL_SUFFIX) {
            continue;
        }
        let file = match File::open(&path) {
            Ok(file) => file,
            // Another run cleaned it in the meantime.
            Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
            Err(e) => return Err(JournalError::io("open journal", &path, e)),
        };
        // Held until the file is removed, so that two cleaning runs do not do it twice.
        match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(lock) if lock.metadata().is_ok_and(|m| m.nlink() > 0) => cleaned.push(clean(&path)?),
            Ok(_) | Err((_, Errno::EWOULDBLOCK)) => {}
            Err((_, errno)) => return Err(JournalError::io("lock journal", &path, errno)),
        }
    }
    Ok(cleaned)
}

/// Ends and removes what the journal names, then the journal itself unless something is left. The
/// caller holds its lock.
pub(super) fn clean(path: &Path) -> Result<Cleaned, JournalError> {
    let bytes = fs::read(path).map_err(|e| JournalError::io("read journal", path, e))?;
    let mut same_place = false;
    let mut actions = Vec::new();
    let mut directories = Vec::new();
    for line in bytes.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
        match serde_json::from_slice::<Entry>(line) {
            Ok(Entry::Run { boot_id, pid_namespace, .. }) => {
                same_place = boot_id == entry::boot_id() && pid_namespace == entry::pid_namespace();
            }
            Ok(Entry::Process(process)) if same_place => actions.extend(end(process)),
            // Written in another boot or PID namespace: the number means another process, or none.
            Ok(Entry::Process(_) | Entry::Note { .. }) => {}
            Ok(Entry::Directory { path }) => directories.push(path),
            // An incomplete last line means that the run was killed while writing it, so the thing
            // was not made yet.
            Err(e) => actions.push(Action::Ignored {
                line: String::from_utf8_lossy(line).chars().take(200).collect(),
                reason: e.to_string(),
            }),
        }
    }
    // After the processes, which may still write there.
    actions.extend(directories.into_iter().filter_map(remove));
    let cleaned = Cleaned { journal: path.into(), actions };
    if cleaned.complete() {
        fs::remove_file(path).map_err(|e| JournalError::io("remove journal", path, e))?;
    }
    Ok(cleaned)
}

/// Kills exactly the described process and waits until it is gone; `None` if it was gone already.
fn end(process: Process) -> Option<Action> {
    let failed = |cause: io::Error| {
        let subject = format!("process {} ({})", process.pid, process.role);
        Some(Action::Failed { subject, reason: cause.to_string() })
    };
    // Pid 0 and -1 mean groups. The process itself and its parent cannot be named by a journal
    // whose lock is free.
    let pid = i32::try_from(process.pid)
        .ok()
        .filter(|&pid| pid > 1 && process.pid != std::process::id())?;
    // SAFETY: no memory is passed.
    let raw = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    let Ok(raw) = i32::try_from(raw) else { return failed(io::ErrorKind::InvalidData.into()) };
    if raw < 0 {
        let error = io::Error::last_os_error();
        return if error.raw_os_error() == Some(libc::ESRCH) { None } else { failed(error) };
    }
    // SAFETY: `raw` was just opened and belongs to nobody else.
    let pidfd = unsafe { OwnedFd::from_raw_fd(raw) };
    // Checked after the pidfd was opened: from here on the descriptor means this process, whatever
    // happens to the number.
    if !process.is_running() {
        return None;
    }
    // SAFETY: the third argument may be null; no other memory is passed.
    let sent = unsafe {
        libc::syscall(
            libc::SYS_pidfd_send_signal,
            pidfd.as_raw_fd(),
            libc::SIGKILL,
            std::ptr::null::<()>(),
            0,
        )
    };
    if sent != 0 {
        let error = io::Error::last_os_error();
        return if error.raw_os_error() == Some(libc::ESRCH) { None } else { failed(error) };
    }
    match crate::process::wait::readable(&pidfd, Some(DEATH)) {
        Ok(true) => Some(Action::Killed(process)),
        Ok(false) => failed(io::Error::new(io::ErrorKind::TimedOut, "still there after SIGKILL")),
        Err(e) => failed(e),
    }
}

/// Removes a scratch directory; `None` if there is none.
fn remove(path: PathBuf) -> Option<Action> {
    let ignored = |reason: &str| {
        Some(Action::Ignored { line: path.display().to_string(), reason: reason.into() })
    };
    let ours =
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(SCRATCH_PREFIX));
    let plain = path.components().all(|part| !matches!(part, std::path::Component::ParentDir));
    if !ours || !plain || !path.is_absolute() {
        return ignored("not named as a scratch directory of ours");
    }
    match fs::symlink_metadata(&path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return None,
        Err(e) => {
            return Some(Action::Failed {
                subject: path.display().to_string(),
                reason: e.to_string(),
            });
        }
        Ok(m) if !m.is_dir() => return ignored("not a directory"),
        Ok(m) if m.uid() != nix::unistd::geteuid().as_raw() => {
            return ignored("belongs to another user");
        }
        Ok(_) => {}
    }
    match fs::remove_dir_all(&path) {
        Ok(()) => Some(Action::Removed(path)),
        Err(e) => {
            Some(Action::Failed { subject: path.display().to_string(), reason: e.to_string() })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Journal;
    use super::*;
    use proptest::prelude::*;
    use std::io::Write;
    use std::os::unix::fs::DirBuilderExt;
    use std::process::{Child, Command};

    /// A directory for journals, and beside it one that nobody may remove.
    struct Place {
        base: tempfile::TempDir,
    }

    impl Place {
        fn new() -> Place {
            let place = Place { base: tempfile::tempdir().unwrap() };
            fs::create_dir(place.precious()).unwrap();
            place
        }

        fn journals(&self) -> PathBuf {
            self.base.path().join("journals")
        }

        fn precious(&self) -> PathBuf {
            self.base.path().join("precious")
        }

        /// A journal with these entries whose run is over without having cleaned.
        fn left_over(&self, entries: &[Entry]) -> PathBuf {
            let journal = Journal::create_in(&self.journals()).unwrap();
            entries.iter().for_each(|entry| journal.writer().note(entry).unwrap());
            journal.path().into()
        }

        fn clean(&self) -> Vec<Cleaned> {
            let cleaned = clean_stale_in(&self.journals()).unwrap();
            assert!(self.precious().is_dir());
            cleaned
        }
    }

    struct Sleep(Child);

    impl Sleep {
        fn start() -> (Sleep, Process) {
            let child = Command::new("sleep").arg("1000").spawn().unwrap();
            let process = Process::with_pid(child.id(), "sleep").unwrap();
            (Sleep(child), process)
        }
    }

    impl Drop for Sleep {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    #[test]
    fn what_a_dead_run_left_is_removed_and_told() {
        let place = Place::new();
        let (_sleep, process) = Sleep::start();
        let journal = Journal::create_in(&place.journals()).unwrap();
        let scratch = journal.writer().scratch_directory("te/st").unwrap();
        fs::write(scratch.join("file"), "x").unwrap();
        journal.writer().note(&Entry::Process(process.clone())).unwrap();

        assert_eq!(place.clean(), [], "a run that still goes is not touched");
        assert!(scratch.is_dir() && process.is_running());

        let path = journal.path().to_path_buf();
        drop(journal);
        let actions = vec![Action::Killed(process), Action::Removed(scratch.clone())];
        assert_eq!(place.clean(), [Cleaned { journal: path.clone(), actions }]);
        assert!(!scratch.exists() && !path.exists());
        assert_eq!(place.clean(), []);
    }

    #[test]
    fn a_run_that_ends_well_removes_its_own() {
        let place = Place::new();
        let journal = Journal::create_in(&place.journals()).unwrap();
        let scratch = journal.writer().scratch_directory("").unwrap();
        assert_eq!(journal.finish().unwrap().actions, [Action::Removed(scratch)]);
        assert_eq!(place.clean(), []);
    }

    #[test]
    fn a_process_that_only_has_the_same_number_lives() {
        let place = Place::new();
        let (mut sleep, process) = Sleep::start();
        let later = Process { start_ticks: process.start_ticks + 1, ..process.clone() };
        place.left_over(&[Entry::Process(later)]);
        let other_boot = Entry::Run {
            version: "0".into(),
            boot_id: "another".into(),
            pid_namespace: entry::pid_namespace(),
            supervisor: 1,
        };
        place.left_over(&[other_boot, Entry::Process(process)]);
        assert!(place.clean().iter().all(|cleaned| cleaned.actions.is_empty()));
        assert!(sleep.0.try_wait().unwrap().is_none(), "it was killed");
    }

    #[test]
    fn directories_that_are_not_named_as_ours_stay() {
        let place = Place::new();
        let link = place.base.path().join(format!("{SCRATCH_PREFIX}link"));
        std::os::unix::fs::symlink(place.precious(), &link).unwrap();
        let around = place.base.path().join(format!("x/../{SCRATCH_PREFIX}link/../precious"));
        let relative = PathBuf::from(format!("{SCRATCH_PREFIX}relative"));
        let paths = [place.precious(), link, around, relative, PathBuf::from("/")];
        place.left_over(&paths.map(|path| Entry::Directory { path }));
        let cleaned = place.clean();
        assert_eq!(cleaned[0].actions.len(), 5);
        assert!(
            cleaned[0].actions.iter().all(|action| matches!(action, Action::Ignored { .. })),
            "{cleaned:?}"
        );
    }

    #[test]
    fn a_directory_that_others_can_write_is_refused() {
        let place = Place::new();
        fs::DirBuilder::new().mode(0o755).create(place.journals()).unwrap();
        for error in [
            Journal::create_in(&place.journals()).unwrap_err(),
            clean_stale_in(&place.journals()).unwrap_err(),
        ] {
            assert!(error.to_string().contains("others have rights on it"), "{error}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn whatever_a_journal_says_only_ours_is_removed(
            bytes in prop::collection::vec(any::<u8>(), 0..200),
            cut in 0usize..400,
        ) {
            let place = Place::new();
            let scratch = place.base.path().join(format!("{SCRATCH_PREFIX}x"));
            fs::create_dir(&scratch).unwrap();
            let path = place.left_over(&[Entry::Directory { path: scratch }]);
            let whole = fs::read(&path).unwrap();
            let mut file = File::create(&path).unwrap();
            file.write_all(&bytes).unwrap();
            file.write_all(b"\n").unwrap();
            file.write_all(&whole[..cut.min(whole.len())]).unwrap();
            let cleaned = place.clean();
            prop_assert_eq!(cleaned.len(), 1);
            prop_assert!(!path.exists());
        }
    }
}
