//! The folder of an archive's rows: opened for a run, and swept of what killed runs left.

use super::manifest::{Done, Manifest, ManifestError, Settings};
use super::parts::{DAY, TEMPORARY};
use crate::failure::{Failure, Kind};
use std::fs;
use std::io;
use std::path::Path;

/// Opens the folder and its manifest; both are made if they are missing. Parts that the manifest
/// does not name are removed.
///
/// # Errors
/// The folder holds something else, another process's rows, or rows that are made in another way;
/// parts are missing; or it cannot be read or written.
pub fn open(folder: &Path, settings: &Settings, resume: bool) -> Result<(Manifest, Done), Failure> {
    let failed = |cause: io::Error| of_folder(folder, &cause.into());
    fs::create_dir_all(folder).map_err(failed)?;
    if resume && let Some((manifest, done)) = resumed(folder, settings)? {
        return Ok((manifest, done));
    }
    let mut names = fs::read_dir(folder).map_err(failed)?;
    if !folder.join(super::manifest::NAME).exists() && names.next().is_some() {
        let problem = format!(
            "write rows into {}: it holds something else; --parquet takes a new or empty folder, or with --resume \
             one of earlier rows",
            folder.display()
        );
        return Err(Failure::new(Kind::Usage, problem));
    }
    let manifest = Manifest::begin(folder, settings).map_err(|error| of_folder(folder, &error))?;
    fs::create_dir(folder.join(TEMPORARY)).map_err(failed)?;
    Ok((manifest, Done::default()))
}

/// Removes what only a run needs, after it: the folder of incomplete parts, of which there are
/// none.
pub fn leave(folder: &Path) {
    // A part that a failing disk did not let go is swept by the next run.
    let _ = fs::remove_dir(folder.join(TEMPORARY));
}

/// The manifest of an earlier run, if there is one.
fn resumed(folder: &Path, settings: &Settings) -> Result<Option<(Manifest, Done)>, Failure> {
    let resumed = Manifest::resume(folder, settings).map_err(|error| of_folder(folder, &error))?;
    let Some((manifest, done)) = resumed else { return Ok(None) };
    for (path, bytes) in &done.parts {
        let there = fs::metadata(folder.join(path)).map(|part| part.len());
        if there.as_ref().ok() != Some(bytes) {
            let problem = format!(
                "resume the rows in {}: {path} is missing or is not what was written; begin again in another folder",
                folder.display()
            );
            return Err(Failure::new(Kind::Input, problem));
        }
    }
    sweep(folder, &done).map_err(|cause| of_folder(folder, &cause.into()))?;
    Ok(Some((manifest, done)))
}

/// Removes incomplete parts, and complete ones whose group is not done.
fn sweep(folder: &Path, done: &Done) -> io::Result<()> {
    let temporary = folder.join(TEMPORARY);
    match fs::remove_dir_all(&temporary) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => fs::create_dir(&temporary)?,
    }
    for day in fs::read_dir(folder)? {
        let day = day?.file_name();
        let Some(day) = day.to_str().filter(|name| name.starts_with(DAY)) else { continue };
        for part in fs::read_dir(folder.join(day))? {
            let part = part?.file_name();
            let Some(part) = part.to_str().filter(|name| is_part(name)) else { continue };
            let path = format!("{day}/{part}");
            if !done.parts.contains_key(&path) {
                fs::remove_file(folder.join(path))?;
            }
        }
    }
    Ok(())
}

/// Whether a file has the name of a part; others are not ours.
fn is_part(name: &str) -> bool {
    name.starts_with("part-") && name.ends_with(".parquet")
}

/// A problem of the folder as a failure.
pub fn of_folder(folder: &Path, error: &ManifestError) -> Failure {
    let kind = match error {
        ManifestError::Exists | ManifestError::Busy | ManifestError::Other(_) => Kind::Usage,
        ManifestError::Damaged { .. } => Kind::Input,
        ManifestError::File(_) => Kind::Run,
    };
    let hint = match error {
        ManifestError::File(_) => {
            "; give --parquet a folder that can be written, on a disk with free space; --resume goes on"
        }
        _ => "",
    };
    Failure::new(kind, format!("write rows into {}: {error}{hint}", folder.display()))
}
