//! The transmitter: when the first and the last bit of a packet are sent.

use super::rate::Serialiser;
use super::schedule::Schedule;
use super::trace::{OPPORTUNITY, Trace};
use super::{Changes, Config};
use crate::units::{Bytes, Duration, Instant, Rate};
use std::sync::Arc;

/// When a packet is serialised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Service {
    /// When its turn begins.
    pub start: Instant,
    /// When its last bit is sent.
    pub end: Instant,
}

/// One packet after another.
#[derive(Debug)]
pub(super) enum Transmitter {
    /// At one rate, or without one.
    Constant(Serialiser),
    /// At a rate that changes at known times.
    Scheduled(Scheduled),
    /// When a trace says so.
    Traced(Traced),
}

impl Transmitter {
    /// That of `config`; `schedule` is made of the same configuration. Not free before
    /// `busy_until`.
    pub fn new(config: &Config, schedule: Option<&Arc<Schedule>>, busy_until: Instant) -> Self {
        match (&config.changes, schedule) {
            (Some(Changes::Trace(trace)), _) => {
                Transmitter::Traced(Traced::new(trace.clone(), busy_until))
            }
            (_, Some(schedule)) if config.rate.is_some() => Transmitter::Scheduled(Scheduled {
                schedule: Arc::clone(schedule),
                busy_until,
                spare: 0,
            }),
            _ => Transmitter::Constant(Serialiser::new(config.rate, busy_until)),
        }
    }

    /// When a packet that is there at `now` can begin; `start` is time 0 of changes.
    pub fn next_start(&self, now: Instant, start: Instant) -> Instant {
        match self {
            Transmitter::Constant(serialiser) => serialiser.busy_until().max(now),
            Transmitter::Scheduled(scheduled) => scheduled.next_start(now, start),
            Transmitter::Traced(traced) => traced.next_start(now, start),
        }
    }

    /// Accepts a packet that takes `size` on the wire.
    pub fn accept(&mut self, size: Bytes, now: Instant, start: Instant) -> Service {
        match self {
            Transmitter::Constant(serialiser) => {
                let begin = serialiser.busy_until().max(now);
                Service { start: begin, end: serialiser.accept(size, now) }
            }
            Transmitter::Scheduled(scheduled) => scheduled.accept(size, now, start),
            Transmitter::Traced(traced) => traced.accept(size, now, start),
        }
    }

    /// Bytes not serialised at `now`, exact to the bit; `None` if only whole packets can be
    /// counted.
    pub fn backlog(&self, now: Instant) -> Option<Bytes> {
        match self {
            Transmitter::Constant(serialiser) => Some(serialiser.backlog(now)),
            Transmitter::Scheduled(_) | Transmitter::Traced(_) => None,
        }
    }

    /// How much of `size` a packet whose last bit is sent at `end` has not sent by `now`.
    pub fn unsent(&self, size: Bytes, end: Instant, now: Instant) -> Bytes {
        match self {
            Transmitter::Constant(serialiser) => {
                serialiser.rate().map_or(Bytes::ZERO, |rate| rate.over(end.since(now)).min(size))
            }
            Transmitter::Scheduled(_) | Transmitter::Traced(_) => size,
        }
    }
}

/// A transmitter whose rate changes.
#[derive(Debug)]
pub(super) struct Scheduled {
    schedule: Arc<Schedule>,
    busy_until: Instant,
    /// Bits times 10^9 that fitted into the last nanosecond and that the last packet did not need.
    spare: u128,
}

impl Scheduled {
    fn next_start(&self, now: Instant, start: Instant) -> Instant {
        let begin = self.busy_until.max(now);
        let mut time = begin.since(start);
        // Each lap has at least one span in which something is sent; without laps the list ends.
        for _ in 0..1_000_000 {
            let span = self.schedule.at(time);
            match span.until {
                Some(until) if span.rate == Some(Rate::ZERO) => time = until,
                None if span.rate == Some(Rate::ZERO) => return Instant::from_nanos(u64::MAX),
                _ => break,
            }
        }
        begin.max(start + time)
    }

    fn accept(&mut self, size: Bytes, now: Instant, start: Instant) -> Service {
        if self.busy_until < now {
            self.spare = 0;
        }
        let begin = self.next_start(now, start);
        let mut work = (u128::from(size.get()) * 8_000_000_000).saturating_sub(self.spare);
        let mut time = begin.since(start);
        self.spare = self.spare.saturating_sub(u128::from(size.get()) * 8_000_000_000);
        while work > 0 {
            let span = self.schedule.at(time);
            let Some(rate) = span.rate.map(|rate| u128::from(rate.bits_per_sec())) else { break };
            let left = span.until.map(|until| until.saturating_sub(time));
            let fits = left.map_or(u128::MAX, |left| rate.saturating_mul(left.as_nanos().into()));
            if rate > 0 && fits >= work {
                let nanos = work.div_ceil(rate);
                self.spare = nanos * rate - work;
                time = time
                    .saturating_add(Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)));
                break;
            }
            let Some(until) = span.until.filter(|until| *until > time) else {
                time = Duration::MAX;
                break;
            };
            work -= fits.min(work);
            time = until;
            if let Some((lap, sent)) = self.schedule.lap()
                && time.as_nanos().is_multiple_of(lap.as_nanos().max(1))
                && sent > 0
            {
                // Whole laps at once, because a large packet at a low rate would walk through every
                // one.
                let laps = work.saturating_sub(1) / sent;
                work -= laps * sent;
                time = time
                    .saturating_add(lap.saturating_mul(u64::try_from(laps).unwrap_or(u64::MAX)));
            }
            if time == Duration::MAX {
                break;
            }
        }
        self.busy_until = (start + time).max(begin);
        Service { start: begin, end: self.busy_until }
    }
}

/// A transmitter that follows a trace.
#[derive(Debug)]
pub(super) struct Traced {
    trace: Trace,
    /// The next unused time: completed laps, and index of the line.
    lap: u64,
    index: usize,
    /// Bytes of it that are already used.
    used: Bytes,
    busy_until: Instant,
}

impl Traced {
    fn new(trace: Trace, busy_until: Instant) -> Self {
        Traced { trace, lap: 0, index: 0, used: Bytes::ZERO, busy_until }
    }

    fn time(&self, lap: u64, index: usize) -> Duration {
        let within = Duration::from_millis(self.trace.times()[index].into());
        self.trace.period().saturating_mul(lap).saturating_add(within)
    }

    /// The first unused line at `now`: the present position, or a later one, because unused
    /// opportunities are lost.
    fn seek(&self, now: Instant, start: Instant) -> (u64, usize, Bytes) {
        let since = now.max(self.busy_until).since(start);
        if self.time(self.lap, self.index) >= since {
            return (self.lap, self.index, self.used);
        }
        let period = self.trace.period();
        let (lap, offset) =
            (since.as_nanos() / period.as_nanos(), since.as_nanos() % period.as_nanos());
        let times = self.trace.times();
        let index =
            times.partition_point(|time| Duration::from_millis((*time).into()).as_nanos() < offset);
        // The last time is the lap's length, which no offset reaches, so there is always a line.
        (lap, index.min(times.len() - 1), Bytes::ZERO)
    }

    fn next_start(&self, now: Instant, start: Instant) -> Instant {
        let (lap, index, _) = self.seek(now, start);
        (start + self.time(lap, index)).max(now)
    }

    fn accept(&mut self, size: Bytes, now: Instant, start: Instant) -> Service {
        (self.lap, self.index, self.used) = self.seek(now, start);
        let begin = (start + self.time(self.lap, self.index)).max(now);
        // Whole laps at once: do not walk through the laps of an unrealistic length.
        let lap = OPPORTUNITY.get().saturating_mul(self.trace.times().len() as u64);
        let laps = size.get().saturating_sub(1) / lap;
        self.lap = self.lap.saturating_add(laps);
        let mut left = Bytes::new(size.get() - laps * lap);
        let mut end = begin;
        while left > Bytes::ZERO {
            let taken = left.min(OPPORTUNITY.saturating_sub(self.used));
            end = (start + self.time(self.lap, self.index)).max(begin);
            left = left.saturating_sub(taken);
            self.used = self.used.saturating_add(taken);
            if self.used == OPPORTUNITY {
                self.used = Bytes::ZERO;
                self.index += 1;
                if self.index == self.trace.times().len() {
                    (self.lap, self.index) = (self.lap.saturating_add(1), 0);
                }
            }
        }
        self.busy_until = end;
        Service { start: begin, end }
    }
}
