//! A run: threads take groups of captures, analyse them, and commit each in the manifest.
//!
//! Each capture is read by one thread, however large it is.

use crate::capture_rows::{CaptureOutcome, CaptureRows};
use crate::day_tables::TableError;
use crate::folder::{self, FolderError};
use crate::groups::{CaptureGroup, Groups, text_of};
use crate::list::{FoundCapture, SourceList, Sources, Unusable};
use crate::manifest::{Capture, Commit, Done, Manifest, ManifestError, RowSettings, Totals};
use crate::parts::{TEMPORARY, publish};
use fullpipe_analyze::{Error, Options};
use fullpipe_columnar::RowSource;
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Opens a capture for reading.
pub type CaptureOpener = Box<dyn Fn(&Path) -> io::Result<Box<dyn Read + Send>> + Send + Sync>;

/// What watches a run, from all its threads.
pub trait Observer: Sync {
    /// Whether the run is to end now. It can go on later.
    fn is_to_end(&self) -> bool;
    /// What opens a capture. Bytes that are read of it are progress.
    fn opener(&self) -> CaptureOpener;
    /// A capture is analysed.
    fn analysed(&self);
    /// A capture of a group was not read to its end; the group will be committed.
    fn problem(&self, problem: &str);
}

/// Why a run failed. What was committed before stays.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// The list of captures cannot be read.
    #[error("read the list of captures: {0}")]
    List(io::Error),
    /// The folder or its manifest.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// A file of rows cannot be written.
    #[error(transparent)]
    Table(#[from] TableError),
}

/// What a run came to. The folder stays open until this is dropped.
///
/// If nothing ended the run, [`Finished::close`] says that the folder is whole.
#[derive(Debug)]
pub struct Finished {
    manifest: Manifest,
    /// Whether it was ended before its time.
    pub was_ended: bool,
    /// Captures that changed after an earlier run had analysed them, with their rows, which are of
    /// what they were.
    pub changed: BTreeMap<String, u64>,
}

/// A folder of rows, open: no other process of this machine has it.
///
/// The order of calls: [`Archive::open`], then [`Archive::run`], once.
#[derive(Debug)]
pub struct Archive {
    folder: PathBuf,
    manifest: Manifest,
    done: Done,
}

impl Archive {
    /// Opens a new folder, or with `resume` one whose rows are made with the same `settings`.
    ///
    /// # Errors
    /// The folder holds something else, another process's rows, or rows that are made in another
    /// way; parts are missing; or it cannot be read or written.
    pub fn open(folder: &Path, settings: &RowSettings, resume: bool) -> Result<Self, FolderError> {
        let (manifest, done) = folder::open(folder, settings, resume)?;
        Ok(Archive { folder: folder.into(), manifest, done })
    }

    /// The bytes of the captures that are left; `None` where the sources can be listed only once.
    /// What cannot be listed is told by the run.
    pub fn bytes_left(&self, sources: &Sources) -> Option<u64> {
        if !sources.are_lasting() {
            return None;
        }
        let list = sources.list().into_iter().flat_map(|list| list.without(&self.folder));
        let found = list.filter_map(|item| item.ok()?.ok());
        let is_left =
            |found: &FoundCapture| !self.done.captures.contains_key(&text_of(&found.path));
        Some(found.filter(is_left).map(|found| found.bytes).sum())
    }

    /// Analyses what is left of `list` into rows of `kind`, with so many `threads`.
    ///
    /// # Errors
    /// The list cannot be read, or rows or the manifest cannot be written.
    pub fn run(
        self,
        list: SourceList,
        kind: RowSource,
        options: &Options,
        threads: NonZeroUsize,
        observer: &impl Observer,
    ) -> Result<Finished, ArchiveError> {
        let Archive { folder, manifest, done } = self;
        let list = list.without(&folder);
        let run = SharedRun {
            folder: &folder,
            kind,
            options: Options { threads: NonZeroUsize::MIN, ..options.clone() },
            groups: Mutex::new(Groups::new(list, done)),
            manifest: Mutex::new(manifest),
            observer,
            failure: Mutex::new(None),
        };
        std::thread::scope(|scope| {
            for _ in 0..threads.get() {
                scope.spawn(|| run.work());
            }
        });
        folder::leave(run.folder);
        if let Some(failure) = lock(&run.failure).take() {
            return Err(failure);
        }
        let groups = run.groups.into_inner().unwrap_or_else(PoisonError::into_inner);
        let manifest = run.manifest.into_inner().unwrap_or_else(PoisonError::into_inner);
        let changed = groups.into_changed();
        Ok(Finished { manifest, was_ended: observer.is_to_end(), changed })
    }
}

impl Finished {
    /// Records that the whole archive is done; returns what it holds.
    ///
    /// # Errors
    /// The manifest cannot be read or written.
    pub fn close(&mut self) -> Result<Totals, ManifestError> {
        self.manifest.close()
    }

    /// The captures that were not read to their ends: for each its problem and its rows, by name.
    ///
    /// # Errors
    /// The manifest cannot be read.
    pub fn problems(&mut self) -> Result<BTreeMap<String, (String, u64)>, ManifestError> {
        self.manifest.problems()
    }
}

/// What all threads share.
struct SharedRun<'a, O> {
    folder: &'a Path,
    kind: RowSource,
    options: Options,
    groups: Mutex<Groups>,
    manifest: Mutex<Manifest>,
    observer: &'a O,
    /// The first failure, which ends all threads.
    failure: Mutex<Option<ArchiveError>>,
}

/// Why a group is not committed.
enum GroupEnd {
    /// The run is to end.
    Ended,
    Failed(ArchiveError),
}

impl<E: Into<ArchiveError>> From<E> for GroupEnd {
    fn from(failure: E) -> Self {
        GroupEnd::Failed(failure.into())
    }
}

/// What a thread holds is consistent between any two statements, so a panic elsewhere is no reason
/// to panic here.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<O: Observer> SharedRun<'_, O> {
    /// Analyses groups until none is left, or the run ends early.
    fn work(&self) {
        while !self.ends() {
            let group = lock(&self.groups).next_group();
            let done = match group {
                Ok(Some(group)) => self.group(group),
                Ok(None) => return,
                Err(error) => Err(ArchiveError::List(error).into()),
            };
            if let Err(GroupEnd::Failed(failure)) = done {
                lock(&self.failure).get_or_insert(failure);
            }
        }
    }

    /// Whether the run ends before its time.
    fn ends(&self) -> bool {
        self.observer.is_to_end() || lock(&self.failure).is_some()
    }

    /// Analyses a group and commits it.
    fn group(&self, group: CaptureGroup) -> Result<(), GroupEnd> {
        let word = group.word();
        let temporary = self.folder.join(TEMPORARY);
        let mut rows = CaptureRows::new(&temporary, &word, &[self.kind], self.options.clone());
        let mut captures: Vec<_> = group.unusable.into_iter().map(unusable).collect();
        for found in group.captures {
            captures.push(self.capture(found, &mut rows)?);
            self.observer.analysed();
        }
        for problem in captures.iter().filter_map(|capture| capture.problem.as_ref()) {
            self.observer.problem(problem);
        }
        let tables = rows.finish()?.into_iter().flat_map(|(_, tables)| tables).collect();
        let parts = publish(self.folder, &word, tables)?;
        let committed = lock(&self.manifest).commit(Commit { captures, parts });
        committed.map_err(|cause| FolderError::Manifest(cause.into()))?;
        Ok(())
    }

    /// Analyses a capture.
    fn capture(&self, found: FoundCapture, rows: &mut CaptureRows) -> Result<Capture, GroupEnd> {
        let FoundCapture { path, bytes, modified_ns } = found;
        let file = text_of(&path);
        let CaptureOutcome { rows, problem } = rows.add(
            &file,
            || Ok(self.opened(&path)),
            || if self.ends() { Err(GroupEnd::Ended) } else { Ok(()) },
        )?;
        Ok(Capture { file, bytes, modified_ns, rows: rows.iter().sum(), problem })
    }

    fn opened(&self, path: &Path) -> fullpipe_analyze::Capture {
        let capture = fullpipe_analyze::Capture::file(path);
        capture.or_recording().opened_by(self.observer.opener())
    }
}

/// A name that leads to no capture, as the manifest has it.
fn unusable(name: Unusable) -> Capture {
    let file = text_of(&name.path);
    let problem = Error::Open { path: name.path, cause: name.cause }.to_string();
    Capture { file, bytes: 0, modified_ns: 0, rows: 0, problem: Some(problem) }
}
