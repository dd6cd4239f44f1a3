//! The threads of a link where time is real: ports to read, ports to write and the clock.
//!
//! A thread delivers what is due, reads what has arrived, and waits for whichever comes first. A
//! wait ends some tens of microseconds late even in SCHED_FIFO, so it is asked to end earlier by
//! what `Foresight` has learned, and what is left then is spun away; but only on a link with few
//! events: where the next event is always near, spinning would take the CPU from the very hosts
//! that are being measured. There a wait may end up to `JOIN` later for the sake of serving both
//! directions at once: sleeping and waking cost more than all else that a packet needs.
//!
//! **One CPU.** Whoever has one CPU alone shares it with the hosts that are measured and with every
//! other program: there the threads are not real-time and spin nothing away. They have their fair
//! share as any program, and are later for it, which is measured and told as ever.
//!
//! **One thread, or two.** What a host answers it answers within our write: its acknowledgement is
//! there to be read when the write returns. A thread that drives both directions finds it without
//! sleeping in between, and knows when it was sent; a second thread would have to be woken for it,
//! which costs as much again and is some tens of microseconds late. So one thread drives both,
//! until that is more than it can do: then a helper takes the second direction, and gives it back
//! when both have little to do.

use super::driven_direction::DrivenDirection;
use super::error::EmulatorError;
use super::foresight::Foresight;
use super::pace::Pace;
use super::report::DirectionReport;
use fullpipe_kernel::wait::{Ready, Waiter};
use fullpipe_kernel::{clock, sched};
use fullpipe_model::units::{Duration, Instant};
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// The longest sleep, should a wake-up ever be missed.
const SLEEP_MAX: Duration = Duration::from_secs(1);
/// How long a packet of one direction may be kept for one of the other to be handed over in the
/// same waking, where there are many. The clock at 100 Mbit/s and 1500 bytes is 120 us.
const JOIN: Duration = Duration::from_micros(50);
/// The bell's token; those of the ways come before it.
const BELL: usize = 4;
/// Hundredths of a window's time beyond which one thread is not enough.
const TOO_MUCH: u32 = 75;
/// The same on a link fast enough for writes to be joined: each is long there, and what waits for
/// its end is late by it. At 2.5 Gbit/s one thread alone, busy for 60 hundredths, was 5 % below the
/// rate.
const TOO_MUCH_FAST: u32 = 25;
/// Hundredths, of both threads together, below which one is enough again.
const LITTLE: u32 = 15;
/// Windows in a row with so little, before it is believed.
const LITTLE_FOR: u32 = 50;

/// A thread of the link: what it knows of itself.
#[derive(Debug)]
struct Driver {
    pace: Pace,
    foresight: Foresight,
    real_time: bool,
    /// Whether the rest of a wait may be spun away.
    spins: bool,
}

/// Why a thread stops driving.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// The link ends.
    Stopped,
    /// It was told to look up: by its own judgement of a window, or by the bell.
    Turn,
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
        if end == End::Stopped {
            let reports =
                [first, second].map(|way| DirectionReport::new(way.direction.finish(), real_time));
            return Ok(reports);
        }
        // Wakes this thread when the helper has done.
        let (bell, ring) = UnixStream::pair().map_err(EmulatorError::Thread)?;
        let load = Arc::new(AtomicU32::new(100));
        let of_first = Arc::clone(&load);
        let help = move || help(second, &of_first, &ring);
        let helper = std::thread::Builder::new().name("link-helper".into()).spawn(help);
        let helper = helper.map_err(EmulatorError::Thread)?;
        let mut alone = [first];
        let told = |pace: &Pace, _: &[DrivenDirection]| {
            load.store(pace.load(), Ordering::Relaxed);
            false
        };
        let ended = driver.drive(&mut alone, Some(&bell), told);
        if ended.is_err() {
            // The helper looks at it within its longest sleep.
            alone[0].stop.store(true, Ordering::Relaxed);
        }
        let (way, helped_in_real_time) =
            helper.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        ended?;
        real_time &= helped_in_real_time;
        ([first], second) = (alone, way);
    }
}

/// Drives `way` until the link ends, or until it and the other thread, whose load is told, have
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
    // A bell that cannot be rung has lost its listener, which then waits for the end of this thread
    // already.
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
        // Without it the kernel adds up to 50 us to every wait of a thread that is not real-time;
        // refusal costs only that.
        let _ = sched::timer_slack(Duration::from_nanos(1));
        Driver {
            pace: Pace::starting_at(clock::now()),
            foresight: Foresight::default(),
            real_time,
            spins: !one_cpu,
        }
    }

    /// Moves packets until the link ends, `bell` rings, or `enough` says so when a window is over.
    fn drive(
        &mut self,
        ways: &mut [DrivenDirection],
        bell: Option<&UnixStream>,
        mut enough: impl FnMut(&Pace, &[DrivenDirection]) -> bool,
    ) -> Result<End, EmulatorError> {
        self.pace = Pace::starting_at(clock::now());
        let failed = |cause| EmulatorError::Port { device: "both ports", cause };
        let mut waiter = waiter(ways, bell).map_err(failed)?;
        while ways.iter().all(DrivenDirection::goes_on) {
            let events = turn(ways)?;
            let now = clock::now();
            if self.pace.record(events, now) && enough(&self.pace, ways) {
                return Ok(End::Turn);
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
            let ready = waiter.wait(span).map_err(failed)?;
            if span > Duration::ZERO {
                self.slept(left, span, clock::now().since(now), ready);
            }
            for (index, way) in ways.iter_mut().enumerate() {
                way.woken(ready, index);
            }
            if let Some(mut bell) = bell.filter(|_| ready.has(BELL)) {
                let _ = bell.read(&mut [0]);
                return Ok(End::Turn);
            }
        }
        Ok(End::Stopped)
    }

    /// Something was `left` away, a wait was asked to end after `span`, and has ended after
    /// `slept`.
    fn slept(&mut self, left: Duration, span: Duration, slept: Duration, ready: Ready) {
        self.pace.waited(slept);
        if ready.is_empty() && left < SLEEP_MAX {
            self.foresight.learn(left, slept.saturating_sub(span));
        }
    }
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

/// Each way does what it is asked, delivers what is due and reads what has arrived; how many frames
/// that were.
fn turn(ways: &mut [DrivenDirection]) -> Result<usize, EmulatorError> {
    let mut events = 0;
    for index in 0..ways.len() {
        ways[index].obey();
        let delivered = ways[index].deliver_due();
        if delivered > 0 {
            // What a host answers it answers within the write, and the other direction reads it.
            for (other, way) in ways.iter_mut().enumerate() {
                way.look |= other != index;
            }
        }
        let taken = if ways[index].look { ways[index].take_in()? } else { 0 };
        events += delivered + taken;
    }
    Ok(events)
}

/// When to look at `ways` again: when the first of them is due, or the last if that is within
/// `join` of it.
fn due(ways: &mut [DrivenDirection], join: Duration) -> Option<Instant> {
    let dues = ways.iter_mut().filter_map(|way| way.direction.due());
    let (first, last) = dues.fold(None, |span: Option<(Instant, Instant)>, due| {
        Some(span.map_or((due, due), |(first, last)| (first.min(due), last.max(due))))
    })?;
    Some(if last.since(first) <= join { last } else { first })
}
