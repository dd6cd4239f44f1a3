//! Names of a user's processes. Each name is a Unix socket in the directory of journals.
//!
//! A name is free when nobody answers at its socket. Checking that and making the socket are two
//! steps, and another process could do the same in between. So a process holds a [`Turn`] while it
//! takes a name or removes sockets that nobody answers. The kernel ends a turn with its process.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, UnixAddr, connect, socket};

use crate::run::journal::{JournalError, own_directory};

/// While this lives, no other process of this user takes or frees a name.
#[derive(Debug)]
#[must_use = "the turn ends with the value"]
pub struct Turn {
    _lock: Flock<File>,
}

impl Turn {
    /// Waits for the turn; nobody holds it for longer than a few system calls.
    pub fn wait() -> Result<Turn, JournalError> {
        let directory = own_directory()?;
        let file = File::open(&directory)
            .map_err(|cause| JournalError::io("open journal directory", &directory, cause))?;
        let lock = Flock::lock(file, FlockArg::LockExclusive)
            .map_err(|(_, errno)| JournalError::io("lock journal directory", &directory, errno))?;
        Ok(Turn { _lock: lock })
    }
}

/// Whether a process listens at the socket `path`. A listener with a full backlog counts, and is
/// not waited for.
fn is_answered(path: &Path) -> bool {
    matches!(try_connect(path), Ok(()) | Err(Errno::EAGAIN))
}

fn try_connect(path: &Path) -> nix::Result<()> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let socket = socket(AddressFamily::Unix, SockType::Stream, flags, None)?;
    connect(socket.as_raw_fd(), &UnixAddr::new(path)?)
}

/// A Unix socket that is a file, and that nobody else answers at. Dropping it removes the file.
#[derive(Debug)]
pub struct NamedSocket {
    path: PathBuf,
    listener: UnixListener,
    /// Only the process that made the file removes it, not its forks.
    owner: u32,
}

impl NamedSocket {
    /// Makes the socket; `None` if somebody answers there. A file that a killed process left is
    /// replaced, one that is no socket is not.
    pub fn bind(path: PathBuf) -> io::Result<Option<NamedSocket>> {
        let _turn = Turn::wait().map_err(io::Error::other)?;
        if is_answered(&path) {
            return Ok(None);
        }
        if is_socket(&path) {
            let _ = fs::remove_file(&path);
        }
        let listener = UnixListener::bind(&path)?;
        Ok(Some(NamedSocket { path, listener, owner: std::process::id() }))
    }

    /// Where clients are accepted.
    pub fn listener(&self) -> &UnixListener {
        &self.listener
    }

    /// The process that made it.
    pub fn owner(&self) -> u32 {
        self.owner
    }
}

impl Drop for NamedSocket {
    fn drop(&mut self) {
        if self.owner == std::process::id() {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Sockets in the user's directory of journals, in the order of their names.
#[derive(Debug, Default)]
pub struct Sockets {
    /// Somebody answers there.
    pub answered: Vec<PathBuf>,
    /// Killed processes left them, and now they are removed.
    pub removed: Vec<PathBuf>,
}

impl Sockets {
    /// Those whose names begin and end so. A file that is no socket is left alone.
    pub fn named(prefix: &str, suffix: &str) -> Result<Sockets, JournalError> {
        let directory = own_directory()?;
        // One that is just being made does not answer yet.
        let _turn = Turn::wait()?;
        let entries = fs::read_dir(&directory)
            .map_err(|cause| JournalError::io("read journal directory", &directory, cause))?;
        let mut found = Sockets::default();
        for path in entries.flatten().map(|entry| entry.path()) {
            let name = path.file_name().and_then(|name| name.to_str());
            if !name.is_some_and(|name| name.starts_with(prefix) && name.ends_with(suffix))
                || !is_socket(&path)
            {
                continue;
            }
            if is_answered(&path) {
                found.answered.push(path);
            } else if fs::remove_file(&path).is_ok() {
                found.removed.push(path);
            }
        }
        found.answered.sort();
        found.removed.sort();
        Ok(found)
    }
}

fn is_socket(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.file_type().is_socket())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_socket_is_answered_while_somebody_listens_also_with_a_full_queue() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("one.sock");
        assert!(!is_answered(&path));
        let listener = UnixListener::bind(&path).unwrap();
        assert!(is_answered(&path));
        nix::sys::socket::listen(&listener, nix::sys::socket::Backlog::new(1).unwrap()).unwrap();
        // Nobody accepts them, so further connections would have to wait.
        let clients: Vec<io::Result<UnixStream>> =
            (0..1).map(|_| UnixStream::connect(&path)).collect();
        assert!(clients.iter().all(Result::is_ok));
        assert!((0..3).all(|_| is_answered(&path)));
        drop(listener);
        assert!(!is_answered(&path), "the file is there, and nobody behind it");
    }
}
