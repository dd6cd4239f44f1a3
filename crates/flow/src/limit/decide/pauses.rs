//! When the sender's TCP waited for an application, by a capture: for its own, which writes, or for
//! the receiver's, which reads.

use super::Features;
use crate::limit::percentiles::Sorted;
use crate::limit::thresholds::SLOWER;
use crate::limit::waited::{Clocked, Pause, Waited};
use crate::limit::{Limit, Verdict};

/// The verdict, unless an application outweighs it.
pub(super) fn overrule(
    verdict: Verdict,
    features: &[Features],
    rates: &[f64],
    clocked: Clocked,
) -> Verdict {
    let verdict = reader(features, rates).overrule(verdict, Limit::ReceiverApplication);
    writer(features, clocked).overrule(verdict, Limit::SenderApplication)
}

/// By the times in which nothing was in flight although the window had room. TCP pauses, too, where
/// it paces what it sends, and behind the path what was lost at the end of a flight looks like a
/// pause. So only a clock proves a writer: by these times, or by those in which it wrote nothing
/// while data was in flight.
fn writer(features: &[Features], clocked: Clocked) -> Waited {
    let (pauses, time) = pauses(features, |at| features[at].idle as f64 / 1e9);
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
