//! The results of shards, put together as if one machine had made the whole sweep.
//!
//! Every shard's `sweep.json` names all runs of the sweep with their keys. Only where these are the
//! same, and each shard is there once and is finished, the directory is made: under a temporary
//! name, synced, and renamed. Files are copied, and lines of `rows.jsonl` as they are.

use super::directory::{check_is_empty, make_parent, mode_in, open_or_make};
use super::error::{MergeError, ResultsError};
use super::files::write_json;
use super::manifest::Manifest;
use super::run_folder::{MODE, folder_name, row};
use super::writer::{ENVIRONMENT, ROWS};
use crate::sweep::Shard;
use fullpipe_flow::schema::RunRow;
use fullpipe_kernel::file::folder::Folder;
use serde_json::{Value, json};
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

/// What was put together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Merged {
    /// How many shards.
    pub shards: usize,
    /// How many rows.
    pub rows: usize,
    /// How many of the rows are those of failed runs.
    pub failed: usize,
}

/// Puts the results of all shards of one sweep together in the directory `out`, which must be empty
/// or not exist. It is complete or not there.
///
/// # Errors
/// Shards overlap, are missing, unfinished, or of different sweeps; or a file fails.
pub fn merge_shards(shards: &[PathBuf], out: &Path) -> Result<Merged, MergeError> {
    let mut made =
        shards.iter().map(|path| ShardResults::read(path)).collect::<Result<Vec<_>, _>>()?;
    made.sort_by_key(|made| made.shard.number());
    check_complete(&made)?;
    let lines = made.iter().map(ShardResults::lines).collect::<Result<Vec<_>, _>>()?;
    write(&made, &lines, out)?;
    let rows = lines.iter().map(Vec::len).sum();
    let failed = lines.iter().flatten().filter(|line| line.is_failed).count();
    Ok(Merged { shards: made.len(), rows, failed })
}

/// The results of one shard.
struct ShardResults {
    folder: Folder,
    manifest: Manifest,
    shard: Shard,
    /// Its `environment.json`.
    environment: Value,
}

/// A line of `rows.jsonl`.
struct RowLine {
    bytes: Vec<u8>,
    is_failed: bool,
}

impl ShardResults {
    fn read(path: &Path) -> Result<ShardResults, MergeError> {
        let unreadable = |cause| MergeError::Unreadable { path: path.into(), cause };
        let folder = Folder::open(path).map_err(unreadable)?;
        let manifest = Manifest::in_folder(&folder).map_err(unreadable)?;
        let shard = manifest.shard.ok_or_else(|| MergeError::Whole(path.into()))?;
        let environment = folder
            .read(ENVIRONMENT)
            .and_then(|bytes| Ok(serde_json::from_slice(&bytes)?))
            .map_err(unreadable)?;
        Ok(ShardResults { folder, manifest, shard, environment })
    }

    fn path(&self) -> PathBuf {
        self.folder.path().into()
    }

    fn version(&self) -> &str {
        self.environment["fullpipe"].as_str().unwrap_or("unknown")
    }

    /// Places of its runs in the whole sweep, ascending.
    fn places(&self) -> impl Iterator<Item = usize> {
        (0..self.manifest.runs.len()).filter(|&place| self.manifest.has(place))
    }

    /// The folder of the run at `place`.
    fn run(&self, place: usize) -> OsString {
        let manifest = &self.manifest;
        folder_name(place, &manifest.runs[place].name, manifest.digits()).into()
    }

    /// Its rows, each of the run that it must be of, and with its folder where it did not fail.
    fn lines(&self) -> Result<Vec<RowLine>, MergeError> {
        let bytes = self.folder.read(ROWS).map_err(|cause| self.unreadable(cause))?;
        let mut lines = Vec::new();
        for (place, line) in self.places().zip(bytes.split_inclusive(|&byte| byte == b'\n')) {
            let read: RunRow =
                serde_json::from_slice(line).map_err(|error| self.unreadable(error.into()))?;
            let planned = &self.manifest.runs[place];
            if (&read.name, read.repetition) != (&planned.name, planned.repetition)
                || !(read.is_failed() || self.has_run(place)?)
            {
                break;
            }
            lines.push(RowLine { bytes: line.into(), is_failed: read.is_failed() });
        }
        let total = self.manifest.len();
        if lines.len() < total {
            let (shard, done) = (self.shard, lines.len());
            return Err(MergeError::Unfinished { path: self.path(), shard, done, total });
        }
        Ok(lines)
    }

    fn unreadable(&self, cause: io::Error) -> MergeError {
        MergeError::Unreadable { path: self.path(), cause }
    }

    fn has_run(&self, place: usize) -> Result<bool, ResultsError> {
        match self.folder.folder(self.run(place)) {
            Ok(folder) => Ok(row(&folder)?.is_some()),
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(cause) => Err(ResultsError::file("read results", &self.path(), cause)),
        }
    }
}

/// Refuses shards, in the order of their numbers, that are not all of one sweep, each once.
fn check_complete(made: &[ShardResults]) -> Result<(), MergeError> {
    let Some(first) = made.first() else { return Err(MergeError::Nothing) };
    for other in &made[1..] {
        let differ =
            |difference| MergeError::Different { paths: [first.path(), other.path()], difference };
        if other.version() != first.version() {
            let (a, b) = (first.version(), other.version());
            return Err(differ(format!("fullpipe {a} made the former, {b} the latter")));
        }
        if other.shard.of() != first.shard.of() {
            let (a, b) = (first.shard, other.shard);
            return Err(differ(format!("the former is shard {a}, the latter {b}")));
        }
        if let Some(difference) = other.manifest.whole().difference(&first.manifest.whole()) {
            return Err(differ(difference));
        }
    }
    if let Some(pair) = made.windows(2).find(|pair| pair[0].shard == pair[1].shard) {
        let paths = [pair[0].path(), pair[1].path()];
        return Err(MergeError::Twice { shard: pair[0].shard, paths });
    }
    let of = first.shard.of();
    let missing: Vec<usize> =
        (1..=of).filter(|&number| !made.iter().any(|made| made.shard.number() == number)).collect();
    if missing.is_empty() { Ok(()) } else { Err(MergeError::Missing { missing, of }) }
}

/// Makes the directory `out`.
fn write(made: &[ShardResults], lines: &[Vec<RowLine>], out: &Path) -> Result<(), ResultsError> {
    let failed = |cause| ResultsError::file("write results", out, cause);
    let plain: PathBuf = out.components().collect();
    let name = plain.file_name().ok_or_else(|| failed(io::ErrorKind::InvalidInput.into()))?;
    if plain.symlink_metadata().is_ok() {
        check_is_empty(&open_or_make(&plain)?)?;
    }
    let above = make_parent(&plain).map_err(failed)?;
    let mut part = OsString::from(".");
    part.push(name);
    part.push(format!(".{}.part", std::process::id()));
    let folder = above.make_folder(&part, mode_in(&above)).map_err(failed)?;
    let written = fill(&folder, made, lines).and_then(|()| {
        folder.sync_file_system().and_then(|()| above.rename(&part, name)).map_err(failed)
    });
    written.inspect_err(|_| {
        // The error is what matters; what stays has the name of something incomplete.
        let _ = above.remove_folder(&part);
    })
}

fn fill(
    folder: &Folder,
    made: &[ShardResults],
    lines: &[Vec<RowLine>],
) -> Result<(), ResultsError> {
    let Some(first) = made.first() else { return Ok(()) };
    let whole = first.manifest.whole();
    let mut rows = Vec::new();
    let mut lines: Vec<_> = lines.iter().map(|lines| lines.iter()).collect();
    for place in 0..whole.runs.len() {
        let index = Shard::index_of(place, made.len());
        let Some(line) = lines[index].next() else { continue };
        rows.extend_from_slice(&line.bytes);
        if !line.is_failed {
            let (from, name) = (&made[index].folder, made[index].run(place));
            copy(from, folder, &name).map_err(|cause| {
                ResultsError::file("copy results", &from.path().join(&name), cause)
            })?;
        }
    }
    folder
        .write_whole(ROWS, &rows)
        .map_err(|cause| ResultsError::file("write", &folder.path().join(ROWS), cause))?;
    let machines: Vec<Value> = made.iter().map(ShardResults::machine).collect();
    write_json(folder, ENVIRONMENT, &json!({ "fullpipe": first.version(), "shards": machines }))?;
    whole.write(folder)
}

/// Copies the run's folder `name`.
fn copy(from: &Folder, to: &Folder, name: &OsStr) -> io::Result<()> {
    let (from, to) = (from.folder(name)?, to.make_folder(name, MODE)?);
    for file in from.names()? {
        io::copy(&mut from.open_file(&file)?, &mut to.create(&file)?)?;
    }
    Ok(())
}

impl ShardResults {
    /// Its environment with the shard's name.
    fn machine(&self) -> Value {
        let mut machine = json!({ "shard": self.shard.to_string() });
        if let (Value::Object(machine), Value::Object(own)) = (&mut machine, &self.environment) {
            machine.extend(own.iter().map(|(key, value)| (key.clone(), value.clone())));
        }
        machine
    }
}
