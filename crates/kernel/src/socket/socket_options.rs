//! What another process asked of its socket: a buffer, a window, a pacing rate.
//!
//! `sock_diag` shows how large a buffer is, not whether the application chose it. [`read`] gets a
//! duplicate of the descriptor (`pidfd_getfd`, Linux 5.6) and asks the socket itself. That takes
//! the right to trace the process: root, or its own user where Yama permits it. The duplicate is
//! closed at once, and nothing is changed.
//!
//! Sources: pidfd_getfd(2), socket(7), tcp(7), include/uapi/asm-generic/socket.h.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use fullpipe_model::observe::SocketOptions;
use fullpipe_model::units::{Bytes, Rate, Window};

use crate::Refused;
use crate::process::processes::Descriptor;
use crate::process::program::pidfd;

// include/uapi/asm-generic/socket.h; libc lacks the first.
const SO_BUF_LOCK: libc::c_int = 72;
const SO_MAX_PACING_RATE: libc::c_int = 47;
/// Bits of SO_BUF_LOCK: include/uapi/linux/socket.h.
const SOCK_SNDBUF_LOCK: u64 = 1;
const SOCK_RCVBUF_LOCK: u64 = 2;

/// The options of the socket behind a descriptor of any process.
pub fn read(descriptor: Descriptor) -> Result<SocketOptions, Refused> {
    Ok(of(duplicate(descriptor)?.as_fd()))
}

/// The options of a socket of this process.
pub(crate) fn of(socket: BorrowedFd<'_>) -> SocketOptions {
    let locked = option(socket, libc::SOL_SOCKET, SO_BUF_LOCK);
    let pacing = option(socket, libc::SOL_SOCKET, SO_MAX_PACING_RATE);
    let [clamp, lowat] = [libc::TCP_WINDOW_CLAMP, libc::TCP_NOTSENT_LOWAT]
        .map(|name| option(socket, libc::IPPROTO_TCP, name));
    SocketOptions {
        sets_rcvbuf: locked.map(|bits| bits & SOCK_RCVBUF_LOCK != 0),
        sets_sndbuf: locked.map(|bits| bits & SOCK_SNDBUF_LOCK != 0),
        window_clamp: clamp.map(|clamp| Window::new(Bytes::new(clamp))),
        notsent_lowat: lowat.filter(|lowat| *lowat != 0).map(Bytes::new),
        // All ones mean that there is none, in 32 bits or in 64.
        max_pacing_rate: pacing
            .filter(|rate| *rate != u64::MAX && *rate != u64::from(u32::MAX))
            .and_then(|rate| Rate::from_bytes_per_sec(Bytes::new(rate))),
    }
}

/// A descriptor of our own for the same socket.
fn duplicate(descriptor: Descriptor) -> Result<OwnedFd, Refused> {
    let Descriptor { pid, number } = descriptor;
    let process = pidfd(pid)?;
    // SAFETY: no memory is passed; the first descriptor is open.
    let raw = unsafe {
        libc::syscall(libc::SYS_pidfd_getfd, process.as_raw_fd(), number as libc::c_int, 0)
    };
    match i32::try_from(raw) {
        // SAFETY: `raw` was just opened and belongs to nobody else.
        Ok(raw) if raw >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(raw) }),
        _ => Err(Refused::last("look at socket", format!("descriptor {number} of process {pid}"))
            .hint("it needs CAP_SYS_PTRACE (root) and Linux 5.6 or later")),
    }
}

/// The number that an option has; `None` if this kernel does not know it.
fn option(socket: BorrowedFd<'_>, level: libc::c_int, name: libc::c_int) -> Option<u64> {
    let mut value = [0u8; 8];
    let mut length = value.len() as libc::socklen_t;
    // SAFETY: `value` has room for `length` bytes, and both live through the call.
    let got = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            level,
            name,
            value.as_mut_ptr().cast(),
            std::ptr::from_mut(&mut length),
        )
    };
    match (got, length) {
        (0, 4) => value.first_chunk().map(|bytes| u64::from(u32::from_ne_bytes(*bytes))),
        (0, 8) => Some(u64::from_ne_bytes(value)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    fn descriptor(socket: &impl AsRawFd) -> Descriptor {
        Descriptor { pid: std::process::id(), number: socket.as_raw_fd() as u32 }
    }

    #[test]
    fn a_buffer_that_the_application_set_is_told_from_the_kernels() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        // A process may always look at its own descriptors.
        let before = read(descriptor(&stream)).unwrap();
        assert_eq!((before.sets_rcvbuf, before.sets_sndbuf), (Some(false), Some(false)));
        assert_eq!((before.notsent_lowat, before.max_pacing_rate), (None, None));
        nix::sys::socket::setsockopt(&stream, nix::sys::socket::sockopt::RcvBuf, &65_536).unwrap();
        let after = read(descriptor(&stream)).unwrap();
        assert_eq!((after.sets_rcvbuf, after.sets_sndbuf), (Some(true), Some(false)));
    }

    #[test]
    fn a_descriptor_that_is_not_there_is_refused_with_its_number() {
        let none = Descriptor { pid: std::process::id(), number: 9_999_999 };
        let message = read(none).unwrap_err().to_string();
        assert!(message.contains("descriptor 9999999"), "{message}");
    }
}
