//! The file while it is not complete, and the record that lets a later run continue it.
//!
//! Beside `FILE` stand `FILE.part`, with the bytes at their offsets, and `FILE.part.json`, the
//! record: the URL, the length, the validators, and which ranges are there. A record names only
//! bytes that were synced before it was written, so neither a kill nor a power cut makes it lie. No
//! byte gets the final name before all are there: then the file is synced and renamed.
//!
//! A lock on `FILE.part` keeps two downloads apart.
//!
//! **Whose file it is.** What an earlier run left is used only if it is a plain file with one name,
//! belongs to the caller, and nobody else may write to it. Anything else under these names, such as
//! a link, is never followed or written to: it is removed, and a fresh file takes its place. The
//! final file is a fresh one of the caller's, with the mode that the directory and the umask give.

use super::{Distrusted, GetError, Kept};
use nix::fcntl::{Flock, FlockArg};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fs::{File, Metadata, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The longest record that is read: one with every 256 KiB of some 100 GB apart.
const MOST_RECORD: u64 = 16 << 20;

/// What identifies a version of the file on the server: strong validators alone (RFC 9110 section
/// 8.8.1).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct Validators {
    /// `ETag`.
    pub(super) etag: Option<String>,
    /// `Last-Modified`.
    pub(super) last_modified: Option<String>,
}

/// Whether two answers are of the same version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileVersion {
    Same,
    Another,
    /// Nothing tells.
    Unknown,
}

impl Validators {
    /// The value of `If-Range` (RFC 9110 section 13.1.5).
    pub(super) fn if_range(&self) -> Option<&str> {
        self.etag.as_deref().or(self.last_modified.as_deref())
    }

    /// Whether an answer with `other` is of the version that these identify: what both have must be
    /// the same, and the other must have what was asked for by `If-Range`.
    pub(super) fn compare(&self, other: &Validators) -> FileVersion {
        let tags = self.etag.as_ref().zip(other.etag.as_ref());
        let dates = self.last_modified.as_ref().zip(other.last_modified.as_ref());
        if [tags, dates].into_iter().flatten().any(|(own, other)| own != other) {
            return FileVersion::Another;
        }
        let shown = if self.etag.is_some() { &other.etag } else { &other.last_modified };
        if self.if_range().is_some() && shown.is_some() {
            FileVersion::Same
        } else {
            FileVersion::Unknown
        }
    }
}

/// What a later run needs to continue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ResumeRecord {
    /// The version of this format.
    pub(super) fullpipe_get: u32,
    pub(super) url: String,
    pub(super) length: u64,
    pub(super) validators: Validators,
    /// What is there: start and end (exclusive).
    pub(super) done: Vec<(u64, u64)>,
}

impl ResumeRecord {
    /// Reads what somebody may have changed; `None` if it is no record of this version.
    pub(super) fn parse(text: &[u8]) -> Option<ResumeRecord> {
        let record: ResumeRecord = serde_json::from_slice(text).ok()?;
        (record.fullpipe_get == 1).then_some(record)
    }
}

/// A file that is being downloaded.
#[derive(Debug)]
pub(super) struct PartFile {
    file: Flock<File>,
    target: PathBuf,
    part: PathBuf,
    record: PathBuf,
    /// Why what had this name was not used.
    replaced: Option<&'static str>,
}

/// What has the name of a partial file.
enum FoundPart {
    Nothing,
    Ours(File),
    /// Something that cannot be trusted: why, and a descriptor if there is one to lock.
    Foreign(&'static str, Option<File>),
}

impl PartFile {
    /// Opens the partial file of `target`, or makes one.
    pub(super) fn open(target: &Path) -> Result<PartFile, GetError> {
        if target.is_dir() || target.file_name().is_none() {
            return Err(failed(target, io::ErrorKind::IsADirectory.into()));
        }
        // A link keeps leading to the file.
        let target = &target.canonicalize().unwrap_or_else(|_| target.into());
        let part = with_suffix(target, ".part");
        let refused = |source| failed(&part, source);
        // Another download may rename or replace the file between a look and the next one.
        const LOOKS: usize = 16;
        for _ in 0..LOOKS {
            let (file, replaced) = match look(&part).map_err(refused)? {
                FoundPart::Ours(file) => (file, None),
                FoundPart::Nothing => match fresh(&part) {
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                    made => (made.map_err(refused)?, None),
                },
                FoundPart::Foreign(why, open) => {
                    // Somebody's download that runs is not taken away from under it.
                    let _free = open.map(|file| lock(file, &part)).transpose()?;
                    std::fs::remove_file(&part).map_err(refused)?;
                    (fresh(&part).map_err(refused)?, Some(why))
                }
            };
            let file = lock(file, &part)?;
            if is_at(&file, &part).map_err(refused)? {
                let record = with_suffix(target, ".part.json");
                return Ok(PartFile { file, target: target.clone(), part, record, replaced });
            }
        }
        Err(GetError::Busy { path: part })
    }

    /// The record of an earlier run, if its bytes are here; or why there is none to be used.
    pub(super) fn earlier(&self) -> Result<Option<ResumeRecord>, Distrusted> {
        if let Some(why) = self.replaced {
            return Err(Distrusted::new(&self.part, why));
        }
        let file = match look(&self.record) {
            Ok(FoundPart::Nothing) => return Ok(None),
            Ok(FoundPart::Ours(file)) => file,
            Ok(FoundPart::Foreign(why, _)) => return Err(Distrusted::new(&self.record, why)),
            Err(error) => {
                let cause = Some(error.to_string());
                return Err(Distrusted {
                    cause,
                    ..Distrusted::new(&self.record, "cannot be read")
                });
            }
        };
        let mut text = Vec::new();
        let read = file.take(MOST_RECORD).read_to_end(&mut text);
        let record = read.ok().and_then(|_| ResumeRecord::parse(&text));
        let record =
            record.ok_or_else(|| Distrusted::new(&self.record, "is no record of this version"))?;
        let here = self.file.metadata().map_or(0, |data| data.len());
        let last = record.done.last().map_or(0, |(_, end)| *end);
        if last > here {
            return Err(Distrusted::new(&self.part, "lacks bytes"));
        }
        Ok(Some(record))
    }

    /// Forgets what is there.
    pub(super) fn clear(&self) -> Result<(), GetError> {
        match std::fs::remove_file(&self.record) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(failed(&self.record, error));
            }
            _ => {}
        }
        self.file.set_len(0).map_err(|source| failed(&self.part, source))
    }

    /// Blocks until the kernel has accepted `data`.
    pub(super) fn write(&self, data: &[u8], offset: u64) -> Result<(), GetError> {
        self.file.write_all_at(data, offset).map_err(|source| failed(&self.part, source))
    }

    /// What writes the record, on any thread.
    pub(super) fn recorder(&self) -> io::Result<Recorder> {
        Ok(Recorder { file: self.file.try_clone()?, path: self.record.clone() })
    }

    /// The SHA-256 of the first `length` bytes, in hexadecimal.
    pub(super) fn sha256(&self, length: u64) -> Result<String, GetError> {
        self.file.set_len(length).map_err(|source| failed(&self.part, source))?;
        let mut hash = Sha256::new();
        let mut buffer = vec![0; 1 << 20];
        let mut at = 0;
        loop {
            let count =
                self.file.read_at(&mut buffer, at).map_err(|source| failed(&self.part, source))?;
            if count == 0 {
                break;
            }
            hash.update(&buffer[..count]);
            at += count as u64;
        }
        Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// Cuts off the last bytes of what `record` names, so that a full disk has room for a record
    /// of the rest.
    pub(super) fn make_room(&self, record: &ResumeRecord) -> io::Result<ResumeRecord> {
        const ROOM: u64 = 1 << 20;
        let end = record.done.last().map_or(0, |(_, end)| end.saturating_sub(ROOM));
        self.file.set_len(end)?;
        let kept = record.done.iter().filter(|(start, _)| *start < end);
        let done = kept.map(|&(start, last)| (start, last.min(end))).collect();
        Ok(ResumeRecord { done, ..record.clone() })
    }

    /// Removes a partial file that has nothing to continue.
    pub(super) fn discard(&self) {
        // Whatever stays is overwritten by the next run.
        self.forget();
        if is_at(&self.file, &self.part).unwrap_or(false) {
            let _ = std::fs::remove_file(&self.part);
        }
    }

    /// Removes the record, so that no later run continues.
    pub(super) fn forget(&self) {
        let _ = std::fs::remove_file(&self.record);
    }

    /// The partial file's name.
    pub(super) fn path(&self) -> &Path {
        &self.part
    }

    /// Gives the file its name, with all bytes on disk.
    pub(super) fn complete(&self, length: u64) -> Result<(), GetError> {
        self.give_name(length).map_err(|source| failed(&self.target, source))?;
        let _ = std::fs::remove_file(&self.record);
        // The name is on disk once its directory is.
        sync_directory(&self.target);
        Ok(())
    }

    fn give_name(&self, length: u64) -> io::Result<()> {
        if !is_at(&self.file, &self.part)? {
            return Err(io::Error::other(format!("{} is another file now", self.part.display())));
        }
        self.file.set_len(length)?;
        if let Some(mode) = self.usual_mode() {
            self.file.set_permissions(Permissions::from_mode(mode))?;
        }
        self.file.sync_all()?;
        std::fs::rename(&self.part, &self.target)
    }

    /// The mode of a file that the caller makes in this directory: the umask's, or that of the
    /// directory's access control list. Asking by making one is exact and changes nothing of the
    /// process, as umask(2) would.
    fn usual_mode(&self) -> Option<u32> {
        let path = with_suffix(&self.record, ".new");
        let _ = std::fs::remove_file(&path);
        let made = OpenOptions::new().write(true).create_new(true).mode(0o666).open(&path);
        let mode = made.and_then(|file| file.metadata()).map(|data| data.mode() & 0o777);
        let _ = std::fs::remove_file(&path);
        mode.ok()
    }
}

/// What is said of the file at `path`.
/// What has this name, without following it if it is a link, and without waiting if it is a pipe.
fn look(path: &Path) -> io::Result<FoundPart> {
    let flags = nix::libc::O_NOFOLLOW | nix::libc::O_NONBLOCK;
    let opened = OpenOptions::new().read(true).write(true).custom_flags(flags).open(path);
    let file = match opened {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(FoundPart::Nothing),
        Err(error) => {
            let Ok(data) = std::fs::symlink_metadata(path) else { return Err(error) };
            return match distrust(&data) {
                Some(why) if !data.is_dir() => Ok(FoundPart::Foreign(why, None)),
                _ => Err(error),
            };
        }
    };
    match distrust(&file.metadata()?) {
        None => Ok(FoundPart::Ours(file)),
        Some(why) => Ok(FoundPart::Foreign(why, Some(file))),
    }
}

/// Why a file of an earlier run is not to be used, if it is not.
fn distrust(data: &Metadata) -> Option<&'static str> {
    if data.is_symlink() {
        return Some("is a symbolic link");
    }
    if !data.is_file() {
        return Some("is no plain file");
    }
    if data.uid() != nix::unistd::geteuid().as_raw() {
        return Some("belongs to another user");
    }
    if data.mode() & 0o022 != 0 {
        return Some("may be written by other users");
    }
    (data.nlink() != 1).then_some("has a second name (a hard link)")
}

/// A file that was not there before, and that nobody else may write to.
fn fresh(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create_new(true).mode(0o644).open(path)
}

fn lock(file: File, path: &Path) -> Result<Flock<File>, GetError> {
    Flock::lock(file, FlockArg::LockExclusiveNonblock)
        .map_err(|_| GetError::Busy { path: path.into() })
}

/// Whether this name still is that of the open file.
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let open = file.metadata()?;
    match std::fs::symlink_metadata(path) {
        Ok(named) => Ok((named.dev(), named.ino()) == (open.dev(), open.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Writes the record of a partial file.
#[derive(Debug)]
pub(super) struct Recorder {
    file: File,
    path: PathBuf,
}

impl Recorder {
    /// Syncs the bytes, then replaces the record. A failure leaves the record that was there, and
    /// nothing beside it.
    pub(super) fn write(&self, record: &ResumeRecord) -> io::Result<()> {
        let new = with_suffix(&self.path, ".new");
        let text = serde_json::to_vec(record).unwrap_or_default();
        let written = self.file.sync_data().and_then(|()| {
            // What a killed run left, or what somebody put there.
            let _ = std::fs::remove_file(&new);
            let mut file = fresh(&new)?;
            file.write_all(&text)?;
            file.sync_all()?;
            std::fs::rename(&new, &self.path)
        });
        if written.is_err() {
            let _ = std::fs::remove_file(&new);
        }
        written
    }
}

fn sync_directory(path: &Path) {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    // Some file systems refuse to sync a directory; the file itself is synced.
    let _ = File::open(directory.unwrap_or(Path::new("."))).and_then(|open| open.sync_all());
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

pub(super) fn failed(path: &Path, source: io::Error) -> GetError {
    let hint = match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "free some space",
        io::ErrorKind::NotFound => "make its directory first",
        io::ErrorKind::IsADirectory => "give a file name with -o",
        io::ErrorKind::BrokenPipe => "the reader has left",
        _ => "check the directory's permissions",
    };
    GetError::Output { path: path.into(), source, hint, kept: Kept::Unsaid }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn record(done: Vec<(u64, u64)>) -> ResumeRecord {
        let validators = Validators { etag: Some("\"a\"".into()), last_modified: None };
        ResumeRecord { fullpipe_get: 1, url: "http://a/".into(), length: 9, validators, done }
    }

    #[test]
    fn a_record_is_believed_only_where_its_bytes_are() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("x");
        let part = PartFile::open(&target).unwrap();
        part.write(b"abc", 0).unwrap();
        part.recorder().unwrap().write(&record(vec![(0, 3)])).unwrap();
        assert!(matches!(PartFile::open(&target), Err(GetError::Busy { .. })));
        drop(part);
        let part = PartFile::open(&target).unwrap();
        assert_eq!(part.earlier(), Ok(Some(record(vec![(0, 3)]))));
        part.recorder().unwrap().write(&record(vec![(0, 4)])).unwrap();
        assert!(part.earlier().is_err(), "the file has three bytes");
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(part.sha256(3).unwrap(), abc);
        part.complete(3).unwrap();
        let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
        assert_eq!((std::fs::read(&target).unwrap(), left.len()), (b"abc".to_vec(), 1));
    }

    #[test]
    fn a_version_is_the_same_only_where_a_validator_says_so() {
        let of = |etag: Option<&str>, modified: Option<&str>| Validators {
            etag: etag.map(Into::into),
            last_modified: modified.map(Into::into),
        };
        let (a, b, x, y) = (Some("\"a\""), Some("\"b\""), Some("x"), Some("y"));
        for (one, other, identity) in [
            (of(a, x), of(a, None), FileVersion::Same),
            (of(a, None), of(a, y), FileVersion::Same),
            (of(None, x), of(None, x), FileVersion::Same),
            (of(a, None), of(b, None), FileVersion::Another),
            (of(a, x), of(a, y), FileVersion::Another),
            (of(None, x), of(None, y), FileVersion::Another),
            (of(a, x), of(None, x), FileVersion::Unknown),
            (of(a, None), of(None, None), FileVersion::Unknown),
            (of(None, x), of(a, None), FileVersion::Unknown),
            (of(None, None), of(None, None), FileVersion::Unknown),
            (of(None, None), of(a, x), FileVersion::Unknown),
        ] {
            assert_eq!(one.compare(&other), identity, "{one:?} and {other:?}");
        }
        assert_eq!(of(None, x).if_range(), Some("x"));
    }

    proptest! {
        #[test]
        fn any_text_is_a_record_or_none(text in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = ResumeRecord::parse(&text);
        }
    }
}
