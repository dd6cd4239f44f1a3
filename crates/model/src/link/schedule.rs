//! Prepared changes over time: which rate and delay apply at a time, and until when.

use super::changes::{Changes, Handover, Steps};
use super::random::{Purpose, RandomStream};
use super::{Config, Delay};
use crate::units::{Duration, Rate};

/// Rate and delay over a span of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    /// Zero while the transmitter does not send; `None`: no serialisation time.
    pub rate: Option<Rate>,
    pub delay: Duration,
    /// End, since the start; `None`: forever.
    pub until: Option<Duration>,
}

/// Rate and delay over time.
#[derive(Debug)]
pub(super) enum Schedule {
    /// (from, rate, delay), the first from 0.
    Steps {
        spans: Vec<(Duration, Option<Rate>, Duration)>,
        every: Option<Duration>,
    },
    Handover {
        rate: Option<Rate>,
        handover: Handover,
        seed: u64,
    },
}

impl Schedule {
    /// `None` if nothing changes, or only by a trace, which the transmitter handles.
    pub fn new(config: &Config, seed: u64) -> Option<Self> {
        match config.changes.as_ref()? {
            Changes::Steps(steps) => Some(Schedule::steps(config, steps)),
            Changes::Handover(handover) => {
                Some(Schedule::Handover { rate: config.rate, handover: *handover, seed })
            }
            Changes::Trace(_) | Changes::TraceFile(_) => None,
        }
    }

    fn steps(config: &Config, Steps { steps, every }: &Steps) -> Self {
        let Delay { base, .. } = config.delay;
        let (mut rate, mut delay, mut up) = (config.rate, base, true);
        let mut spans = vec![(Duration::ZERO, rate, delay)];
        for step in steps {
            rate = step.rate.or(rate);
            delay = step.delay.unwrap_or(delay);
            up = step.up.unwrap_or(up);
            spans.push((step.at, if up { rate } else { rate.and(Some(Rate::ZERO)) }, delay));
        }
        Schedule::Steps { spans, every: *every }
    }

    /// Rate and delay at `time` since the start.
    pub fn at(&self, time: Duration) -> Span {
        match self {
            Schedule::Steps { spans, every } => {
                let (begin, offset) = lap(time, *every);
                let index = spans.partition_point(|(from, ..)| *from <= offset).max(1) - 1;
                let (_, rate, delay) = spans[index];
                let next = spans.get(index + 1).map(|(from, ..)| *from).or(*every);
                Span { rate, delay, until: next.map(|next| begin.saturating_add(next)) }
            }
            Schedule::Handover { rate, handover, seed } => {
                let (begin, offset) = lap(time, Some(handover.interval));
                let number = begin.as_nanos() / handover.interval.as_nanos().max(1);
                let width =
                    u128::from(handover.delay_max.saturating_sub(handover.delay_min).as_nanos())
                        + 1;
                // Not a stream: an interval has the same satellite however the time reached it.
                let random = RandomStream::new(seed.wrapping_add(number), Purpose::Handover).next();
                let drawn = Duration::from_nanos(((u128::from(random) * width) >> 64) as u64);
                let delay = handover.delay_min.saturating_add(drawn);
                let sends = handover.interval.saturating_sub(handover.outage);
                let (rate, until) = if offset < sends {
                    (*rate, sends)
                } else {
                    (rate.and(Some(Rate::ZERO)), handover.interval)
                };
                Span { rate, delay, until: Some(begin.saturating_add(until)) }
            }
        }
    }

    /// The period after which it repeats, and what it sends in a period (bits times 10^9); `None`
    /// if it does not repeat.
    pub fn lap(&self) -> Option<(Duration, u128)> {
        match self {
            Schedule::Steps { every: None, .. } => None,
            Schedule::Steps { spans, every: Some(every) } => {
                let ends = spans.iter().skip(1).map(|(from, ..)| *from).chain([*every]);
                let sent = spans
                    .iter()
                    .zip(ends)
                    .map(|((from, rate, _), end)| work(*rate, end.saturating_sub(*from)));
                Some((*every, sent.sum()))
            }
            Schedule::Handover { rate, handover, .. } => Some((
                handover.interval,
                work(*rate, handover.interval.saturating_sub(handover.outage)),
            )),
        }
    }
}

/// What a rate sends in a time, in bits times 10^9.
fn work(rate: Option<Rate>, time: Duration) -> u128 {
    u128::from(rate.unwrap_or_default().bits_per_sec()) * u128::from(time.as_nanos())
}

/// The beginning of the period that contains `time`, and the time since then.
fn lap(time: Duration, every: Option<Duration>) -> (Duration, Duration) {
    match every.map(Duration::as_nanos) {
        None | Some(0) => (Duration::ZERO, time),
        Some(every) => {
            let offset = time.as_nanos() % every;
            (Duration::from_nanos(time.as_nanos() - offset), Duration::from_nanos(offset))
        }
    }
}
