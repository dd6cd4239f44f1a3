//! Data that was lost, by when it was sent first.

use super::unwrapped::Unwrapped;
use crate::capture::segment::SequenceNumber;
use crate::limit::{DropRun, Policed, policed};
use fullpipe_model::units::{Duration, Instant};

/// So many runs of lost segments are kept. A rate shows within fewer.
const MOST_RUNS: usize = 1024;
/// What is filled sooner was overtaken (as Wireshark has it).
const OVERTAKEN: Duration = Duration::from_millis(3);

/// The losses of one direction. Of a capture behind them only gaps show them: what was lost is
/// taken to have been sent just after what came before, as the end of a burst.
#[derive(Debug, Clone, Default)]
pub(super) struct Drops {
    numbers: Unwrapped,
    runs: Vec<LostRun>,
    /// When the first run was left out.
    full: Option<Instant>,
}

/// Segments that were lost one after the other.
#[derive(Debug, Clone, Copy)]
struct LostRun {
    /// When the first and the last of them were sent.
    from: Instant,
    to: Instant,
    /// When the first of them was sent again.
    repaired: Instant,
    /// The numbers of their bytes.
    start: i64,
    end: i64,
}

impl Drops {
    /// Notes that `length` bytes from `seq` on, which were sent at `sent`, are sent again.
    pub fn note(&mut self, at: Instant, sent: Instant, seq: SequenceNumber, length: u32) {
        if at.since(sent) < OVERTAKEN {
            return;
        }
        let start = self.numbers.of(seq);
        let end = start + i64::from(length);
        let is_full = self.runs.len() >= MOST_RUNS;
        match self.runs.last_mut() {
            Some(run) if run.end == start && run.to <= sent => (run.end, run.to) = (end, sent),
            _ if !is_full => {
                self.runs.push(LostRun { from: sent, to: sent, repaired: at, start, end });
            }
            _ => self.full = self.full.or(Some(sent)),
        }
    }

    /// The policer that explains them, of data that was sent from `first` to `last` in segments of
    /// this payload.
    pub fn policed(mut self, first: Instant, last: Instant, segment: u64) -> Option<Policed> {
        self.runs.sort_by_key(|run| (run.from, run.start));
        let mut repairs: Vec<(Instant, i64)> =
            self.runs.iter().map(|run| (run.repaired, run.end - run.start)).collect();
        repairs.sort_unstable();
        let mut repairs = repairs.into_iter().peekable();
        let base = self.runs.first()?.start;
        // What was sent again before, and what was lost.
        let (mut repaired, mut lost) = (0_i64, 0_i64);
        let runs = self.runs.iter().map(|run| {
            while let Some((_, bytes)) = repairs.next_if(|(at, _)| *at < run.from) {
                repaired += bytes;
            }
            let passed = run.start - base + repaired - lost;
            let bytes = run.end - run.start;
            lost += bytes;
            DropRun {
                from: nanos(run.from),
                to: nanos(run.to),
                segments: bytes.unsigned_abs().div_ceil(segment.max(1)),
                passed: u64::try_from(passed).unwrap_or_default(),
            }
        });
        let runs: Vec<DropRun> = runs.collect();
        let last = self.full.map_or(last, |full| full.min(last));
        policed(&runs, (nanos(first), nanos(last)), segment)
    }
}

fn nanos(at: Instant) -> i64 {
    i64::try_from(at.as_nanos()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEGMENT: u32 = 1448;
    const RTT: Duration = Duration::from_millis(40);

    /// A sender that offers a window each round trip, and repairs what a bucket drops in the next.
    fn behind_a_bucket(rate: f64, window: u64) -> Option<Policed> {
        let mut drops = Drops::default();
        let (mut level, mut before) = (60_000.0_f64, 0.0);
        let mut number = 0_u32;
        let mut repairs: Vec<(Instant, u32)> = Vec::new();
        let at = |round: u64, place: u64| {
            Instant::ZERO + RTT.saturating_mul(round) + Duration::from_micros(10 * place)
        };
        for round in 0..200 {
            let old = std::mem::take(&mut repairs);
            let again = old.iter().map(|(sent, seq)| (Some(*sent), *seq));
            let first = number;
            let new = window - old.len() as u64;
            let fresh = (0..new).map(|place| (None, first + place as u32 * SEGMENT));
            number += new as u32 * SEGMENT;
            for (place, (sent, seq)) in (0..).zip(again.chain(fresh)) {
                let now = at(round, place);
                if let Some(sent) = sent {
                    drops.note(now, sent, SequenceNumber(seq), SEGMENT);
                }
                let seconds = now.as_nanos() as f64 / 1e9;
                level = (level + rate * (seconds - before)).min(60_000.0);
                before = seconds;
                // What is sent again passes: a repair of a repair is not noted.
                if sent.is_some() || level >= f64::from(SEGMENT) {
                    level -= f64::from(SEGMENT);
                } else {
                    repairs.push((now, seq));
                }
            }
        }
        drops.policed(at(0, 0), at(200, 0), SEGMENT.into())
    }

    #[test]
    fn a_bucket_is_found_by_what_is_sent_again() {
        let rate = 1_000_000.0;
        let found = behind_a_bucket(rate, 32).unwrap();
        let ratio = found.rate.as_f64() / 8.0 / rate;
        assert!((0.8..=1.05).contains(&ratio) && found.part > 0.8, "{found:?}");
        assert_eq!(behind_a_bucket(10e6, 20), None, "nothing is lost");
    }
}
