//! When the sender's TCP waited for its application, by a capture.

use super::Features;
use crate::limit::waited::{Pause, Waited};

/// By the times in which nothing was in flight although the window had room. TCP pauses, too, where
/// it paces what it sends, and behind the path what was lost at the end of a flight looks like a
/// pause. So only a clock proves a writer.
pub(super) fn waited(features: &[Features]) -> Waited {
    let first = features.iter().position(|f| f.sent > 0).unwrap_or(0);
    let last = features.iter().rposition(|f| f.sent > 0).map_or(first, |last| last + 1);
    let mut pauses: Vec<Pause> = Vec::new();
    let (mut time, mut was_idle) = (0.0, false);
    for f in &features[first..last] {
        let idle = f.idle as f64 / 1e9;
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
    Waited::by_clock(&pauses, time)
}
