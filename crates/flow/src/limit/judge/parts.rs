//! Judges a transfer that several limits hold one after another. Each part is judged like a
//! transfer of its own.

use super::SURE_OF_WHOLE;
use fullpipe_model::limit::Limit;
use std::ops::Range;

/// The fewest intervals of a part.
const PART_LEAST: usize = 16;
/// The most parts of a transfer.
const PARTS_MOST: usize = 8;
/// With fewer parts, one limit after another cannot be distinguished from one limit that varies.
const PARTS_LEAST: usize = 3;
/// How sure the judge must be of a part.
const SURE_OF_PART: f64 = 0.6;
/// The most stretches. If the parts differ more often, the transfer is not held by one limit after
/// another.
const STRETCHES_MOST: usize = 3;

/// Consecutive intervals that one limit holds.
#[derive(Debug, Clone, PartialEq)]
pub struct Stretch {
    pub intervals: Range<usize>,
    pub limit: Limit,
    /// Its probability: the mean over the parts of which the judge is sure.
    pub likely: f64,
}

/// A part of a transfer.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    pub intervals: Range<usize>,
    /// The limit that holds it, with its probability; `None` where the judge has no opinion.
    pub found: Option<(Limit, f64)>,
}

/// Divides a transfer of `intervals` intervals into parts. A short transfer has none.
pub fn parts(intervals: usize) -> Vec<Range<usize>> {
    let count = (intervals / PART_LEAST).min(PARTS_MOST);
    if count < PARTS_LEAST {
        return Vec::new();
    }
    (0..count).map(|at| at * intervals / count..(at + 1) * intervals / count).collect()
}

/// The limits that hold a transfer one after another, from the findings for its parts in order.
/// `None` where one limit holds it all of the time, or where that is not clear. A part of which the
/// judge is not sure continues the one before it.
pub fn course(parts: &[Part]) -> Option<Vec<Stretch>> {
    let mut stretches: Vec<Stretch> = Vec::new();
    let mut sure: Vec<usize> = Vec::new();
    for Part { intervals, found } in parts {
        let first = found.filter(|(_, likely)| *likely >= SURE_OF_PART);
        match (stretches.last_mut().zip(sure.last_mut()), first) {
            (Some((last, count)), Some((limit, likely))) if last.limit == limit => {
                last.intervals.end = intervals.end;
                last.likely = (last.likely * *count as f64 + likely) / (*count + 1) as f64;
                *count += 1;
            }
            (_, Some((limit, likely))) => {
                let start = if stretches.is_empty() { 0 } else { intervals.start };
                stretches.push(Stretch { intervals: start..intervals.end, limit, likely });
                sure.push(1);
            }
            (Some((last, _)), None) => last.intervals.end = intervals.end,
            (None, None) => {}
        }
    }
    (2..=STRETCHES_MOST).contains(&stretches.len()).then_some(stretches)
}

/// The limit that the parts agree on: nearly all of them are sure, and of the same.
pub fn agreed(parts: &[Part]) -> Option<Stretch> {
    let found = parts.iter().filter_map(|part| part.found);
    let found: Vec<(Limit, f64)> = found.filter(|(_, likely)| *likely >= SURE_OF_PART).collect();
    let (limit, _) = *found.first()?;
    let intervals = 0..parts.last()?.intervals.end;
    let likely = found.iter().map(|(_, likely)| likely).sum::<f64>() / found.len() as f64;
    let is_agreed = found.len() * 8 >= parts.len() * 7 && found.iter().all(|one| one.0 == limit);
    is_agreed.then_some(Stretch { intervals, limit, likely })
}

/// Whether the judge is so sure of the first limit of the whole transfer that the parts, each of
/// which shows less, were misjudged. Where it is surer of each stretch, and that limit is one of
/// theirs, it saw mostly that stretch: a few small answers before a long one.
pub fn overrules((limit, likely): (Limit, f64), stretches: &[Stretch]) -> bool {
    let longest = stretches.iter().max_by_key(|stretch| stretch.intervals.len());
    let is_part = stretches.iter().any(|stretch| stretch.limit == limit)
        && stretches.iter().all(|stretch| stretch.likely >= likely);
    likely >= SURE_OF_WHOLE && longest.is_some_and(|longest| longest.limit != limit) && !is_part
}

#[cfg(test)]
mod tests {
    use super::*;

    fn course_of(found: &[Option<(Limit, f64)>]) -> Option<Vec<(Limit, Range<usize>)>> {
        let part = |(at, found): (usize, &Option<(Limit, f64)>)| Part {
            intervals: at * 10..at * 10 + 10,
            found: *found,
        };
        let parts: Vec<Part> = found.iter().enumerate().map(part).collect();
        let stretches = course(&parts)?.into_iter();
        Some(stretches.map(|stretch| (stretch.limit, stretch.intervals)).collect())
    }

    #[test]
    fn parts_cover_all_intervals_once() {
        for count in [0, 1, 47, 48, 100, 1000, 4321] {
            let parts = parts(count);
            let sum: usize = parts.iter().map(ExactSizeIterator::len).sum();
            assert_eq!(sum, if count < 48 { 0 } else { count });
            assert!(parts.windows(2).all(|pair| pair[0].end == pair[1].start));
            assert!(parts.iter().all(|part| part.len() >= PART_LEAST));
        }
    }

    #[test]
    fn one_thing_after_another_is_told_from_one_thing() {
        use Limit::{Link, SendBuffer};
        let (link, buffer) = (Some((Link, 0.9)), Some((SendBuffer, 0.8)));
        assert_eq!(course_of(&[link, link, link]), None);
        assert_eq!(course_of(&[link, None, Some((SendBuffer, 0.4))]), None);
        assert_eq!(
            course_of(&[None, link, None, buffer, buffer]),
            Some(vec![(Link, 0..30), (SendBuffer, 30..50)])
        );
        assert_eq!(course_of(&[link, buffer, link, buffer]), None, "that is noise");
    }

    #[test]
    fn a_sure_whole_overrules_parts_that_are_less_sure_or_of_other_limits() {
        use Limit::{Link, ReceiveWindow, SendBuffer, SenderApplication};
        let stretch = |intervals, limit, likely| Stretch { intervals, limit, likely };
        let parts = [stretch(0..36, SenderApplication, 0.98), stretch(36..90, Link, 0.99)];
        assert!(!overrules((SenderApplication, 0.94), &parts), "small answers before a long one");
        assert!(overrules((SenderApplication, 0.985), &parts), "surer than of the first part");
        assert!(overrules((ReceiveWindow, 0.94), &parts), "no part's");
        assert!(!overrules((SendBuffer, 0.5), &parts), "not sure");
        assert!(!overrules((Link, 0.999), &parts), "the longest part's");
    }

    #[test]
    fn parts_agree_where_each_is_sure_of_the_same() {
        let part = |found| Part { intervals: 0..10, found };
        let (link, buffer) = (Some((Limit::Link, 0.8)), Some((Limit::SendBuffer, 0.9)));
        let agreed = |found: [_; 3]| agreed(&found.map(part)).map(|one| (one.limit, one.likely));
        let (limit, likely) = agreed([link, link, Some((Limit::Link, 0.95))]).unwrap();
        assert!(limit == Limit::Link && (likely - 0.85).abs() < 1e-9);
        for other in [buffer, None, Some((Limit::Link, 0.5))] {
            assert_eq!(agreed([link, other, link]), None, "{other:?}");
        }
        assert_eq!(super::agreed(&[]), None);
    }
}
