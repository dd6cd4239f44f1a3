//! Starts a user's program, passes signals on to it, and waits for it.

use fullpipe_kernel::process::program::{pidfd, send};
use fullpipe_kernel::process::wait::{self, PollFd, PollFlags};
use fullpipe_kernel::run::sandbox::Inside;
use fullpipe_kernel::{Refused, host::clock};
use fullpipe_model::units::Duration;
use std::ffi::{OsStr, OsString};
use std::net::IpAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus};

/// Placeholder for the far end's address in a command.
pub(super) const PLACEHOLDER: &str = "{server}";

/// Why a program failed.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// No command was given.
    #[error("start command: none is given; put one after `--`")]
    NoCommand,
    /// The program was not found.
    #[error("start {0}: it is not installed, or not on the PATH; install it, or name its file")]
    NotFound(String),
    /// It could not be started or waited for.
    #[error("{operation} {program}: {cause}; check that it is a program, and that you may run it")]
    Process {
        /// The operation.
        operation: &'static str,
        /// The program.
        program: String,
        /// The kernel's answer.
        cause: std::io::Error,
    },
    /// A server ended before it listened.
    #[error(
        "start {program}: it ended before it listened ({status}); see what it printed, and let it stay in the foreground"
    )]
    EndedEarly {
        /// The program.
        program: String,
        /// How it ended.
        status: String,
    },
    /// A server does not listen.
    #[error("start {program}: it did not listen on any port within {within}; check its arguments")]
    NotListening {
        /// The program.
        program: String,
        /// The time limit.
        within: Duration,
    },
    /// The kernel refused a request.
    #[error(transparent)]
    Refused(#[from] Refused),
}

/// A running program. It continues when this value is dropped; the end of the sandbox ends it.
#[derive(Debug)]
pub struct Program {
    name: String,
    child: Child,
    pidfd: OwnedFd,
}

/// Why [`Program::wait`] returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgramEvent {
    /// It ended with this exit code; 128 + n if signal n ended it, as in a shell.
    Ended(u8),
    /// The timeout has passed.
    Timeout,
}

/// The arguments with the far end's address in place of `{server}`.
pub fn expand(words: &[OsString], server: IpAddr) -> Vec<OsString> {
    let server = server.to_string();
    words.iter().map(|word| replaced(word, PLACEHOLDER.as_bytes(), server.as_bytes())).collect()
}

/// Arguments need not be UTF-8.
fn replaced(word: &OsStr, what: &[u8], by: &[u8]) -> OsString {
    let mut rest = word.as_bytes();
    let mut made = Vec::with_capacity(rest.len());
    while let Some((&first, after)) = rest.split_first() {
        if let Some(after) = rest.strip_prefix(what) {
            made.extend_from_slice(by);
            rest = after;
        } else {
            made.push(first);
            rest = after;
        }
    }
    OsString::from_vec(made)
}

impl Program {
    pub(super) fn start(mut command: Command, name: &str) -> Result<Program, RunError> {
        let child = command.spawn().map_err(|cause| match cause.kind() {
            std::io::ErrorKind::NotFound => RunError::NotFound(name.into()),
            _ => RunError::Process { operation: "start", program: name.into(), cause },
        })?;
        let pidfd = pidfd(child.id())?;
        Ok(Program { name: name.into(), child, pidfd })
    }

    /// Its name in messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How it ended; `None` while it runs.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>, RunError> {
        self.child.try_wait().map_err(|cause| self.wrong("wait for", cause))
    }

    /// Waits for its end for at most `span`; no result depends on how long.
    pub(super) fn wait_a_little(&self, span: Duration) -> Result<(), RunError> {
        wait::readable(&self.pidfd, Some(span))
            .map(drop)
            .map_err(|cause| self.wrong("wait for", cause))
    }

    /// Waits for its end for at most `timeout` and passes on signals that another process sent to
    /// us. A key's signal is not passed on, because the terminal has sent it to the program as
    /// well.
    pub fn wait(&mut self, inside: &Inside, timeout: Duration) -> Result<ProgramEvent, RunError> {
        let deadline = clock::now() + timeout;
        loop {
            if let Some(status) = self.ended()? {
                return Ok(ProgramEvent::Ended(exit_code(status)));
            }
            let left = deadline.since(clock::now());
            if left == Duration::ZERO {
                return Ok(ProgramEvent::Timeout);
            }
            let mut fds = vec![PollFd::new(self.pidfd.as_fd(), PollFlags::POLLIN)];
            fds.extend(
                inside.signals().map(|signals| PollFd::new(signals.as_fd(), PollFlags::POLLIN)),
            );
            wait::ready(&mut fds, Some(left)).map_err(|cause| self.wrong("wait for", cause))?;
            for signal in sent_by_somebody(inside) {
                send(self.child.id(), signal);
            }
        }
    }

    /// Asks it to end (SIGTERM).
    pub(super) fn ask_to_end(&self) {
        send(self.child.id(), SIGTERM);
    }

    fn wrong(&self, operation: &'static str, cause: std::io::Error) -> RunError {
        RunError::Process { operation, program: self.name.clone(), cause }
    }
}

/// `SIGTERM`, the same number everywhere (signal(7)).
const SIGTERM: u32 = 15;

/// Received signals, except those from a key.
fn sent_by_somebody(inside: &Inside) -> Vec<u32> {
    /// `SI_KERNEL`: sent by the kernel, as a terminal's driver does.
    const BY_KERNEL: i32 = 0x80;
    let mut sent = Vec::new();
    while let Some(Ok(Some(info))) = inside.signals().map(|signals| signals.read_signal()) {
        sent.extend((info.ssi_code != BY_KERNEL).then_some(info.ssi_signo));
    }
    sent
}

fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_placeholder_is_replaced_wherever_it_stands() {
        let words = ["curl", "http://{server}:80/{server}", "{serve}"].map(OsString::from);
        let expanded = expand(&words, IpAddr::from([10, 77, 0, 1]));
        assert_eq!(
            expanded,
            ["curl", "http://10.77.0.1:80/10.77.0.1", "{serve}"].map(OsString::from)
        );
    }

    #[test]
    fn a_signal_is_told_as_a_shell_does() {
        assert_eq!(exit_code(ExitStatus::from_raw(7 << 8)), 7);
        assert_eq!(exit_code(ExitStatus::from_raw(libc_sigterm())), 143);
    }

    fn libc_sigterm() -> i32 {
        15
    }

    proptest! {
        #[test]
        fn words_without_it_stay_as_they_are(bytes in prop::collection::vec(any::<u8>(), 0..50)) {
            prop_assume!(!bytes.windows(8).any(|window| window == PLACEHOLDER.as_bytes()));
            let word = OsString::from_vec(bytes);
            prop_assert_eq!(expand(std::slice::from_ref(&word), IpAddr::from([1, 1, 1, 1])), vec![word.clone()]);
        }
    }
}
