//! Where the body goes.

use super::{DownloadError, Output};
use std::fs::Permissions;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// Accepts the body. Dropped before [`Sink::complete`], it leaves nothing behind.
pub(super) enum Sink {
    Discard,
    File { file: NamedTempFile, path: PathBuf },
}

impl Sink {
    pub(super) fn open(output: &Output) -> Result<Self, DownloadError> {
        let Output::File(path) = output else { return Ok(Sink::Discard) };
        let directory = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        if path.is_dir() || path.file_name().is_none() {
            return Err(failed(path, io::ErrorKind::IsADirectory.into()));
        }
        let file = tempfile::Builder::new()
            .prefix(".fullpipe-")
            .suffix(".part")
            // The mode that open(2) gives to any new file, before the umask.
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(directory)
            .map_err(|source| failed(path, source))?;
        Ok(Sink::File { file, path: path.clone() })
    }

    /// Blocks until the kernel has accepted `data`; meanwhile nothing is read from the socket.
    pub(super) fn write(&mut self, data: &[u8]) -> Result<(), DownloadError> {
        match self {
            Sink::Discard => Ok(()),
            Sink::File { file, path } => {
                file.write_all(data).map_err(|source| failed(path, source))
            }
        }
    }

    /// Gives the file its name.
    pub(super) fn complete(self) -> Result<(), DownloadError> {
        match self {
            Sink::Discard => Ok(()),
            Sink::File { file, path } => {
                file.persist(&path).map(drop).map_err(|refused| failed(&path, refused.error))
            }
        }
    }
}

fn failed(path: &Path, source: io::Error) -> DownloadError {
    let hint = match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "free some space, or write to another file system"
        }
        io::ErrorKind::NotFound => "make its directory first",
        io::ErrorKind::IsADirectory => "give a file name",
        _ => "check the directory's permissions",
    };
    DownloadError::Output { path: path.into(), source, hint }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_an_error_that_says_so() {
        let error =
            failed(Path::new("/full/disk"), io::Error::from_raw_os_error(nix::libc::ENOSPC));
        assert_eq!(
            error.to_string(),
            "write /full/disk: No space left on device (os error 28); free some space, or write to another file system"
        );
    }
}
