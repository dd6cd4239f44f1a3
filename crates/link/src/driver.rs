//! The threads of a link in real time: ports to read, ports to write, and the clock.
//!
//! A thread delivers what is due, reads what has arrived, and waits for whichever comes first. A
//! wait ends some tens of microseconds late even in SCHED_FIFO. So the thread asks for an earlier
//! end, by the lateness that `Foresight` has learned, and spins for the rest. It does that only on
//! a link with few events: where the next event is always near, spinning would take the CPU from
//! the hosts that are being measured. There a wait may even end up to `JOIN` later, in order to
//! serve both directions at once, because sleeping and waking costs more than everything else that
//! a packet needs.
//!
//! **One CPU.** On a machine with one CPU the threads share it with the measured hosts and all
//! other programs, so they are not real-time and do not spin. They get their fair share like any
//! program and are later for it; that lateness is measured and reported as always.
//!
//! **One thread, or two.** A host answers within our write: its acknowledgement can be read when
//! the write returns. A thread that drives both directions finds it without sleeping in between,
//! and knows when it was sent. A second thread would have to be woken for it, which doubles the
//! cost and adds some tens of microseconds. So one thread drives both directions until that is too
//! much for it. Then a helper takes over the second direction, and returns it when both have little
//! to do.

use super::driven_direction::DrivenDirection;
use super::error::EmulatorError;
use super::foresight::Foresight;
use super::pace::Pace;
use super::report::DirectionReport;
use fullpipe_kernel::process::wait::{Ready, Waiter};
use fullpipe_kernel::{host::clock, process::sched};
use fullpipe_model::units::{Duration, Instant};
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// The longest sleep, in case a wake-up is missed.
const SLEEP_MAX: Duration = Duration::from_secs(1);
/// At high packet rates: how long a packet of one direction may be held so that one wake-up serves
/// both directions. At 100 Mbit/s and 1500 bytes a packet takes 120 us.
const JOIN: Duration = Duration::from_micros(50);
/// The bell's token; the tokens of the directions are smaller.
const BELL: usize = 4;
/// Load, in hundredths of a window, above which one thread is not enough.
const TOO_MUCH: u32 = 75;
/// The same on a link fast enough for joined writes: each write is long there and delays what waits
/// for its end. At 2.5 Gbit/s a single thread with a load of 60 hundredths was 5 % below the rate.
const TOO_MUCH_FAST: u32 = 25;
/// Load of both threads together, in hundredths, below which one is enough again.
const LITTLE: u32 = 15;
/// How many windows in a row must have such a low load.
const LITTLE_FOR: u32 = 50;

/// The state of a thread of the link.
#[derive(Debug)]
struct Driver {
    pace: Pace,
    foresight: Foresight,
    real_time: bool,
    /// Whether it may spin for the rest of a wait.
    spins: bool,
}

/// Why a thread stops driving.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StopReason {
    /// The link ends.
    Stopped,
    /// It should reconsider: because of the load of a window, or because of the bell.
    Reconsider,
}

/// Drives both directions until the link ends, alone or with a helper.
pub(super) fn run(ways: [DrivenDirection; 2]) -> Result<[DirectionReport; 2], EmulatorError> {
    let mut driver = Driver::of_this_thread();
    let mut real_time = driver.real_time;
    let [mut first, mut second] = ways;
    loop {
        let mut both = [first, second];
        let end = driver.drive(&mut both, None, |pace, ways| pace.load() > too_much(ways))?;
        [first, second] = both;
        if end == StopReason::Stopped {
            let reports =
                [first, second].map(|way| DirectionReport::new(way.direction.finish(), real_time));
            return Ok(reports);
        }
        // Wakes this thread when the helper is done.
        let (bell, ring) = UnixStream::pair().map_err(EmulatorError::Thread)?;
        let load = Arc::new(AtomicU32::new(100));
        let of_first = Arc::clone(&load);
        let helper = std::thread::Builder::new()
            .name("link-helper".into())
            .spawn(move || help(second, &of_first, &ring));
        let helper = helper.map_err(EmulatorError::Thread)?;
        let mut alone = [first];
        let ended = driver.drive(&mut alone, Some(&bell), |pace, _| {
            load.store(pace.load(), Ordering::Relaxed);
            false
        });
        if ended.is_err() {
            // The helper checks it within its longest sleep.
            alone[0].stop.store(true, Ordering::Relaxed);
        }
        let (way, helped_in_real_time) =
            helper.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        ended?;
        real_time &= helped_in_real_time;
        ([first], second) = (alone, way);
    }
}

/// Drives `way` until the link ends, or until it and the other thread, whose load it gets, have
/// little to do.
fn help(
    way: DrivenDirection,
    other: &AtomicU32,
    mut ring: &UnixStream,
) -> Result<(DrivenDirection, bool), EmulatorError> {
    let mut driver = Driver::of_this_thread();
    let mut ways = [way];
    let mut little = 0;
    let end = driver.drive(&mut ways, None, |pace, _| {
        little = if pace.load() + other.load(Ordering::Relaxed) < LITTLE { little + 1 } else { 0 };
        little >= LITTLE_FOR
    });
    // If the bell cannot be rung, its listener is already waiting for the end of this thread.
    let _ = ring.write(&[1]);
    let [way] = ways;
    end.map(|_| (way, driver.real_time))
}

fn too_much(ways: &[DrivenDirection]) -> u32 {
    if ways.iter().any(|way| way.direction.joins_writes()) { TOO_MUCH_FAST } else { TOO_MUCH }
}

impl Driver {
    fn of_this_thread() -> Self {
        let one_cpu = sched::has_one_cpu();
        let real_time = !one_cpu && sched::fifo().is_ok();
        // Without this the kernel adds up to 50 us to every wait of a thread that is not real-time;
        // a refusal has no other effect.
        let _ = sched::timer_slack(Duration::from_nanos(1));
        Driver {
            pace: Pace::starting_at(clock::now()),
            foresight: Foresight::default(),
            real_time,
            spins: !one_cpu,
        }
    }

    /// Moves packets until the link ends, `bell` rings, or `enough` returns true at the end of a
    /// window.
    fn drive(
        &mut self,
        ways: &mut [DrivenDirection],
        bell: Option<&UnixStream>,
        mut enough: impl FnMut(&Pace, &[DrivenDirection]) -> bool,
    ) -> Result<StopReason, EmulatorError> {
        self.pace = Pace::starting_at(clock::now());
        let mut waiter = waiter(ways, bell).map_err(failed_wait)?;
        while ways.iter().all(DrivenDirection::goes_on) {
            let events = turn(ways)?;
            let now = clock::now();
            if self.pace.record(events, now) && enough(&self.pace, ways) {
                return Ok(StopReason::Reconsider);
            }
            if events > 0 {
                continue;
            }
            let calm = self.pace.is_calm();
            let left = due(ways, if calm { Duration::ZERO } else { JOIN });
            let left = left.map_or(SLEEP_MAX, |due| due.since(now).min(SLEEP_MAX));
            let early =
                if calm && self.spins { self.foresight.early(left) } else { Duration::ZERO };
            let span = left.saturating_sub(early);
            let ready = waiter.wait(span).map_err(failed_wait)?;
            if span > Duration::ZERO {
                self.slept(left, span, clock::now().since(now), ready);
            }
            for (index, way) in ways.iter_mut().enumerate() {
                way.woken(ready, index);
            }
            if let Some(mut bell) = bell.filter(|_| ready.has(BELL)) {
                let _ = bell.read(&mut [0]);
                return Ok(StopReason::Reconsider);
            }
        }
        Ok(StopReason::Stopped)
    }

    /// Learns from a wait for something that was `left` away: it should have ended after `span`,
    /// and ended after `slept`.
    fn slept(&mut self, left: Duration, span: Duration, slept: Duration, ready: Ready) {
        self.pace.waited(slept);
        if ready.is_empty() && left < SLEEP_MAX {
            self.foresight.learn(left, slept.saturating_sub(span));
        }
    }
}

fn failed_wait(cause: io::Error) -> EmulatorError {
    EmulatorError::Port { device: "both ports", cause }
}

/// Waits for packets and orders of `ways`, and for `bell`.
fn waiter(ways: &[DrivenDirection], bell: Option<&UnixStream>) -> io::Result<Waiter> {
    let waiter = Waiter::new()?;
    for (index, way) in ways.iter().enumerate() {
        way.join(&waiter, index)?;
    }
    bell.map_or(Ok(()), |bell| waiter.add(bell, BELL))?;
    Ok(waiter)
}

/// Each direction executes its orders, delivers what is due and reads what has arrived; returns the
/// number of frames.
fn turn(ways: &mut [DrivenDirection]) -> Result<usize, EmulatorError> {
    let mut events = 0;
    for index in 0..ways.len() {
        ways[index].obey();
        let delivered = ways[index].deliver_due();
        if delivered > 0 {
            // A host answers within the write, and the other direction reads the answer.
            for (other, way) in ways.iter_mut().enumerate() {
                way.look |= other != index;
            }
        }
        let taken = if ways[index].look { ways[index].take_in()? } else { 0 };
        events += delivered + taken;
    }
    Ok(events)
}

/// When to serve `ways` again: when the first is due, or the last if that is within `join` of the
/// first.
fn due(ways: &mut [DrivenDirection], join: Duration) -> Option<Instant> {
    let dues = ways.iter_mut().filter_map(|way| way.direction.due());
    let (first, last) = dues.fold(None, |span: Option<(Instant, Instant)>, due| {
        Some(span.map_or((due, due), |(first, last)| (first.min(due), last.max(due))))
    })?;
    Some(if last.since(first) <= join { last } else { first })
}
