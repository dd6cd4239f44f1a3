//! Congestion control: which algorithms exist, how to set one, and which one a connection really
//! uses.
//!
//! There are three ways to set a connection's congestion control, with different rights:
//! * the sysctl `net.ipv4.tcp_congestion_control` of the namespace: only those in
//!   `tcp_allowed_congestion_control`, which in a namespace is the machine's list;
//! * a route's `congctl` ([`crate::network::netlink::RouteMetrics::congctl`]): any that the kernel
//!   has;
//! * the socket option: as the sysctl, or any with CAP_NET_ADMIN.
//!
//! In the second case a kernel that lacks the algorithm silently uses another one, so a request
//! does not prove what runs: check [`of`], or the congestion control in a
//! [`Sample`](fullpipe_model::observe::Sample).

use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd};

use crate::Refused;
use crate::network::netns::NetNs;

/// `TCP_CA_NAME_MAX` of the kernel.
const NAME_MAX: usize = 16;

/// The algorithms that this kernel has loaded (`net.ipv4.tcp_available_congestion_control`).
pub fn available(ns: &NetNs) -> Result<Vec<String>, Refused> {
    list(ns, "/proc/sys/net/ipv4/tcp_available_congestion_control")
}

/// The algorithms that any program may choose (`net.ipv4.tcp_allowed_congestion_control`).
pub fn allowed(ns: &NetNs) -> Result<Vec<String>, Refused> {
    list(ns, "/proc/sys/net/ipv4/tcp_allowed_congestion_control")
}

fn list(ns: &NetNs, path: &str) -> Result<Vec<String>, Refused> {
    let text = ns.run(|| fs::read_to_string(path))?;
    let text = text.map_err(|e| Refused::new("list congestion controls", path, e))?;
    Ok(text.split_whitespace().map(String::from).collect())
}

const NOT_AVAILABLE: &str =
    "this kernel does not have it: see net.ipv4.tcp_available_congestion_control";

/// Fails if this kernel has not loaded the algorithm `name`.
pub fn check_available(ns: &NetNs, name: &str) -> Result<(), Refused> {
    if available(ns)?.iter().any(|one| one == name) {
        return Ok(());
    }
    let missing = io::Error::from_raw_os_error(libc::ENOENT);
    Err(Refused::new("set congestion control", name, missing).hint(NOT_AVAILABLE))
}

/// Gives `socket` the congestion control `name` and reads it back.
pub fn set(socket: impl AsFd, name: &str) -> Result<(), Refused> {
    let fd = socket.as_fd().as_raw_fd();
    // SAFETY: the kernel reads `name.len()` bytes of `name`.
    let code = unsafe {
        let length = name.len() as libc::socklen_t;
        libc::setsockopt(fd, libc::IPPROTO_TCP, libc::TCP_CONGESTION, name.as_ptr().cast(), length)
    };
    if code != 0 {
        let error = io::Error::last_os_error();
        let hint = match error.raw_os_error() {
            Some(libc::EPERM) => {
                "it is not in net.ipv4.tcp_allowed_congestion_control: use a route's congctl, or root"
            }
            Some(libc::ENOENT) => NOT_AVAILABLE,
            _ => "",
        };
        return Err(Refused::new("set congestion control", name, error).hint(hint));
    }
    match of(socket)? {
        got if got == name => Ok(()),
        got => Err(Refused::new(
            "set congestion control",
            name,
            io::Error::other(format!("the socket has {got}")),
        )),
    }
}

/// The congestion control of `socket`.
pub fn of(socket: impl AsFd) -> Result<String, Refused> {
    let mut name = [0u8; NAME_MAX];
    let mut length = name.len() as libc::socklen_t;
    let fd = socket.as_fd().as_raw_fd();
    // SAFETY: the kernel writes at most `length` bytes into `name`, which is as long.
    let code = unsafe {
        libc::getsockopt(
            fd,
            libc::IPPROTO_TCP,
            libc::TCP_CONGESTION,
            name.as_mut_ptr().cast(),
            &mut length,
        )
    };
    if code != 0 {
        return Err(Refused::last("read congestion control", "TCP socket"));
    }
    let end = name.iter().position(|&byte| byte == 0).unwrap_or(NAME_MAX);
    Ok(String::from_utf8_lossy(&name[..end]).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn a_socket_has_what_it_was_given() {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        // Every Linux has reno, and allows it.
        set(&socket, "reno").unwrap();
        assert_eq!(of(&socket).unwrap(), "reno");
        let error = set(&socket, "no-such").unwrap_err();
        assert!(error.to_string().contains("tcp_available_congestion_control"), "{error}");
        assert_eq!(of(&socket).unwrap(), "reno");
    }
}
