//! A pipe that Ctrl-C ends as its other end's end would: what came until then is analysed.
//!
//! `tcpdump -w - | fullpipe analyze -` ended with Ctrl-C ends both programs, and tcpdump writes
//! what it still holds before it goes. So the first Ctrl-C is the wish for a report: what comes is
//! read on until the other end has closed, for [`PATIENCE`] at most. The second ends the program.

use crate::failure::{Failure, Kind};
use crate::terminal::remark;
use fullpipe_kernel::clock;
use fullpipe_kernel::sandbox::Interrupt;
use fullpipe_kernel::wait::{PollFd, PollFlags, ready};
use fullpipe_model::units::{Duration, Instant};
use std::fs::File;
use std::io::{Error, Read, Result};
use std::os::fd::AsFd;
use std::sync::OnceLock;

/// How long the other end may take for its last words.
const PATIENCE: Duration = Duration::from_secs(1);

/// Ctrl-C, once a pipe is read.
static INTERRUPT: OnceLock<Interrupt> = OnceLock::new();

/// Whether Ctrl-C has ended a pipe.
pub fn is_interrupted() -> bool {
    INTERRUPT.get().is_some_and(Interrupt::is_set)
}

/// A pipe until Ctrl-C.
pub struct Pipe {
    file: File,
    interrupt: Interrupt,
    /// When it ends although the other end has not closed, once Ctrl-C was seen.
    ends: Option<Instant>,
}

impl Pipe {
    /// Takes the next Ctrl-C for the wish that `file` ends.
    ///
    /// # Errors
    /// A signal that cannot be handled.
    pub fn new(file: File) -> Result<Self> {
        let interrupt = match INTERRUPT.get() {
            Some(interrupt) => interrupt.clone(),
            None => {
                let interrupt = Interrupt::on_first_ctrl_c().map_err(Error::other)?;
                let first = interrupt.clone();
                std::thread::spawn(move || end_at_the_second(&first));
                INTERRUPT.get_or_init(|| interrupt).clone()
            }
        };
        Ok(Pipe { file, interrupt, ends: None })
    }

    /// Waits until there is something to read, or the file's end; false where Ctrl-C has ended it.
    fn wait(&mut self) -> Result<bool> {
        loop {
            if self.interrupt.is_set() && self.ends.is_none() {
                remark("fullpipe: interrupted: what was read until now is reported");
                self.ends = Some(clock::now() + PATIENCE);
            }
            let left = self.ends.map(|ends| ends.since(clock::now()));
            if left == Some(Duration::ZERO) {
                return Ok(false);
            }
            let mut both = [&self.file.as_fd(), &self.interrupt.as_fd()]
                .map(|fd| PollFd::new(*fd, PollFlags::POLLIN));
            // Once set, the interrupt is readable for ever.
            let waited = if left.is_some() { &mut both[..1] } else { &mut both[..] };
            ready(waited, left)?;
            // Ctrl-C ends the other end as well: it has often closed by the time both are seen.
            let is_news = self.interrupt.is_set() && self.ends.is_none();
            if !is_news && both[0].revents().is_some_and(|events| !events.is_empty()) {
                return Ok(true);
            }
        }
    }
}

/// Ends the program at the second Ctrl-C, whatever it does then.
fn end_at_the_second(first: &Interrupt) {
    // Where it cannot be waited for, Ctrl-C does by then what it does everywhere.
    if first.wait(None).is_err() {
        return;
    }
    if let Ok(second) = Interrupt::on_first_ctrl_c()
        && second.wait(None).is_ok()
    {
        std::process::exit(Failure::code(Kind::Interrupted).into());
    }
}

impl Read for Pipe {
    fn read(&mut self, into: &mut [u8]) -> Result<usize> {
        if self.wait()? { self.file.read(into) } else { Ok(0) }
    }
}
