//! Names of a user's processes. Each name is a Unix socket in the directory of journals.
//!
//! A name is free when nobody answers at its socket. Checking that and making the socket are two
//! steps, and another process could do the same in between. So a process holds a [`Turn`] while it
//! takes a name or removes sockets that nobody answers. The kernel ends a turn with its process.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, UnixAddr, connect, socket};

use crate::journal::{JournalError, own_directory};

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
pub fn is_answered(path: &Path) -> bool {
    let connected = || -> nix::Result<()> {
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let socket = socket(AddressFamily::Unix, SockType::Stream, flags, None)?;
        connect(socket.as_raw_fd(), &UnixAddr::new(path)?)
    };
    matches!(connected(), Ok(()) | Err(Errno::EAGAIN))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::{UnixListener, UnixStream};

    #[test]
    fn a_socket_is_answered_while_somebody_listens_also_with_a_full_queue() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("one.sock");
        assert!(!is_answered(&path));
        let listener = UnixListener::bind(&path).unwrap();
        assert!(is_answered(&path));
        nix::sys::socket::listen(&listener, nix::sys::socket::Backlog::new(1).unwrap()).unwrap();
        // Nobody accepts them, so further connections would have to wait.
        let clients: Vec<std::io::Result<UnixStream>> =
            (0..1).map(|_| UnixStream::connect(&path)).collect();
        assert!(clients.iter().all(Result::is_ok));
        assert!((0..3).all(|_| is_answered(&path)));
        drop(listener);
        assert!(!is_answered(&path), "the file is there, and nobody behind it");
    }
}
