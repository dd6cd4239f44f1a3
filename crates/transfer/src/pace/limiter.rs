//! The limit of a download's rate: [`Smooth`], which is ours, and [`Sliding`], which is curl's.
//!
//! Both are asked before each read how much may be read now, or how long to wait, and are told what
//! was read. The bytes are those of the TCP stream, with headers and TLS, so the limit is what the
//! wire carries.
//!
//! **Smooth.** A reader that comes late by up to [`LATE`] catches up at once; what it lost beyond
//! that is owed, up to what the rate carries in [`DEBT`], and paid back by running [`REPAY`]
//! faster. So rare lateness does not lower the mean, and a stall of the server is not followed by
//! a burst: in any span *t* at most `rate * (1 + REPAY) * (t + LATE + STEP)` passes.
//!
//! **Sliding.** The algorithm of `Curl_pgrsLimitWaitTime` (curl 7.88 to 8.16): reads are free until
//! the mean since a start point is above the limit, then it sleeps until the mean is right; the
//! start point moves every three seconds. It looks at the mean only between rounds of reads, and a
//! round goes on for as long as data is there, up to what the limit carries in a second
//! (`max_recv` in `readwrite_data`, lib/transfer.c of curl 7.88). The kernel receives while it
//! sleeps, so the wire carries bursts of what came meanwhile.

use super::STEP;
use fullpipe_model::units::{Bytes, Duration, Instant, Rate};

/// Lateness that is caught up on at once: with [`STEP`] less than an eighth of the 100 ms in which
/// a peak is measured.
const LATE: Duration = Duration::from_millis(8);
/// The longest time whose bytes are owed.
const DEBT: Duration = Duration::from_millis(250);
/// Who owes what the rate carries in this time does not reach the rate: [`DEBT`], less what was
/// paid back since it was last full.
const BEHIND: Duration = Duration::from_millis(200);
/// How much faster than the limit a debt is paid back.
const REPAY: f64 = 0.03;
/// `MIN_RATE_LIMIT_PERIOD` of curl.
const SLIDE: Duration = Duration::from_secs(3);
/// What the limit carries in this time, curl reads in one round.
const ROUND: Duration = Duration::from_secs(1);

/// At most this rate, in small steps.
#[derive(Debug, Clone)]
pub(crate) struct Smooth {
    rate: Rate,
    step: Bytes,
    /// The time at which everything that has passed is paid for; `None` before the first byte.
    due: Option<Instant>,
    owed: Bytes,
}

impl Smooth {
    fn new(rate: Rate) -> Smooth {
        Smooth { rate, step: rate.over(STEP).max(Bytes::new(1)), due: None, owed: Bytes::ZERO }
    }

    fn allowance(&mut self, now: Instant) -> Result<Bytes, Duration> {
        let due = *self.due.get_or_insert(now);
        if now < due {
            return Err(due.since(now));
        }
        let lost = now.since(due).saturating_sub(LATE);
        if lost > Duration::ZERO {
            self.owed = (self.owed + self.rate.over(lost.min(DEBT))).min(self.rate.over(DEBT));
            self.due = Some(now.saturating_sub(LATE));
        }
        Ok(self.step)
    }

    fn spend(&mut self, amount: Bytes) {
        let Some(due) = self.due else { return };
        let mut counts = amount;
        if self.owed > Bytes::ZERO {
            counts = Bytes::from_f64((amount.as_f64() / (1.0 + REPAY)).ceil());
            self.owed = self.owed.saturating_sub(amount.saturating_sub(counts));
        }
        self.due = Some(due + self.rate.time_for(counts).unwrap_or(Duration::MAX));
    }

    /// Whether almost as much is owed as may be: the rate is not reached.
    fn is_behind(&self) -> bool {
        self.owed > self.rate.over(BEHIND)
    }
}

/// curl's limiter, for comparison.
#[derive(Debug, Clone)]
pub(crate) struct Sliding {
    rate: Rate,
    start: Option<Instant>,
    /// What passed since the start point.
    passed: Bytes,
    /// What may pass in this round of reads.
    round: Bytes,
}

impl Sliding {
    fn allowance(&mut self, now: Instant) -> Result<Bytes, Duration> {
        if self.round > Bytes::ZERO {
            return Ok(self.round);
        }
        let start = *self.start.get_or_insert(now);
        let least = self.rate.time_for(self.passed).unwrap_or(Duration::MAX);
        let elapsed = now.since(start);
        if elapsed < least {
            return Err(least.saturating_sub(elapsed));
        }
        if elapsed >= SLIDE {
            (self.start, self.passed) = (Some(now), Bytes::ZERO);
        }
        self.round = self.rate.over(ROUND).max(Bytes::new(1));
        Ok(self.round)
    }

    fn spend(&mut self, amount: Bytes) {
        self.passed += amount;
        self.round = self.round.saturating_sub(amount);
    }
}

/// A limit on what is read.
#[derive(Debug, Clone)]
pub(crate) enum Limiter {
    Smooth(Smooth),
    Sliding(Sliding),
}

impl Limiter {
    /// Small steps on a schedule. `rate` is above zero.
    pub(crate) fn smooth(rate: Rate) -> Limiter {
        Limiter::Smooth(Smooth::new(rate))
    }

    /// As curl does. `rate` is above zero.
    pub(crate) fn sliding(rate: Rate) -> Limiter {
        let (passed, round) = (Bytes::ZERO, Bytes::ZERO);
        Limiter::Sliding(Sliding { rate, start: None, passed, round })
    }

    /// How much may be read at `now`, or how long to wait before asking again.
    pub(crate) fn allowance(&mut self, now: Instant) -> Result<Bytes, Duration> {
        match self {
            Limiter::Smooth(limiter) => limiter.allowance(now),
            Limiter::Sliding(limiter) => limiter.allowance(now),
        }
    }

    /// Records that `amount` was read.
    pub(crate) fn spend(&mut self, amount: Bytes) {
        match self {
            Limiter::Smooth(limiter) => limiter.spend(amount),
            Limiter::Sliding(limiter) => limiter.spend(amount),
        }
    }

    /// Whether less passes than may, and a delay of the reader does not explain it.
    pub(crate) fn is_behind(&self) -> bool {
        match self {
            Limiter::Smooth(limiter) => limiter.is_behind(),
            Limiter::Sliding(_) => false,
        }
    }

    /// Records that there was nothing to read.
    pub(crate) fn ran_dry(&mut self) {
        if let Limiter::Sliding(limiter) = self {
            limiter.round = Bytes::ZERO;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rates() -> impl Strategy<Value = Rate> {
        (80_000u64..10_000_000_000).prop_map(Rate::from_bits_per_sec)
    }

    /// What passes, and when, for a reader that is late by so many microseconds after each wait.
    fn passages(limiter: &mut Limiter, late_us: &[u64]) -> Vec<(Instant, Bytes)> {
        let mut now = Instant::from_nanos(1);
        let mut passed = Vec::new();
        for late in late_us {
            match limiter.allowance(now) {
                Ok(most) => {
                    limiter.spend(most);
                    passed.push((now, most));
                }
                Err(wait) => now = now + wait + Duration::from_micros(*late),
            }
        }
        passed
    }

    fn most_in(passed: &[(Instant, Bytes)], span: Duration) -> Bytes {
        let sum = |from: usize| {
            let start = passed[from].0;
            passed[from..]
                .iter()
                .take_while(|(at, _)| at.since(start) < span)
                .map(|one| one.1)
                .sum()
        };
        (0..passed.len()).map(sum).max().unwrap_or(Bytes::ZERO)
    }

    #[test]
    fn curls_algorithm_reads_a_burst_and_then_sleeps_it_off() {
        let rate = Rate::from_bits_per_sec(1_600_000);
        let mut limiter = Limiter::sliding(rate);
        let start = Instant::from_nanos(1);
        assert_eq!(limiter.allowance(start), Ok(Bytes::new(200_000)));
        limiter.spend(Bytes::new(50_000));
        assert_eq!(limiter.allowance(start), Ok(Bytes::new(150_000)), "data is still there");
        limiter.ran_dry();
        // 50 kB at 200 kB/s.
        assert_eq!(limiter.allowance(start), Err(Duration::from_millis(250)));
        let later = start + Duration::from_secs(4);
        assert_eq!(limiter.allowance(later), Ok(Bytes::new(200_000)));
        limiter.spend(Bytes::new(200_000));
        assert_eq!(limiter.allowance(later), Err(Duration::from_secs(1)), "its window began anew");
    }

    #[test]
    fn a_stall_of_ten_seconds_is_followed_by_no_burst_and_at_most_a_quarter_second_of_debt() {
        let rate = Rate::from_bits_per_sec(8_000_000);
        let mut late = vec![0; 1000];
        // Every second call is a wait: one of the two.
        late[500..502].fill(10_000_000);
        late.extend(std::iter::repeat_n(0, 20_000));
        let passed = passages(&mut Limiter::smooth(rate), &late);
        let (first, last) = (passed[0].0, passed[passed.len() - 1].0);
        let peak = most_in(&passed, Duration::from_millis(100));
        assert!(peak.as_f64() <= 1.2 * rate.over(Duration::from_millis(100)).as_f64(), "{peak}");
        let sum: Bytes = passed.iter().map(|one| one.1).sum();
        let busy = last.since(first).saturating_sub(Duration::from_secs(10));
        let most = rate.over(busy + DEBT + LATE + STEP + STEP);
        assert!(sum <= most && sum >= rate.over(busy), "{sum}, {most}");
    }

    proptest! {
        #[test]
        fn no_tenth_of_a_second_carries_more_than_a_fifth_above_the_limit(
            rate in rates(),
            late_us in prop::collection::vec(0u64..400_000, 2..300),
        ) {
            let passed = passages(&mut Limiter::smooth(rate), &late_us);
            for ms in [20u64, 100, 1000] {
                let span = Duration::from_millis(ms);
                let most = most_in(&passed, span).as_f64();
                let carried = rate.over(span + LATE + STEP).as_f64() * (1.0 + REPAY);
                // A byte of rounding a step.
                let bound = carried + 2.0 + span.as_secs_f64() / 0.004;
                prop_assert!(most <= bound, "{most} in {span}, bound {bound}");
            }
            let tenth = Duration::from_millis(100);
            if rate.over(STEP) > Bytes::new(1_000) {
                let most = most_in(&passed, tenth).as_f64();
                prop_assert!(most <= 1.2 * rate.over(tenth).as_f64(), "{most}");
            }
        }

        /// A machine that is late by up to 100 ms now and then keeps the mean.
        #[test]
        fn lateness_that_is_rare_does_not_lower_the_mean(rate in rates(), late_us in 1u64..100_000) {
            let late: Vec<u64> = (0..12_000).map(|n| if n % 1500 == 1499 { late_us } else { 0 }).collect();
            let passed = passages(&mut Limiter::smooth(rate), &late);
            let sum: Bytes = passed.iter().map(|one| one.1).sum();
            let (first, last) = (passed[0].0, passed[passed.len() - 1].0);
            let due = rate.over(last.since(first)).as_f64();
            let step = rate.over(STEP).as_f64() + rate.over(Duration::from_micros(late_us)).as_f64();
            prop_assert!(sum.as_f64() >= 0.99 * due - step, "{sum} of {due}");
            prop_assert!(sum.as_f64() <= 1.01 * due + 2.0 * step, "{sum} of {due}");
        }
    }
}
