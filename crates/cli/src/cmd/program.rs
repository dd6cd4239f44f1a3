//! A program that a command runs for its user, from its start to its exit code.

use crate::failure::{Failure, Kind};
use crate::sentence::Sentence;
use fullpipe_kernel::process::program::{pidfd, send};
use fullpipe_kernel::process::wait;
use fullpipe_kernel::run::sandbox::Interrupt;
use fullpipe_model::units::Duration;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus};

/// signal(7).
const SIGTERM: u32 = 15;

/// A program that runs.
pub struct Started(Child);

/// Starts a program for the subcommand `by`.
pub fn start(command: &mut Command, by: &str) -> Result<Child, Failure> {
    command.spawn().map_err(|cause| {
        let program = command.get_program().display();
        let (kind, advice) = match cause.kind() {
            io::ErrorKind::NotFound => (
                Kind::Missing,
                Sentence::new("install it, or name its file", "请安装它，或给出其文件"),
            ),
            _ => (
                Kind::Run,
                Sentence::new(
                    "check that it is a program, and that you may run it",
                    "请检查它是否是程序，以及您能否运行它",
                ),
            ),
        };
        let what = Sentence::new(
            format!("{by}: start {program}: {cause}"),
            format!("{by}：启动 {program}：{cause}"),
        );
        Failure::new(kind, Sentence::joined(&[what, advice]))
    })
}

impl Started {
    /// One that was started.
    pub fn of(child: Child) -> Started {
        Started(child)
    }

    /// Does what is due, until the program ends, and returns its exit code. `due` returns how long
    /// nothing is due. A signal is passed on to the program.
    pub fn until_it_ends(
        mut self,
        end: &Interrupt,
        due: impl FnMut() -> Result<Option<Duration>, Failure>,
    ) -> Result<u8, Failure> {
        let watched = watch(&mut self.0, end, due);
        // Whatever happened, the program is waited for.
        let status = self.0.wait()?;
        watched?;
        Ok(exit_code(status))
    }
}

fn watch(
    child: &mut Child,
    end: &Interrupt,
    mut due: impl FnMut() -> Result<Option<Duration>, Failure>,
) -> Result<(), Failure> {
    let ended =
        pidfd(child.id()).map_err(|refused| Failure::new(Kind::Run, Sentence::from(&refused)))?;
    let waker = end.clone();
    std::thread::spawn(move || {
        // An error would mean that the descriptor is gone, and we hold it.
        let _ = wait::readable(&ended, None);
        waker.set();
    });
    while !end.wait(due()?)? {}
    // Not waited for yet, so that its number is still its own.
    if child.try_wait()?.is_none() {
        send(child.id(), SIGTERM);
    }
    Ok(())
}

/// As a shell says it: 128 + n if signal n ended it.
fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}
