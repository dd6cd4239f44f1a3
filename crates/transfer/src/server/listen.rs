//! The listening socket and its options; accepted sockets inherit them.

use super::ServerError;
use fullpipe_model::units::Bytes;
use nix::errno::Errno;
use nix::sys::socket::{getsockopt, setsockopt, sockopt};
use std::ffi::OsString;
use std::io;
use std::net::{SocketAddr, TcpListener};

pub(crate) fn listen(addr: SocketAddr) -> Result<TcpListener, ServerError> {
    let listener = TcpListener::bind(addr).map_err(|source| bind_error(addr, source))?;
    listener.set_nonblocking(true).map_err(|source| bind_error(addr, source))?;
    Ok(listener)
}

pub(crate) fn bind_error(addr: SocketAddr, source: io::Error) -> ServerError {
    let hint = match source.kind() {
        io::ErrorKind::AddrInUse => {
            "choose another port, or port 0 for a free one (ss -ltnp shows who listens)"
        }
        io::ErrorKind::AddrNotAvailable => "choose an address of this host (ip address shows them)",
        io::ErrorKind::PermissionDenied => "choose a port of 1024 or above, or run as root",
        _ => "check the address, and the limit of open files (ulimit -n)",
    };
    ServerError::Bind { addr, source, hint }
}

/// Sets `TCP_CONGESTION` and reads it back.
pub(super) fn set_congestion(
    listener: &TcpListener,
    addr: SocketAddr,
    name: &str,
) -> Result<(), ServerError> {
    try_congestion(listener, name).map_err(|errno| ServerError::SocketOption {
        option: "TCP_CONGESTION",
        value: name.into(),
        addr,
        source: errno.into(),
        hint: match errno {
            Errno::EPERM => "run as root, or add it to net.ipv4.tcp_allowed_congestion_control",
            _ => {
                "take one of net.ipv4.tcp_available_congestion_control, or load its module (modprobe tcp_<name>)"
            }
        },
    })
}

fn try_congestion(listener: &TcpListener, name: &str) -> Result<(), Errno> {
    // The kernel truncates a longer name, and might find that.
    if name.is_empty() || name.len() > 15 {
        return Err(Errno::ENOENT);
    }
    setsockopt(listener, sockopt::TcpCongestion, &OsString::from(name))?;
    let set = getsockopt(listener, sockopt::TcpCongestion)?;
    if set.to_string_lossy().trim_end_matches('\0') == name { Ok(()) } else { Err(Errno::ENOENT) }
}

/// Sets `SO_SNDBUF` if requested; returns what the kernel reports.
pub(super) fn set_sndbuf(
    listener: &TcpListener,
    addr: SocketAddr,
    asked: Option<Bytes>,
) -> Result<Bytes, ServerError> {
    try_sndbuf(listener, asked).map_err(|errno| ServerError::SocketOption {
        option: "SO_SNDBUF",
        value: asked.map_or_else(|| "default".into(), |asked| asked.to_string()),
        addr,
        source: errno.into(),
        hint: "take a size between 2304 B and net.core.wmem_max",
    })
}

fn try_sndbuf(listener: &TcpListener, asked: Option<Bytes>) -> Result<Bytes, Errno> {
    if let Some(asked) = asked {
        let size = i32::try_from(asked.get()).ok().filter(|size| *size > 0).ok_or(Errno::EINVAL)?;
        setsockopt(listener, sockopt::SndBuf, &(size as usize))?;
    }
    getsockopt(listener, sockopt::SndBuf).map(|size| Bytes::new(size as u64))
}

/// Errors of accept(2) about a connection, not about the listener: the next accept may succeed at
/// once.
pub(super) fn concerns_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::Interrupted
    )
}
