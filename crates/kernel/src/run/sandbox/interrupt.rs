//! A request to end a run, as a flag and as a file descriptor.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use fullpipe_model::units::Duration;
use nix::poll::{PollFd, PollFlags};
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

use crate::Refused;
use crate::{host::clock, process::wait};

/// Set once, never cleared; clones share it. Include its descriptor in every wait: it is readable
/// once set.
#[derive(Debug, Clone)]
pub struct Interrupt(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    set: AtomicBool,
    /// An eventfd that nobody reads, so that it stays readable.
    event: OwnedFd,
}

/// The interrupt that signals set.
static BY_SIGNAL: AtomicPtr<Inner> = AtomicPtr::new(std::ptr::null_mut());
/// The interrupt that SIGHUP sets where it does not ask to end.
static BY_HANGUP: AtomicPtr<Inner> = AtomicPtr::new(std::ptr::null_mut());

impl Interrupt {
    /// An interrupt that only [`Interrupt::set`] sets.
    pub fn new() -> Result<Interrupt, Refused> {
        // SAFETY: no memory is passed.
        let raw = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if raw < 0 {
            return Err(Refused::last("open eventfd", "interrupt"));
        }
        // SAFETY: `raw` was just opened and belongs to nobody else.
        let event = unsafe { OwnedFd::from_raw_fd(raw) };
        Ok(Interrupt(Arc::new(Inner { set: AtomicBool::new(false), event })))
    }

    /// An interrupt that SIGINT, SIGTERM and SIGHUP set from now on, instead of their previous
    /// action.
    pub fn on_signals() -> Result<Interrupt, Refused> {
        Interrupt::on(&super::ending_signals(), SaFlags::SA_RESTART)
    }

    /// An interrupt that the next SIGHUP sets, and that means something else than the end: a daemon
    /// reads its files again. Call it after [`Interrupt::on_signals`], and again once it is set.
    pub fn on_hangup() -> Result<Interrupt, Refused> {
        let hangup = SigHandler::Handler(handle_hangup);
        Interrupt::by(&BY_HANGUP, hangup, &Signal::SIGHUP.into(), SaFlags::SA_RESTART)
    }

    /// An interrupt that the next SIGINT sets. The SIGINT after that has its previous action.
    pub fn on_first_ctrl_c() -> Result<Interrupt, Refused> {
        Interrupt::on(&Signal::SIGINT.into(), SaFlags::SA_RESTART | SaFlags::SA_RESETHAND)
    }

    fn on(signals: &SigSet, flags: SaFlags) -> Result<Interrupt, Refused> {
        Interrupt::by(&BY_SIGNAL, SigHandler::Handler(handle), signals, flags)
    }

    /// An interrupt in `place`, for a handler that sets what is there.
    fn by(
        place: &AtomicPtr<Inner>,
        handler: SigHandler,
        signals: &SigSet,
        flags: SaFlags,
    ) -> Result<Interrupt, Refused> {
        let interrupt = Interrupt::new()?;
        // Never freed, because a handler may use it at any time.
        place.store(Arc::into_raw(Arc::clone(&interrupt.0)).cast_mut(), Ordering::Release);
        let action = SigAction::new(handler, flags, SigSet::empty());
        for signal in signals {
            // SAFETY: both handlers do only what is allowed in a signal handler.
            unsafe { sigaction(signal, &action) }
                .map_err(|errno| Refused::new("handle signal", signal.as_str(), errno))?;
        }
        Ok(interrupt)
    }

    /// Requests the end.
    pub fn set(&self) {
        self.0.set();
    }

    /// Whether the end was requested.
    pub fn is_set(&self) -> bool {
        self.0.set.load(Ordering::Acquire)
    }

    /// Waits until it is set or `timeout` has passed; returns whether it is set.
    pub fn wait(&self, timeout: Option<Duration>) -> io::Result<bool> {
        let deadline = timeout.map(|span| clock::now() + span);
        // Any signal ends the wait, even the one that sets the interrupt, before the descriptor is
        // readable.
        loop {
            let left = deadline.map(|deadline| deadline.since(clock::now()));
            if self.is_set() || left == Some(Duration::ZERO) {
                return Ok(self.is_set());
            }
            wait::readable(self, left)?;
        }
    }

    /// Waits until it or `other` is set; returns whether it is. `other` counts first.
    pub fn wait_beside(&self, other: &Interrupt) -> io::Result<bool> {
        loop {
            if other.is_set() || self.is_set() {
                return Ok(!other.is_set());
            }
            let mut fds = [self, other].map(|one| PollFd::new(one.as_fd(), PollFlags::POLLIN));
            wait::ready(&mut fds, None)?;
        }
    }
}

impl AsFd for Interrupt {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.event.as_fd()
    }
}

impl Inner {
    /// Async-signal-safe.
    fn set(&self) {
        self.set.store(true, Ordering::Release);
        let one = 1u64;
        // A full counter (2^64 signals) is readable as well.
        // SAFETY: the kernel reads 8 bytes of `one`.
        unsafe { libc::write(self.event.as_raw_fd(), (&raw const one).cast(), size_of_val(&one)) };
    }
}

extern "C" fn handle(_signal: libc::c_int) {
    set_in(&BY_SIGNAL);
}

extern "C" fn handle_hangup(_signal: libc::c_int) {
    set_in(&BY_HANGUP);
}

/// Async-signal-safe.
fn set_in(place: &AtomicPtr<Inner>) {
    // SAFETY: errno's place is the thread's own; what the handler interrupts must find its errno
    // again.
    let errno = unsafe { *libc::__errno_location() };
    // SAFETY: null, or a leaked Arc's content, which is never freed.
    if let Some(inner) = unsafe { place.load(Ordering::Acquire).as_ref() } {
        inner.set();
    }
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn once_set_it_stays_set_for_all_clones() {
        let interrupt = Interrupt::new().unwrap();
        let other = interrupt.clone();
        assert!(!other.is_set() && !other.wait(Some(Duration::from_micros(10))).unwrap());
        interrupt.set();
        interrupt.set();
        for _ in 0..2 {
            assert!(other.is_set() && other.wait(None).unwrap());
            assert!(wait::readable(&other, Some(Duration::ZERO)).unwrap());
        }
    }
}
