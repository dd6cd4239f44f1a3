//! RED: random early detection (Floyd and Jacobson, "Random Early Detection Gateways for Congestion
//! Avoidance", 1993).
//!
//! The queue is averaged. Between a lower and an upper threshold the probability of a drop rises
//! from nothing to its maximum, spread evenly between drops; above the upper threshold everything
//! is dropped.

use super::discipline::Red;
use super::random::{Purpose, RandomStream};
use crate::units::{Bytes, Instant, Probability, Rate};

/// The packet size that averages are counted in, as tc(8) recommends.
const MEAN_PACKET: f64 = 1000.0;

/// What to do with a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Pass,
    /// Signal congestion early: a mark will do.
    Early,
    /// The averaged queue is full: a mark would change nothing.
    Forced,
}

/// The state of RED.
#[derive(Debug)]
pub(super) struct RedState {
    min: f64,
    max: f64,
    probability: f64,
    weight: f64,
    /// Serialisation time of a mean packet, in nanoseconds.
    packet_time: f64,
    average: f64,
    /// Packets since the last drop; `None` below the lower threshold.
    since: Option<u64>,
    random: RandomStream,
}

impl RedState {
    /// `room` is the room of the queue.
    pub fn new(red: &Red, room: Bytes, rate: Rate, seed: u64) -> Self {
        let max = red.max.map_or(room.as_f64() / 4.0, Bytes::as_f64).max(2.0);
        let min = red.min.map_or(max / 3.0, Bytes::as_f64);
        let burst = red
            .burst
            .map_or((2.0 * min + max) / (3.0 * MEAN_PACKET), |burst| f64::from(burst.get()));
        RedState {
            min,
            max,
            probability: red.probability.get(),
            weight: weight(min, burst.max(1.0)),
            packet_time: MEAN_PACKET * 8e9 / rate.as_f64().max(1.0),
            average: 0.0,
            since: None,
            random: RandomStream::new(seed, Purpose::Discipline),
        }
    }

    /// Decides about a packet that arrives while `backlog` is waiting; `idle_since` is when the
    /// queue became empty, if it is.
    pub fn arrival(&mut self, backlog: Bytes, idle_since: Instant, now: Instant) -> Verdict {
        // One draw for each packet, whatever its fate.
        let random = self.random.next();
        if backlog == Bytes::ZERO {
            let packets = now.since(idle_since).as_nanos() as f64 / self.packet_time;
            self.average *= (1.0 - self.weight).powf(packets);
        }
        self.average += self.weight * (backlog.as_f64() - self.average);
        if self.average < self.min {
            self.since = None;
            return Verdict::Pass;
        }
        if self.average >= self.max {
            self.since = Some(0);
            return Verdict::Forced;
        }
        let since = self.since.map_or(0, |since| since + 1);
        let probability = self.probability * (self.average - self.min) / (self.max - self.min);
        // Spreads drops evenly: p / (1 - count p).
        let left = 1.0 - since as f64 * probability;
        let spread = if left <= probability { 1.0 } else { probability / left };
        let drop = Probability::new(spread).is_some_and(|probability| probability.happens(random));
        self.since = Some(if drop { 0 } else { since });
        if drop { Verdict::Early } else { Verdict::Pass }
    }
}

/// The weight of a new sample for which a burst of this many packets just stays below `min`: the
/// largest power of two that satisfies tc(8)'s condition,
/// `burst + 1 - min/avpkt < (1 - (1-w)^burst) / w`.
fn weight(min: f64, burst: f64) -> f64 {
    let above = burst + 1.0 - min / MEAN_PACKET;
    (1..32)
        .map(|log| 0.5f64.powi(log))
        .find(|w| above < (1.0 - (1.0 - w).powf(burst)) / w)
        .unwrap_or(0.5f64.powi(31))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ARRIVALS: usize = 200_000;

    /// The share that is dropped while `backlog` waits all the time.
    fn share(backlog: u64) -> (f64, bool) {
        let red =
            Red { min: Some(Bytes::new(30_000)), max: Some(Bytes::new(90_000)), ..Red::default() };
        let red = Red { probability: Probability::new(0.1).unwrap_or_default(), ..red };
        let mut state =
            RedState::new(&red, Bytes::new(400_000), Rate::from_bits_per_sec(10_000_000), 3);
        let arrive =
            |state: &mut RedState| state.arrival(Bytes::new(backlog), Instant::ZERO, Instant::ZERO);
        for _ in 0..10_000 {
            arrive(&mut state);
        }
        let verdicts: Vec<Verdict> = (0..ARRIVALS).map(|_| arrive(&mut state)).collect();
        let dropped = verdicts.iter().filter(|verdict| **verdict != Verdict::Pass).count();
        (dropped as f64 / ARRIVALS as f64, verdicts.contains(&Verdict::Forced))
    }

    /// By the paper's algorithm a drop comes 1 to 1/p - 1 packets after the one before, each as
    /// likely: on average 1 / (2 p).
    #[test]
    fn the_drop_curve_rises_from_min_to_max() {
        assert_eq!(share(29_000), (0.0, false));
        for (backlog, p) in [(45_000, 0.025), (60_000, 0.05), (80_000, 0.1 * 5.0 / 6.0)] {
            let (found, forced) = share(backlog);
            let law = 2.0 * p;
            assert!(
                (found / law - 1.0).abs() < 0.08 && !forced,
                "{backlog} B: {found}, {law} by law"
            );
        }
        assert_eq!(share(91_000), (1.0, true));
    }

    /// tc(8) red: for min 30000, avpkt 1000 and burst 55 it takes a weight of 2^-6 or less.
    #[test]
    fn a_burst_passes() {
        let w = weight(30_000.0, 55.0);
        // From an empty queue, a burst of 55 packets arriving at once leaves the average below min.
        let average = (1..=55)
            .fold(0.0, |average, waiting| average + w * (f64::from(waiting) * 1000.0 - average));
        assert!(average <= 30_000.0 * 1.05, "weight {w}: {average}");
    }
}
