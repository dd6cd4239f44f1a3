//! The driver's loop in virtual time, which passes only while everything waits.
//!
//! Two things differ from [`super::driver`]. Nothing can be late, so it does not spin or wake up
//! early: a wait ends exactly when it should. And no time passes between two waits, so it reads the
//! clock once for each wait; in a guest of user-mode Linux each reading is a system call that takes
//! ten microseconds of wall time.

use super::driven_direction::DrivenDirection;
use super::error::EmulatorError;
use super::report::DirectionReport;
use fullpipe_kernel::{host::clock, process::sched};
use fullpipe_model::units::{Duration, Instant};
use std::io;

/// The longest wait: time advances by it if nothing else does.
const SLEEP_MAX: Duration = Duration::from_millis(50);

/// The thread of one direction.
pub(super) fn run(mut way: DrivenDirection) -> Result<DirectionReport, EmulatorError> {
    // Runs before the hosts' programs if both are ready, as a wire does.
    let real_time = sched::fifo().is_ok();
    let _ = sched::timer_slack(Duration::from_nanos(1));
    let (mut now, mut readable) = (clock::now(), true);
    while way.goes_on() {
        way.obey();
        while way.deliver(now) {}
        let room = !readable || way.drain(now).map_err(|cause| way.failed(cause))?;
        let left = way.direction.due().map_or(SLEEP_MAX, |due| due.since(now).min(SLEEP_MAX));
        if left > Duration::ZERO {
            // If the ring is full, do not wait for arrivals: that would end every wait at once, and
            // stop time.
            readable = way.wait(room, left).map_err(|cause| way.failed(cause))? || !room;
            now = clock::now();
        }
    }
    Ok(DirectionReport::new(way.direction.finish(), real_time))
}

impl DrivenDirection {
    /// Reads everything; false if the ring is full before that.
    fn drain(&mut self, now: Instant) -> io::Result<bool> {
        loop {
            let (direction, port) = self.source();
            let Some(space) = direction.space() else { return Ok(false) };
            match port.read(space) {
                Ok(len) => direction.arrived(len, now),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(true),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}
