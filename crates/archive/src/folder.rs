//! The folder of an archive's rows: opened for a run, and swept of what killed runs left.

use crate::manifest::{Done, Manifest, ManifestError, NAME, RowSettings};
use crate::parts::{DAY, TEMPORARY};
use std::fs;
use std::io;
use std::path::Path;

/// Why a folder cannot take rows.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// It is neither empty nor a folder of rows.
    #[error("it holds something else; take a new or empty folder, or resume one of earlier rows")]
    HoldsSomethingElse,
    /// A part of an earlier run is not as it was written.
    #[error("{0} is missing or is not what was written; begin again in another folder")]
    PartMissing(String),
    /// It cannot be made, read or written.
    #[error(transparent)]
    Folder(#[from] io::Error),
    /// Its manifest.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
}

/// Opens the folder and its manifest; both are made if they are missing. Parts that the manifest
/// does not name are removed.
///
/// # Errors
/// The folder holds something else, another process's rows, or rows that are made in another way;
/// parts are missing; or it cannot be read or written.
pub fn open(
    folder: &Path,
    settings: &RowSettings,
    resume: bool,
) -> Result<(Manifest, Done), FolderError> {
    fs::create_dir_all(folder)?;
    if resume && let Some(resumed) = resumed(folder, settings)? {
        return Ok(resumed);
    }
    let mut names = fs::read_dir(folder)?;
    if !folder.join(NAME).exists() && names.next().is_some() {
        return Err(FolderError::HoldsSomethingElse);
    }
    let manifest = Manifest::begin(folder, settings)?;
    fs::create_dir(folder.join(TEMPORARY))?;
    Ok((manifest, Done::default()))
}

/// Removes what only a run needs, after it: the folder of incomplete parts, of which there are
/// none.
pub fn leave(folder: &Path) {
    // A part that a failing disk did not let go is swept by the next run.
    let _ = fs::remove_dir(folder.join(TEMPORARY));
}

/// The manifest of an earlier run, if there is one.
fn resumed(folder: &Path, settings: &RowSettings) -> Result<Option<(Manifest, Done)>, FolderError> {
    let Some((manifest, done)) = Manifest::resume(folder, settings)? else { return Ok(None) };
    for (path, bytes) in &done.parts {
        let there = fs::metadata(folder.join(path)).map(|part| part.len());
        if there.as_ref().ok() != Some(bytes) {
            return Err(FolderError::PartMissing(path.clone()));
        }
    }
    sweep(folder, &done)?;
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
