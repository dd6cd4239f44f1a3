//! A direction with its ports, its mailbox and the word to stop: all that a thread needs to move its packets.

use super::control::{Mailbox, Order};
use super::direction::Direction;
use super::emulator::EmulatorError;
use super::lanes::Towards;
use fullpipe_kernel::clock;
use fullpipe_kernel::port::{Port, PortPair};
use fullpipe_kernel::wait::{self, PollFd, PollFlags};
use fullpipe_model::units::{Duration, Instant};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Frames read before deliveries get their turn again.
const READ_BUDGET: usize = 16;
/// Deliveries before reading gets its turn again.
const DELIVER_BUDGET: usize = 64;

/// One direction, to be driven.
#[derive(Debug)]
pub(super) struct Way {
    /// What decides.
    pub direction: Direction,
    /// Both hosts' ends.
    pub ports: Arc<PortPair>,
    /// Which end it leads to.
    pub towards: Towards,
    /// Set: the end.
    pub stop: Arc<AtomicBool>,
    /// Orders.
    pub mailbox: Mailbox,
}

impl Way {
    /// The direction, and where its frames come from.
    pub fn source(&mut self) -> (&mut Direction, &Port) {
        (&mut self.direction, ends(&self.ports, self.towards).0)
    }

    /// Whether to go on.
    pub fn goes_on(&self) -> bool {
        !self.stop.load(Ordering::Relaxed)
    }

    /// Does what was asked.
    pub fn obey(&mut self) {
        while let Some(order) = self.mailbox.next() {
            // Whoever does not wait for the answer has no need of it.
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

    /// Hands the next over that is due at `now`; whether there was one.
    pub fn deliver(&mut self, now: Instant) -> bool {
        let (_, port) = ends(&self.ports, self.towards);
        self.direction.deliver(now, |parts| port.write_vectored(parts))
    }

    /// Delivers what is due and reads what has arrived, a bounded number of each; how many frames that were.
    pub fn turn(&mut self) -> Result<usize, EmulatorError> {
        let mut events = 0;
        while events < DELIVER_BUDGET && self.deliver(clock::now()) {
            events += 1;
        }
        self.take_in().map(|taken| events + taken).map_err(|cause| self.failed(cause))
    }

    /// Reads until nothing is there, the budget is spent or something is due.
    fn take_in(&mut self) -> io::Result<usize> {
        for taken in 0..READ_BUDGET {
            let (direction, port) = self.source();
            let Some(space) = direction.space() else {
                return Ok(taken);
            };
            let len = match port.read(space) {
                Ok(len) => len,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(taken),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(taken),
                Err(error) => return Err(error),
            };
            let now = clock::now();
            direction.arrived(len, now);
            if direction.due().is_some_and(|due| due <= now) {
                return Ok(taken + 1);
            }
        }
        Ok(READ_BUDGET)
    }

    /// The error that reading or waiting ends with.
    pub fn failed(&self, cause: io::Error) -> EmulatorError {
        EmulatorError::Port { device: self.towards.device(), cause }
    }
}

/// Where frames of a direction come from, and where they go.
fn ends(ports: &PortPair, towards: Towards) -> (&Port, &Port) {
    match towards {
        Towards::Client => (&ports.a, &ports.b),
        Towards::Server => (&ports.b, &ports.a),
    }
}

/// What a wait has ended with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Woken {
    /// There is something to read.
    pub readable: bool,
    /// The bell rang.
    pub bell: bool,
    /// Nothing of it, and no order: the time is over.
    pub timeout: bool,
}

/// Waits until one of `ways` has something to read (if that is of interest) or an order, `bell` rings, or `timeout` has
/// passed.
pub(super) fn wait(ways: &[Way], reading: bool, bell: Option<BorrowedFd<'_>>, timeout: Duration) -> io::Result<Woken> {
    let poll = |fd| PollFd::new(fd, PollFlags::POLLIN);
    let Some(first) = ways.first() else { return Ok(Woken::default()) };
    // Five at most: two ways and a bell. Places without a use repeat one that has.
    let mut fds: [PollFd<'_>; 5] = std::array::from_fn(|_| poll(first.mailbox.wake()));
    let orders = ways.iter().map(|way| way.mailbox.wake());
    let ports = ways.iter().filter(|_| reading).map(|way| ends(&way.ports, way.towards).0.as_fd());
    let mut count = 0;
    for (place, fd) in fds.iter_mut().zip(orders.chain(ports).chain(bell)) {
        *place = poll(fd);
        count += 1;
    }
    let ready = wait::ready(&mut fds[..count], Some(timeout))?;
    let is_ready = |index: usize| ready > 0 && fds[index].any().unwrap_or(false);
    for (index, way) in ways.iter().enumerate() {
        if is_ready(index) {
            way.mailbox.woken();
        }
    }
    let after_ports = if reading { 2 * ways.len() } else { ways.len() };
    let readable = (ways.len()..after_ports).any(is_ready);
    Ok(Woken { readable, bell: (after_ports..count).any(is_ready), timeout: ready == 0 })
}
