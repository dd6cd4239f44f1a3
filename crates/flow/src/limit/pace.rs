//! Who sets the pace, where it is an application, the sender's own pacing, a congestion window that
//! grows back, or connections that share the path.

use fullpipe_model::units::{Bytes, Duration, Rate};

/// Data passes evenly where the mean is at least this part of the rate without pauses.
const EVENLY: f64 = 0.92;
/// And for at least this part of the time.
const MOSTLY_EVEN: f64 = 0.5;
/// How sure it is that the sender spaced such data: of some 700 captures of generated runs, none
/// looks like that whose truth is another one. Surer where a few segments at a time passed this
/// much faster, so that the path has room.
const PACED: f64 = 0.7;
const PACED_BELOW_PATH: f64 = 0.9;
const FASTER: f64 = 1.5;

/// How an end sets the pace that nothing else sets.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pace {
    /// The sender's application pauses between what it writes.
    Pauses {
        /// For how much of the time TCP had nothing to send, 0 to 1.
        idle: f64,
        /// How often it writes, if a clock says when.
        period: Option<Duration>,
    },
    /// The receiver acknowledges late, because its application does not read.
    LateAcks {
        /// For how much of the time its ACKs were kept back, 0 to 1.
        time: f64,
    },
    /// The sender lets data go evenly, at this rate, while nothing on the path holds it.
    Even(Rate),
    /// The congestion window, which is smaller after drops of a full link, which carries this.
    AfterDrops(Rate),
    /// The congestion window, which the path makes smaller each time after about so much data:
    /// something is full then.
    DropsAfter(Bytes),
    /// The connections beside it, which have more whenever it has less: the path has one sum for
    /// all of them.
    OneSum,
}

/// The rate at which `bytes` passed in `time`, where they passed evenly for most of the `whole`:
/// about at the rate of `trains`, which is that without pauses.
pub(super) fn even_pace(
    bytes: Bytes,
    time: Duration,
    whole: Duration,
    trains: Option<Rate>,
) -> Option<Rate> {
    let rate = bytes.per(time)?;
    let is_most = time.as_secs_f64() >= MOSTLY_EVEN * whole.as_secs_f64();
    let is_even = trains.is_some_and(|train| rate.as_f64() >= EVENLY * train.as_f64());
    (is_most && is_even).then_some(rate)
}

/// How sure it is that the sender spaced what passed at `rate`. `bursts` is how fast a few segments
/// at a time passed.
pub(super) fn confidence_of_pace(rate: Rate, bursts: Option<Rate>) -> f64 {
    let has_room = bursts.is_some_and(|bursts| bursts.as_f64() > FASTER * rate.as_f64());
    if has_room { PACED_BELOW_PATH } else { PACED }
}
