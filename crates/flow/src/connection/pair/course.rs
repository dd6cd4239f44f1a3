//! The course of one direction at both places, over one clock, to be drawn.

use super::segments::Segments;
use fullpipe_model::units::Duration;

/// More spans than a picture has columns are not kept: they hold the extremes of those beside them.
const MOST_SPANS: usize = 2048;

/// What one direction did at both places. Times are by A's clock, from the connection's first
/// packet on.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct WayCourse {
    /// Sequence numbers, from 0, that passed the near place.
    pub sent: Vec<CourseSpan>,
    /// Those that passed the far one.
    pub arrived: Vec<CourseSpan>,
    /// What passed the near one and not the far one, when it passed.
    pub lost: Vec<CourseSpan>,
    /// How long packets waited between the places beyond the fastest, in nanoseconds, when they
    /// passed the near one.
    pub waited: Vec<CourseSpan>,
    /// When the last packet passed.
    pub ends: Duration,
}

/// The values of a time, or of several that a picture cannot tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CourseSpan {
    /// When the first of them was.
    pub at: Duration,
    /// The least of the values, and the greatest.
    pub least: i64,
    /// See `least`.
    pub most: i64,
}

/// Builds a course. `start` is the connection's first time, in nanoseconds by A's clock.
pub(super) struct CourseOf {
    pub start: i64,
}

impl CourseOf {
    /// The sequence numbers of segments with data.
    pub fn passed(&self, segments: &Segments) -> Vec<CourseSpan> {
        self.spans(segments.with_bytes().map(|(_, one)| (one.at, one.start, one.end)))
    }

    /// Values by time, in any order.
    pub fn spans(&self, values: impl Iterator<Item = (i64, i64, i64)>) -> Vec<CourseSpan> {
        let mut values: Vec<(i64, i64, i64)> = values.collect();
        values.sort_unstable();
        let each = values.len().div_ceil(MOST_SPANS).max(1);
        let spans = values.chunks(each).filter_map(|of| {
            let least = of.iter().map(|(_, least, _)| *least).min()?;
            let most = of.iter().map(|(.., most)| *most).max()?;
            Some(CourseSpan { at: self.since_start(of.first()?.0), least, most })
        });
        spans.collect()
    }

    pub fn since_start(&self, at: i64) -> Duration {
        Duration::from_nanos(u64::try_from(at - self.start).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// However many values there are, few spans hold each extreme, in order of time.
        #[test]
        fn spans_are_few_and_lose_no_extreme(
            values in prop::collection::vec((0..1_000_000_i64, -1000..1000_i64), 1..6000),
        ) {
            let course = CourseOf { start: 0 };
            let spans = course.spans(values.iter().map(|(at, value)| (*at, *value, *value)));
            prop_assert!(spans.len() <= MOST_SPANS);
            prop_assert!(spans.is_sorted_by_key(|span| span.at));
            let least = values.iter().map(|(_, value)| *value).min();
            prop_assert_eq!(spans.iter().map(|span| span.least).min(), least);
            let most = values.iter().map(|(_, value)| *value).max();
            prop_assert_eq!(spans.iter().map(|span| span.most).max(), most);
        }
    }

    #[test]
    fn what_is_before_the_start_is_at_it() {
        assert_eq!(CourseOf { start: 50 }.since_start(20), Duration::ZERO);
    }
}
