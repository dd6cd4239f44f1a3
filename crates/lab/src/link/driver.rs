//! The thread of a direction where time is real: a port to read, a port to write and the clock.
//!
//! A thread delivers what is due, reads what has arrived, and waits in `ppoll` for whichever comes first. `ppoll` wakes
//! some tens of microseconds late even in SCHED_FIFO, so the last stretch before a deadline is spun away, but only on a
//! link with few events: where the next event is always near, spinning would take the CPU from the very hosts that are
//! being measured.

use super::control::{Mailbox, Order};
use super::direction::Direction;
use super::emulator::{DirectionReport, EmulatorError};
use fullpipe_kernel::port::Port;
use fullpipe_kernel::wait::{self, PollFd, PollFlags};
use fullpipe_kernel::{clock, sched};
use fullpipe_model::units::{Duration, Instant};
use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};

/// Frames read before deliveries get their turn again.
const READ_BUDGET: usize = 16;
/// Deliveries before reading gets its turn again.
const DELIVER_BUDGET: usize = 64;
/// The stretch before a deadline that may be spun away.
const SPIN: Duration = Duration::from_micros(60);
/// A link with more events than this in [`CALM_SPAN`] does not spin.
const CALM_EVENTS: u32 = 20;
const CALM_SPAN: Duration = Duration::from_millis(10);
/// The longest sleep, should a wake-up ever be missed.
pub(super) const SLEEP_MAX: Duration = Duration::from_millis(50);

/// What a direction's thread works with besides the direction.
pub(super) struct Surroundings<'a> {
    /// Where frames come from.
    pub read: &'a Port,
    /// Where they go.
    pub write: &'a Port,
    /// Whose port is read, for errors.
    pub device: &'static str,
    /// Set: the end.
    pub stop: &'a AtomicBool,
    /// Orders.
    pub mailbox: &'a Mailbox,
}

impl Surroundings<'_> {
    /// Whether to go on.
    pub fn goes_on(&self) -> bool {
        !self.stop.load(Ordering::Relaxed)
    }

    /// Does what was asked.
    pub fn obey(&self, direction: &mut Direction) {
        while let Some(order) = self.mailbox.next() {
            // Whoever does not wait for the answer has no need of it.
            match order {
                Order::Change(change, done) => {
                    direction.change(*change, clock::now());
                    let _ = done.send(());
                }
                Order::Statistics(answer) => {
                    let _ = answer.send(direction.statistics(clock::now()));
                }
            }
            while let Some(ring) = direction.superfluous() {
                self.mailbox.give_back(ring);
            }
        }
    }

    /// Waits until there is something to read (if that is of interest), an order, or `timeout` has passed; whether there
    /// is something to read.
    pub fn wait(&self, reading: bool, timeout: Duration) -> io::Result<bool> {
        let order = PollFd::new(self.mailbox.wake(), PollFlags::POLLIN);
        let mut fds = [order, PollFd::new(self.read.as_fd(), PollFlags::POLLIN)];
        let count = if reading { 2 } else { 1 };
        let ready = wait::ready(&mut fds[..count], Some(timeout))?;
        let [order, read] = fds.map(|fd| ready > 0 && fd.any().unwrap_or(false));
        if order {
            self.mailbox.woken();
        }
        Ok(reading && read)
    }

    /// The error that reading or waiting ends with.
    pub fn failed(&self, cause: io::Error) -> EmulatorError {
        EmulatorError::Port { device: self.device, cause }
    }
}

/// One direction's thread.
pub(super) fn run(mut direction: Direction, around: &Surroundings<'_>) -> Result<DirectionReport, EmulatorError> {
    let real_time = sched::fifo().is_ok();
    // Without it the kernel adds up to 50 us to every wait of a thread that is not real-time; refusal costs only that.
    let _ = sched::timer_slack(Duration::from_nanos(1));
    let mut calm = Calm::default();
    while around.goes_on() {
        around.obey(&mut direction);
        let mut events = 0;
        while events < DELIVER_BUDGET && direction.deliver(clock::now(), |parts| around.write.write_vectored(parts)) {
            events += 1;
        }
        events += take_in(&mut direction, around.read).map_err(|cause| around.failed(cause))?;
        let now = clock::now();
        calm.record(events as u32, now);
        if events > 0 {
            continue;
        }
        let left = direction.due().map_or(SLEEP_MAX, |due| due.since(now).min(SLEEP_MAX));
        let spin = if calm.is_calm() { SPIN } else { Duration::ZERO };
        if left <= spin {
            std::hint::spin_loop();
            continue;
        }
        around.wait(true, left.saturating_sub(spin)).map_err(|cause| around.failed(cause))?;
    }
    Ok(DirectionReport::new(direction.finish(), real_time))
}

/// Reads until nothing is there, the budget is spent or something is due.
fn take_in(direction: &mut Direction, read: &Port) -> io::Result<usize> {
    for taken in 0..READ_BUDGET {
        let Some(space) = direction.space() else {
            return Ok(taken);
        };
        let len = match read.read(space) {
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

/// How busy a direction has been lately.
#[derive(Debug, Default)]
struct Calm {
    since: Instant,
    events: u32,
    last: u32,
}

impl Calm {
    fn record(&mut self, events: u32, now: Instant) {
        self.events += events;
        if now.since(self.since) >= CALM_SPAN {
            (self.last, self.events, self.since) = (self.events, 0, now);
        }
    }

    fn is_calm(&self) -> bool {
        self.last.max(self.events) <= CALM_EVENTS
    }
}
