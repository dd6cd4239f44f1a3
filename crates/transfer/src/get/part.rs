//! The file while it is not complete, and the record that lets a later run continue it.
//!
//! Beside `FILE` stand `FILE.part`, with the bytes at their offsets, and `FILE.part.json`, the
//! record: the URL, the length, the validators, and which ranges are there. A record names only
//! bytes that were synced before it was written, so neither a kill nor a power cut makes it lie. No
//! byte gets the final name before all are there: then the file is synced and renamed.
//!
//! A lock on `FILE.part` keeps two downloads apart.

use super::GetError;
use nix::fcntl::{Flock, FlockArg};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// The longest record that is read: one with every 256 KiB of some 100 GB apart.
const MOST_RECORD: u64 = 16 << 20;

/// What identifies the file on the server.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct Validators {
    /// `ETag`, if it is strong.
    pub(super) etag: Option<String>,
    /// `Last-Modified`.
    pub(super) last_modified: Option<String>,
}

impl Validators {
    /// The value of `If-Range` (RFC 9110 section 13.1.5).
    pub(super) fn if_range(&self) -> Option<&str> {
        self.etag.as_deref().or(self.last_modified.as_deref())
    }

    /// Whether an answer with `other` is of the same file: what both have is the same.
    pub(super) fn agree(&self, other: &Validators) -> bool {
        let same = |a: &Option<String>, b: &Option<String>| a.is_none() || b.is_none() || a == b;
        same(&self.etag, &other.etag) && same(&self.last_modified, &other.last_modified)
    }
}

/// What a later run needs to continue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    /// The version of this format.
    pub(super) fullpipe_get: u32,
    pub(super) url: String,
    pub(super) length: u64,
    pub(super) validators: Validators,
    /// What is there: start and end (exclusive).
    pub(super) done: Vec<(u64, u64)>,
}

impl Record {
    /// Reads what somebody may have changed; `None` if it is no record of this version.
    pub(super) fn parse(text: &[u8]) -> Option<Record> {
        let record: Record = serde_json::from_slice(text).ok()?;
        (record.fullpipe_get == 1).then_some(record)
    }
}

/// A file that is being downloaded.
#[derive(Debug)]
pub(super) struct Part {
    file: Flock<File>,
    target: PathBuf,
    part: PathBuf,
    record: PathBuf,
}

impl Part {
    /// Opens the partial file of `target`, or makes one.
    pub(super) fn open(target: &Path) -> Result<Part, GetError> {
        if target.is_dir() || target.file_name().is_none() {
            return Err(failed(target, io::ErrorKind::IsADirectory.into()));
        }
        // A link keeps leading to the file.
        let target = &target.canonicalize().unwrap_or_else(|_| target.into());
        let part = with_suffix(target, ".part");
        let open =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&part);
        let file = open.map_err(|source| failed(&part, source))?;
        let file = Flock::lock(file, FlockArg::LockExclusiveNonblock)
            .map_err(|_| GetError::Busy { path: part.clone() })?;
        let record = with_suffix(target, ".part.json");
        Ok(Part { file, target: target.clone(), part, record })
    }

    /// The record of an earlier run, if its bytes are here.
    pub(super) fn earlier(&self) -> Option<Record> {
        let mut text = Vec::new();
        File::open(&self.record).ok()?.take(MOST_RECORD).read_to_end(&mut text).ok()?;
        let record = Record::parse(&text)?;
        let here = self.file.metadata().ok()?.len();
        let last = record.done.last().map_or(0, |(_, end)| *end);
        (last <= here).then_some(record)
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
    pub(super) fn recorder(&self) -> Result<Recorder, GetError> {
        let file = self.file.try_clone().map_err(|source| failed(&self.part, source))?;
        Ok(Recorder { file, path: self.record.clone() })
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

    /// Removes a partial file that has nothing to continue.
    pub(super) fn discard(&self) {
        // Whatever stays is overwritten by the next run.
        self.forget();
        let _ = std::fs::remove_file(&self.part);
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
        self.file
            .set_len(length)
            .and_then(|()| self.file.sync_all())
            .and_then(|()| std::fs::rename(&self.part, &self.target))
            .map_err(|source| failed(&self.target, source))?;
        let _ = std::fs::remove_file(&self.record);
        // The name is on disk once its directory is.
        sync_directory(&self.target);
        Ok(())
    }
}

/// Writes the record of a partial file.
#[derive(Debug)]
pub(super) struct Recorder {
    file: File,
    path: PathBuf,
}

impl Recorder {
    /// Syncs the bytes, then replaces the record.
    pub(super) fn write(&self, record: &Record) -> Result<(), GetError> {
        let new = with_suffix(&self.path, ".new");
        let text = serde_json::to_vec(record).unwrap_or_default();
        self.file
            .sync_data()
            .and_then(|()| std::fs::write(&new, text))
            .and_then(|()| File::open(&new)?.sync_all())
            .and_then(|()| std::fs::rename(&new, &self.path))
            .map_err(|source| failed(&self.path, source))
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
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "free some space and run the same command again: it continues"
        }
        io::ErrorKind::NotFound => "make its directory first",
        io::ErrorKind::IsADirectory => "give a file name with -o",
        io::ErrorKind::BrokenPipe => "the reader has left",
        _ => "check the directory's permissions",
    };
    GetError::Output { path: path.into(), source, hint }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn record(done: Vec<(u64, u64)>) -> Record {
        let validators = Validators { etag: Some("\"a\"".into()), last_modified: None };
        Record { fullpipe_get: 1, url: "http://a/".into(), length: 9, validators, done }
    }

    #[test]
    fn a_record_is_believed_only_where_its_bytes_are() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("x");
        let part = Part::open(&target).unwrap();
        part.write(b"abc", 0).unwrap();
        part.recorder().unwrap().write(&record(vec![(0, 3)])).unwrap();
        assert!(matches!(Part::open(&target), Err(GetError::Busy { .. })));
        drop(part);
        let part = Part::open(&target).unwrap();
        assert_eq!(part.earlier(), Some(record(vec![(0, 3)])));
        part.recorder().unwrap().write(&record(vec![(0, 4)])).unwrap();
        assert_eq!(part.earlier(), None, "the file has three bytes");
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(part.sha256(3).unwrap(), abc);
        part.complete(3).unwrap();
        let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
        assert_eq!((std::fs::read(&target).unwrap(), left.len()), (b"abc".to_vec(), 1));
    }

    #[test]
    fn a_changed_validator_is_another_file() {
        let of = |etag: Option<&str>, modified: Option<&str>| Validators {
            etag: etag.map(Into::into),
            last_modified: modified.map(Into::into),
        };
        assert!(of(Some("\"a\""), Some("x")).agree(&of(Some("\"a\""), None)));
        assert!(!of(Some("\"a\""), None).agree(&of(Some("\"b\""), None)));
        assert!(!of(None, Some("x")).agree(&of(None, Some("y"))));
        assert_eq!(of(None, Some("x")).if_range(), Some("x"));
    }

    proptest! {
        #[test]
        fn any_text_is_a_record_or_none(text in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Record::parse(&text);
        }
    }
}
