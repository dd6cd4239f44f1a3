//! The two processes inside: init, which only reaps and forwards, and the worker, which runs the
//! closure.

use std::io::{PipeReader, PipeWriter, Read, Write};
use std::os::fd::AsFd;
use std::panic::{AssertUnwindSafe, catch_unwind};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::prctl;
use nix::sys::signal::{SigSet, SigmaskHow, Signal, kill, sigprocmask};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::{ForkResult, Pid, fork};

use super::{Interrupt, PANICKED};

/// The child's whole life: waits for the parent's permission, starts the worker, reaps until it has
/// ended.
///
/// Signals have been blocked since before the fork, so none is lost and none reaches a process 1
/// without handlers (to which the kernel would not deliver it).
pub(super) fn main(
    mut go: PipeReader,
    mut status: PipeWriter,
    taken: &SigSet,
    mask: SigSet,
    work: impl FnOnce(Interrupt) -> i32,
) -> ! {
    let _ = prctl::set_pdeathsig(Signal::SIGKILL);
    let _ = prctl::set_name(c"fullpipe-init");
    // The parent holds the other end for as long as it lives. If it died before the line above took
    // effect, this is the end of file, at once or behind what it wrote.
    if go.read_exact(&mut [0]).is_err() || is_closed(&go) {
        exit(1);
    }
    drop(go);
    // SAFETY: this process has one thread, as its parent had.
    match unsafe { fork() } {
        Ok(ForkResult::Child) => {
            drop(status);
            worker(mask, work)
        }
        Ok(ForkResult::Parent { child }) => {
            let ended = reap_until(child, taken);
            let _ = status.write_all(&ended.to_ne_bytes());
            exit(0)
        }
        Err(_) => exit(1),
    }
}

/// Whether nobody holds the other end of a pipe any more.
fn is_closed(pipe: &PipeReader) -> bool {
    let mut fds = [PollFd::new(pipe.as_fd(), PollFlags::empty())];
    let ready = poll(&mut fds, PollTimeout::ZERO);
    ready.is_err() || fds[0].revents().is_some_and(|events| events.contains(PollFlags::POLLHUP))
}

/// Reaps every child and forwards signals to `worker`; returns its wait status.
///
/// A signal from the kernel (a key of the terminal) is not forwarded: the worker is in the same
/// process group and received it as well.
fn reap_until(worker: Pid, taken: &SigSet) -> i32 {
    let mut awaited = *taken;
    awaited.add(Signal::SIGCHLD);
    let Ok(signals) = SignalFd::with_flags(&awaited, SfdFlags::SFD_CLOEXEC) else { exit(1) };
    loop {
        let Ok(Some(info)) = signals.read_signal() else { continue };
        match Signal::try_from(info.ssi_signo as i32) {
            Ok(Signal::SIGCHLD) => {
                // One SIGCHLD may stand for many children.
                while let Some((pid, status)) = reap() {
                    if pid == worker {
                        return status;
                    }
                }
            }
            Ok(signal) if info.ssi_code != libc::SI_KERNEL => {
                let _ = kill(worker, signal);
            }
            _ => {}
        }
    }
}

/// Takes one ended child off the process table, with its raw status.
fn reap() -> Option<(Pid, i32)> {
    let mut status = 0;
    // SAFETY: the kernel writes an int into `status`.
    match unsafe { libc::waitpid(-1, &mut status, libc::WNOHANG) } {
        pid if pid > 0 => Some((Pid::from_raw(pid), status)),
        -1 if Errno::last() == Errno::EINTR => reap(),
        _ => None,
    }
}

fn worker(mask: SigSet, work: impl FnOnce(Interrupt) -> i32) -> ! {
    let _ = prctl::set_name(c"fullpipe-run");
    // Unwinding must stop here: above is the parent's stack, whose destructors only the parent may
    // run.
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let interrupt = Interrupt::on_signals().expect("an eventfd and three signal handlers");
        let _ = sigprocmask(SigmaskHow::SIG_SETMASK, Some(&mask), None);
        work(interrupt)
    }));
    // Not _exit: what the closure printed may still be in a buffer.
    std::process::exit(outcome.unwrap_or(PANICKED))
}

/// Ends init without running the exit handlers of the parent's program.
fn exit(code: i32) -> ! {
    // SAFETY: ends the process; nothing after it runs.
    unsafe { libc::_exit(code) }
}
