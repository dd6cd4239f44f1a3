//! The agent's life: attached, watched, and let go, around a program or on a group.

use super::cgroup::Group;
use super::show::Display;
use crate::failure::{Failure, Kind};
use fullpipe_agent::{Agent, Options};
use fullpipe_kernel::Refused;
use fullpipe_kernel::program::{pidfd, send};
use fullpipe_kernel::sandbox::Interrupt;
use fullpipe_kernel::wait;
use fullpipe_model::units::Duration;
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};

/// signal(7).
const SIGTERM: u32 = 15;

fn run_failed(refused: Refused) -> Failure {
    Failure::new(Kind::Run, format!("window: {refused}"))
}

/// The connections of a group, until a signal.
pub fn group(
    cgroup: &Path,
    options: Options,
    interval: Option<Duration>,
    display: &Display,
) -> Result<u8, Failure> {
    let interrupt = Interrupt::on_signals().map_err(run_failed)?;
    let mut agent = Agent::attach(cgroup, options)?;
    while !interrupt.wait(interval)? {
        display.show(&agent.connections()?)?;
    }
    display.show(&agent.connections()?)?;
    release(&mut agent)?;
    Ok(Failure::code(Kind::Interrupted))
}

/// The connections of a program that is started for it; the exit code is the program's.
pub fn program(
    words: &[OsString],
    options: Options,
    interval: Option<Duration>,
    display: &Display,
) -> Result<u8, Failure> {
    let group = Group::new()?;
    let mut agent = Agent::attach(group.path(), options)?;
    let interrupt = Interrupt::on_signals().map_err(run_failed)?;
    let mut child = group.start(Command::new(&words[0]).args(&words[1..]))?;
    let watched = watch(&mut child, &interrupt, || {
        interval.map_or(Ok(None), |time| {
            display.show(&agent.connections()?)?;
            Ok(Some(time))
        })
    });
    // Whatever happened, the program is waited for.
    let status = child.wait()?;
    watched?;
    display.show(&agent.connections()?)?;
    // The connections of what the program left behind go on.
    if !group.is_empty() {
        release(&mut agent)?;
    }
    Ok(exit_code(status))
}

/// Looks each time that `look` asks for, until the program ends. A signal is passed on.
fn watch(
    child: &mut Child,
    interrupt: &Interrupt,
    mut look: impl FnMut() -> Result<Option<Duration>, Failure>,
) -> Result<(), Failure> {
    let ended = pidfd(child.id()).map_err(run_failed)?;
    let waker = interrupt.clone();
    std::thread::spawn(move || {
        // An error would mean that the descriptor is gone, and we hold it.
        let _ = wait::readable(&ended, None);
        waker.set();
    });
    let mut time = look()?;
    while !interrupt.wait(time)? {
        time = look()?;
    }
    // Not waited for yet, so that its number is still its own.
    if child.try_wait()?.is_none() {
        send(child.id(), SIGTERM);
    }
    Ok(())
}

fn release(agent: &mut Agent) -> Result<(), Failure> {
    agent.release()?;
    std::thread::sleep(Agent::FAREWELL.into());
    Ok(())
}

/// As a shell says it: 128 + n if signal n ended it.
fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}
