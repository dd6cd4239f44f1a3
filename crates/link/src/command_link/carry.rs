//! Carries bytes between the two halves of a connection, and passes on how each ends: a FIN as a
//! FIN, a reset as a reset.
//!
//! A connection ends with a reset until a whole stream was written to it: when this process is
//! killed, the kernel closes its sockets, and a server must not take half of an upload for all of
//! it.

use super::connections::CarriedConnection;
use super::destinations::{PAUSE, THREAD_STACK};
use fullpipe_kernel::process::wait::{self, PollFd, PollFlags};
use fullpipe_kernel::{host::clock, socket::transparent};
use fullpipe_model::units::{Bytes, Duration};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};

const BUFFER: usize = 128 << 10;
/// How often a waiting direction checks whether the other one is broken, when no event reports it.
const LOOK: Duration = Duration::from_millis(100);
/// How long data from before a reset may make no progress towards the other side before the reset
/// overtakes it.
const DRAIN: Duration = Duration::from_secs(2);

/// One direction of a connection.
#[derive(Clone, Copy)]
struct OneWay<'a> {
    from: &'a TcpStream,
    to: &'a TcpStream,
    /// Whether one of the two halves was reset.
    broken: &'a AtomicBool,
}

/// Carries bytes in both directions until both sides have ended. If one is reset, dropping the
/// other resets it too.
pub(super) fn join(near: &TcpStream, far: &TcpStream, connection: &CarriedConnection) {
    let broken = AtomicBool::new(false);
    for stream in [near, far] {
        // Data that was sent in small pieces is passed on in small pieces.
        let _ = (stream.set_nodelay(true), stream.set_nonblocking(true));
        transparent::reset_at_close(stream);
    }
    std::thread::scope(|scope| {
        let back = std::thread::Builder::new().name("gateway".into()).stack_size(THREAD_STACK);
        let back = back
            .spawn_scoped(scope, || OneWay { from: far, to: near, broken: &broken }.run(|_| {}));
        if back.is_err() {
            broken.store(true, Ordering::Release);
            return;
        }
        OneWay { from: near, to: far, broken: &broken }.run(|bytes| connection.set_carried(bytes));
        if !broken.load(Ordering::Acquire) {
            connection.end_upwards();
        }
    });
    if broken.load(Ordering::Acquire) {
        drain(near, far);
        transparent::reset_at_close(near);
        transparent::reset_at_close(far);
    }
    connection.end_upwards();
}

impl OneWay<'_> {
    /// Carries until the end; calls `holds` with the number of bytes in between.
    fn run(self, holds: impl Fn(usize)) {
        match self.carry(holds) {
            Ok(()) => {
                // The FIN stands behind all bytes: nothing is missing from now on.
                let _ = self.to.shutdown(Shutdown::Write);
                transparent::end_at_close(self.to);
            }
            Err(_) => {
                self.broken.store(true, Ordering::Release);
                // Wakes the other direction and sends nothing: a FIN would look like a normal end.
                let _ = (self.from.shutdown(Shutdown::Read), self.to.shutdown(Shutdown::Read));
            }
        }
    }

    fn carry(self, holds: impl Fn(usize)) -> io::Result<()> {
        let mut buffer = vec![0; BUFFER];
        let (mut from, broken) = (self.from, self.broken);
        loop {
            match from.read(&mut buffer) {
                Ok(0) if broken.load(Ordering::Acquire) => {
                    return Err(ErrorKind::ConnectionReset.into());
                }
                Ok(0) => return Ok(()),
                Ok(length) => {
                    holds(length);
                    let written = self.write_all(&buffer[..length]);
                    holds(0);
                    written?;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.wait(self.from, PollFlags::POLLIN, self.to)?;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn write_all(self, mut bytes: &[u8]) -> io::Result<()> {
        let mut to = self.to;
        while !bytes.is_empty() {
            match to.write(bytes) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(written) => bytes = &bytes[written..],
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.wait(self.to, PollFlags::POLLOUT, self.from)?;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Waits until `stream` is ready; an error if `other` is reset in the meantime.
    fn wait(self, stream: &TcpStream, events: PollFlags, other: &TcpStream) -> io::Result<()> {
        let mut watch_other = true;
        loop {
            let mut fds = [
                PollFd::new(stream.as_fd(), events),
                PollFd::new(other.as_fd(), PollFlags::empty()),
            ];
            let watched = if watch_other { &mut fds[..] } else { &mut fds[..1] };
            wait::ready(watched, (!watch_other).then_some(LOOK))?;
            if self.broken.load(Ordering::Acquire) {
                return Err(ErrorKind::ConnectionReset.into());
            }
            let [own, others] = fds.map(|fd| fd.revents().unwrap_or(PollFlags::empty()));
            if watch_other && others.contains(PollFlags::POLLERR) {
                return Err(ErrorKind::ConnectionReset.into());
            }
            if !own.is_empty() {
                return Ok(());
            }
            // Both of its directions ended normally; it would wake this wait again and again.
            watch_other &= others.is_empty();
        }
    }
}

/// Waits until data written before a reset has arrived at the living side, as it would have without
/// a gateway.
fn drain(near: &TcpStream, far: &TcpStream) {
    let streams = [near, far];
    let (mut last, mut progress) = (streams.map(unsent), clock::now());
    while last.iter().any(|bytes| bytes.get() > 0) && clock::now().since(progress) < DRAIN {
        std::thread::park_timeout(PAUSE);
        let now = streams.map(unsent);
        if now != last {
            progress = clock::now();
        }
        last = now;
    }
}

fn unsent(stream: &TcpStream) -> Bytes {
    transparent::unsent(stream).unwrap_or_default()
}
