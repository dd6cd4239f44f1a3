//! The folder with the parts of a recording.
//!
//! A part's name has the time at which it begins, so names sort by time and a time is found without
//! opening anything. A part has no name until it is complete. The folder belongs to this user
//! alone, and one recorder at a time holds it; whatever has another name in it is left alone.

use super::HistoryError;
use fullpipe_kernel::file::folder::{Folder, FolderLock, is_left_over, make_own};
use fullpipe_kernel::file::records;
use fullpipe_model::units::{Bytes, Instant};
use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::Permissions;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration as StdDuration, UNIX_EPOCH};

/// How names of parts begin and end.
const PREFIX: &str = "sockets-";
const SUFFIX: &str = ".jsonl.gz";

/// Where this user's recordings of sockets are, unless another folder is named.
///
/// # Errors
/// Nobody says where this user keeps state.
pub fn directory() -> Result<PathBuf, HistoryError> {
    Ok(records::directory("sockets")?)
}

/// A part that is complete.
#[derive(Debug, Clone, PartialEq, Eq)]
struct RingPart {
    start: Instant,
    size: u64,
}

/// What went wrong while a part was written.
#[derive(Debug)]
pub enum RingTrouble {
    /// The disk was full, and so many of the oldest parts had to go.
    DiskFull {
        /// How many.
        removed: usize,
    },
    /// The part could not be written, and is lost.
    Lost(io::Error),
}

/// The parts of a recording, and the right to write more.
#[derive(Debug)]
pub struct HistoryRing {
    folder: Folder,
    _held: FolderLock,
    most: Bytes,
    parts: VecDeque<RingPart>,
}

impl HistoryRing {
    /// Begins in the folder at `path`, which is made if it is missing, with at most `most` bytes in
    /// parts. Those that are there count, and go first. What a recorder that was killed left is
    /// removed.
    ///
    /// # Errors
    /// The folder is not this user's alone, or another recorder holds it.
    pub fn begin(path: &Path, most: Bytes) -> Result<HistoryRing, HistoryError> {
        let ring = HistoryRing::in_folder(path, most);
        let place = path.display().to_string();
        match ring {
            Ok(Some(ring)) => Ok(ring),
            Ok(None) => Err(HistoryError::Held(place)),
            Err(cause) => Err(HistoryError::Unwritable { place, cause }),
        }
    }

    /// The same; `None` where another recorder holds the folder.
    fn in_folder(path: &Path, most: Bytes) -> io::Result<Option<HistoryRing>> {
        // The folder above the last name of a relative path is to be known, too.
        let folder = make_own(&std::path::absolute(path)?)?;
        let Some(held) = folder.try_hold()? else { return Ok(None) };
        // Nobody but a recorder that held the folder made these, and it is gone.
        for name in folder.names()? {
            if is_own_left_over(&name) && folder.open_own_file(&name).is_ok() {
                folder.remove_file(&name)?;
            }
        }
        let parts = parts_of(&folder)?;
        let mut ring = HistoryRing { folder, _held: held, most, parts: parts.into() };
        ring.make_room(0)?;
        Ok(Some(ring))
    }

    /// What the parts take together.
    pub fn size(&self) -> Bytes {
        Bytes::new(self.parts.iter().map(|part| part.size).sum())
    }

    /// How many parts there are, and when the first of them begins, since 1970.
    pub fn parts(&self) -> (usize, Option<Instant>) {
        (self.parts.len(), self.parts.front().map(|part| part.start))
    }

    /// The name of the part that was written last.
    pub fn newest(&self) -> Option<String> {
        self.parts.back().map(|part| name(part.start))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Adds a part that begins at `start`, since 1970; says what went wrong, if anything did. The
    /// oldest parts go while there is too little room, within the bound and on the disk.
    pub fn add(&mut self, start: Instant, bytes: &[u8]) -> Option<RingTrouble> {
        let size = bytes.len() as u64;
        if size > self.most.get() {
            return Some(RingTrouble::Lost(io::ErrorKind::FileTooLarge.into()));
        }
        if let Err(error) = self.make_room(size) {
            return Some(RingTrouble::Lost(error));
        }
        // A clock that was set back does not make the order another one.
        let start = self.parts.back().map_or(start, |last| start.max(after(last.start)));
        let mut removed = 0;
        loop {
            match self.write(start, bytes) {
                Ok(()) => {
                    self.parts.push_back(RingPart { start, size });
                    return (removed > 0).then_some(RingTrouble::DiskFull { removed });
                }
                Err(error) if is_full(&error) => match self.remove_oldest() {
                    Ok(true) => removed += 1,
                    Ok(false) => return Some(RingTrouble::Lost(error)),
                    Err(other) => return Some(RingTrouble::Lost(other)),
                },
                Err(error) => return Some(RingTrouble::Lost(error)),
            }
        }
    }

    fn write(&self, start: Instant, bytes: &[u8]) -> io::Result<()> {
        let mut file = self.folder.begin_nameless(name(start))?;
        file.handle()?.set_permissions(Permissions::from_mode(0o600))?;
        file.write_all(bytes)?;
        file.commit()
    }

    fn make_room(&mut self, needed: u64) -> io::Result<()> {
        while self.size().get() + needed > self.most.get() && self.remove_oldest()? {}
        Ok(())
    }

    /// Removes the oldest part; whether there was one.
    fn remove_oldest(&mut self) -> io::Result<bool> {
        let Some(oldest) = self.parts.front() else { return Ok(false) };
        match self.folder.remove_file(name(oldest.start)) {
            // Somebody else removed it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            removed => removed?,
        }
        self.parts.pop_front();
        Ok(true)
    }
}

/// The parts in a folder that begin between these times, since 1970, in order, with their names.
pub(super) fn parts_between(
    folder: &Folder,
    from: Instant,
    until: Instant,
) -> io::Result<Vec<(Instant, OsString)>> {
    let names = folder.names()?.into_iter();
    let mut found: Vec<(Instant, OsString)> =
        names.filter_map(|name| Some((start(name.to_str()?)?, name))).collect();
    found.retain(|(start, _)| (from..=until).contains(start));
    found.sort();
    Ok(found)
}

fn parts_of(folder: &Folder) -> io::Result<Vec<RingPart>> {
    let mut parts = Vec::new();
    for (start, name) in parts_between(folder, Instant::ZERO, Instant::from_nanos(u64::MAX))? {
        // A link or a folder of this name is none of ours.
        if let Ok(file) = folder.open_own_file(&name) {
            parts.push(RingPart { start, size: file.metadata()?.len() });
        }
    }
    Ok(parts)
}

fn is_own_left_over(name: &std::ffi::OsStr) -> bool {
    // That of what was sent begins with a dot itself.
    let own = name.to_str().map(|name| name.trim_start_matches('.'));
    is_left_over(name) && own.is_some_and(|own| own.starts_with(PREFIX))
}

fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// The next moment that a name can tell from this one.
fn after(start: Instant) -> Instant {
    start + fullpipe_model::units::Duration::from_millis(1)
}

/// The name of a part: `sockets-2026-11-30T03-00-00.000Z.jsonl.gz`.
fn name(start: Instant) -> String {
    let time = UNIX_EPOCH + StdDuration::from_millis(start.as_nanos() / 1_000_000);
    let text = humantime::format_rfc3339_millis(time).to_string();
    format!("{PREFIX}{}{SUFFIX}", text.replace(':', "-"))
}

/// Whether this is a part's name.
pub(super) fn is_part(text: &str) -> bool {
    start(text).is_some()
}

/// When the part of this name begins, in whole milliseconds; `None` where it is no part's name.
fn start(text: &str) -> Option<Instant> {
    let time = text.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?;
    let (day, clock) = time.split_once('T')?;
    let parsed = humantime::parse_rfc3339(&format!("{day}T{}", clock.replace('-', ":"))).ok()?;
    let since = parsed.duration_since(UNIX_EPOCH).ok()?;
    let at = Instant::from_nanos(u64::try_from(since.as_nanos()).ok()?);
    (name(at) == text).then_some(at)
}

#[cfg(test)]
mod tests;
