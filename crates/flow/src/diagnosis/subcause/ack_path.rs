//! The way back: round trips are long because ACKs wait in a queue on their way back, while the
//! data's own way has none. A sender then waits as if the path were longer or slower.

use super::DataSeen;
use fullpipe_model::units::Duration;

/// Fewer ACKs may be chance.
const COUNT_LEAST: u32 = 50;
/// The least mean wait of an ACK, and its least fraction of the shortest round trip.
const WAIT_LEAST: Duration = Duration::from_millis(20);
const OF_ROUND_TRIP: f64 = 0.5;
/// The least fraction of what round trips take longer that their ACKs take.
const OF_EXCESS: f64 = 0.6;
/// The two differ ACK by ACK by at most this fraction. Clocks that run apart differ by more.
const DIFFERENCE_MOST: f64 = 0.4;

/// ACKs that waited on their way back.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AckPath {
    /// How many ACKs were timed.
    pub count: u64,
    /// Their mean wait.
    pub wait: Duration,
    /// What round trips took more than the shortest, on average.
    pub excess: Duration,
    /// The shortest round trip.
    pub shortest: Duration,
    /// The fraction of the ACKs that stood for more than two segments.
    pub stretched: f64,
}

impl AckPath {
    pub(super) fn of(seen: DataSeen<'_>) -> Option<Self> {
        let facts = seen.facts();
        let delays = facts.ack_path;
        if delays.count < COUNT_LEAST {
            return None;
        }
        let shortest = facts.rtt.min?;
        let [wait, excess, differs] = [delays.acks, delays.round_trips, delays.difference]
            .map(|all| Duration::from_nanos(all.as_nanos() / u64::from(delays.count)));
        let least = OF_ROUND_TRIP * shortest.as_secs_f64();
        let is_long = wait >= WAIT_LEAST && wait.as_secs_f64() >= least;
        let is_theirs = wait.as_secs_f64() >= OF_EXCESS * excess.as_secs_f64();
        let most = DIFFERENCE_MOST * excess.as_secs_f64();
        if !is_long || !is_theirs || differs.as_secs_f64() > most {
            return None;
        }
        let manner = seen.receiver_facts().manner;
        let stretched = f64::from(manner.stretch_acks) / f64::from(manner.advancing_acks.max(1));
        Some(AckPath { count: delays.count.into(), wait, excess, shortest, stretched })
    }
}
