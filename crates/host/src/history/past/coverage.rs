//! Which times a recording has nothing of.

use fullpipe_flow::diagnosis::live::LookNote;
use fullpipe_model::units::{Duration, Instant, column};
use serde::Serialize;

/// A time in which nothing was recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Gap {
    /// Its begin, since 1970.
    #[serde(rename = "from_ns", with = "column::instant")]
    pub from: Instant,
    /// Its end.
    #[serde(rename = "until_ns", with = "column::instant")]
    pub until: Instant,
}

/// Less is no gap: a look takes a moment, and waits for its turn.
const LEAST: Duration = Duration::from_secs(2);

/// The times between `from` and `until` that no look covers. A look covers the time since the one
/// before it, with its calendar's time at its end; they are in order.
pub(super) fn gaps(looks: &[(Instant, LookNote)], from: Instant, until: Instant) -> Vec<Gap> {
    let mut found = Vec::new();
    let mut known_until = from;
    let covered = looks.iter().map(|(at, look)| (at.saturating_sub(look.length), *at));
    let mut covered: Vec<(Instant, Instant)> = covered.collect();
    covered.sort_unstable();
    for (begin, end) in covered.into_iter().chain([(until, until)]) {
        let begin = begin.min(until);
        if begin > known_until && begin.since(known_until) >= LEAST {
            found.push(Gap { from: known_until, until: begin });
        }
        known_until = known_until.max(end);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn second(second: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(second)
    }

    fn look(at: u64, length: u64) -> (Instant, LookNote) {
        let length = Duration::from_secs(length);
        (second(at), LookNote { at: second(at), length, ..LookNote::default() })
    }

    #[test]
    fn what_no_look_covers_is_a_gap() {
        let gap = |from, until| Gap { from: second(from), until: second(until) };
        // The recorder was started anew at 30: its first look covers nothing.
        let looks = [look(11, 5), look(16, 5), look(30, 0), look(31, 1)];
        assert_eq!(gaps(&looks, second(5), second(40)), [gap(16, 30), gap(31, 40)]);
        assert_eq!(gaps(&looks, second(7), second(15)), []);
        assert_eq!(gaps(&[], second(5), second(40)), [gap(5, 40)]);
    }

    proptest! {
        /// Gaps are within the time, in order, and no look covers any of them.
        #[test]
        fn gaps_and_looks_have_nothing_in_common(
            drawn in proptest::collection::vec((0_u64..100, 0_u64..10), 0..20),
            from in 0_u64..100,
            length in 0_u64..50,
        ) {
            let mut looks: Vec<_> = drawn.into_iter().map(|(at, length)| look(at, length)).collect();
            looks.sort_by_key(|(at, _)| *at);
            let (from, until) = (second(from), second(from + length));
            let found = gaps(&looks, from, until);
            prop_assert!(found.iter().all(|gap| gap.from >= from && gap.until <= until));
            prop_assert!(found.windows(2).all(|pair| pair[0].until <= pair[1].from));
            for gap in &found {
                for (at, look) in &looks {
                    let is_apart =
                        *at <= gap.from || at.saturating_sub(look.length) >= gap.until;
                    prop_assert!(is_apart, "{gap:?} and {look:?}");
                }
            }
        }
    }
}
