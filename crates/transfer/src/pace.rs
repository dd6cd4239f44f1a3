//! Pacing: at most a given rate, in small steps, with time as an argument.
//!
//! `due` is the instant at which everything that has passed is paid for. Before `due` nothing more
//! may pass; from `due` on, one step may: what the rate carries in [`STEP`]. Passing `n` bytes
//! advances `due` by `n / rate` from where it *was*, not from now, so a timer that fires late does
//! not lower the mean rate. A user that was delayed (no data, no CPU) may catch up at most
//! `CATCH_UP`: idle time is not saved for a burst.
//!
//! This gives two bounds, which the tests check: in any span *t* at most
//! `rate * (t + CATCH_UP + STEP)` passes, and a user that asks again no later than told passes at
//! least `rate * t` minus one step.
//!
//! This is the leaky bucket as a meter (virtual scheduling algorithm, [ITU-T I.371] Annex A).
//!
//! [ITU-T I.371]: https://www.itu.int/rec/T-REC-I.371

mod limiter;

pub(crate) use limiter::Limiter;

use fullpipe_model::units::{Bytes, Duration, Instant, Rate};

/// At most what the rate carries in this time may pass at once (but at least a byte).
pub const STEP: Duration = Duration::from_millis(4);

/// The most lost time to catch up on.
pub(crate) const CATCH_UP: Duration = Duration::from_millis(20);

/// Says how much may pass, and when. Call [`Pacer::allowance`], let at most that much pass, then
/// call `Pacer::spend`.
#[derive(Debug, Clone)]
pub struct Pacer {
    rate: Rate,
    due: Instant,
    /// The most that may pass at once.
    step: Bytes,
    /// The rest of the current block, if there are blocks.
    open: Option<Bytes>,
}

impl Pacer {
    /// A pacer at `now`, when nothing has passed. `rate` must not be zero, or nothing would ever
    /// pass.
    pub fn new(rate: Rate, now: Instant) -> Self {
        Pacer { rate, due: now, step: rate.over(STEP).max(Bytes::new(1)), open: None }
    }

    /// The same for a user that passes a whole `block` before it waits. In the bounds above,
    /// [`STEP`] is then the time that a block takes.
    pub(crate) fn in_blocks(rate: Rate, block: Bytes, now: Instant) -> Self {
        Pacer { step: block.max(Bytes::new(1)), open: Some(Bytes::ZERO), ..Pacer::new(rate, now) }
    }

    /// How much may pass at `now`, or how long to wait before asking again.
    pub fn allowance(&mut self, now: Instant) -> Result<Bytes, Duration> {
        if let Some(open) = self.open.filter(|open| *open > Bytes::ZERO) {
            return Ok(open);
        }
        if now < self.due {
            return Err(self.due.since(now));
        }
        self.due = self.due.max(now.saturating_sub(CATCH_UP));
        self.open = self.open.map(|_| self.step);
        Ok(self.step)
    }

    /// Records that `amount` has passed.
    pub(crate) fn spend(&mut self, amount: Bytes) {
        self.open = self.open.map(|open| open.saturating_sub(amount));
        self.due = self.due + self.rate.time_for(amount).unwrap_or(Duration::MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rates() -> impl Strategy<Value = Rate> {
        (1_000u64..100_000_000_000).prop_map(Rate::from_bits_per_sec)
    }

    /// `(when, how much)` for a user that returns `lateness` microseconds late after each wait and
    /// has `readiness` per cent of what it may pass.
    fn passages(rate: Rate, lateness: &[(u64, u64)]) -> Vec<(Instant, Bytes)> {
        let mut now = Instant::from_nanos(1);
        let mut pacer = Pacer::new(rate, now);
        let mut passed = Vec::new();
        for (late_us, readiness) in lateness {
            match pacer.allowance(now) {
                Ok(most) => {
                    let amount = Bytes::new(most.get() * readiness / 100);
                    pacer.spend(amount);
                    passed.push((now, amount));
                }
                Err(wait) => now = now + wait + Duration::from_micros(*late_us),
            }
        }
        passed
    }

    #[test]
    fn a_block_passes_whole_and_the_next_waits_until_it_is_paid_for() {
        let start = Instant::from_nanos(1);
        let (block, rate) = (Bytes::new(100_000), Rate::from_bits_per_sec(8_000_000));
        let mut pacer = Pacer::in_blocks(rate, block, start);
        assert_eq!(pacer.allowance(start), Ok(block));
        pacer.spend(Bytes::new(60_000));
        assert_eq!(pacer.allowance(start), Ok(Bytes::new(40_000)));
        pacer.spend(Bytes::new(40_000));
        assert_eq!(pacer.allowance(start), Err(Duration::from_millis(100)));
        assert_eq!(pacer.allowance(start + Duration::from_millis(100)), Ok(block));
    }

    proptest! {
        #[test]
        fn no_span_carries_more_than_its_bound(
            rate in rates(),
            lateness in prop::collection::vec((0u64..60_000, 0u64..=100), 1..200),
        ) {
            let passed = passages(rate, &lateness);
            for (i, (start, _)) in passed.iter().enumerate() {
                let mut sum = Bytes::ZERO;
                for (end, amount) in &passed[i..] {
                    sum += *amount;
                    let bound = rate.over(end.since(*start) + CATCH_UP + STEP) + Bytes::new(2);
                    prop_assert!(sum <= bound, "{} in {}", sum, end.since(*start));
                }
            }
        }

        #[test]
        fn who_is_late_by_less_than_the_catch_up_loses_nothing(rate in rates(), late_us in 0u64..20_000) {
            let lateness: Vec<_> = std::iter::repeat_n((late_us, 100), 500).collect();
            let passed = passages(rate, &lateness);
            let sum: Bytes = passed.iter().map(|(_, amount)| *amount).sum();
            let (last, _) = passed.last().unwrap();
            // The last wait's lateness and one step may still be owed.
            let owed = Duration::from_micros(late_us) + STEP;
            let due = rate.over(last.since(Instant::from_nanos(1)).saturating_sub(owed));
            prop_assert!(sum >= due, "{} of {}", sum, due);
        }
    }
}
