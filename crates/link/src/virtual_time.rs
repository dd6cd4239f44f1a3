//! The driver's loop where time is virtual: it passes only while everything waits.
//!
//! Two things differ from [`super::driver`]'s own. There is nothing to be late for, so nothing is
//! spun away and nothing read early: a wait ends exactly when it should. And between two waits the
//! time is one moment, so the clock is asked once a wait; in a guest of user-mode Linux each
//! question is a system call of ten microseconds of wall time.

use super::driven_direction::DrivenDirection;
use super::error::EmulatorError;
use super::report::DirectionReport;
use fullpipe_kernel::{clock, sched};
use fullpipe_model::units::{Duration, Instant};
use std::io;

/// The longest wait: it is where time goes on when nothing else wants it to.
const SLEEP_MAX: Duration = Duration::from_millis(50);

/// One direction's thread.
pub(super) fn run(mut way: DrivenDirection) -> Result<DirectionReport, EmulatorError> {
    // Before hosts' programs when both can run, as a wire is.
    let real_time = sched::fifo().is_ok();
    let _ = sched::timer_slack(Duration::from_nanos(1));
    let (mut now, mut readable) = (clock::now(), true);
    while way.goes_on() {
        way.obey();
        while way.deliver(now) {}
        let room = !readable || way.drain(now).map_err(|cause| way.failed(cause))?;
        let left = way.direction.due().map_or(SLEEP_MAX, |due| due.since(now).min(SLEEP_MAX));
        if left > Duration::ZERO {
            // A full ring does not look at what has arrived: that would end every wait at once, and
            // time with it.
            readable = way.wait(room, left).map_err(|cause| way.failed(cause))? || !room;
            now = clock::now();
        }
    }
    Ok(DirectionReport::new(way.direction.finish(), real_time))
}

impl DrivenDirection {
    /// Reads all that is there; false where the ring is full before.
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
