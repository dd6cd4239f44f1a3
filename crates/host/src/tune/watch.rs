//! A process that undoes an apply at its deadline, unless somebody has confirmed it by then.
//!
//! It is started before anything is set, and told the record's number once the record exists: if
//! the apply is killed half way, the watcher still undoes it. If the watcher is killed, nothing
//! happens at the deadline; `tune status` then says that it has passed, and `tune undo` works.

use std::io::{PipeReader, PipeWriter, Read, Write};

use fullpipe_kernel::{
    Refused,
    process::{background, wait},
};
use fullpipe_model::units::Duration;

use super::machine::{MachineError, ThisMachine};
use super::record::Begin;
use super::transaction::{Meanwhile, undo};

/// A watcher that waits for its record.
#[derive(Debug)]
pub struct Watcher {
    tell: PipeWriter,
    /// Its end of file would mean that the watcher is gone.
    _answer: PipeReader,
}

impl Watcher {
    /// Starts one for an apply that is kept for `keep`. Call it from `main` before any thread is
    /// started, and before anything is locked.
    ///
    /// # Errors
    /// The system refuses a process.
    pub fn start(keep: Duration) -> Result<Watcher, Refused> {
        let refused = |cause| Refused::new("make pipe", "to the watcher", cause);
        let (told, tell) = std::io::pipe().map_err(refused)?;
        // The watcher has a copy of the writing end, which it closes to see the end of the other.
        let tell = std::cell::Cell::new(Some(tell));
        let told = std::cell::Cell::new(Some(told));
        let answer = background::start(|_answer| {
            drop(tell.take());
            let Some(mut told) = told.take() else { return 1 };
            let mut number = [0; 4];
            if told.read_exact(&mut number).is_err() {
                // The apply failed before it had a record.
                return 0;
            }
            i32::from(watch(u32::from_ne_bytes(number), &told, keep).is_err())
        })?;
        match tell.take() {
            Some(tell) => Ok(Watcher { tell, _answer: answer }),
            None => Err(refused(std::io::Error::from(std::io::ErrorKind::NotFound))),
        }
    }

    /// Tells it which record it is to undo.
    ///
    /// # Errors
    /// It is gone.
    pub fn tell(&mut self, number: u32) -> Result<(), Refused> {
        self.tell
            .write_all(&number.to_ne_bytes())
            .map_err(|cause| Refused::new("tell the watcher", format!("apply {number}"), cause))
    }
}

/// Waits until the deadline, and undoes record `number` if that is still to be done.
fn watch(number: u32, told: &PipeReader, keep: Duration) -> Result<(), MachineError> {
    let start = fullpipe_kernel::host::clock::now();
    // The pipe ends with the apply; from then on there is nothing to wait for but the time.
    let begun = find(number)?;
    let _ = told;
    loop {
        let left = keep.saturating_sub(fullpipe_kernel::host::clock::now().since(start));
        if left == Duration::ZERO {
            break;
        }
        wait::ready(&mut [], Some(left))
            .map_err(|cause| Refused::new("wait for", "the deadline", cause))?;
    }
    let mut machine = ThisMachine::to_change()?;
    let (records, _) = machine.records()?;
    let Some(record) = records.get(&number) else { return Ok(()) };
    // A later apply may have this number by now.
    if begun.is_some_and(|begun| begun != record.begin) || record.is_confirmed {
        return Ok(());
    }
    machine.go_on_with(number);
    let same_boot = machine.is_this_boot(record);
    // Nobody can be asked: what somebody changed since is theirs.
    if undo(&mut machine, record, Meanwhile::Skip, same_boot).is_ok() {
        machine.forget(number)?;
    }
    Ok(())
}

/// The beginning of record `number`, once the apply is through with it.
fn find(number: u32) -> Result<Option<Begin>, MachineError> {
    // This waits for the apply, which holds the records.
    let machine = ThisMachine::to_change()?;
    let (records, _) = machine.records()?;
    Ok(records.get(&number).map(|record| record.begin.clone()))
}
