//! Writing results as runs end.

use super::directory::{check_is_empty, open_or_make};
use super::environment::Environment;
use super::error::ResultsError;
use super::files::{write_json, write_run};
use super::manifest::Manifest;
use super::run_folder::{RunFolder, folder_name, is_incomplete};
use crate::experiment::Outcome;
use fullpipe_flow::schema::RunRow;
use fullpipe_kernel::file::folder::{self, Folder};
use fullpipe_model::scenario::Scenario;
use std::fs::File;
use std::io::Write;
use std::path::Path;

pub(super) const ROWS: &str = "rows.jsonl";
pub(super) const ENVIRONMENT: &str = "environment.json";

/// A results directory that is being written.
#[derive(Debug)]
pub(crate) struct Results {
    folder: Folder,
    rows: File,
    /// Digits of a run's number in its folder's name.
    digits: usize,
}

impl Results {
    /// Begins results of the runs of `manifest` in `folder`, which must be empty or not exist.
    ///
    /// # Errors
    /// The directory contains something: [`ResultsError::Resumable`] if that is an unfinished sweep
    /// of the same runs. Or it belongs to another user.
    pub(crate) fn create(
        path: &Path,
        environment: &Environment,
        manifest: &Manifest,
    ) -> Result<Results, ResultsError> {
        let folder = open_or_make(path)?;
        if let Err(error) = check_is_empty(&folder) {
            let here = Manifest::read(&folder).is_ok_and(|there| there == *manifest);
            let done = if here { manifest.finished(&folder)?.iter().flatten().count() } else { 0 };
            return Err(match (here, manifest.len()) {
                (true, total) => ResultsError::Resumable { folder: path.into(), done, total },
                _ => error,
            });
        }
        manifest.write(&folder)?;
        Results::open(folder, environment, manifest)
    }

    /// Continues the results in `folder`; also returns the rows of the finished runs, each at its
    /// run's position. What an interrupted run left incomplete is removed. An empty folder is
    /// begun.
    ///
    /// # Errors
    /// `folder` contains something other than runs of `manifest`, or belongs to another user.
    pub(crate) fn resume(
        path: &Path,
        environment: &Environment,
        manifest: &Manifest,
    ) -> Result<(Results, Vec<Option<RunRow>>), ResultsError> {
        let folder = open_or_make(path)?;
        if check_is_empty(&folder).is_ok() {
            let results = Results::create(path, environment, manifest)?;
            return Ok((results, vec![None; manifest.runs.len()]));
        }
        manifest.check_same(&folder)?;
        let done = manifest.finished(&folder)?;
        let names = folder.names();
        for name in names.map_err(|cause| ResultsError::file("read results", path, cause))? {
            let removed = if is_incomplete(&name) {
                folder.remove_folder(&name)
            } else if folder::is_left_over(&name) {
                folder.remove_file(&name)
            } else {
                Ok(())
            };
            removed.map_err(|cause| {
                ResultsError::file("remove half a run", &path.join(name), cause)
            })?;
        }
        Ok((Results::open(folder, environment, manifest)?, done))
    }

    fn open(
        folder: Folder,
        environment: &Environment,
        manifest: &Manifest,
    ) -> Result<Results, ResultsError> {
        write_json(&folder, ENVIRONMENT, environment)?;
        let rows = match folder.remove_file(ROWS) {
            Err(cause) if cause.kind() != std::io::ErrorKind::NotFound => Err(cause),
            _ => folder.create(ROWS),
        };
        let rows =
            rows.map_err(|cause| ResultsError::file("write", &folder.path().join(ROWS), cause))?;
        Ok(Results { folder, rows, digits: manifest.digits() })
    }

    /// Makes the folder of run `index`, counted from 0, under its temporary name.
    pub(crate) fn begin(&self, index: usize, name: &str) -> Result<RunFolder, ResultsError> {
        RunFolder::make(&self.folder, &folder_name(index, name, self.digits))
    }

    /// Removes the folder of a run that failed.
    pub(crate) fn discard(&self, run: &RunFolder) {
        run.discard(&self.folder);
    }

    /// Takes over the files of run `index`, which were made in the folder `files` elsewhere on this
    /// machine: copies them if they must `stay` there, otherwise moves them.
    pub(crate) fn adopt(
        &self,
        index: usize,
        files: &Path,
        stay: bool,
        row: &RunRow,
    ) -> Result<(), ResultsError> {
        let run = self.begin(index, &row.name)?;
        let taken = run.take_over(files, stay).and_then(|()| run.complete(&self.folder, row));
        taken.inspect_err(|_| self.discard(&run))
    }

    /// Writes a run's files into its folder, and gives the folder its name.
    pub(crate) fn complete(
        &self,
        run: &RunFolder,
        scenario: &Scenario,
        outcome: &Outcome,
        row: &RunRow,
    ) -> Result<(), ResultsError> {
        write_run(run.folder(), scenario, outcome)?;
        run.complete(&self.folder, row)
    }

    /// Adds the next row, in the scenarios' order, to `rows.jsonl`.
    pub(crate) fn append(&mut self, row: &RunRow) -> Result<(), ResultsError> {
        let failed =
            |cause| ResultsError::file("write row to", &self.folder.path().join(ROWS), cause);
        let mut line = serde_json::to_vec(row).map_err(|cause| failed(cause.into()))?;
        line.push(b'\n');
        self.rows.write_all(&line).map_err(failed)
    }

    /// The directory.
    #[cfg(test)]
    pub(super) fn directory(&self) -> &Folder {
        &self.folder
    }
}
