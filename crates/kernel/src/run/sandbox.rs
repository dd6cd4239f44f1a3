//! Runs code inside namespaces that end with it.
//!
//! [`run`] turns one process into three:
//!
//! ```text
//! supervisor   the caller: forwards signals, waits, cleans          holds the journal's lock
//!   └─ init    process 1 of a new PID namespace: reaps, forwards    dies with the supervisor (PR_SET_PDEATHSIG)
//!        └─ worker   runs the closure; its programs and threads     dies with init (the kernel ends the namespace)
//! ```
//!
//! However a run ends (return, panic, signal, `kill -9` of any of the three), the kernel kills
//! every process of the PID namespace when its init ends, and with them go the network namespaces,
//! devices and sysctls that they held. None of our code has to run for that. The supervisor then
//! removes what the journal names; if the supervisor was killed, the next run does. Init and worker
//! are separate because init reaps orphans and could otherwise take an exit code that
//! `std::process::Command` waits for.
//!
//! Privilege: with CAP_SYS_ADMIN the namespaces are made directly. Without it, a user namespace
//! comes first, in which this user is root: over the namespaces of the run, not over the machine.
//!
//! SIGINT, SIGTERM and SIGHUP set the worker's [`Interrupt`]; the worker decides what to do then. A
//! second one, at least [`PATIENCE`] after the first, kills the run. A keystroke reaches all three
//! processes and is forwarded as well; setting the interrupt twice has no further effect. The
//! interrupt does not cut blocking system calls short: whoever waits must also wait for the
//! interrupt's descriptor.
//!
//! procfs is not mounted again: `/proc/self` is right inside, but the ids of `std::process::id` and
//! those in `/proc` differ.

mod init;
mod interrupt;
mod namespaces;

use std::fs;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::AsFd;
use std::path::PathBuf;

use fullpipe_model::units::{Duration, Instant};
use nix::sys::signal::{SigHandler, SigSet, SigmaskHow, Signal, kill, signal, sigprocmask};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork};

pub use interrupt::Interrupt;
pub use namespaces::UserNamespaceLimits;

use crate::Refused;
use crate::host::clock;
use crate::process::wait::{self, PollFd, PollFlags};
use crate::run::journal::{self, Cleaned, Entry, Journal, JournalError, JournalWriter, Process};

/// Interrupts closer together than this count as one: a keystroke and its forwarded copy, or
/// `timeout`'s two signals.
pub const PATIENCE: Duration = Duration::from_millis(300);

/// Exit code of a run whose closure panicked, as Rust's own.
const PANICKED: i32 = 101;

/// Options of a run.
#[derive(Debug, Clone, Default)]
pub struct SandboxOptions {
    /// The directory of journals; `None`: this user's [`journal::directory`].
    pub journals: Option<PathBuf>,
    /// What signals mean for the run.
    pub signals: Signals,
}

/// What signals mean for a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Signals {
    /// SIGINT, SIGTERM and SIGHUP ask it to end; a second one, after [`PATIENCE`], kills it.
    #[default]
    End,
    /// They are for a program that the run has started, and so are SIGQUIT, SIGUSR1 and SIGUSR2:
    /// the run reads them from [`Inside::signals`] and passes them on. A signal that the terminal
    /// sends to its whole foreground group is not sent again.
    Forward,
}

impl Signals {
    /// The signals that are handled: not those that our parent had set to be ignored.
    fn taken(self) -> SigSet {
        let mut set = ending_signals();
        if self == Signals::Forward {
            let more = [Signal::SIGQUIT, Signal::SIGUSR1, Signal::SIGUSR2];
            more.into_iter()
                .filter(|&signal| !is_ignored(signal))
                .for_each(|signal| set.add(signal));
        }
        set
    }
}

/// The source of power over the run's namespaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Privilege {
    /// CAP_SYS_ADMIN from the start.
    Root,
    /// A user namespace made by an ordinary user.
    UserNamespace,
}

/// How the closure ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// It returned this code (the lowest 8 bits count, as for exit codes).
    Code(i32),
    /// It panicked; the message is already on standard error.
    Panicked,
    /// A second interrupt killed it.
    Interrupted,
}

impl Exit {
    /// The exit code for the caller's own process.
    pub fn code(self) -> i32 {
        match self {
            Exit::Code(code) => code,
            Exit::Panicked => PANICKED,
            Exit::Interrupted => 130,
        }
    }
}

/// Why a run could not start, or its result is unknown.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// Forking a process with threads would lose them, and their locks with them.
    #[error("start sandbox: this process has {0} threads; start it from main before any thread")]
    Threads(usize),
    /// Neither root nor user namespaces are available: exit code 3.
    #[error("make namespaces: {cause}; {limits}")]
    NoPrivilege {
        /// The kernel's answer to the last attempt.
        cause: io::Error,
        /// The settings that may forbid it, and how to allow it.
        limits: UserNamespaceLimits,
    },
    /// Root in name only, as in a container that dropped its capabilities: exit code 3.
    #[error(
        "make namespaces: {0}; this is root without CAP_SYS_ADMIN and CAP_SETFCAP: run it as an ordinary user, or start \
         the container with `--cap-add SYS_ADMIN --cap-add NET_ADMIN` or `--privileged`"
    )]
    RootWithoutCapabilities(io::Error),
    /// The closure's process, or its init, was killed.
    #[error("run in sandbox: {role} was killed by {signal}; {hint}")]
    Killed {
        /// Which of the processes.
        role: &'static str,
        /// The signal's name.
        signal: String,
        /// What may have happened.
        hint: &'static str,
    },
    /// The journal could not be written or cleaned.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// Another request was refused.
    #[error(transparent)]
    Refused(#[from] Refused),
}

/// What the closure receives.
#[derive(Debug)]
pub struct Inside {
    privilege: Privilege,
    interrupt: Interrupt,
    signals: Option<SignalFd>,
    journal: JournalWriter,
    cleaned: Vec<Cleaned>,
}

impl Inside {
    /// The source of power over the run's namespaces.
    pub fn privilege(&self) -> Privilege {
        self.privilege
    }

    /// Set at SIGINT, SIGTERM and SIGHUP.
    pub fn interrupt(&self) -> Interrupt {
        self.interrupt.clone()
    }

    /// With [`Signals::Forward`]: the signals for the run's program. They are blocked in the run's
    /// threads.
    pub fn signals(&self) -> Option<&SignalFd> {
        self.signals.as_ref()
    }

    /// The journal: note here what you are about to make outside of the namespaces.
    pub fn journal(&self) -> &JournalWriter {
        &self.journal
    }

    /// Leftovers of earlier runs that were cleaned before this one.
    pub fn cleaned(&self) -> &[Cleaned] {
        &self.cleaned
    }
}

/// Cleans up after earlier runs, then runs `inside` in its own namespaces and waits for it.
///
/// Call it from `main` before any thread is started, once in a process: the calling process itself
/// moves into an empty network namespace (and a user namespace, for an ordinary user).
///
/// Errors: [`SandboxError::NoPrivilege`] if namespaces cannot be made, [`SandboxError::Killed`] if
/// the closure's process was killed by something other than a second interrupt.
pub fn run(
    options: &SandboxOptions,
    inside: impl FnOnce(&Inside) -> i32,
) -> Result<Exit, SandboxError> {
    let threads = fs::read_dir("/proc/self/task").map_or(1, Iterator::count);
    if threads > 1 {
        return Err(SandboxError::Threads(threads));
    }
    let journals = options.journals.clone().unwrap_or_else(journal::directory);
    let cleaned = journal::clean_stale_in(&journals)?;
    let journal = Journal::create_in(&journals)?;
    let started =
        namespaces::make().and_then(|privilege| Ok((privilege, Start::new(options.signals)?)));
    let (privilege, start) = match started {
        Ok(started) => started,
        Err(error) => {
            journal.finish()?;
            return Err(error);
        }
    };
    // Otherwise both processes would print what is still buffered.
    let _ = io::stdout().flush();
    // SAFETY: this process has one thread (checked above), so the child may do whatever the parent
    // might.
    match unsafe { fork() } {
        Ok(ForkResult::Child) => {
            let journal = journal.leave_to_parent();
            let Start {
                mask,
                go: (go, go_parent),
                status: (status_parent, status),
                signals,
                taken,
                mode,
            } = start;
            drop((go_parent, status_parent, signals));
            let mask = match mode {
                Signals::End => mask,
                Signals::Forward => mask.iter().chain(&taken).collect(),
            };
            init::main(go, status, &taken, mask, |interrupt| {
                let forward = mode == Signals::Forward;
                let signals = forward
                    .then(|| signal_fd(&taken).expect("a signalfd, of which the parent has one"));
                inside(&Inside { privilege, interrupt, signals, journal, cleaned })
            })
        }
        Ok(ForkResult::Parent { child }) => {
            let mask = start.mask;
            let ended = supervise(child, start, &journal);
            let _ = sigprocmask(SigmaskHow::SIG_SETMASK, Some(&mask), None);
            // The run's own error says more than a directory that could not be removed.
            let cleaned = journal.finish();
            let exit = ended?;
            cleaned?;
            Ok(exit)
        }
        Err(errno) => {
            journal.finish()?;
            Err(Refused::new("fork", "first process of the run", errno).into())
        }
    }
}

/// What must be ready before the fork, so that no signal and no death is missed.
struct Start {
    /// The signal mask to restore.
    mask: SigSet,
    /// The parent writes here once the journal knows the child; its end of file means that the
    /// parent is gone.
    go: (PipeReader, PipeWriter),
    /// Passes the worker's wait status from init.
    status: (PipeReader, PipeWriter),
    signals: SignalFd,
    /// The signals that `signals` reads.
    taken: SigSet,
    mode: Signals,
}

fn signal_fd(taken: &SigSet) -> io::Result<SignalFd> {
    SignalFd::with_flags(taken, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)
        .map_err(io::Error::from)
}

/// The signals that ask a run to end, except those that our parent had set to be ignored (`nohup`,
/// `&` in a script).
fn ending_signals() -> SigSet {
    [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP]
        .into_iter()
        .filter(|&signal| !is_ignored(signal))
        .collect()
}

fn is_ignored(signal: Signal) -> bool {
    // SAFETY: sigaction is plain data, for which zeros are valid.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: with no new action, the kernel only writes the present one into `action`.
    let code = unsafe { libc::sigaction(signal as libc::c_int, std::ptr::null(), &mut action) };
    code == 0 && action.sa_sigaction == libc::SIG_IGN
}

impl Start {
    fn new(mode: Signals) -> Result<Start, SandboxError> {
        let taken = mode.taken();
        let signals = signal_fd(&taken).map_err(refused("open signalfd"))?;
        let go = io::pipe().map_err(refused("make pipe"))?;
        let status = io::pipe().map_err(refused("make pipe"))?;
        // Whoever started us may have ignored SIGCHLD, and then children cannot be waited for.
        // SAFETY: the default action runs no code of ours.
        unsafe { signal(Signal::SIGCHLD, SigHandler::SigDfl) }
            .map_err(io::Error::from)
            .map_err(refused("wait for children"))?;
        let mut mask = SigSet::empty();
        let mut block = taken;
        block.add(Signal::SIGCHLD);
        sigprocmask(SigmaskHow::SIG_BLOCK, Some(&block), Some(&mut mask))
            .map_err(io::Error::from)
            .map_err(refused("block signals"))?;
        Ok(Start { mask, go, status, signals, taken, mode })
    }
}

/// Why a sandbox cannot start.
fn refused(operation: &'static str) -> impl FnOnce(io::Error) -> Refused {
    move |cause| Refused::new(operation, "sandbox", cause)
}

/// The parent's part, from the fork to the end of the child.
fn supervise(child: Pid, start: Start, journal: &Journal) -> Result<Exit, SandboxError> {
    let Start { go: (go_child, mut go), status: (mut status, status_child), signals, mode, .. } =
        start;
    drop((go_child, status_child));
    let process = Process::with_pid(child.as_raw() as u32, "init of the run");
    let noted = process.map_or(Ok(()), |process| journal.writer().note(&Entry::Process(process)));
    if let Err(error) = noted {
        // The child ends by itself if nothing is written to the pipe.
        drop(go);
        let _ = waitpid(child, None);
        return Err(error.into());
    }
    // If the child is already dead, its status says more than the error of this write.
    let _ = go.write_all(&[1]);
    let killed = watch(child, &signals, &status, mode)?;
    let mut worker = [0; 4];
    let told = status.read_exact(&mut worker);
    let init =
        waitpid(child, None).map_err(|errno| Refused::new("wait for", "init of the run", errno))?;
    match (told, init) {
        (Ok(()), _) => exit_of(i32::from_ne_bytes(worker)),
        (Err(_), _) if killed => Ok(Exit::Interrupted),
        (Err(_), WaitStatus::Signaled(_, signal, _)) => Err(SandboxError::Killed {
            role: "the run's first process",
            signal: signal.to_string(),
            hint: "someone killed it, or memory ran out (see dmesg)",
        }),
        // Init ends without a status only if it could not fork.
        (Err(cause), _) => {
            let error = Refused::new("start", "the run's process", cause);
            Err(error
                .hint("check the limit on processes (ulimit -u, and pids.max of the control group)")
                .into())
        }
    }
}

/// Forwards signals until there is a status; returns whether a second interrupt killed the run.
fn watch(
    child: Pid,
    signals: &SignalFd,
    status: &PipeReader,
    mode: Signals,
) -> Result<bool, Refused> {
    let mut first: Option<Instant> = None;
    let mut killed = false;
    loop {
        let mut fds = [
            PollFd::new(signals.as_fd(), PollFlags::POLLIN),
            PollFd::new(status.as_fd(), PollFlags::POLLIN),
        ];
        wait::ready(&mut fds, None).map_err(|e| Refused::new("wait for", "the run", e))?;
        if fds[1].any().unwrap_or(false) {
            return Ok(killed);
        }
        while let Ok(Some(info)) = signals.read_signal() {
            let now = clock::now();
            if mode == Signals::Forward && info.ssi_code == libc::SI_KERNEL && !is_for_leader(&info)
            {
                // A key: the terminal has sent the signal to the program as well.
                continue;
            }
            let signal = match first {
                Some(first) if mode == Signals::End && now.since(first) >= PATIENCE => {
                    Signal::SIGKILL
                }
                _ => Signal::try_from(info.ssi_signo as i32).unwrap_or(Signal::SIGTERM),
            };
            killed |= signal == Signal::SIGKILL;
            first.get_or_insert(now);
            // If it is gone, its status follows.
            let _ = kill(child, signal);
        }
    }
}

/// Whether the kernel sent a signal to this process alone. A terminal that is closed sends SIGHUP
/// to the leader of its session only: to us where no shell is between (`tmux new-window 'fullpipe
/// ...'`, `ssh -t`).
fn is_for_leader(info: &libc::signalfd_siginfo) -> bool {
    let leads = nix::unistd::getsid(None).is_ok_and(|leader| leader == Pid::this());
    leads && info.ssi_signo == libc::SIGHUP as u32
}

fn exit_of(status: i32) -> Result<Exit, SandboxError> {
    if libc::WIFEXITED(status) {
        return Ok(match libc::WEXITSTATUS(status) {
            PANICKED => Exit::Panicked,
            code => Exit::Code(code),
        });
    }
    let number = libc::WTERMSIG(status);
    let signal = Signal::try_from(number)
        .map_or_else(|_| format!("signal {number}"), |signal| signal.to_string());
    let hint = if number == libc::SIGKILL {
        "someone killed it, or memory ran out (see dmesg)"
    } else {
        "this is a bug: please report it with what was run"
    };
    Err(SandboxError::Killed { role: "the run's process", signal, hint })
}
