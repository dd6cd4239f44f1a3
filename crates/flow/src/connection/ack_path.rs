//! Where round trips become longer: on the way of the data, or on the way back of its ACKs.
//!
//! An ACK's TSval (RFC 7323) is the time at which it was sent, by the receiver's clock. What it
//! comes later than the quickest ACK by that clock, it waited on its way back. The rate of the
//! clock is not known; it is taken from the first second.

use fullpipe_model::units::{Duration, Instant};

/// The rate of a clock is measured over this time.
const MEASURED_OVER: Duration = Duration::from_secs(1);
/// The usual ticks of such clocks in nanoseconds. RFC 7323 section 5.4 wants 1 ms to 1 s; Linux can
/// give microseconds.
const TICKS: [u64; 5] = [1_000, 1_000_000, 4_000_000, 10_000_000, 100_000_000];
/// A queue that builds up meanwhile makes the clock seem slower, by at most this factor.
const TICK_WITHIN: f64 = 1.4;

/// The delays of ACKs of one direction's data.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct AckPath {
    facts: AckPathFacts,
    /// When the first TSval passed, and its value.
    first: Option<(Instant, u32)>,
    clock: Clock,
    /// The least time between sending and arrival, as a difference to the first ACK's.
    least: i64,
}

#[derive(Debug, Clone, Copy, Default)]
enum Clock {
    #[default]
    Unmeasured,
    /// With a tick of so many nanoseconds.
    Tick(u64),
    /// It has no usual rate.
    Unusual,
}

/// How much longer than the least the round trips of some data were, and how much of that its ACKs
/// took. Only ACKs after the first second count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AckPathFacts {
    /// How many ACKs were timed both ways.
    pub count: u32,
    /// What their round trips took more than the least round trip, in total.
    pub round_trips: Duration,
    /// What these ACKs took more on their way back than the quickest, in total.
    pub acks: Duration,
    /// By how much the two differ, ACK by ACK, in total.
    pub difference: Duration,
}

impl AckPath {
    /// Notes an ACK with this TSval, whose data took `excess` longer than the least round trip.
    pub fn acknowledged(&mut self, at: Instant, value: u32, excess: Option<Duration>) {
        let Some((first_at, first)) = self.first else {
            self.first = Some((at, value));
            return;
        };
        let passed = at.since(first_at);
        let ticks = value.wrapping_sub(first).cast_signed();
        let tick = match self.clock {
            Clock::Tick(tick) => tick,
            Clock::Unusual => return,
            Clock::Unmeasured if passed < MEASURED_OVER => return,
            Clock::Unmeasured => {
                self.clock = clock(passed, ticks);
                return;
            }
        };
        let later = i64::try_from(passed.as_nanos()).unwrap_or(i64::MAX);
        let by_clock = i64::from(ticks).saturating_mul(tick.cast_signed());
        let offset = later.saturating_sub(by_clock);
        self.least = self.least.min(offset);
        let Some(excess) = excess else { return };
        // A clock's time is on average half a tick old.
        let back = offset.saturating_sub(self.least).cast_unsigned().saturating_sub(tick / 2);
        let back = Duration::from_nanos(back);
        let facts = &mut self.facts;
        facts.count = facts.count.saturating_add(1);
        facts.round_trips = facts.round_trips.saturating_add(excess);
        facts.acks = facts.acks.saturating_add(back);
        let difference = excess.saturating_sub(back).max(back.saturating_sub(excess));
        facts.difference = facts.difference.saturating_add(difference);
    }

    /// The facts so far.
    pub fn facts(&self) -> AckPathFacts {
        self.facts
    }
}

/// The clock that made so many ticks in this time.
fn clock(passed: Duration, ticks: i32) -> Clock {
    if ticks <= 0 {
        return Clock::Unusual;
    }
    let seen = passed.as_nanos() as f64 / f64::from(ticks);
    let near = 1.0 / TICK_WITHIN..=TICK_WITHIN;
    let tick = TICKS.into_iter().find(|tick| near.contains(&(seen / *tick as f64)));
    tick.map_or(Clock::Unusual, Clock::Tick)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ACKs each 10 ms over 4 s that wait on their way back, with a clock of `tick` nanoseconds.
    fn facts(tick: u64, back: impl Fn(u64) -> u64, excess: impl Fn(u64) -> u64) -> AckPathFacts {
        let mut path = AckPath::default();
        for number in 0..400_u64 {
            let sent = number * 10_000_000;
            let at = Instant::from_nanos(sent + back(number));
            let value = u32::MAX.wrapping_add((sent / tick) as u32);
            path.acknowledged(at, value, Some(Duration::from_nanos(excess(number))));
        }
        path.facts()
    }

    fn grows(number: u64) -> u64 {
        (number * 1_000_000).min(200_000_000)
    }

    #[test]
    fn what_acks_wait_is_told_from_what_data_waits() {
        for tick in [1_000, 1_000_000, 4_000_000] {
            let acks = facts(tick, grows, grows);
            let (all, back) = (acks.round_trips.as_secs_f64(), acks.acks.as_secs_f64());
            assert!((0.95..1.05).contains(&(back / all)), "{tick}: {acks:?}");
            assert!(acks.difference.as_secs_f64() < 0.05 * all, "{tick}: {acks:?}");
            let data = facts(tick, |_| 0, grows);
            assert!(data.acks.as_secs_f64() < 0.05 * all, "{tick}: {data:?}");
        }
        assert_eq!(facts(30_000_000, grows, grows).count, 0, "an unusual clock");
    }

    proptest::proptest! {
        #[test]
        fn no_foreign_time_or_value_panics(
            seen in proptest::collection::vec(proptest::prelude::any::<(u64, u32, Option<u64>)>(), 0..50),
        ) {
            let mut path = AckPath::default();
            for (at, value, excess) in seen {
                let excess = excess.map(Duration::from_nanos);
                path.acknowledged(Instant::from_nanos(at), value, excess);
            }
        }
    }
}
