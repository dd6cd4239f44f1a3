//! Whether a link has room for what a larger window or buffer would let go.
//!
//! More in flight than the path holds waits in a queue. Where that is so all the time, and the link
//! carries nearly all that passes back to back, a larger window gives no more than what is left.

use super::{Features, Path};
use crate::limit::thresholds::BEYOND;
use crate::limit::{Limit, Verdict};
use fullpipe_model::units::{Bytes, Duration, Rate};

/// What gives less than a tenth is no limit.
const GAIN_LEAST: f64 = 1.1;
/// On average so many times what the path holds is in flight.
const BEYOND_PATH: f64 = 1.1;
/// How sure it is.
const NO_ROOM: f64 = 0.65;

/// The verdict, unless it names a window or a buffer where the link has no room.
pub(super) fn overrule(verdict: Verdict, features: &[Features], path: Path) -> Verdict {
    let is_bound = matches!(verdict.limited_by().limit, Limit::ReceiveWindow | Limit::SendBuffer);
    let rtt = path.hint.rtt.or(path.rtt).filter(|_| is_bound && !path.is_reordered);
    let rate = path.hint.rate.or(verdict.trains);
    match rtt.zip(rate).is_some_and(|(rtt, rate)| is_full(features, rtt, rate)) {
        true => verdict.proven_to_be(Limit::Link).no_surer_than(NO_ROOM),
        false => verdict,
    }
}

/// Whether a path of this round trip that carries this rate is nearly full, with a queue.
fn is_full(features: &[Features], rtt: Duration, rate: Rate) -> bool {
    let time = features.iter().map(|f| f.length).sum::<Duration>().as_secs_f64();
    let carried: u64 = features.iter().map(|f| f.delivered + f.beside).sum();
    let in_flight: f64 = features.iter().map(|f| f.in_flight_time).sum::<f64>() / time / 1e9;
    let segment = features.iter().map(|f| f.segment).max().unwrap_or_default();
    let path = rate.over(rtt);
    let beyond = path.saturating_add(Bytes::new(BEYOND * u64::from(segment)));
    8.0 * GAIN_LEAST * carried as f64 / time >= rate.as_f64()
        && in_flight >= beyond.as_f64().max(BEYOND_PATH * path.as_f64())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A window of so many bytes over a path of this rate (Mbit/s) and round trip: what does not
    /// fit onto the path waits in a queue.
    fn held_by(window: f64, rate: f64, rtt: f64) -> Vec<Features> {
        let carried = (window / rtt).min(rate * 1e6 / 8.0);
        let interval = Features {
            length: Duration::from_secs_f64(rtt.max(0.01)),
            segment: 1448,
            delivered: (carried * rtt.max(0.01)) as u64,
            in_flight_time: window * rtt.max(0.01) * 1e9,
            ..Features::default()
        };
        vec![interval; 100]
    }

    proptest! {
        /// A window gives a tenth wherever the link has it, and nothing where a queue stands, at
        /// any rate over any path of ten segments or more.
        #[test]
        fn a_window_gives_what_the_link_has_left(
            megabits in 1.0_f64..10_000.0,
            millis in 1.0_f64..300.0,
            part in 0.1_f64..3.0,
        ) {
            let (rate, rtt) = (megabits.round(), millis * 1e-3);
            let holds = rate * 1e6 / 8.0 * rtt;
            prop_assume!(holds > 40.0 * 1448.0);
            prop_assume!(!(0.9..1.15).contains(&part));
            let features = held_by(part * holds, rate, rtt);
            let link = Rate::from_bits_per_sec_f64(rate * 1e6);
            prop_assert_eq!(is_full(&features, Duration::from_secs_f64(rtt), link), part > 1.0);
        }
    }
}
