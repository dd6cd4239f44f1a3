//! Pacing of this process's sockets: a sender spreads its window over the round trip.
//!
//! Without pacing, a connection that was idle sends its whole window at once, and many such
//! connections overflow the bottleneck's queue together. Linux paces a socket itself, without the
//! fq queueing discipline, once SO_MAX_PACING_RATE has any value but all ones: at twice the window
//! per round trip in slow start, and at 1.2 times after it (`tcp_update_pacing_rate`,
//! net/ipv4/tcp_input.c).

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

// include/uapi/asm-generic/socket.h; libc lacks it.
const SO_MAX_PACING_RATE: libc::c_int = 47;
/// Bytes a second that no path has: the window is what sets the pace.
const NO_BOUND: u64 = u64::MAX >> 1;

/// Paces what `socket` sends by its window and round trip, and sets no bound of its own.
pub fn pace(socket: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: the value lives through the call and has the size that is said.
    let set = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            SO_MAX_PACING_RATE,
            std::ptr::from_ref(&NO_BOUND).cast(),
            size_of_val(&NO_BOUND) as libc::socklen_t,
        )
    };
    if set == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::os::fd::AsFd;

    #[test]
    fn a_socket_is_paced_without_a_bound() {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        pace(socket.as_fd()).unwrap();
        let asked = crate::socket::socket_options::of(socket.as_fd());
        assert!(
            asked.max_pacing_rate.is_none_or(|rate| rate.bits_per_sec() > 1_000_000_000_000_000)
        );
    }
}
