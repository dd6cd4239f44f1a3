//! Drops at the path's own ceiling: a link with a short queue.
//!
//! Such a queue is empty for a part of the time, so no queue stands, and its drops look like loss.
//! But they come where the path ends: each time at the same amount in flight, with the queue full
//! and the path carrying what it can. Loss that has nothing to do with the sender comes at any
//! amount in flight. Between two bounds, as a full receive window with some loss, the amount is the
//! same each time, too, but nothing is delayed and the path has room.

use super::Transfer;
use super::trains::train_rate;
use crate::limit::percentiles::Sorted;
use crate::limit::thresholds::{
    BEFORE_DROP, BUSY_AT_CEILING, CEILING_SPREAD, CEILINGS_LEAST, HELD_AT_CEILING, MOST_AT_CEILING,
    OF_TRAINS, QUEUE_LEAST, QUEUE_PART,
};
use fullpipe_model::units::{Duration, Rate};

/// The most that was seen shortly before a drop.
struct Top {
    in_flight: f64,
    rate: f64,
    rtt: Option<Duration>,
}

impl Transfer<'_> {
    /// Whether drops come where the path ends.
    pub(super) fn drops_at_ceiling(&self) -> bool {
        let Some(base) = self.rtt else { return false };
        let tops = self.tops();
        if tops.len() < CEILINGS_LEAST {
            return false;
        }
        let least = QUEUE_LEAST.max(Duration::from_secs_f64(base.as_secs_f64() * QUEUE_PART));
        let rtts = tops.iter().filter_map(|top| top.rtt);
        let delayed = rtts.filter(|rtt| rtt.saturating_sub(base) >= least).count();
        let in_flight = Sorted::new(tops.iter().map(|top| top.in_flight));
        let spread = in_flight.percentile(90) - in_flight.percentile(10);
        let rate = Sorted::new(tops.iter().map(|top| top.rate)).percentile(50);
        let trains = train_rate(self.features, self.is_at_sender).map_or(0.0, Rate::as_f64);
        delayed as f64 >= MOST_AT_CEILING * tops.len() as f64
            && spread <= CEILING_SPREAD * in_flight.percentile(50)
            && rate >= OF_TRAINS * trains
            && self.is_busy_apart_from_repairs(rate)
    }

    /// Whether the whole transfer carried a good part of `rate`, and no host held it meanwhile. A
    /// window that is halved at the ceiling carries three quarters of it; a writer or a reader in
    /// large blocks fills the queue once a block.
    fn is_busy_apart_from_repairs(&self, rate: f64) -> bool {
        let lengths = &self.surroundings.lengths;
        let all: f64 = lengths.iter().sum();
        let bits: u64 = self.features.iter().map(|f| f.delivered * 8).sum();
        let held = (0..lengths.len()).filter(|at| self.is_held_by_a_host(*at, false));
        let held: f64 = held.map(|at| lengths[at]).sum();
        bits as f64 >= BUSY_AT_CEILING * rate * all && held <= HELD_AT_CEILING * all
    }

    /// What came before each drop. Slow start ends far above any ceiling, so the first is left out.
    fn tops(&self) -> Vec<Top> {
        let mut last = None;
        let mut tops = Vec::new();
        for at in (0..self.features.len()).filter(|at| self.features[*at].retransmissions > 0) {
            let is_new = last.is_none_or(|last| at - last > BEFORE_DROP);
            last = Some(at);
            if !is_new {
                continue;
            }
            let before = at.saturating_sub(BEFORE_DROP)..at + 1;
            let near = &self.features[before.clone()];
            tops.push(Top {
                in_flight: near.iter().map(|f| f.in_flight_max.as_f64()).fold(0.0, f64::max),
                rate: self.rates[before].iter().copied().fold(0.0, f64::max),
                rtt: near.iter().filter_map(|f| f.rtt.get()).max(),
            });
        }
        tops.drain(..tops.len().min(1));
        tops
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Features, Path};
    use super::*;
    use fullpipe_model::units::Bytes;

    const BASE: Duration = Duration::from_millis(20);

    /// Teeth of 20 intervals that end in a drop, each at so many bytes in flight, with the round
    /// trip longer by `queue` at the end.
    fn teeth(tops: &[u64], queue: Duration, train: f32) -> Vec<Features> {
        let tooth = |top: &u64| {
            let top = *top;
            (0..20_u64).map(move |at| {
                let in_flight = top / 2 + top * at / 38;
                let is_top = at >= 17;
                let mut f = Features {
                    length: BASE,
                    segments: 100,
                    segment: 1448,
                    delivered: in_flight,
                    sent: in_flight,
                    in_flight_max: Bytes::new(in_flight),
                    in_flight_time: in_flight as f64 * 20e6,
                    retransmissions: u32::from(at == 19),
                    train_max: train,
                    ..Features::default()
                };
                f.rtt.note(if is_top { BASE.saturating_add(queue) } else { BASE });
                f
            })
        };
        tops.iter().flat_map(tooth).collect()
    }

    fn is_ceiling(features: &[Features]) -> bool {
        let path = Path::whole(Some(BASE), true);
        Transfer::new(features, path).drops_at_ceiling()
    }

    /// 100 kB in 20 ms are 40 Mbit/s.
    const TOPS: [u64; 6] = [300_000, 100_000, 101_000, 99_000, 100_000, 102_000];
    const QUEUE: Duration = Duration::from_millis(3);

    #[test]
    fn drops_at_one_amount_with_a_full_queue_are_the_links() {
        assert!(is_ceiling(&teeth(&TOPS, QUEUE, 40e6)));
        assert!(is_ceiling(&teeth(&TOPS, QUEUE, 0.0)), "trains too fast to be timed");
    }

    #[test]
    fn near_misses_are_not() {
        let random = [100_000, 40_000, 90_000, 150_000, 60_000, 120_000];
        assert!(!is_ceiling(&teeth(&random, QUEUE, 40e6)), "at any amount");
        assert!(!is_ceiling(&teeth(&TOPS, Duration::ZERO, 40e6)), "nothing is delayed");
        assert!(!is_ceiling(&teeth(&TOPS, QUEUE, 90e6)), "the path has room");
        assert!(!is_ceiling(&teeth(&TOPS[..3], QUEUE, 40e6)), "too few");
        let mut paused = teeth(&TOPS, QUEUE, 40e6);
        paused.iter_mut().step_by(3).for_each(|f| {
            f.idle = BASE.as_nanos();
            f.retransmissions = 0;
        });
        assert!(!is_ceiling(&paused), "a writer of blocks");
        assert!(!is_ceiling(&[]));
    }
}
