//! Idle restart: after a pause longer than a retransmission timeout, the congestion window is
//! reduced towards its initial size (RFC 5681 section 4.1; `tcp_cwnd_restart` in
//! net/ipv4/tcp_output.c).

use super::{DataSeen, LEAST_PART};
use crate::limit::Interval;
use fullpipe_model::units::{Bytes, Duration};

/// The least retransmission timeout of Linux. A shorter pause causes no restart.
const PAUSE_LEAST: Duration = Duration::from_millis(200);
/// Segments with which a window begins (`TCP_INIT_CWND`).
const INITIAL: u64 = 10;
/// Least ratio of the data in flight before the pause to that in the first interval after it.
const SHRINKS: f64 = 1.5;
/// Least growth from one round trip to the next in slow start with delayed ACKs (RFC 5681 section
/// 3.1).
const GROWS: f64 = 1.4;
/// How many times in a row the data in flight must grow so.
const STEPS_LEAST: usize = 2;

/// Slow starts that followed pauses of the application.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct IdleRestart {
    /// How many.
    pub count: u64,
    /// How long the window then grew.
    pub time: Duration,
    /// That time as a fraction of the whole transfer's.
    pub part: f64,
    /// Most payload in flight before the last of the pauses.
    pub before: Bytes,
    /// Payload in flight in the first interval after it.
    pub after: Bytes,
}

impl IdleRestart {
    pub(super) fn of(seen: DataSeen<'_>) -> Option<Self> {
        let mut rest = &seen.verdict?.intervals[..];
        let mut found = IdleRestart {
            count: 0,
            time: Duration::ZERO,
            part: 0.0,
            before: Bytes::ZERO,
            after: Bytes::ZERO,
        };
        // A window that has not grown has nothing to lose: it begins anew with as much (RFC 6928).
        let initial = Bytes::new(INITIAL * seen.mss());
        // The transfer is divided at the pauses of the sender.
        let mut before = Bytes::ZERO;
        while !rest.is_empty() {
            let pause = leading(rest, is_pause);
            let burst = leading(&rest[pause..], |interval| !is_pause(interval));
            let silence: Duration = rest[..pause].iter().map(|interval| interval.length).sum();
            let (now, later) = rest[pause..].split_at(burst);
            let may_shrink = silence >= PAUSE_LEAST && before > initial;
            if let Some(time) = growth(now, before).filter(|_| may_shrink) {
                found.count += 1;
                found.time = found.time.saturating_add(time);
                (found.before, found.after) = (before, now[0].evidence.in_flight);
            }
            before = most_in_flight(now);
            rest = later;
        }
        found.part = seen.part(found.time);
        (found.count > 0 && found.part >= LEAST_PART).then_some(found)
    }
}

/// How many intervals at the start satisfy `is_so`.
fn leading(intervals: &[Interval], is_so: impl Fn(&Interval) -> bool) -> usize {
    intervals.iter().position(|interval| !is_so(interval)).unwrap_or(intervals.len())
}

/// Nothing was in flight for most of the interval, and nothing was sent again.
fn is_pause(interval: &Interval) -> bool {
    interval.evidence.idle > 0.5 && interval.evidence.retransmissions == 0
}

fn most_in_flight(intervals: &[Interval]) -> Bytes {
    intervals.iter().map(|interval| interval.evidence.in_flight).max().unwrap_or(Bytes::ZERO)
}

/// How long the data in flight grew, as it does when a window starts again: from far less than
/// `before`, by a factor of `GROWS` or more from one interval to the next. `None` where it did
/// not.
fn growth(burst: &[Interval], before: Bytes) -> Option<Duration> {
    let flights: Vec<f64> = burst.iter().map(|one| one.evidence.in_flight.as_f64()).collect();
    let is_anew = flights.first().is_some_and(|first| before.as_f64() >= SHRINKS * first);
    let steps = flights.windows(2).take_while(|pair| pair[1] >= GROWS * pair[0]).count();
    let time = burst[..burst.len().min(steps + 1)].iter().map(|interval| interval.length).sum();
    (is_anew && steps >= STEPS_LEAST).then_some(time)
}
