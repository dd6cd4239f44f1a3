//! Records that outlive a boot: numbered files of lines, each line on disk before its writer goes
//! on.
//!
//! They are for changes that must be put back even if the machine went down in between, so they are
//! not in `/run` with the journals ([`crate::run::journal`]), but in the state directory: for root
//! `/var/lib/fullpipe/NAME`, otherwise `$XDG_STATE_HOME/fullpipe/NAME` or
//! `~/.local/state/fullpipe/NAME`. Nobody else can write there. While a [`Records`] lives, no other
//! process of this user has one of the same directory.
//!
//! A line that a killed writer left unfinished is not there for readers: its writer had not gone
//! on.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::Refused;
use crate::file::folder::{self, Folder, FolderLock};

const SUFFIX: &str = ".jsonl";

/// Where this user's records of the kind `name` are; the directory may not exist yet.
///
/// # Errors
/// Neither XDG_STATE_HOME nor HOME is set.
pub fn directory(name: &str) -> Result<PathBuf, Refused> {
    let uid = nix::unistd::geteuid();
    let system = Path::new("/var/lib");
    // The root of a user namespace that has not mapped the machine's root is an ordinary user here.
    if uid.is_root() && fs::metadata(system).is_ok_and(|m| m.uid() == uid.as_raw()) {
        return Ok(system.join("fullpipe").join(name));
    }
    let set =
        |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = set("XDG_STATE_HOME").or_else(|| Some(set("HOME")?.join(".local/state")));
    match state {
        Some(state) => Ok(state.join("fullpipe").join(name)),
        None => Err(Refused::new(
            "find state directory",
            "of this user",
            io::Error::from(io::ErrorKind::NotFound),
        )
        .hint("set XDG_STATE_HOME or HOME to a directory of your own")),
    }
}

/// The records in a directory, which nobody else reads or writes meanwhile.
#[derive(Debug)]
pub struct Records {
    folder: Folder,
    _held: FolderLock,
}

impl Records {
    /// Makes the directory if it is missing, and waits until no other process has it.
    pub fn open(directory: &Path) -> Result<Records, Refused> {
        let opened = folder::make_own(directory).and_then(|folder| {
            let held = folder.hold(|| {})?;
            Ok(Records { folder, _held: held })
        });
        opened.map_err(|cause| {
            Refused::new("open records", directory.display().to_string(), cause)
                .hint("it must belong to this user alone; root needs to be able to write there")
        })
    }

    /// The same if the directory exists.
    pub fn open_existing(directory: &Path) -> Result<Option<Records>, Refused> {
        if fs::symlink_metadata(directory).is_err() {
            return Ok(None);
        }
        Records::open(directory).map(Some)
    }

    /// The numbers of the records, smallest first.
    pub fn numbers(&self) -> Result<Vec<u32>, Refused> {
        let names = self.folder.names().map_err(|cause| self.refused("list records", "", cause))?;
        let mut numbers: Vec<u32> = names
            .into_iter()
            .filter_map(|name| -> Option<u32> { name.to_str()?.strip_suffix(SUFFIX)?.parse().ok() })
            .collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// The complete lines of a record.
    pub fn read(&self, number: u32) -> Result<Vec<String>, Refused> {
        let name = name(number);
        let mut text = String::new();
        let mut file = self
            .folder
            .open_own_file(&name)
            .map_err(|cause| self.refused("read record", &name, cause))?;
        file.read_to_string(&mut text)
            .map_err(|cause| self.refused("read record", &name, cause))?;
        let complete = text.rfind('\n').map_or("", |end| &text[..end]);
        Ok(complete.lines().map(String::from).collect())
    }

    /// Adds a line and waits until it is on disk; the record is made with its first line.
    pub fn append(&self, number: u32, line: &str) -> Result<(), Refused> {
        let name = name(number);
        self.try_append(&name, line).map_err(|cause| self.refused("write record", &name, cause))
    }

    fn try_append(&self, name: &str, line: &str) -> io::Result<()> {
        if line.contains('\n') {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a line has no line break"));
        }
        let path = self.folder.by_descriptor().join(name);
        let (mut file, is_new) = match open(&path, false) {
            Ok(file) => (file, false),
            Err(error) if error.kind() == io::ErrorKind::NotFound => (open(&path, true)?, true),
            Err(error) => return Err(error),
        };
        // What a killed writer left unfinished is overwritten.
        let mut text = Vec::new();
        file.read_to_end(&mut text)?;
        let complete = text.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
        file.set_len(complete as u64)?;
        file.seek(SeekFrom::Start(complete as u64))?;
        file.write_all(format!("{line}\n").as_bytes())?;
        file.sync_data()?;
        if is_new {
            // The name has to outlive the machine as well.
            File::open(self.folder.by_descriptor())?.sync_all()?;
        }
        Ok(())
    }

    /// Removes a record.
    pub fn remove(&self, number: u32) -> Result<(), Refused> {
        let name = name(number);
        let removed = self.folder.remove_file(&name);
        removed.map_err(|cause| self.refused("remove record", &name, cause))
    }

    fn refused(&self, operation: &'static str, name: &str, cause: io::Error) -> Refused {
        Refused::new(operation, self.folder.path().join(name).display().to_string(), cause)
            .hint("check that there is room and that the file system can be written")
    }
}

/// The file of a record, which has to exist unless it is `made` here.
fn open(path: &Path, made: bool) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(made).mode(0o600);
    options.custom_flags(libc::O_NOFOLLOW).open(path)
}

fn name(number: u32) -> String {
    format!("{number}{SUFFIX}")
}

/// Identity of this boot; empty if the kernel does not report it.
pub fn boot_id() -> String {
    crate::run::journal::boot_id()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_there_when_they_are_complete() {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("state/tune");
        assert!(Records::open_existing(&directory).unwrap().is_none());
        let records = Records::open(&directory).unwrap();
        records.append(7, "one").unwrap();
        records.append(7, "two").unwrap();
        assert!(records.append(7, "a\nb").is_err());
        // Killed in the middle of a line.
        let path = directory.join("7.jsonl");
        fs::write(&path, "one\ntwo\nthr").unwrap();
        assert_eq!(records.read(7).unwrap(), ["one", "two"]);
        records.append(7, "three").unwrap();
        assert_eq!(records.read(7).unwrap(), ["one", "two", "three"]);
        records.append(12, "x").unwrap();
        fs::write(directory.join("notes.txt"), "").unwrap();
        assert_eq!(records.numbers().unwrap(), [7, 12]);
        records.remove(7).unwrap();
        assert_eq!(records.numbers().unwrap(), [12]);
    }

    #[test]
    fn a_directory_in_which_others_can_write_is_refused() {
        use std::os::unix::fs::PermissionsExt;
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("tune");
        fs::create_dir(&directory).unwrap();
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o777)).unwrap();
        let error = Records::open(&directory).unwrap_err().to_string();
        assert!(error.contains("others can write"), "{error}");
    }
}
