//! A direction with its ports, its mailbox and its stop flag: everything that a thread needs to
//! move its packets.

use super::control::{Mailbox, Order};
use super::direction::Direction;
use super::error::EmulatorError;
use super::lanes::Towards;
use fullpipe_kernel::host::clock;
use fullpipe_kernel::network::port::{Port, PortPair};
use fullpipe_kernel::process::wait::{self, PollFd, PollFlags, Ready, Waiter};
use fullpipe_model::units::{Duration, Instant};
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Frames to read before deliveries have their turn again.
const READ_BUDGET: usize = 16;
/// Deliveries before reading has its turn again.
const DELIVER_BUDGET: usize = 64;

/// A direction with everything that drives it.
#[derive(Debug)]
pub(super) struct DrivenDirection {
    /// Decides what leaves when.
    pub direction: Direction,
    /// The ports of both hosts.
    pub ports: Arc<PortPair>,
    /// Where it leads.
    pub towards: Towards,
    /// Set to end it.
    pub stop: Arc<AtomicBool>,
    /// Incoming orders.
    pub mailbox: Mailbox,
    /// Whether there may be something to read: each failed attempt is a system call.
    pub look: bool,
}

impl DrivenDirection {
    /// The direction, and the port that its frames come from.
    pub fn source(&mut self) -> (&mut Direction, &Port) {
        (&mut self.direction, ends(&self.ports, self.towards).0)
    }

    /// Whether to go on.
    pub fn goes_on(&self) -> bool {
        !self.stop.load(Ordering::Relaxed)
    }

    /// Executes the orders.
    pub fn obey(&mut self) {
        while let Some(order) = self.mailbox.next() {
            // The sender may no longer wait for the answer.
            match order {
                Order::Change(change, done) => {
                    self.direction.change(*change, clock::now());
                    let _ = done.send(());
                }
                Order::Statistics(answer) => {
                    let _ = answer.send(self.direction.statistics(clock::now()));
                }
            }
            while let Some(ring) = self.direction.superfluous() {
                self.mailbox.give_back(ring);
            }
        }
    }

    /// Delivers the next run that is due at `now`; returns whether there was one.
    pub fn deliver(&mut self, now: Instant) -> bool {
        let (_, port) = ends(&self.ports, self.towards);
        self.direction.deliver(now, |parts| port.write_vectored(parts))
    }

    /// Delivers what is due, up to a limit; returns the number of frames.
    pub fn deliver_due(&mut self) -> usize {
        (0..DELIVER_BUDGET).take_while(|_| self.deliver(clock::now())).count()
    }

    /// Reads until nothing is there, the budget is spent or something is due; returns the number of
    /// frames.
    pub fn take_in(&mut self) -> Result<usize, EmulatorError> {
        for taken in 0..READ_BUDGET {
            let (direction, port) = self.source();
            let Some(space) = direction.space() else {
                return Ok(taken);
            };
            let len = match port.read(space) {
                Ok(len) => len,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.look = false;
                    return Ok(taken);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(taken),
                Err(error) => return Err(self.failed(error)),
            };
            let now = clock::now();
            direction.arrived(len, now);
            if direction.due().is_some_and(|due| due <= now) {
                return Ok(taken + 1);
            }
        }
        Ok(READ_BUDGET)
    }

    /// Registers packets and orders of this direction, the `index`-th of its thread, with `waiter`.
    pub fn join(&self, waiter: &Waiter, index: usize) -> io::Result<()> {
        waiter.add(ends(&self.ports, self.towards).0, 2 * index)?;
        waiter.add(self.mailbox.wake(), 2 * index + 1)
    }

    /// Handles the result of a wait for the `index`-th direction.
    pub fn woken(&mut self, ready: Ready, index: usize) {
        self.look |= ready.has(2 * index);
        if ready.has(2 * index + 1) {
            self.mailbox.woken();
        }
    }

    /// Waits for something to read (if `reading`), an order, or `timeout`; returns whether there is
    /// something to read. For a thread whose waits are cheap.
    pub fn wait(&self, reading: bool, timeout: Duration) -> io::Result<bool> {
        let sources = [self.mailbox.wake(), ends(&self.ports, self.towards).0.as_fd()];
        let mut fds = sources.map(|fd| PollFd::new(fd, PollFlags::POLLIN));
        let ready = wait::ready(&mut fds[..1 + usize::from(reading)], Some(timeout))?;
        let [order, packet] = fds.map(|fd| ready > 0 && fd.any().unwrap_or(false));
        if order {
            self.mailbox.woken();
        }
        Ok(reading && packet)
    }

    /// The error for a failed read or wait.
    pub fn failed(&self, cause: io::Error) -> EmulatorError {
        EmulatorError::Port { device: self.towards.device(), cause }
    }
}

/// The ports that frames of a direction come from and go to.
fn ends(ports: &PortPair, towards: Towards) -> (&Port, &Port) {
    match towards {
        Towards::Client => (&ports.a, &ports.b),
        Towards::Server => (&ports.b, &ports.a),
    }
}
