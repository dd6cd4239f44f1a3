//! The virtual engine: a run inside a guest kernel whose time passes only while nothing happens.
//!
//! The guest is user-mode Linux, a kernel built as an ordinary program ([`kernel`]), in time-travel
//! mode: its clock stands still while anything in it computes and jumps to the next timer when all
//! of it waits. So how long a machine takes to move a packet is no part of the result, and the same
//! run gives the same packets at the same times, on a laptop at 25 Gbit/s too. What it costs is
//! wall time.
//!
//! One guest a run: nothing that ran before can be in its memory, so a row does not depend on its
//! neighbours.
//!
//! ```text
//! host                                        guest
//! job.json (scenario)            ──►  process 1 is this very program, on the host's files, read-only
//!                                     mounts what a system has; runs crate::run, as the real engine does
//! progress                       ◄──  how far it is
//! out/ (a folder of results)     ◄──
//! answer.json (row, or why not)  ◄──  powers off
//! ```
//!
//! Both sides meet in one directory, the `job`'s, which the guest has mounted writable (hostfs).
//! Nothing else passes between them: no console, no network, no signal, because what comes in at
//! its own time would end the repeatability.
//!
//! What runs in there must wait for things, never for the clock by looking at it: a loop that spins
//! until a time has come spins for ever. Hence [`unsuited_to_virtual_time`].

mod init;
pub(crate) mod job;
mod kernel;
pub(crate) mod machine;

pub use init::run_first_process;
pub use kernel::{
    BuildError, BuildStep, CacheError, InstallError, Kernel, KernelBuild, KernelSource,
    install as install_kernels, pack as pack_kernels,
};

use crate::scratch::Scratch;
use fullpipe_flow::schema::RunRow;
use fullpipe_kernel::run::journal::JournalError;
use fullpipe_kernel::run::sandbox::Inside;
use fullpipe_model::scenario::Scenario;
use fullpipe_model::units::{Bytes, Duration};
use job::{Answer, Job, JobError};
use machine::{Machine, MachineError};
use std::path::PathBuf;

/// What a guest has beside what the path holds: Linux derives the defaults of its buffers from its
/// memory, and has its usual ones (`tcp_rmem` up to 6 MiB) from 1 GiB on. Memory that is not used
/// costs nothing.
const MEMORY_BASE: Bytes = Bytes::new(2 << 30);
/// The path's packets are in the link's ring, in both hosts' buffers and in retransmission queues.
const MEMORY_PER_HELD: u64 = 8;

/// What bounds a guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GuestLimits {
    /// Its memory; `None`: enough for its path.
    pub memory: Option<Bytes>,
    /// One that has not moved for this long of wall time is ended.
    pub stalled_after: Duration,
}

impl GuestLimits {
    /// How long a guest may stand still: no step of a run takes nearly as much of wall time.
    pub const STALLED_AFTER: Duration = Duration::from_secs(120);

    /// The memory of a guest for `scenario`: the most that it can take from the host.
    pub(crate) fn memory(&self, scenario: &Scenario) -> Bytes {
        self.memory.unwrap_or_else(|| memory(scenario))
    }
}

impl Default for GuestLimits {
    fn default() -> Self {
        GuestLimits { memory: None, stalled_after: GuestLimits::STALLED_AFTER }
    }
}

/// Why a guest gave no row.
#[derive(Debug, thiserror::Error)]
pub enum GuestError {
    /// No kernel of the release that a scenario asks for.
    #[error(
        "boot guest: there is no kernel {0}; build one with `fullpipe lab kernel build --version {0}`, or install a \
         release's with `fullpipe lab kernel install FILE` (`fullpipe lab kernel list` names those that are there)"
    )]
    NoKernel(String),
    /// It cannot be run in virtual time.
    #[error("run in virtual time: {0}; use --engine real")]
    Unsuited(&'static str),
    /// A kernel is asked for in real time, where there is only one.
    #[error("run under kernel {asked}: this machine runs {running}; use --engine virtual")]
    OtherKernel {
        /// By the scenario.
        asked: String,
        /// What runs here.
        running: String,
    },
    /// The window agent is asked for, in real time.
    #[error(
        "run with the window agent: in real time its settings are those of the whole machine; use --engine virtual"
    )]
    AgentInRealTime,
    /// The guest itself.
    #[error(transparent)]
    Machine(#[from] MachineError),
    /// What host and guest tell each other.
    #[error(transparent)]
    Job(#[from] JobError),
    /// The run inside failed.
    #[error("{0}")]
    Run(String),
    /// The journal refused what had to be noted in it.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

impl GuestError {
    /// Whether the user ended it.
    pub fn is_interrupt(&self) -> bool {
        matches!(self, GuestError::Machine(MachineError::Interrupted))
    }
}

/// Why `scenario` cannot run in virtual time; `None` where it can.
pub fn unsuited_to_virtual_time(scenario: &Scenario) -> Option<&'static str> {
    let hosts = [&scenario.hosts.server, &scenario.hosts.client];
    if hosts.iter().any(|host| host.cpu_hog_nice.is_some()) {
        return Some("a CPU hog never waits, and time passes only while everything waits");
    }
    if hosts.iter().any(|host| host.cpu.is_some_and(|cpu| cpu > 0)) {
        return Some("the guest has one CPU, number 0");
    }
    None
}

/// The kernel that `scenario` asks for, or the newest.
pub fn choose_kernel<'a>(
    kernels: &'a [Kernel],
    scenario: &Scenario,
) -> Result<&'a Kernel, GuestError> {
    let asked = scenario.kernel.as_deref();
    Kernel::find(kernels, asked).ok_or_else(|| GuestError::NoKernel(asked.unwrap_or("6.12").into()))
}

/// A run that a guest has done: its row, and its files as long as this value lives.
#[derive(Debug)]
pub struct Done {
    /// What it showed.
    pub row: RunRow,
    folder: Scratch,
}

impl Done {
    /// Where its files are.
    pub fn files(&self) -> Result<PathBuf, JobError> {
        job::first_run(&self.folder.0)
    }
}

/// One run in a guest of its own. Several may go on at once, on a thread each.
pub fn run(
    inside: &Inside,
    kernel: &Kernel,
    limits: &GuestLimits,
    job: &Job,
    progress: &mut dyn FnMut(Duration, Bytes),
) -> Result<Done, GuestError> {
    if let Some(why) = unsuited_to_virtual_time(&job.scenario) {
        return Err(GuestError::Unsuited(why));
    }
    let folder = Scratch(inside.journal().scratch_directory("guest")?);
    job.write(&folder.0)?;
    let machine = Machine {
        kernel,
        memory: limits.memory(&job.scenario),
        folder: &folder.0,
        stalled_after: limits.stalled_after,
    };
    let mut last = None;
    machine.run(&inside.interrupt(), &mut || {
        let now = job::progress(&folder.0);
        if let Some((elapsed, body)) = now.filter(|_| now != last) {
            progress(elapsed, body);
        }
        let moved = now != last;
        last = now;
        moved
    })?;
    let answer = Answer::read(&folder.0).map_err(|error| match error {
        JobError::NoAnswer => machine.ended_badly().into(),
        error => GuestError::from(error),
    })?;
    let row = match answer {
        Answer::Row(row) => RunRow { repetition: job.repetition, ..*row },
        // What its kernel killed can say no more than that it was killed.
        Answer::Failed(why) => {
            return Err(machine.ran_out_of_memory().map_or(GuestError::Run(why), GuestError::from));
        }
    };
    Ok(Done { row, folder })
}

fn memory(scenario: &Scenario) -> Bytes {
    let path = &scenario.path;
    let held = [&path.to_client, &path.to_server]
        .map(|way| way.bytes_in_flight(path.rtt()).unwrap_or_default());
    let held = held[0].saturating_add(held[1]).get().saturating_mul(MEMORY_PER_HELD);
    MEMORY_BASE.saturating_add(Bytes::new(held))
}
