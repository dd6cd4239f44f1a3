//! Programs that must not outlive the process that started them.
//!
//! Inside a [`crate::run::sandbox`] the end of the PID namespace ends every program. This module is
//! for programs outside of one, such as a compiler: however their parent ends, `kill -9` included,
//! the kernel sends them a signal.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::sys::prctl;
use nix::sys::signal::Signal;
use nix::unistd::{Pid, getpid, getppid};

/// Makes `command` get SIGTERM when the thread that starts it ends: if that is the main thread,
/// when the process ends.
///
/// The signal reaches only this program, not the programs that it starts; make, for example, passes
/// it on.
pub fn end_with_parent(command: &mut Command) {
    let parent = getpid();
    // SAFETY: the hook makes two system calls and allocates nothing, as is right between fork and
    // exec.
    unsafe { command.pre_exec(move || ask(parent)) };
}

fn ask(parent: Pid) -> io::Result<()> {
    prctl::set_pdeathsig(Signal::SIGTERM)?;
    // The kernel does not signal the end of a parent that has already ended.
    if getppid() == parent { Ok(()) } else { Err(io::ErrorKind::BrokenPipe.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;
    use std::process::Stdio;

    #[test]
    fn a_program_ends_with_the_thread_that_started_it() {
        let start = || {
            let mut command = Command::new("cat");
            end_with_parent(command.stdin(Stdio::piped()));
            command.spawn().unwrap()
        };
        let mut child = std::thread::spawn(start).join().unwrap();
        // Its standard input is open, so only the signal can end it.
        let _input = child.stdin.take();
        assert_eq!(child.wait().unwrap().signal(), Some(Signal::SIGTERM as i32));
    }
}
