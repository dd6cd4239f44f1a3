//! The folder of one run: its name, incomplete and complete, and its row.

use super::error::ResultsError;
use super::files::write_json;
use fullpipe_flow::schema::RunRow;
use fullpipe_kernel::file::folder::Folder;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// A run's row in its folder.
pub(crate) const ROW: &str = "row.json";
/// How the name of an incomplete run's folder begins; that of a complete one begins with a digit.
const PART: &str = "part-";
/// Bytes of a scenario's name in its folder's name, at most; file systems allow 255 for the whole.
const NAME_MAX: usize = 200;
/// Mode of a run's folder: others may read it if they can reach the directory.
pub(super) const MODE: u32 = 0o755;

/// A run's folder while it is incomplete.
#[derive(Debug)]
pub(crate) struct RunFolder {
    folder: Folder,
    /// Its temporary name.
    name: OsString,
}

impl RunFolder {
    /// Makes the folder in `results` whose complete name will be `name`.
    pub(super) fn make(results: &Folder, name: &str) -> Result<RunFolder, ResultsError> {
        let name = OsString::from(format!("{PART}{name}"));
        let folder = results.make_folder(&name, MODE).map_err(|cause| {
            ResultsError::file("make results directory", &results.path().join(&name), cause)
        })?;
        Ok(RunFolder { folder, name })
    }

    /// The folder.
    pub(super) fn folder(&self) -> &Folder {
        &self.folder
    }

    /// A path for those who write into it. It leads through the descriptor, so it is valid as long
    /// as this value lives.
    pub(crate) fn path(&self) -> PathBuf {
        self.folder.by_descriptor()
    }

    /// Writes the row into the folder and gives it its complete name: from then on the run is done.
    pub(super) fn complete(&self, results: &Folder, row: &RunRow) -> Result<(), ResultsError> {
        write_json(&self.folder, ROW, row)?;
        let name = self.name.to_str().and_then(|name| name.strip_prefix(PART)).unwrap_or_default();
        results.rename(&self.name, name).map_err(|cause| {
            ResultsError::file("complete results", &results.path().join(name), cause)
        })
    }

    /// Removes the folder of a run that failed: there are no incomplete results, and if the disk is
    /// full, this makes room.
    pub(super) fn discard(&self, results: &Folder) {
        // The run's own error is what matters. A folder that stays keeps its temporary name.
        let _ = results.remove_folder(&self.name);
    }

    /// Takes over the files of `run`, a folder elsewhere on this machine: copies them if they must
    /// `stay` there, otherwise moves them.
    pub(super) fn take_over(&self, run: &Path, stay: bool) -> Result<(), ResultsError> {
        let unreadable = |cause| ResultsError::file("read results", run, cause);
        for entry in fs::read_dir(run).map_err(unreadable)? {
            let from = entry.map_err(unreadable)?.path();
            let name = from.file_name().unwrap_or_default();
            let copy =
                || std::io::copy(&mut File::open(&from)?, &mut self.folder.create(name)?).map(drop);
            // Renaming does not cross file systems; copying does.
            let taken = if stay {
                copy()
            } else {
                fs::rename(&from, self.path().join(name)).or_else(|_| copy())
            };
            taken.map_err(|cause| {
                ResultsError::file("take over results", &self.folder.path().join(name), cause)
            })?;
        }
        Ok(())
    }
}

/// Whether `name` is that of an incomplete run's folder.
pub(super) fn is_incomplete(name: &OsStr) -> bool {
    let number = name
        .to_str()
        .and_then(|name| name.strip_prefix(PART))
        .and_then(|name| name.split_once('-'));
    number.is_some_and(|(number, _)| {
        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// The name of a complete run's folder, such as `007-b2-rtt=10ms`: sorted by name, folders are in
/// the scenarios' order.
pub(super) fn folder_name(index: usize, name: &str, digits: usize) -> String {
    let plain = name.replace(|c: char| c == '/' || c.is_control(), "-");
    let mut end = plain.len().min(NAME_MAX);
    while !plain.is_char_boundary(end) {
        end -= 1;
    }
    format!("{:0digits$}-{}", index + 1, &plain[..end])
}

/// The row of the complete run whose folder is `run`; `None` if it has none.
///
/// # Errors
/// A row cannot be read, or is not valid.
pub(crate) fn row(run: &Folder) -> Result<Option<RunRow>, ResultsError> {
    let read = match run.read(ROW) {
        Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        read => read.and_then(|bytes| Ok(serde_json::from_slice(&bytes)?)),
    };
    read.map(Some).map_err(|cause| ResultsError::file("read row", &run.path().join(ROW), cause))
}
