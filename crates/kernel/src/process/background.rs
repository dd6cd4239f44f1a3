//! A process that continues after the command that started it has ended.

use std::fs::OpenOptions;
use std::io::{self, PipeReader, PipeWriter};

use nix::unistd::{ForkResult, chdir, dup2_stderr, dup2_stdin, dup2_stdout, fork, setsid};

use crate::Refused;

/// Runs `work` in a separate process without a terminal, in the root directory. The returned reader
/// receives what `work` writes to its pipe: that it is ready, or why not. Call this from `main`
/// before any thread is started.
///
/// The process exits with the code that `work` returns; nobody waits for it.
pub fn start(work: impl FnOnce(PipeWriter) -> i32) -> Result<PipeReader, Refused> {
    let threads = std::fs::read_dir("/proc/self/task").map_or(1, Iterator::count);
    if threads > 1 {
        return Err(refused(io::Error::other(format!("this process has {threads} threads"))));
    }
    let (reader, writer) = io::pipe().map_err(refused)?;
    let null = OpenOptions::new().read(true).write(true).open("/dev/null").map_err(refused)?;
    // SAFETY: this process has one thread (checked above), so the child may do whatever the parent
    // might.
    match unsafe { fork() }.map_err(|errno| refused(errno.into()))? {
        ForkResult::Parent { .. } => Ok(reader),
        ForkResult::Child => {
            drop(reader);
            // It must not get the terminal's signals, nor hold open what it inherited.
            let _ =
                (setsid(), chdir("/"), dup2_stdin(&null), dup2_stdout(&null), dup2_stderr(&null));
            std::process::exit(work(writer))
        }
    }
}

fn refused(cause: io::Error) -> Refused {
    Refused::new("start in the background", "process", cause)
}
