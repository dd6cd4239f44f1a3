//! The points of one line of a graph, in bounded memory.
//!
//! Each event is kept as it is until there are too many. Then the events of each stretch of time
//! become one point, with the first, least, greatest and last value and their number. The stretches
//! are of 1 µs at first and double until few enough points are left, so bursts are merged before
//! anything else, and no extreme is ever lost.

use super::differences::{Differences, Plain, number};
use fullpipe_model::units::Duration;
use serde::ser::{Serialize, SerializeMap, Serializer};

/// What else is known of each event, where events are kept as they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EventKind {
    /// Nothing.
    Value,
    /// Data: its length and the number of its packet.
    Segment,
    /// A round trip: the sequence number that it is of.
    RoundTrip,
}

/// Something that happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TracedEvent {
    /// When, in µs from the connection's first packet.
    pub at: u64,
    /// The value after it.
    pub value: i64,
    /// Where it begins, if it has an extent; otherwise the value.
    pub low: i64,
    /// By [`EventKind`]: the packet's number, or a sequence number.
    pub tag: i64,
}

impl TracedEvent {
    /// An event that is nothing but a value.
    pub fn of(at: u64, value: i64) -> Self {
        TracedEvent { at, value, low: value, tag: 0 }
    }
}

/// One point: an event, or the events of one stretch of time. Bytes, sequence numbers or µs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Point {
    at: u64,
    /// The value after the first event.
    pub first: i64,
    /// The least value. Of segments, their lowest byte.
    pub min: i64,
    /// The greatest value.
    pub max: i64,
    /// The value after the last event.
    pub last: i64,
    /// How many events it stands for.
    pub count: u64,
}

impl Point {
    /// When its first event was, from the connection's first packet.
    pub fn at(&self) -> Duration {
        Duration::from_micros(self.at)
    }

    fn of(event: &TracedEvent) -> Self {
        let TracedEvent { at, value, low, .. } = *event;
        Point { at, first: value, min: low.min(value), max: value.max(low), last: value, count: 1 }
    }

    fn add(&mut self, later: &Point) {
        self.min = self.min.min(later.min);
        self.max = self.max.max(later.max);
        self.last = later.last;
        self.count += later.count;
    }
}

/// The points of one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Points {
    kind: EventKind,
    /// All events, while they are few.
    events: Vec<TracedEvent>,
    /// What the events became when they were many.
    merged: Vec<Point>,
    /// A stretch is of 2^`shift` µs; `None` while events are kept as they are.
    shift: Option<u32>,
}

impl Points {
    pub(super) fn new(kind: EventKind) -> Self {
        Points { kind, events: Vec::new(), merged: Vec::new(), shift: None }
    }

    /// A line of values, without points yet.
    pub(crate) fn of_values() -> Self {
        Points::new(EventKind::Value)
    }

    /// The length of the stretches whose events are one point; `None` where each event is one.
    pub fn bucket(&self) -> Option<Duration> {
        self.shift.map(|shift| Duration::from_micros(1 << shift))
    }

    /// The points in order of time.
    pub fn iter(&self) -> impl Iterator<Item = Point> {
        self.events.iter().map(Point::of).chain(self.merged.iter().copied())
    }

    /// How many points there are.
    pub(super) fn len(&self) -> usize {
        self.events.len() + self.merged.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value after the last event.
    pub(super) fn last(&self) -> Option<i64> {
        match self.shift {
            None => self.events.last().map(|event| event.value),
            Some(_) => self.merged.last().map(|point| point.last),
        }
    }

    /// Adds an event, which must not be before the last. At most `most` events are kept as they
    /// are, or half as many merged points.
    pub(super) fn push(&mut self, event: TracedEvent, most: usize) {
        match self.shift {
            None => self.events.push(event),
            Some(shift) => {
                let point = Point::of(&event);
                match self.merged.last_mut() {
                    Some(last) if last.at >> shift == point.at >> shift => last.add(&point),
                    _ => self.merged.push(point),
                }
            }
        }
        self.thin(most);
    }

    /// Adds an event unless the value is the last one: what holds until it changes.
    pub(crate) fn push_change(&mut self, at: u64, value: i64, most: usize) {
        if self.last() != Some(value) {
            self.push(TracedEvent::of(at, value), most);
        }
    }

    /// Merges until at most `most` events, or half as many merged points, are left.
    pub(super) fn thin(&mut self, most: usize) {
        if self.shift.is_none() && self.events.len() > most {
            self.merged = self.events.iter().map(Point::of).collect();
            self.events = Vec::new();
            self.merge(0);
        }
        let most = (most / 2).max(1);
        while let Some(shift) = self.shift.filter(|_| self.merged.len() > most) {
            // A time has 64 bits, so one point is left in the end.
            self.merge((shift + 1).min(63));
            if shift == 63 {
                break;
            }
        }
    }

    fn merge(&mut self, shift: u32) {
        self.shift = Some(shift);
        self.merged.dedup_by(|later, kept| {
            let same = later.at >> shift == kept.at >> shift;
            if same {
                kept.add(later);
            }
            same
        });
    }
}

/// As `Points` of the page's contract (web/src/data.ts).
impl Serialize for Points {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let mut map = s.serialize_map(None)?;
        map.serialize_entry("bucket_us", &self.shift.map_or(0, |shift| 1_u64 << shift))?;
        if self.shift.is_none() {
            let events = &self.events;
            map.serialize_entry("time_us", &Differences(events.iter().map(|e| number(e.at))))?;
            map.serialize_entry("value", &Differences(events.iter().map(|e| e.value)))?;
            let tags = Differences(events.iter().map(|e| e.tag));
            match self.kind {
                EventKind::Value => {}
                EventKind::Segment => {
                    let lengths = events.iter().map(|e| e.value.saturating_sub(e.low));
                    map.serialize_entry("length", &Plain(lengths))?;
                    map.serialize_entry("packet", &tags)?;
                }
                EventKind::RoundTrip => map.serialize_entry("sequence", &tags)?,
            }
            return map.end();
        }
        let points = &self.merged;
        map.serialize_entry("time_us", &Differences(points.iter().map(|p| number(p.at))))?;
        map.serialize_entry("first", &Differences(points.iter().map(|p| p.first)))?;
        map.serialize_entry("min", &Differences(points.iter().map(|p| p.min)))?;
        map.serialize_entry("max", &Differences(points.iter().map(|p| p.max)))?;
        map.serialize_entry("last", &Differences(points.iter().map(|p| p.last)))?;
        map.serialize_entry("count", &Differences(points.iter().map(|p| number(p.count))))?;
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The numbers of a column of differences.
    fn sums(column: &serde_json::Value) -> Vec<i64> {
        let mut sum = 0_i64;
        let differences = column.as_array().unwrap().iter();
        let sums = differences.map(|difference| {
            sum = sum.wrapping_add(difference.as_i64().unwrap());
            sum
        });
        sums.collect()
    }

    #[test]
    fn a_burst_is_merged_before_what_is_alone() {
        let mut points = Points::new(EventKind::Value);
        let burst = (0..9).map(|n| TracedEvent::of(1000 + n, n as i64));
        let events =
            [TracedEvent::of(0, 70)].into_iter().chain(burst).chain([TracedEvent::of(90_000, 80)]);
        events.for_each(|event| points.push(event, 8));
        let all: Vec<_> = points.iter().collect();
        assert_eq!(points.bucket(), Some(Duration::from_micros(8)));
        let (first, last) = (all[0], all[all.len() - 1]);
        assert_eq!((first.at(), first.max, first.count), (Duration::ZERO, 70, 1));
        assert_eq!((last.at(), last.min, last.count), (Duration::from_millis(90), 80, 1));
        assert_eq!(all.len(), 4, "the burst is two: {all:?}");
    }

    proptest! {
        /// Whatever is pushed, and however few points are kept.
        #[test]
        fn no_extreme_is_lost(
            events in prop::collection::vec((0_u64..1 << 40, any::<i32>(), 0_i64..100), 1..300),
            most in 1_usize..40,
        ) {
            let mut points = Points::new(EventKind::Segment);
            let mut all = Points::new(EventKind::Segment);
            let mut at = 0_u64;
            for (after, value, length) in &events {
                at = at.saturating_add(*after);
                let value = i64::from(*value);
                let event = TracedEvent { at, value, low: value - length, tag: 0 };
                points.push(event, most);
                all.push(event, usize::MAX);
            }
            prop_assert!(points.len() <= most);
            let of = |points: &Points| {
                let least = points.iter().map(|point| point.min).min();
                let greatest = points.iter().map(|point| point.max).max();
                let count: u64 = points.iter().map(|point| point.count).sum();
                let first = points.iter().next().map(|point| (point.first, point.at()));
                (least, greatest, count, first, points.last())
            };
            prop_assert_eq!(of(&points), of(&all));
            // Each stretch is one point.
            if let Some(stretch) = points.bucket() {
                let number = |point: Point| point.at().as_micros() / stretch.as_micros();
                let numbers: Vec<u64> = points.iter().map(number).collect();
                prop_assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]));
            }
            let json = serde_json::to_value(&all).unwrap();
            let values: Vec<i64> = events.iter().map(|(_, value, _)| i64::from(*value)).collect();
            prop_assert_eq!(sums(&json["value"]), values);
            let json = serde_json::to_value(&points).unwrap();
            prop_assert_eq!(sums(&json["time_us"]).len(), points.len());
        }
    }
}
