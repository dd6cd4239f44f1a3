//! The manifest of an archive's rows: which captures are done, and in which parts their rows are.
//!
//! `_manifest.jsonl` is the truth about a folder of rows. Its first line says how the rows are
//! made. Each further line commits a group of captures: it is appended and synced when the group's
//! parts are on disk under their final names. A part that no line names does not count; the next
//! `--resume` removes it. So whenever a run is killed, each capture is either done, once, or not
//! begun. A line that a killed run left unfinished is cut off. The last line says that the whole
//! archive was analysed.
//!
//! While a [`Manifest`] lives, no other process of this machine has one of the same folder.

use nix::fcntl::{Flock, FlockArg};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Error, ErrorKind, Result, Seek, SeekFrom, Write};
use std::path::Path;

/// The manifest's name in its folder. Readers of Parquet ignore names that begin with `_`.
pub const NAME: &str = "_manifest.jsonl";

/// A line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ManifestLine {
    Begun(RowSettings),
    Committed(Commit),
    Whole(Totals),
}

/// How the rows of the folder are made. Rows that were made in two ways must not mix.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowSettings {
    /// The program's version.
    pub fullpipe: String,
    /// The schema's version.
    pub schema: u32,
    /// The kind of row: `connections` or `packets`.
    pub rows: String,
    /// The options that change rows.
    pub options: String,
}

/// A group of captures that is done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Commit {
    /// The captures.
    pub captures: Vec<Capture>,
    /// The files with their rows; none if there are no rows.
    pub parts: Vec<RowsPart>,
}

/// A capture that is done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capture {
    /// Its name, as it was given.
    pub file: String,
    /// Its size when it was read.
    pub bytes: u64,
    /// When it had been written last, since 1970.
    pub modified_ns: i128,
    /// Its rows.
    pub rows: u64,
    /// Why it was not read to its end.
    pub problem: Option<String>,
}

/// A file with rows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowsPart {
    /// Its path in the folder.
    pub path: String,
    /// Its rows.
    pub rows: u64,
    /// Its size.
    pub bytes: u64,
}

/// What a folder of rows holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Totals {
    /// Captures, including those with problems.
    pub captures: u64,
    /// Captures that were not read to their ends.
    pub problems: u64,
    /// Rows.
    pub rows: u64,
}

/// What became of a capture in an earlier run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Earlier {
    bytes: u64,
    modified_ns: i128,
    /// Rows of it that are stored.
    pub rows: u64,
    has_problem: bool,
}

impl Earlier {
    fn of(capture: &Capture) -> Self {
        let Capture { bytes, modified_ns, rows, ref problem, .. } = *capture;
        Earlier { bytes, modified_ns, rows, has_problem: problem.is_some() }
    }

    /// Whether it is to be analysed again: nothing of it could be read.
    pub fn is_to_be_tried_again(&self) -> bool {
        self.has_problem && self.rows == 0
    }

    /// Whether a capture of this size and time is the one that was analysed.
    pub fn is_same(&self, bytes: u64, modified_ns: i128) -> bool {
        (self.bytes, self.modified_ns) == (bytes, modified_ns)
    }
}

/// What a manifest said when it was opened.
#[derive(Debug, Default)]
pub struct Done {
    /// The captures, by name.
    pub captures: HashMap<String, Earlier>,
    /// The paths of their parts, with their sizes.
    pub parts: HashMap<String, u64>,
}

/// Why a folder's manifest cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// The folder has one, and nobody asked to resume.
    #[error("it holds the rows of an earlier run")]
    Exists,
    /// Another process writes rows there.
    #[error("another fullpipe writes there; wait for its end, or choose another folder")]
    Busy,
    /// Its rows are made in another way.
    #[error("its rows are made {0}; resume with the same, or choose another folder")]
    Other(String),
    /// Its lines cannot be read.
    #[error("{NAME}, line {line}: {cause}; choose another folder")]
    Damaged {
        /// The number of the line, from 1.
        line: u64,
        /// What is wrong with it.
        cause: serde_json::Error,
    },
    /// It cannot be read or written.
    #[error("{NAME}: {0}")]
    File(#[from] Error),
}

/// The manifest of a folder, open and locked.
#[derive(Debug)]
pub struct Manifest {
    file: Flock<File>,
    /// The length of its complete lines.
    length: u64,
}

impl Manifest {
    /// Begins the manifest of a folder that has none.
    ///
    /// # Errors
    /// There is one, or it cannot be written.
    pub fn begin(
        folder: &Path,
        settings: &RowSettings,
    ) -> std::result::Result<Self, ManifestError> {
        let path = folder.join(NAME);
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(path);
        let file = match file {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                return Err(ManifestError::Exists);
            }
            file => file?,
        };
        let mut manifest = Manifest { file: lock(file)?, length: 0 };
        manifest.append(&ManifestLine::Begun(settings.clone()))?;
        File::open(folder)?.sync_all()?;
        Ok(manifest)
    }

    /// Opens the manifest of a folder whose rows are made with `settings`; `None` if there is none.
    ///
    /// # Errors
    /// The rows are made in another way, or it cannot be read.
    pub fn resume(
        folder: &Path,
        settings: &RowSettings,
    ) -> std::result::Result<Option<(Self, Done)>, ManifestError> {
        let file = match OpenOptions::new().read(true).write(true).open(folder.join(NAME)) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            file => file?,
        };
        let mut manifest = Manifest { file: lock(file)?, length: 0 };
        let mut done = Done::default();
        let mut begun = None;
        manifest.length = manifest.read(|line| match line {
            ManifestLine::Begun(settings) => begun = Some(settings),
            ManifestLine::Committed(commit) => {
                let captures = commit.captures.iter();
                done.captures.extend(captures.map(|one| (one.file.clone(), Earlier::of(one))));
                done.parts.extend(commit.parts.into_iter().map(|part| (part.path, part.bytes)));
            }
            ManifestLine::Whole(_) => {}
        })?;
        manifest.file.set_len(manifest.length)?;
        match begun {
            // It was killed before its first line was complete.
            None => manifest.append(&ManifestLine::Begun(settings.clone()))?,
            Some(before) if &before != settings => {
                return Err(ManifestError::Other(before.to_string()));
            }
            Some(_) => {}
        }
        Ok(Some((manifest, done)))
    }

    /// Records that a group is done. Its parts must be on disk by now.
    ///
    /// # Errors
    /// It cannot be written. The group is not done then, and the manifest is as before.
    pub fn commit(&mut self, commit: Commit) -> Result<()> {
        self.append(&ManifestLine::Committed(commit))
    }

    /// Records that the whole archive is done.
    ///
    /// # Errors
    /// It cannot be read or written.
    pub fn close(&mut self) -> std::result::Result<Totals, ManifestError> {
        let mut totals = Totals::default();
        let mut seen = HashSet::new();
        let mut problems = HashSet::new();
        let mut is_said = false;
        self.read(|line| {
            is_said = matches!(line, ManifestLine::Whole(_));
            let ManifestLine::Committed(commit) = line else { return };
            for capture in commit.captures {
                totals.rows += capture.rows;
                match capture.problem {
                    Some(_) => problems.insert(capture.file.clone()),
                    None => problems.remove(&capture.file),
                };
                seen.insert(capture.file);
            }
        })?;
        totals.captures = seen.len() as u64;
        totals.problems = problems.len() as u64;
        if !is_said {
            self.append(&ManifestLine::Whole(totals))?;
        }
        Ok(totals)
    }

    /// The captures that were not read to their ends: for each its problem and its rows, by name.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn problems(
        &mut self,
    ) -> std::result::Result<BTreeMap<String, (String, u64)>, ManifestError> {
        let mut problems = BTreeMap::new();
        self.read(|line| {
            let ManifestLine::Committed(commit) = line else { return };
            for Capture { file, problem, rows, .. } in commit.captures {
                match problem {
                    Some(problem) => problems.insert(file, (problem, rows)),
                    None => problems.remove(&file),
                };
            }
        })?;
        Ok(problems)
    }

    /// Reads all complete lines; returns their length.
    fn read(
        &mut self,
        mut take: impl FnMut(ManifestLine),
    ) -> std::result::Result<u64, ManifestError> {
        self.file.seek(SeekFrom::Start(0))?;
        let mut reader = BufReader::new(&*self.file);
        let (mut text, mut length, mut number) = (Vec::new(), 0, 0);
        loop {
            text.clear();
            let read = reader.read_until(b'\n', &mut text)? as u64;
            if text.last() != Some(&b'\n') {
                return Ok(length);
            }
            number += 1;
            let line = serde_json::from_slice(&text)
                .map_err(|cause| ManifestError::Damaged { line: number, cause })?;
            take(line);
            length += read;
        }
    }

    /// Appends a line and waits until it is on disk. If that fails, the line is taken back.
    fn append(&mut self, line: &ManifestLine) -> Result<()> {
        let mut text = serde_json::to_vec(line)?;
        text.push(b'\n');
        self.file.seek(SeekFrom::Start(self.length))?;
        let written = self.file.write_all(&text).and_then(|()| self.file.sync_all());
        if let Err(error) = written {
            // What cannot be cut off is an unfinished line at the end, or a group that is done
            // although its run failed: both are true.
            let _ = self.file.set_len(self.length);
            return Err(error);
        }
        self.length += text.len() as u64;
        Ok(())
    }
}

fn lock(file: File) -> std::result::Result<Flock<File>, ManifestError> {
    Flock::lock(file, FlockArg::LockExclusiveNonblock).map_err(|_| ManifestError::Busy)
}

impl std::fmt::Display for RowSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let RowSettings { fullpipe, schema, rows, options } = self;
        write!(f, "by fullpipe {fullpipe} (schema {schema}) of {rows} with {options}")
    }
}

#[cfg(test)]
mod tests;
