//! A pipe that Ctrl-C ends as if its other end had closed, so that everything read until then is
//! analysed.
//!
//! In `tcpdump -w - | fullpipe analyze -` Ctrl-C reaches both programs, and tcpdump writes what it
//! still holds before it exits. So the first Ctrl-C asks for the report: the pipe is read until the
//! other end closes, for [`PATIENCE`] at most. The second Ctrl-C ends the program.

use crate::failure::{Failure, Kind};
use crate::sentence::either;
use crate::terminal::remark;
use fullpipe_kernel::host::clock;
use fullpipe_kernel::process::wait::{PollFd, PollFlags, ready};
use fullpipe_kernel::run::sandbox::Interrupt;
use fullpipe_model::units::{Duration, Instant};
use std::fs::File;
use std::io::{Error, Read, Result};
use std::os::fd::AsFd;
use std::sync::OnceLock;

/// How long the other end may take to write what it still holds.
const PATIENCE: Duration = Duration::from_secs(1);

/// The interrupt by Ctrl-C, set up when the first pipe is opened.
static INTERRUPT: OnceLock<Interrupt> = OnceLock::new();

/// Whether Ctrl-C has ended a pipe.
pub fn is_interrupted() -> bool {
    INTERRUPT.get().is_some_and(Interrupt::is_set)
}

/// A pipe that ends at Ctrl-C.
pub struct Pipe {
    file: File,
    interrupt: Interrupt,
    /// After Ctrl-C: when to stop reading even if the other end has not closed.
    ends: Option<Instant>,
}

impl Pipe {
    /// Makes the next Ctrl-C end `file`.
    ///
    /// # Errors
    /// The signal cannot be handled.
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

    /// Waits for data or the end of the file; false if Ctrl-C has ended the pipe.
    fn wait(&mut self) -> Result<bool> {
        loop {
            if self.interrupt.is_set() && self.ends.is_none() {
                remark(either(
                    "fullpipe: interrupted: reporting what was read so far",
                    "fullpipe: 已中断：报告此前读取的内容",
                ));
                self.ends = Some(clock::now() + PATIENCE);
            }
            let left = self.ends.map(|ends| ends.since(clock::now()));
            if left == Some(Duration::ZERO) {
                return Ok(false);
            }
            let mut both = [&self.file.as_fd(), &self.interrupt.as_fd()]
                .map(|fd| PollFd::new(*fd, PollFlags::POLLIN));
            // Once set, the interrupt stays readable.
            let waited = if left.is_some() { &mut both[..1] } else { &mut both[..] };
            ready(waited, left)?;
            // Ctrl-C ends the other program as well, so both are often ready at the same time.
            let is_news = self.interrupt.is_set() && self.ends.is_none();
            if !is_news && both[0].revents().is_some_and(|events| !events.is_empty()) {
                return Ok(true);
            }
        }
    }
}

/// Ends the program at the second Ctrl-C, whatever it is doing.
fn end_at_the_second(first: &Interrupt) {
    // If waiting fails, Ctrl-C has its default effect.
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
