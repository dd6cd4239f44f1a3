//! The bounds of one run of a tool: an end when it is asked for, a time, and how far it is.

use fullpipe_kernel::Refused;
use fullpipe_kernel::host::clock;
use fullpipe_kernel::run::sandbox::Interrupt;
use fullpipe_model::units::{Duration, Instant};
use std::io::{Error, ErrorKind, Read, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A run of a tool; clones are the same run.
#[derive(Debug, Clone)]
pub struct ToolCall(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    interrupt: Interrupt,
    deadline: Instant,
    /// What was done, and how much there is, in bytes or in microseconds.
    done: AtomicU64,
    total: AtomicU64,
}

impl ToolCall {
    /// A run that may read for so long.
    pub fn new(within: Duration) -> std::result::Result<ToolCall, Refused> {
        Ok(ToolCall(Arc::new(Inner {
            interrupt: Interrupt::new()?,
            deadline: clock::now() + within,
            done: AtomicU64::new(0),
            total: AtomicU64::new(0),
        })))
    }

    /// Nobody waits for the answer any more.
    pub fn cancel(&self) {
        self.0.interrupt.set();
    }

    /// What is set by then.
    pub fn interrupt(&self) -> &Interrupt {
        &self.0.interrupt
    }

    /// What there is to do, as well.
    pub fn add_total(&self, more: u64) {
        self.0.total.fetch_add(more, Ordering::Relaxed);
    }

    /// So much is done.
    pub fn set_done(&self, done: u64) {
        self.0.done.store(done, Ordering::Relaxed);
    }

    /// What is done, of how much.
    pub fn progress(&self) -> (u64, u64) {
        (self.0.done.load(Ordering::Relaxed), self.0.total.load(Ordering::Relaxed))
    }

    /// `source`, which ends with this run.
    pub fn watched<R: Read>(&self, source: R) -> Watched<R> {
        Watched { source, work: self.clone() }
    }
}

/// A source that is read for a run.
pub struct Watched<R> {
    source: R,
    work: ToolCall,
}

impl<R: Read> Read for Watched<R> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        if self.work.0.interrupt.is_set() {
            return Err(Error::other("it was cancelled"));
        }
        if clock::now() >= self.work.0.deadline {
            let problem = "the time that one call may take is over (--within)";
            return Err(Error::new(ErrorKind::TimedOut, problem));
        }
        let read = self.source.read(buffer)?;
        self.work.0.done.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_ends_with_its_run() {
        let work = ToolCall::new(Duration::from_secs(60)).unwrap();
        work.add_total(100);
        let mut source = work.watched(std::io::repeat(7));
        let mut buffer = [0; 10];
        assert_eq!(source.read(&mut buffer).unwrap(), 10);
        assert_eq!(work.progress(), (10, 100));
        work.cancel();
        assert!(source.read(&mut buffer).is_err());
        let late = ToolCall::new(Duration::ZERO).unwrap();
        let refused = late.watched(std::io::repeat(7)).read(&mut buffer).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::TimedOut);
    }
}
