//! The guest's first and, but for the programs of a transfer, only program.

use super::job::{self, Answer, Job};
use crate::hosts::set_machine;
use crate::sweep::{self, Run, Sweep};
use crate::window_agent::WindowAgent;
use crate::{Engine, Event, Options};
use fullpipe_kernel::process::descriptors::DescriptorLimit;
use fullpipe_kernel::run::sandbox::{self, Inside};
use fullpipe_kernel::{Refused, guest, process::wait};
use fullpipe_model::units::Duration;
use std::convert::Infallible;
use std::path::Path;

/// Where the job's directory is in the guest.
const MEETING: &str = "/run/job";
/// Pages of TCP memory are no subject of these experiments: as much as a machine of 64 GB has.
const TCP_MEM: &str = "1500000 2000000 3000000";
/// Two ticks at 250 Hz. Before the first a kernel has no high-resolution timers: whatever is due
/// waits for it.
const FIRST_TICKS: Duration = Duration::from_millis(8);

/// The life of process 1: sets up a system, runs the job that the host has put into its directory
/// `folder`, leaves the answer there and powers off.
///
/// # Errors
/// Only where this process is no guest's first one; everything else is told in the answer or, where
/// not even that can be written, on the console.
pub fn run_first_process(folder: &Path) -> Result<Infallible, Refused> {
    if std::process::id() != 1 {
        return Err(Refused::new(
            "start guest",
            "this process",
            std::io::Error::other("it is not process 1"),
        ));
    }
    let meeting = Path::new(MEETING);
    // By its own name: that by which the host calls it may be under what is mounted next.
    let folder = std::fs::read_link(folder).unwrap_or_else(|_| folder.into());
    let ready = guest::mount_system().and_then(|()| guest::mount_host_directory(&folder, meeting));
    let told = ready.map_err(|refused| refused.to_string()).and_then(|()| {
        settle()
            .and_then(|()| run(meeting))
            .unwrap_or_else(Answer::Failed)
            .write(meeting)
            .map_err(|e| e.to_string())
    });
    if let Err(error) = told {
        console(&error);
    }
    guest::power_off()
}

#[expect(
    clippy::print_stderr,
    reason = "the console is all that is left to a guest that cannot reach its host"
)]
fn console(error: &str) {
    eprintln!("fullpipe guest: {error}");
}

/// What the machine as a whole decides and an ordinary one would have.
fn settle() -> Result<(), String> {
    std::fs::write("/proc/sys/net/ipv4/tcp_mem", TCP_MEM)
        .map_err(|error| format!("set net.ipv4.tcp_mem in the guest: {error}"))?;
    wait::ready(&mut [], Some(FIRST_TICKS))
        .map(drop)
        .map_err(|error| format!("set the clock going in the guest: {error}"))
}

fn run(meeting: &Path) -> Result<Answer, String> {
    let job = Job::read(meeting).map_err(|error| error.to_string())?;
    // A scenario may have thousands of connections, with both ends in one process.
    DescriptorLimit::own().raise();
    let hosts = &job.scenario.hosts;
    set_machine(hosts).map_err(|error| error.to_string())?;
    // It ends with the guest.
    let _agent = hosts
        .client
        .window_agent
        .then(|| WindowAgent::start(&hosts.client))
        .transpose()
        .map_err(|error| error.to_string())?;
    let options = sandbox::SandboxOptions::default();
    let exit = sandbox::run(&options, |inside| answer(inside, &job, meeting))
        .map_err(|error| error.to_string())?;
    // The answer was written in there: this process is another one.
    match exit {
        sandbox::Exit::Code(0) => Answer::read(meeting).map_err(|error| error.to_string()),
        exit => Err(format!("the run in the guest ended with {}", exit.code())),
    }
}

/// Runs the job, writes the answer, and gives the code to end with.
fn answer(inside: &Inside, job: &Job, meeting: &Path) -> i32 {
    let answer = match guest::keep_program_in_memory() {
        Ok(()) => one(inside, job, meeting),
        Err(error) => Answer::Failed(error.to_string()),
    };
    match answer.write(meeting) {
        Ok(()) => 0,
        Err(error) => {
            console(&error.to_string());
            1
        }
    }
}

fn one(inside: &Inside, job: &Job, meeting: &Path) -> Answer {
    let options = Options {
        out: Some(job::results(meeting)),
        keep_captures: job.keep_captures,
        engine: Engine::Guest,
        ..Options::default()
    };
    // The host has chosen the seed of this repetition, and counts it.
    let run = Run { scenario: job.scenario.clone(), repetition: 1 };
    let observer = &mut |event: Event<'_>| job::tell_progress(meeting, event);
    match sweep::run(inside, &[run], &options, observer) {
        Ok(Sweep { mut rows, mut failures }) => match (failures.pop(), rows.pop()) {
            // The host names the scenario.
            (Some(failed), _) => Answer::Failed(failed.error.cause()),
            (None, Some(row)) => Answer::Row(Box::new(row)),
            (None, None) => Answer::Failed("the run in the guest gave no row".into()),
        },
        Err(error) => Answer::Failed(error.cause()),
    }
}
