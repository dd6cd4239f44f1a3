//! Being stopped by SIGTSTP (Ctrl-Z, `kill -TSTP`) with the terminal in order.
//!
//! A program that has changed the terminal must restore it before it stops.
//! [`Suspension::on_signal`] makes SIGTSTP a request; ask [`Suspension::is_requested`] in the loop,
//! restore the terminal, call [`Suspension::stop`], and set it up again when that returns.

use crate::Refused;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, raise, sigaction};
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether SIGTSTP arrived since the last question.
static REQUESTED: AtomicBool = AtomicBool::new(false);

/// Requests to stop, instead of stops.
#[derive(Debug)]
pub struct Suspension(());

impl Suspension {
    /// Makes SIGTSTP a request from now on.
    pub fn on_signal() -> Result<Suspension, Refused> {
        let handler = SigHandler::Handler(note);
        let action = SigAction::new(handler, SaFlags::SA_RESTART, SigSet::empty());
        // SAFETY: `note` only stores into an atomic, which is allowed in a signal handler.
        unsafe { sigaction(Signal::SIGTSTP, &action) }
            .map_err(|errno| Refused::new("handle signal", "SIGTSTP", errno))?;
        Ok(Suspension(()))
    }

    /// Whether a stop was requested since the last question.
    pub fn is_requested(&self) -> bool {
        REQUESTED.swap(false, Ordering::AcqRel)
    }

    /// Stops this process; returns when it is continued (SIGCONT, the shell's `fg`).
    pub fn stop(&self) -> Result<(), Refused> {
        raise(Signal::SIGSTOP).map_err(|errno| Refused::new("stop", "this process", errno))
    }
}

extern "C" fn note(_signal: libc::c_int) {
    REQUESTED.store(true, Ordering::Release);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_signal_is_a_request_once() {
        let suspension = Suspension::on_signal().unwrap();
        assert!(!suspension.is_requested());
        raise(Signal::SIGTSTP).unwrap();
        assert!(suspension.is_requested(), "and this process was not stopped");
        assert!(!suspension.is_requested());
    }
}
