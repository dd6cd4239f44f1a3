//! A stream whose reads and writes all end at one deadline, however slowly the peer sends.

use fullpipe_kernel::host::clock;
use fullpipe_model::units::{Duration, Instant};
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The moment at which reading and writing end; shared by a stream and who set it.
#[derive(Debug, Clone)]
pub(super) struct Deadline(Arc<AtomicU64>);

impl Deadline {
    pub fn after(span: Duration) -> Deadline {
        let deadline = Deadline(Arc::default());
        deadline.set(span);
        deadline
    }

    /// Ends `span` from now.
    pub fn set(&self, span: Duration) {
        self.0.store((clock::now() + span).as_nanos(), Ordering::Relaxed);
    }

    /// What is left of it.
    fn left(&self) -> io::Result<std::time::Duration> {
        let left = Instant::from_nanos(self.0.load(Ordering::Relaxed)).since(clock::now());
        if left == Duration::ZERO {
            return Err(io::ErrorKind::TimedOut.into());
        }
        // The kernel rounds to its ticks; a timeout of zero would be none at all.
        Ok(std::time::Duration::from(left).max(std::time::Duration::from_millis(1)))
    }
}

/// A TCP stream with a deadline.
#[derive(Debug)]
pub(super) struct Timed {
    pub stream: TcpStream,
    pub deadline: Deadline,
}

/// The kernel's timeout is `WouldBlock`.
fn timed_out(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::WouldBlock => io::ErrorKind::TimedOut.into(),
        _ => error,
    }
}

impl Read for Timed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(Some(self.deadline.left()?))?;
        self.stream.read(buffer).map_err(timed_out)
    }
}

impl Write for Timed {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(Some(self.deadline.left()?))?;
        self.stream.write(buffer).map_err(timed_out)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}
