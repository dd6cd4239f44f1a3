//! The driver's loop where time is virtual: it passes only while everything waits.
//!
//! Two things differ from [`super::driver`]'s own. There is nothing to be late for, so nothing is spun away and nothing
//! read early: a wait ends exactly when it should. And between two waits the time is one moment, so the clock is asked
//! once a wait; in a guest of user-mode Linux each question is a system call of ten microseconds of wall time.

use super::direction::Direction;
use super::driver::{SLEEP_MAX, Surroundings};
use super::emulator::{DirectionReport, EmulatorError};
use fullpipe_kernel::port::Port;
use fullpipe_kernel::{clock, sched};
use fullpipe_model::units::{Duration, Instant};
use std::io;

/// One direction's thread.
pub(super) fn run(mut direction: Direction, around: &Surroundings<'_>) -> Result<DirectionReport, EmulatorError> {
    // Before hosts' programs when both can run, as a wire is.
    let real_time = sched::fifo().is_ok();
    let _ = sched::timer_slack(Duration::from_nanos(1));
    let (mut now, mut readable) = (clock::now(), true);
    while around.goes_on() {
        around.obey(&mut direction);
        while direction.deliver(now, |parts| around.write.write_vectored(parts)) {}
        let room = !readable || drain(&mut direction, around.read, now).map_err(|cause| around.failed(cause))?;
        let left = direction.due().map_or(SLEEP_MAX, |due| due.since(now).min(SLEEP_MAX));
        if left > Duration::ZERO {
            // A full ring does not look at what has arrived: that would end every wait at once, and time with it.
            readable = around.wait(room, left).map_err(|cause| around.failed(cause))? || !room;
            now = clock::now();
        }
    }
    Ok(DirectionReport::new(direction.finish(), real_time))
}

/// Reads all that is there; false where the ring is full before.
fn drain(direction: &mut Direction, read: &Port, now: Instant) -> io::Result<bool> {
    loop {
        let Some(space) = direction.space() else { return Ok(false) };
        match read.read(space) {
            Ok(len) => direction.arrived(len, now),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(true),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
