//! Choosing and making a results directory.

use super::error::ResultsError;
use fullpipe_kernel::file::folder::Folder;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Refuses a results directory that contains something.
pub fn check_results_folder(folder: &Path) -> Result<(), ResultsError> {
    if fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some()) {
        return Err(ResultsError::NotEmpty(folder.into()));
    }
    Ok(())
}

/// Makes a directory `name` in `parent`, or `name-2`, `name-3` and so on if that exists, and
/// returns its path. `parent` is made if it does not exist. Two runs that begin at the same moment
/// get two directories.
///
/// # Errors
/// A directory cannot be made, or `parent` belongs to another user.
pub fn claim_results_folder(parent: &Path, name: &str) -> Result<PathBuf, ResultsError> {
    let above = open_or_make(parent)?;
    let mut number = 1;
    loop {
        let name = if number == 1 { name.into() } else { format!("{name}-{number}") };
        match above.make_folder(&name, mode_in(&above)) {
            Ok(_) => return Ok(parent.join(name)),
            Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => number += 1,
            Err(cause) => {
                return Err(ResultsError::file(
                    "make results directory",
                    &parent.join(name),
                    cause,
                ));
            }
        }
    }
}

/// The directory at `path`, which must belong to this user; it is made if it does not exist.
pub(super) fn open_or_make(path: &Path) -> Result<Folder, ResultsError> {
    let failed = |cause| ResultsError::file("make results directory", path, cause);
    let plain: PathBuf = path.components().collect();
    if let (Some(name), Err(_)) = (plain.file_name(), fs::symlink_metadata(&plain)) {
        let above = make_parent(&plain).map_err(failed)?;
        match above.make_folder(name, mode_in(&above)) {
            Err(cause) if cause.kind() != io::ErrorKind::AlreadyExists => {
                return Err(failed(cause));
            }
            _ => {}
        }
    }
    let folder = Folder::open(path).map_err(failed)?;
    folder.check_owner()?;
    Ok(folder)
}

/// The directory above `path`, made if it does not exist.
pub(super) fn make_parent(path: &Path) -> io::Result<Folder> {
    let above =
        path.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(above)?;
    // The way to the directory may lead over a link; what is made in it is checked.
    Folder::open(&fs::canonicalize(above)?)
}

/// Refuses a directory that contains something.
pub(super) fn check_is_empty(folder: &Folder) -> Result<(), ResultsError> {
    let names = folder.names();
    let names = names.map_err(|cause| ResultsError::file("read results", folder.path(), cause))?;
    if names.is_empty() { Ok(()) } else { Err(ResultsError::NotEmpty(folder.path().into())) }
}

/// The mode of a directory made in `above`: for us alone if others can write there; otherwise the
/// process's `umask` decides.
pub(super) fn mode_in(above: &Folder) -> u32 {
    if above.is_shared() { 0o700 } else { 0o777 }
}
