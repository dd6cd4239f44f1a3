//! Waits for file descriptors with a timeout in nanoseconds: `ppoll` for a single wait, a
//! [`Waiter`] for repeated ones.
//!
//! `poll` counts milliseconds, which is too coarse for a link that must send on time. How late the
//! wake-up is depends on the thread's timer slack (see [`crate::process::sched::timer_slack`]).

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

use fullpipe_model::units::Duration;
pub use nix::poll::{PollFd, PollFlags};
use nix::sys::time::TimeSpec;

/// Waits until one of `fds` is ready or `timeout` has passed (`None`: no limit); returns how many
/// are ready.
///
/// Check each [`PollFd::revents`]. A signal ends the wait with `Ok(0)`, like the timeout: callers
/// loop until a deadline anyway, and the interrupt is a descriptor among `fds`.
pub fn ready(fds: &mut [PollFd<'_>], timeout: Option<Duration>) -> io::Result<usize> {
    let timeout = timeout.map(|span| TimeSpec::from_duration(span.into()));
    match nix::poll::ppoll(fds, timeout, None) {
        Ok(count) => Ok(count as usize),
        Err(nix::errno::Errno::EINTR) => {
            // After EINTR the kernel has not written `revents`, so those of the previous call would
            // be taken for this one's.
            Ok(0)
        }
        Err(errno) => Err(errno.into()),
    }
}

/// Waits until `fd` is readable (or has hung up) or `timeout` has passed; returns whether it is.
pub fn readable(fd: impl AsFd, timeout: Option<Duration>) -> io::Result<bool> {
    let mut fds = [PollFd::new(fd.as_fd(), PollFlags::POLLIN)];
    Ok(ready(&mut fds, timeout)? > 0)
}

/// Whether the other end of `fd` is gone: a terminal that was closed, a pipe without a writer.
pub fn has_hung_up(fd: impl AsFd) -> io::Result<bool> {
    let mut fds = [PollFd::new(fd.as_fd(), PollFlags::empty())];
    ready(&mut fds, Some(Duration::ZERO))?;
    let gone = PollFlags::POLLHUP | PollFlags::POLLERR | PollFlags::POLLNVAL;
    Ok(fds[0].revents().is_some_and(|events| events.intersects(gone)))
}

/// Waits for the same descriptors again and again: `epoll_pwait2`.
///
/// `ppoll` checks every descriptor at each call, and adds the thread to each wait queue and removes
/// it again. With the four descriptors of a link that is a fifth of the cost of a sleep. Before
/// Linux 5.11 `epoll` has no timeout in nanoseconds; there `ppoll` waits for the epoll descriptor,
/// which stands for all.
#[derive(Debug)]
pub struct Waiter {
    epoll: OwnedFd,
    has_pwait2: bool,
}

/// The descriptors that a [`Waiter`] found ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ready(u64);

impl Ready {
    /// Whether the descriptor with this token is ready.
    pub fn has(self, token: usize) -> bool {
        self.0 >> token & 1 == 1
    }

    /// Whether none is ready.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl Waiter {
    /// The most ready descriptors that one wait reports; the next wait reports the others.
    const EVENTS: usize = 8;

    /// A waiter without descriptors.
    pub fn new() -> io::Result<Waiter> {
        // SAFETY: no memory is passed.
        match unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) } {
            fd if fd >= 0 => {
                // SAFETY: it has just been made.
                Ok(Waiter { epoll: unsafe { OwnedFd::from_raw_fd(fd) }, has_pwait2: true })
            }
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Adds `fd` until it is closed: it is ready when it is readable, has hung up or has failed.
    /// `token`, at most 63, identifies it in [`Ready`].
    pub fn add(&self, fd: impl AsFd, token: usize) -> io::Result<()> {
        let mut event =
            libc::epoll_event { events: libc::EPOLLIN as u32, u64: (token & 63) as u64 };
        let (epoll, fd) = (self.epoll.as_raw_fd(), fd.as_fd().as_raw_fd());
        // SAFETY: both descriptors are open, and the kernel copies `event` within the call.
        match unsafe { libc::epoll_ctl(epoll, libc::EPOLL_CTL_ADD, fd, &mut event) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Waits until something is ready or `timeout` has passed. A signal ends the wait like the
    /// timeout.
    pub fn wait(&mut self, timeout: Duration) -> io::Result<Ready> {
        match self.has_pwait2.then(|| self.wait_by_pwait2(timeout)) {
            // A sandbox that does not know a system call refuses it with EPERM.
            Some(Err(error))
                if matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EPERM)) =>
            {
                self.has_pwait2 = false;
                self.wait_by_ppoll(timeout)
            }
            Some(done) => done,
            None => self.wait_by_ppoll(timeout),
        }
    }

    fn wait_by_pwait2(&self, timeout: Duration) -> io::Result<Ready> {
        let timeout = std::time::Duration::from(timeout);
        // `struct __kernel_timespec`, whatever the C library's own is.
        let timeout = [timeout.as_secs() as i64, i64::from(timeout.subsec_nanos())];
        let no_mask: *const libc::sigset_t = std::ptr::null();
        let epoll = self.epoll.as_raw_fd();
        collect(|events, count| {
            // SAFETY: `events` has room for `count`, and `timeout` lives through the call; without
            // a mask its size is not looked at.
            unsafe {
                libc::syscall(
                    libc::SYS_epoll_pwait2,
                    epoll,
                    events,
                    count,
                    timeout.as_ptr(),
                    no_mask,
                    0usize,
                ) as libc::c_int
            }
        })
    }

    fn wait_by_ppoll(&self, timeout: Duration) -> io::Result<Ready> {
        if !readable(&self.epoll, Some(timeout))? {
            return Ok(Ready::default());
        }
        // SAFETY: `events` has room for `count`.
        collect(|events, count| unsafe {
            libc::epoll_wait(self.epoll.as_raw_fd(), events, count, 0)
        })
    }
}

/// Collects what `call` writes into the space that it is given.
fn collect(
    call: impl FnOnce(*mut libc::epoll_event, libc::c_int) -> libc::c_int,
) -> io::Result<Ready> {
    let mut events = [libc::epoll_event { events: 0, u64: 0 }; Waiter::EVENTS];
    let Ok(count) = usize::try_from(call(events.as_mut_ptr(), Waiter::EVENTS as libc::c_int))
    else {
        let error = io::Error::last_os_error();
        return if error.kind() == io::ErrorKind::Interrupted {
            Ok(Ready::default())
        } else {
            Err(error)
        };
    };
    Ok(Ready(events.iter().take(count).fold(0, |ready, event| ready | 1 << (event.u64 & 63))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::clock;
    use std::io::Write;

    #[test]
    fn a_closed_other_end_is_seen_and_data_is_none() {
        let (reader, mut writer) = io::pipe().unwrap();
        writer.write_all(b"x").unwrap();
        assert!(!has_hung_up(&reader).unwrap());
        drop(writer);
        assert!(has_hung_up(&reader).unwrap(), "whatever is left to read");
    }

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

    #[test]
    fn a_waiter_names_what_is_ready_by_either_call() {
        for has_pwait2 in [true, false] {
            let mut waiter = Waiter { has_pwait2, ..Waiter::new().unwrap() };
            let pipes: [_; 3] = std::array::from_fn(|_| io::pipe().unwrap());
            for (token, (reader, _)) in pipes.iter().enumerate() {
                waiter.add(reader, token + 7).unwrap();
            }
            let span = Duration::from_micros(300);
            let start = clock::now();
            assert!(waiter.wait(span).unwrap().is_empty());
            assert!(clock::now().since(start) >= span);
            let [_, (_, second), (_, third)] = &pipes;
            (&mut &*second).write_all(b"x").unwrap();
            (&mut &*third).write_all(b"x").unwrap();
            let ready = waiter.wait(Duration::from_secs(10)).unwrap();
            assert_eq!([7, 8, 9].map(|token| ready.has(token)), [false, true, true]);
            assert_eq!(waiter.wait(Duration::ZERO).unwrap(), ready, "nothing was read");
        }
    }

    #[test]
    fn a_hang_up_ends_the_wait() {
        let mut waiter = Waiter::new().unwrap();
        let (reader, writer) = io::pipe().unwrap();
        waiter.add(&reader, 63).unwrap();
        drop(writer);
        assert!(waiter.wait(Duration::from_secs(10)).unwrap().has(63));
    }
}
