//! What became of the packets of one direction, in numbers.

use super::course::WayCourse;
use crate::limit::Policed;
use fullpipe_model::units::{Bytes, Duration, column};
use serde::Serialize;

/// One direction of a connection at both places: the near one is that which packets pass first.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct WayBetween {
    /// What passed the near place: data, SYN and FIN, each time that they were sent.
    pub sent: SegmentCount,
    /// What of it was sent when the far place's capture had not begun, or has no more packets:
    /// nothing is said of it.
    pub not_judged: SegmentCount,
    /// What passed it and did not reach the far place.
    pub lost: SegmentCount,
    /// How often segments were lost one after the other, and the most at once.
    pub runs: u64,
    /// The most segments of one such run.
    pub longest_run: u64,
    /// The queue that the packet before a loss had met, in the median.
    #[serde(rename = "queue_at_loss_us", with = "column::micros_optional")]
    pub queue_at_loss: Option<Duration>,
    /// The largest segment that arrived, where each one that was lost was larger and others arrived
    /// meanwhile: larger packets do not pass (RFC 2923).
    #[serde(rename = "nothing_above_bytes", with = "column::bytes_optional")]
    pub nothing_above: Option<Bytes>,
    /// What was lost before the near place: it filled a gap, a round trip or more later.
    pub lost_before: SegmentCount,
    /// What passed the far place, was not acknowledged, and passed it again.
    pub lost_after: SegmentCount,
    /// What passed the far place again although it had been acknowledged there.
    pub needless: SegmentCount,
    /// What the near place's capture does not have, although it passed: the far one has it.
    pub missed_at_near: SegmentCount,
    /// What the far place's capture does not have, although the receiver acknowledged it.
    pub missed_at_far: SegmentCount,
    /// What arrived more often than it was sent.
    pub duplicated: SegmentCount,
    /// What was overtaken before the near place.
    pub reordered_before: SegmentCount,
    /// Segments of data that were overtaken between the places.
    pub reordered: u64,
    /// Segments that only acknowledge, at the near place.
    pub acknowledgements: u64,
    /// Of these, those that did not reach the far place.
    pub acknowledgements_lost: u64,
    /// Of these, those that are not in the far place's capture where that misses packets: nothing
    /// tells whether they were lost.
    pub acknowledgements_missed: u64,
    /// How long packets waited between the places, beyond the fastest.
    pub queue: Option<QueueDelay>,
    /// The part of the time, from the first data to the last, in which what is between the places
    /// was busy: data waited there, or took the time that the slowest link's rate, where packets
    /// behind one another show it, makes of it. It is rather too small than too large. `None` of
    /// little data.
    pub busy: Option<f64>,
    /// The part of that time in which data waited there, which says that what is between holds it;
    /// rather too small, too, as a queue that is short beside what else delays packets is not seen.
    pub waited: Option<f64>,
    /// The policer that dropped what was lost, where nothing queued and what passed shows one.
    pub policed: Option<Policed>,
    /// What it did over time, where that was asked for ([`super::Pairing::drawn`]).
    #[serde(skip)]
    pub course: Option<WayCourse>,
}

impl WayBetween {
    /// What passed the near place while both captures ran.
    pub fn judged(&self) -> SegmentCount {
        SegmentCount {
            segments: self.sent.segments.saturating_sub(self.not_judged.segments),
            bytes: self.sent.bytes.saturating_sub(self.not_judged.bytes),
        }
    }
}

/// A number of segments, as the wire has them, and their bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct SegmentCount {
    /// How many; a capture may have merged some, which are counted by their size.
    pub segments: u64,
    /// What they take of the sequence space.
    #[serde(with = "column::bytes")]
    pub bytes: Bytes,
}

impl SegmentCount {
    pub(super) fn add(&mut self, length: i64, segment: u64) {
        let length = u64::try_from(length).unwrap_or_default();
        self.segments += length.div_ceil(segment.max(1));
        self.bytes = self.bytes.saturating_add(Bytes::new(length));
    }

    /// This part of `whole`, by segments.
    pub fn part_of(&self, whole: &SegmentCount) -> f64 {
        if whole.segments == 0 { 0.0 } else { self.segments as f64 / whole.segments as f64 }
    }
}

impl std::ops::AddAssign for SegmentCount {
    fn add_assign(&mut self, other: SegmentCount) {
        self.segments += other.segments;
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}

/// How long packets waited beyond the fastest one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct QueueDelay {
    /// Half of them at most this.
    #[serde(rename = "median_us", with = "column::micros")]
    pub median: Duration,
    /// 95 of 100 at most this.
    #[serde(rename = "p95_us", with = "column::micros")]
    pub p95: Duration,
    /// All of them at most this.
    #[serde(rename = "most_us", with = "column::micros")]
    pub most: Duration,
}
