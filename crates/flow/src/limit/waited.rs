//! For how much of the time the sender's TCP waited for an application, and whether one that
//! writes does so by a clock.
//!
//! TCP sends what it has as soon as both windows allow it. While it has nothing to send, and room
//! to send it, only the application can make it go on. How long that lasts is measured, and what a
//! faster application would give follows from it by arithmetic, so it outranks what a transfer's
//! shape makes likely.

mod blocks;

pub(crate) use blocks::{BlockPauses, Clocked};

use super::percentiles::Sorted;
use super::{Limit, Pace, Verdict};
use fullpipe_model::units::Duration;

/// What recurs takes at least this part of either half of the time. A transfer that paused once, or
/// that an application held only in the end, is held by something else for the rest.
const OF_EACH_HALF: f64 = 0.2;
/// If TCP waits for `w` of the time, a faster application makes the transfer faster by
/// `w / (1 - w)`, and whatever holds the rest by at most `(1 - w) / w`, if the rest takes no time
/// then. From here on the first is at least half of the second: `w / (1 - w)` is the root of one
/// half.
const AGAINST_ANY: f64 = 0.414;
/// A link of twice the rate takes half of the rest, so the same holds from a quarter on.
const AGAINST_LINK: f64 = 0.25;
/// A writer that a clock wakes carries what it writes, whatever holds each block, as long as there
/// is a pause before the next. This part of the time is more than what a path takes by chance.
const OF_A_CLOCK: f64 = 0.05;
/// Fewer periods are no clock.
const PERIODS_LEAST: usize = 6;
/// Periods that differ from their clock's by more than this part of it are no clock's.
const UNEVEN: f64 = 0.05;
/// Programs wait for whole milliseconds, so their times differ by up to half of one from a clock's,
/// and by as much as they are late. In seconds; of a period, this counts up to so many times as
/// much as [`UNEVEN`].
const READ_LATE: f64 = 0.0007;
const UNEVEN_BY_READING: f64 = 2.0;
/// A writer that takes the same time for each block pauses for the same time; one that waits for
/// its clock pauses for what its block left. The pauses differ by so many times as much as the
/// periods.
const MORE_EVEN: f64 = 3.0;
/// No clock is taken for more even than this part of its period.
const EVENEST: f64 = 0.003;
/// Shorter pauses than this part of the long ones are within a block.
const WITHIN_A_BLOCK: f64 = 0.1;

/// A time in which TCP had nothing to send, and room to send it, in seconds from the first data on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Pause {
    pub begin: f64,
    pub end: f64,
}

impl Pause {
    fn length(self) -> f64 {
        self.end - self.begin
    }
}

/// For how much of the time TCP waited for the application.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Waited {
    /// In the first and in the second half of the time from the first data to the last.
    halves: [f64; 2],
    /// The period of the clock by which the application writes, in seconds.
    period: Option<f64>,
}

impl Waited {
    /// From all pauses, in order, of a transfer that sent its last data after `time` seconds.
    pub fn new(pauses: &[Pause], time: f64) -> Waited {
        let half = time / 2.0;
        let halves = [(0.0, half), (half, time)].map(|(from, to)| {
            let all = pauses.iter().map(|one| (one.end.min(to) - one.begin.max(from)).max(0.0));
            all.sum::<f64>() / half.max(f64::MIN_POSITIVE)
        });
        Waited { halves, period: period(pauses, time) }
    }

    /// The same where a clock says nothing: something else may end the pauses at even times.
    pub fn without_clock(pauses: &[Pause], time: f64) -> Waited {
        Waited { period: None, ..Waited::new(pauses, time) }
    }

    /// The same where TCP itself may have made some of the pauses: they count if a clock ends them.
    pub fn by_clock(pauses: &[Pause], time: f64) -> Waited {
        let waited = Waited::new(pauses, time);
        if waited.period.is_some() { waited } else { Waited::default() }
    }

    /// Whether a faster application would give at least half of what lifting `other` may give.
    pub fn outweighs(self, other: Limit) -> bool {
        let [first, second] = self.halves;
        let all = self.idle();
        let least = if other == Limit::Link { AGAINST_LINK } else { AGAINST_ANY };
        (first.min(second) >= OF_EACH_HALF && all >= least)
            || (self.period.is_some() && all >= OF_A_CLOCK)
    }

    fn idle(self) -> f64 {
        let [first, second] = self.halves;
        (first + second) / 2.0
    }

    /// The verdict, unless the application that is `held_by` outweighs it.
    pub fn overrule(self, verdict: Verdict, held_by: Limit) -> Verdict {
        if !self.outweighs(verdict.limited_by().limit) {
            return verdict;
        }
        let mut verdict = verdict.proven_to_be(held_by);
        verdict.pace = Some(match held_by {
            Limit::ReceiverApplication => Pace::LateAcks { time: self.idle() },
            _ => {
                Pace::Pauses { idle: self.idle(), period: self.period.map(Duration::from_secs_f64) }
            }
        });
        verdict
    }
}

/// The period of the clock by which begins what follows each pause, while the pauses take what the
/// blocks leave.
fn period(pauses: &[Pause], time: f64) -> Option<f64> {
    let Beat { period, uneven, spread } = beat(pauses, time)?;
    (spread >= MORE_EVEN * uneven.max(EVENEST * period)).then_some(period)
}

/// When writing goes on after a pause.
#[derive(Debug, Clone, Copy)]
struct Beat {
    period: f64,
    /// By how much up or down 9 of 10 of these times differ from the clock's, and by how much the
    /// pauses' lengths differ.
    uneven: f64,
    spread: f64,
}

/// The clock by which begins what follows each pause: at the same time after the one before, or a
/// multiple of it.
fn beat(pauses: &[Pause], time: f64) -> Option<Beat> {
    let long = Sorted::new(pauses.iter().map(|pause| pause.length())).percentile(90);
    let between: Vec<Pause> =
        pauses.iter().copied().filter(|pause| pause.length() >= WITHIN_A_BLOCK * long).collect();
    let periods: Vec<f64> = between.windows(2).map(|two| two[1].end - two[0].end).collect();
    if periods.len() < PERIODS_LEAST || 2.0 * periods.iter().sum::<f64>() < time {
        return None;
    }
    let middle = Sorted::new(periods.iter().copied()).percentile(50);
    // A clock that is read late once is not late the next time: what counts is how far each time is
    // from the clock's, not from the one before.
    let mut count = 0.0;
    let counts = periods.iter().map(|one| {
        count += (one / middle).round().max(1.0);
        count
    });
    let counts: Vec<f64> = std::iter::once(0.0).chain(counts).collect();
    let period = periods.iter().sum::<f64>() / counts[periods.len()];
    let late = between.iter().zip(&counts).map(|(pause, count)| pause.end - count * period);
    let late = Sorted::new(late);
    let uneven = (late.percentile(95) - late.percentile(5)) / 2.0;
    let lengths = Sorted::new(between.iter().map(|pause| pause.length()));
    let spread = lengths.percentile(90) - lengths.percentile(10);
    let most = UNEVEN * period;
    (uneven <= most.max(READ_LATE.min(UNEVEN_BY_READING * most))).then_some(Beat {
        period,
        uneven,
        spread,
    })
}

#[cfg(test)]
mod tests;
