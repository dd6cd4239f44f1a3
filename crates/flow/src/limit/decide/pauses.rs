//! When the sender's TCP waited for an application, by a capture: for its own, which writes, or for
//! the receiver's, which reads.

use super::Features;
use crate::limit::percentiles::Sorted;
use crate::limit::thresholds::SLOWER;
use crate::limit::waited::{Clocked, Pause, Waited};
use crate::limit::{Limit, Verdict};

/// Fewer answers are not what is taken for a clock.
const ANSWERS_LEAST: u32 = 6;

/// When the sender's application wrote, as far as its segments show it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Writes {
    /// For how long a clock woke it.
    pub clocked: Clocked,
    /// How often it answered data of the other end.
    pub turns: u32,
}

/// The verdict, unless an application outweighs it.
pub(super) fn overrule(
    verdict: Verdict,
    features: &[Features],
    rates: &[f64],
    writes: Writes,
) -> Verdict {
    let verdict = reader(features, rates).overrule(verdict, Limit::ReceiverApplication);
    writer(features, writes).overrule(verdict, Limit::SenderApplication)
}

/// By the times in which nothing was in flight although the window had room. TCP pauses, too, where
/// it paces what it sends, and behind the path what was lost at the end of a flight looks like a
/// pause. So only a clock proves a writer: by these times, or by those in which it wrote nothing
/// while data was in flight. Where each block answers a question, the question ends the pause, and
/// on a full link questions come as evenly as a clock.
fn writer(features: &[Features], writes: Writes) -> Waited {
    let Writes { clocked, turns } = writes;
    let (pauses, time) = pauses(features, |at| features[at].idle as f64 / 1e9);
    if turns >= ANSWERS_LEAST && 2 * turns as usize >= pauses.len() {
        return Waited::default();
    }
    let waited = Waited::by_clock(&pauses, time);
    clocked.waited(time).filter(|_| waited == Waited::default()).unwrap_or(waited)
}

/// By the times for which ACKs were kept back until the application read. Where the path carried as
/// much as ever meanwhile, nobody waited for them. `rates` are those around each interval.
fn reader(features: &[Features], rates: &[f64]) -> Waited {
    let ever = Sorted::new(rates.iter().copied()).percentile(90);
    let (pauses, time) = pauses(features, |at| {
        let is_slower = rates[at] < SLOWER * ever;
        if is_slower { f64::from(features[at].late_acks) / 1e3 } else { 0.0 }
    });
    Waited::without_clock(&pauses, time)
}

/// The pauses, by how many seconds of each interval they took, and the time from the first data to
/// the last.
fn pauses(features: &[Features], of: impl Fn(usize) -> f64) -> (Vec<Pause>, f64) {
    let first = features.iter().position(|f| f.sent > 0).unwrap_or(0);
    let last = features.iter().rposition(|f| f.sent > 0).map_or(first, |last| last + 1);
    let mut pauses: Vec<Pause> = Vec::new();
    let (mut time, mut was_idle) = (0.0, false);
    for (at, f) in features.iter().enumerate().take(last).skip(first) {
        let idle = of(at);
        let begin = f.start.since(features[first].start).as_secs_f64();
        let end = begin + f.length.as_secs_f64();
        time = end;
        let is_idle = idle > 0.0;
        match pauses.last_mut() {
            // The end of a pause is at the beginning of its last interval.
            Some(pause) if is_idle && was_idle => pause.end = begin + idle,
            _ if is_idle => pauses.push(Pause { begin: end - idle, end }),
            _ => (),
        }
        // What ends with a repair waited for a timeout.
        if f.recovered || f.follows_gap {
            pauses.pop_if(|pause| pause.end > begin);
        }
        was_idle = is_idle && pauses.last().is_some_and(|pause| pause.end > begin);
    }
    (pauses, time)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullpipe_model::units::{Duration, Instant};

    /// A block in every second, which takes from 0.6 to 0.9 of it, and is followed by a pause; in
    /// intervals of 20 ms.
    fn blocks() -> Vec<Features> {
        let of = |at: u64| {
            let (block, part) = (at / 50, at % 50);
            let is_idle = part >= 30 + block * 7 % 16;
            let bytes = if is_idle { 0 } else { 20_000 };
            let length = Duration::from_millis(20);
            Features {
                start: Instant::ZERO + length.saturating_mul(at),
                length,
                sent: bytes,
                delivered: bytes,
                idle: if is_idle { length.as_nanos() } else { 0 },
                ..<_>::default()
            }
        };
        (0..50 * 20).map(of).collect()
    }

    #[test]
    fn a_question_ends_a_pause_where_blocks_are_answers() {
        let told = |turns| {
            let waited = writer(&blocks(), Writes { clocked: Clocked::default(), turns });
            waited.outweighs(Limit::Link)
        };
        assert!(told(0) && told(5), "a clock");
        assert!(!told(20) && !told(10), "answers");
    }
}
