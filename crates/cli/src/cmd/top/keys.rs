//! Keys and new sizes from the terminal, and its end.
//!
//! A thread of its own waits for them. Once the terminal is closed, crossterm's wait takes the end
//! of the file for a key that has not come yet and asks again, for ever, whatever its timeout: it
//! must not be the thread that has to end the program.

use fullpipe_kernel::process::wait::has_hung_up;
use fullpipe_model::units::Duration;
use ratatui_crossterm::crossterm::event::{Event, read};
use std::io::{Error, ErrorKind, Result, stdin, stdout};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};

/// As many events as wait to be answered.
const WAITING: usize = 64;

/// What comes from the terminal.
pub struct Keys(Receiver<Result<Event>>);

impl Keys {
    /// Reads from now on, for as long as the process lives.
    pub fn read() -> Keys {
        let (sender, receiver) = sync_channel(WAITING);
        std::thread::spawn(move || {
            loop {
                let event = read();
                let is_last = event.is_err();
                if sender.send(event).is_err() || is_last {
                    return;
                }
            }
        });
        Keys(receiver)
    }

    /// The next event, if there is one within `patience`.
    ///
    /// # Errors
    /// The terminal is gone, or cannot be read.
    pub fn next(&self, patience: Duration) -> Result<Option<Event>> {
        match self.0.recv_timeout(patience.into()) {
            Ok(event) => event.map(Some),
            Err(RecvTimeoutError::Timeout) if is_gone()? => {
                Err(Error::new(ErrorKind::NotConnected, "the terminal was closed"))
            }
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => {
                Err(Error::new(ErrorKind::NotConnected, "the terminal cannot be read any more"))
            }
        }
    }
}

/// Whether the terminal was closed. Not even every SIGHUP says so: it may be ignored.
fn is_gone() -> Result<bool> {
    Ok(has_hung_up(stdin())? || has_hung_up(stdout())?)
}
