//! The served directory: only here names from the network become open files.
//!
//! The kernel resolves the name with `openat2(2)` and `RESOLVE_BENEATH` (Linux 5.6). So neither
//! `..`, nor a symbolic link that leaves the directory, nor one that is replaced at the same time,
//! opens a file outside. (An absolute link is refused even if it points inside.) Only regular files
//! are served, and a FIFO does not block.

use super::ServerError;
use nix::errno::Errno;
use nix::fcntl::{OFlag, OpenHow, ResolveFlag, openat2};
use std::fs::{File, Metadata};
use std::os::fd::OwnedFd;
use std::path::PathBuf;

/// An open directory.
#[derive(Debug)]
pub(super) struct Directory(OwnedFd);

/// Why a name is not served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileRefusal {
    /// It does not exist.
    NotFound,
    /// It exists but may not be served: no permission, outside the directory, or not a regular
    /// file.
    Forbidden(&'static str),
    /// The name is invalid.
    BadName,
    /// The host failed.
    Failed,
}

impl Directory {
    pub(super) fn open(path: PathBuf) -> Result<Self, ServerError> {
        let opened = File::open(&path).and_then(|directory| {
            let directory = OwnedFd::from(directory);
            // Tested now, so that a kernel without openat2 fails at the start and not at every
            // request.
            openat2(&directory, ".", how(OFlag::O_DIRECTORY))?;
            Ok(directory)
        });
        opened.map(Directory).map_err(|source| ServerError::Directory { path, source })
    }

    /// Opens the file for a request's path (percent-encoded, with its leading slash).
    pub(super) fn file(&self, path: &str) -> Result<(File, Metadata), FileRefusal> {
        let name: Vec<u8> =
            percent_encoding::percent_decode_str(path.trim_start_matches('/')).collect();
        if name.contains(&0) {
            return Err(FileRefusal::BadName);
        }
        if name.is_empty() || name.ends_with(b"/") {
            return Err(FileRefusal::Forbidden("directories are not listed"));
        }
        let file: File =
            openat2(&self.0, name.as_slice(), how(OFlag::O_NONBLOCK)).map_err(refusal)?.into();
        let metadata = file.metadata().map_err(|_| FileRefusal::Failed)?;
        match metadata.file_type() {
            kind if kind.is_file() => Ok((file, metadata)),
            kind if kind.is_dir() => Err(FileRefusal::Forbidden("directories are not listed")),
            _ => Err(FileRefusal::Forbidden("not a regular file")),
        }
    }
}

fn how(flags: OFlag) -> OpenHow {
    OpenHow::new()
        .flags(OFlag::O_RDONLY | OFlag::O_CLOEXEC | flags)
        .resolve(ResolveFlag::RESOLVE_BENEATH | ResolveFlag::RESOLVE_NO_MAGICLINKS)
}

fn refusal(errno: Errno) -> FileRefusal {
    match errno {
        Errno::ENOENT | Errno::ENOTDIR => FileRefusal::NotFound,
        Errno::EXDEV | Errno::ELOOP => {
            FileRefusal::Forbidden("outside of the directory that is served")
        }
        Errno::EACCES | Errno::EPERM => FileRefusal::Forbidden("no permission to read it"),
        // A socket: open(2) says ENXIO.
        Errno::ENXIO => FileRefusal::Forbidden("not a regular file"),
        Errno::ENAMETOOLONG | Errno::EINVAL => FileRefusal::BadName,
        _ => FileRefusal::Failed,
    }
}
