//! Data that was lost, by when it was sent first.

use super::unwrapped::Unwrapped;
use crate::capture::segment::SequenceNumber;
use crate::limit::{DropPattern, DropRun, Policed, policed, regular};
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

/// Data that is sent again.
#[derive(Debug, Clone, Copy)]
pub(super) struct SentAgain {
    pub at: Instant,
    /// When it was sent first.
    pub sent: Instant,
    pub seq: SequenceNumber,
    /// Its payload, in bytes.
    pub length: u32,
    /// The number after the highest that was sent before.
    pub next: SequenceNumber,
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
    /// The number after the highest that had been sent by then.
    next: i64,
}

impl Drops {
    /// Notes that data is sent again.
    pub fn note(&mut self, again: SentAgain) {
        let SentAgain { at, sent, seq, length, next } = again;
        if at.since(sent) < OVERTAKEN {
            return;
        }
        let start = self.numbers.of(seq);
        let end = start + i64::from(length);
        let next = start + i64::from(next.distance(seq));
        let is_full = self.runs.len() >= MOST_RUNS;
        match self.runs.last_mut() {
            Some(run) if run.end == start && run.to <= sent => (run.end, run.to) = (end, sent),
            _ if !is_full => {
                self.runs.push(LostRun { from: sent, to: sent, repaired: at, start, end, next });
            }
            _ => self.full = self.full.or(Some(sent)),
        }
    }

    /// What they are like, of data that was sent from `first` to `last` in segments of this
    /// payload.
    pub fn pattern(mut self, first: Instant, last: Instant, segment: u64) -> DropPattern {
        self.runs.sort_by_key(|run| (run.from, run.start));
        let after = regular(&self.amounts(), segment);
        DropPattern { policed: self.policed(first, last, segment), after }
    }

    /// The bytes from where the drops of a window were repaired to the next drop. How slow start
    /// ended is left out.
    fn amounts(&self) -> Vec<u64> {
        let mut amounts = Vec::new();
        let mut until = None;
        for run in &self.runs {
            let repaired = until.filter(|until| run.start >= *until);
            amounts.extend(repaired.map(|until| run.start.abs_diff(until)));
            until = Some(until.map_or(run.next, |until: i64| until.max(run.next)));
        }
        amounts.into_iter().skip(1).collect()
    }

    fn policed(self, first: Instant, last: Instant, segment: u64) -> Option<Policed> {
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
            let again = old.iter().map(|(sent, seq)| (Some(*sent), SequenceNumber(*seq)));
            let first = number;
            let new = window - old.len() as u64;
            let fresh =
                (0..new).map(|place| (None, SequenceNumber(first + place as u32 * SEGMENT)));
            number += new as u32 * SEGMENT;
            for (place, (sent, seq)) in (0..).zip(again.chain(fresh)) {
                let now = at(round, place);
                if let Some(sent) = sent {
                    let next = SequenceNumber(first);
                    drops.note(SentAgain { at: now, sent, seq, length: SEGMENT, next });
                }
                let seconds = now.as_nanos() as f64 / 1e9;
                level = (level + rate * (seconds - before)).min(60_000.0);
                before = seconds;
                // What is sent again passes: a repair of a repair is not noted.
                if sent.is_some() || level >= f64::from(SEGMENT) {
                    level -= f64::from(SEGMENT);
                } else {
                    repairs.push((now, seq.0));
                }
            }
        }
        drops.pattern(at(0, 0), at(200, 0), SEGMENT.into()).policed
    }

    #[test]
    fn a_bucket_is_found_by_what_is_sent_again() {
        let rate = 1_000_000.0;
        let found = behind_a_bucket(rate, 32).unwrap();
        let ratio = found.rate.as_f64() / 8.0 / rate;
        assert!((0.8..=1.05).contains(&ratio) && found.part > 0.8, "{found:?}");
        assert_eq!(behind_a_bucket(10e6, 20), None, "nothing is lost");
    }

    /// A sender that grows by a segment each round trip, and halves after one in which something
    /// was dropped, as `drops` says of the place of a segment in its flight.
    fn grows_until(
        mut drops: impl FnMut(u64, u64) -> bool,
    ) -> Option<fullpipe_model::units::Bytes> {
        let mut seen = Drops::default();
        let (mut number, mut window) = (0_u32, 20_u64);
        let mut lost: Vec<(Instant, u32)> = Vec::new();
        for round in 0..3000_u64 {
            let at = |place: u64| {
                Instant::ZERO + RTT.saturating_mul(round) + Duration::from_micros(10 * place)
            };
            let next = SequenceNumber(number);
            for (place, (sent, seq)) in (0..).zip(std::mem::take(&mut lost)) {
                let (at, seq) = (at(place), SequenceNumber(seq));
                seen.note(SentAgain { at, sent, seq, length: SEGMENT, next });
            }
            for place in 0..window {
                if drops(place, window) {
                    lost.push((at(place + 50), number));
                }
                number += SEGMENT;
            }
            window = if lost.is_empty() { window + 1 } else { (window / 2).max(2) };
        }
        seen.pattern(Instant::ZERO, Instant::ZERO + RTT.saturating_mul(3000), SEGMENT.into()).after
    }

    #[test]
    fn what_is_full_drops_after_the_same_amount_and_chance_does_not() {
        // From 20 to 40 segments: 20 rounds of 30.
        let after = grows_until(|place, _| place >= 40).unwrap().get() / u64::from(SEGMENT);
        assert!((500..700).contains(&after), "{after} segments");
        for (odds, seed) in [(50, 1_u64), (200, 2), (1000, 3), (3000, 4)] {
            let mut random = seed;
            let after = grows_until(|_, _| {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (random >> 33) % odds == 0
            });
            assert_eq!(after, None, "one of {odds}");
        }
    }
}
