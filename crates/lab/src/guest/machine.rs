//! A guest as a process of the host: started, watched, ended.

use super::kernel::Kernel;
use fullpipe_kernel::file::folder::inheritable;
use fullpipe_kernel::host::clock;
use fullpipe_kernel::run::sandbox::Interrupt;
use fullpipe_model::units::{Bytes, Duration};
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

/// How often it is looked after.
const TICK: Duration = Duration::from_millis(50);
/// 2026-01-01T00:00:00Z in nanoseconds: every guest boots at this moment.
const EPOCH_NS: u64 = 1_767_225_600_000_000_000;
/// Lines of the console that a report of a failure ends with.
const TAIL: usize = 12;
/// How Linux begins what it says then (mm/oom_kill.c).
const OUT_OF_MEMORY: &str = "Out of memory";
/// How Linux begins its last words (kernel/panic.c).
const PANIC: &str = "Kernel panic";
const CONSOLE: &str = "console";
const INIT: &str = "init";
/// The directory of the kernel's process, seen from the guest: until a proc of its own is mounted
/// over it, the guest sees the host's, and what reads in it is that process.
const MEETING: &str = "/proc/self/cwd";

/// Why a guest did not do its work.
#[derive(Debug, thiserror::Error)]
pub enum MachineError {
    /// The host could not start it.
    #[error("{operation} {path}: {cause}", path = path.display())]
    Start {
        /// What was tried.
        operation: &'static str,
        /// With what.
        path: PathBuf,
        /// The system's answer.
        cause: io::Error,
    },
    /// It went off without an answer.
    #[error("run guest: it ended without a result; its console's last lines:\n{console}")]
    Died {
        /// The end of what it said.
        console: String,
    },
    /// It stopped moving.
    #[error(
        "run guest: it has not moved for {stood} and was ended (something in it waits for time to pass without letting \
         it, its memory is all but used up: --guest-memory, or this machine needs longer: --guest-stall); its console's last lines:\n{console}"
    )]
    Stalled {
        /// For how long.
        stood: Duration,
        /// The end of what it said.
        console: String,
    },
    /// Its kernel had to kill a program for its memory.
    #[error(
        "run guest: its memory of {memory} ran out; give it more with --guest-memory; its console's last lines:\n{console}"
    )]
    OutOfMemory {
        /// What it had.
        memory: Bytes,
        /// The end of what it said.
        console: String,
    },
    /// The user wants it to end.
    #[error("interrupted")]
    Interrupted,
}

/// A guest about to be.
#[derive(Debug)]
pub struct Machine<'a> {
    /// The kernel: a program of the host.
    pub kernel: &'a Kernel,
    /// The guest's memory; only what it touches is taken from the host.
    pub memory: Bytes,
    /// The directory where both meet.
    pub folder: &'a Path,
    /// When it is taken to hang.
    pub stalled_after: Duration,
}

impl Machine<'_> {
    /// Boots it and waits until it is off. `moved` is asked every now and then whether the guest
    /// has got any further.
    ///
    /// # Errors
    /// A guest that cannot be started, hangs, or is interrupted; however it ends, none of its
    /// processes is left.
    pub fn run(
        &self,
        interrupt: &Interrupt,
        moved: &mut dyn FnMut() -> bool,
    ) -> Result<(), MachineError> {
        let mut guest = Guest(self.start()?);
        let mut alive_at = clock::now();
        loop {
            if guest.ended().map_err(|cause| self.wrong("wait for guest", cause))?.is_some() {
                return Ok(());
            }
            if interrupt.wait(Some(TICK)).unwrap_or(false) {
                return Err(MachineError::Interrupted);
            }
            if moved() {
                alive_at = clock::now();
            } else if clock::now().since(alive_at) >= self.stalled_after {
                return Err(MachineError::Stalled {
                    stood: self.stalled_after,
                    console: self.console(),
                });
            }
        }
    }

    /// What to say of a guest that is off and has left no answer.
    pub(crate) fn ended_badly(&self) -> MachineError {
        self.ran_out_of_memory().unwrap_or_else(|| MachineError::Died { console: self.console() })
    }

    /// That it did, where its kernel says so on the console.
    pub(crate) fn ran_out_of_memory(&self) -> Option<MachineError> {
        let console = self.console();
        console
            .contains(OUT_OF_MEMORY)
            .then_some(MachineError::OutOfMemory { memory: self.memory, console })
    }

    fn start(&self) -> Result<Child, MachineError> {
        let program = std::env::current_exe().map_err(|cause| self.wrong("find", cause))?;
        let init = self.folder.join(INIT);
        symlink(&program, &init)
            .map_err(|cause| self.wrong("link guest's first program in", cause))?;
        let console = File::create(self.folder.join(CONSOLE))
            .map_err(|cause| self.wrong("make console in", cause))?;
        let errors = console.try_clone().map_err(|cause| self.wrong("make console in", cause))?;
        // By its descriptor: what was checked is what is started, whatever has its name by now.
        let program = inheritable(&self.kernel.program)
            .map_err(|cause| self.wrong("open kernel for", cause))?;
        let mut command = Command::new(format!("/proc/self/fd/{}", program.as_raw_fd()));
        command.arg0(&self.kernel.path);
        command.env_clear().args(self.command_line()).current_dir(self.folder);
        // Its own process group: each process of the guest is one of the host too.
        command.stdin(Stdio::null()).stdout(console).stderr(errors).process_group(0);
        command.spawn().map_err(|cause| MachineError::Start {
            operation: "start guest kernel",
            path: self.kernel.path.clone(),
            cause,
        })
    }

    /// The same for every guest of the same size: Linux stirs it into its random numbers. So the
    /// folder is the one that the kernel's process is in, and called by a name that each of them
    /// has for it.
    fn command_line(&self) -> Vec<String> {
        let mebibytes = self.memory.get() >> 20;
        vec![
            format!("mem={mebibytes}M"),
            "rootfstype=hostfs".into(),
            "rootflags=/".into(),
            "ro".into(),
            "quiet".into(),
            format!("init={MEETING}/{INIT}"),
            // Said here, or it is added behind the arguments of the first program.
            "root=98:0".into(),
            "console=tty0".into(),
            "ssl=null".into(),
            "con=null".into(),
            "con0=fd:0,fd:1".into(),
            "uml_dir=./".into(),
            "umid=guest".into(),
            "time-travel=inf-cpu".into(),
            format!("time-travel-start={EPOCH_NS}"),
            "norandmaps".into(),
            // A panic ends it at once rather than to wait for somebody to read it.
            "panic=-1".into(),
            "--".into(),
            "guest".into(),
            MEETING.into(),
        ]
    }

    fn console(&self) -> String {
        let text = fs::read(self.folder.join(CONSOLE)).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<_> =
            text.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
        let (before, tail) = lines.split_at(lines.len().saturating_sub(TAIL));
        // The reason stands above a picture of the stack that can be longer than the tail.
        let panic = before.iter().rfind(|line| line.contains(PANIC));
        panic.into_iter().chain(tail).copied().collect::<Vec<_>>().join("\n")
    }

    fn wrong(&self, operation: &'static str, cause: io::Error) -> MachineError {
        MachineError::Start { operation, path: self.folder.into(), cause }
    }
}

/// A started guest; dropping it ends it.
struct Guest(Child);

impl Guest {
    fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        self.0.try_wait()
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        fullpipe_kernel::guest::end_group(self.0.id());
        let _ = self.0.wait();
    }
}
