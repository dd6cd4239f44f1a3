//! Waiting for file descriptors with a timeout in nanoseconds: `ppoll`.
//!
//! `poll` counts milliseconds, too coarse for a link that must send at its time; `epoll_pwait2` does not help with two
//! or three descriptors. How early or late the wake-up is depends on the thread's timer slack (see
//! [`crate::sched::timer_slack`]).

use std::io;
use std::os::fd::AsFd;

use fullpipe_model::units::Duration;
pub use nix::poll::{PollFd, PollFlags};
use nix::sys::time::TimeSpec;

/// Waits until one of `fds` is ready or `timeout` has passed (`None`: no limit); returns how many are ready.
///
/// Look at each [`PollFd::revents`]. A signal ends the wait with `Ok(0)`, like the timeout: callers have a loop with a
/// deadline anyway, and the interrupt is a descriptor among `fds`.
pub fn ready(fds: &mut [PollFd<'_>], timeout: Option<Duration>) -> io::Result<usize> {
    let timeout = timeout.map(|span| TimeSpec::from_duration(span.into()));
    match nix::poll::ppoll(fds, timeout, None) {
        Ok(count) => Ok(count as usize),
        Err(nix::errno::Errno::EINTR) => {
            // After EINTR the kernel has not written the answers: the previous call's would be taken for this one's.
            Ok(0)
        }
        Err(errno) => Err(errno.into()),
    }
}

/// Waits until `fd` can be read (or has hung up) or `timeout` has passed; whether it can.
pub fn readable(fd: impl AsFd, timeout: Option<Duration>) -> io::Result<bool> {
    let mut fds = [PollFd::new(fd.as_fd(), PollFlags::POLLIN)];
    Ok(ready(&mut fds, timeout)? > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;
    use std::io::Write;

    #[test]
    fn waits_at_least_the_time_asked_and_wakes_for_data() {
        let (reader, mut writer) = io::pipe().unwrap();
        let span = Duration::from_micros(300);
        let start = clock::now();
        assert!(!readable(&reader, Some(span)).unwrap());
        assert!(clock::now().since(start) >= span);
        writer.write_all(b"x").unwrap();
        assert!(readable(&reader, None).unwrap());
    }
}
