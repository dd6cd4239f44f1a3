//! Segments that were sent and not yet acknowledged, to measure round-trip times.

use crate::segment::SequenceNumber;
use fullpipe_model::units::{Duration, Instant};
use std::collections::VecDeque;

/// Most segments in flight that are remembered one by one: 16,384 of 1448 bytes are 23 MB. Segments
/// beyond this number are counted, but not timed.
const MAX_OUTSTANDING: usize = 1 << 14;

#[derive(Debug, Clone, Copy)]
struct Sent {
    seq: SequenceNumber,
    end: SequenceNumber,
    at: Instant,
    /// Sent more than once, or not in order. An ACK cannot be attributed to this transmission (Karn
    /// and Partridge 1987).
    ambiguous: bool,
}

/// Segments in flight by sequence number, disjoint.
#[derive(Debug, Clone, Default)]
pub(super) struct Outstanding {
    segments: VecDeque<Sent>,
}

impl Outstanding {
    /// Adds a segment. `advances` says whether it begins at or after everything seen before.
    pub fn send(&mut self, at: Instant, seq: SequenceNumber, end: SequenceNumber, advances: bool) {
        if self.segments.capacity() == 0 {
            // Most connections never have more than one. The usual capacity of four would be a
            // tenth of the memory of a connection.
            self.segments.reserve_exact(1);
        }
        if advances {
            if self.segments.len() < MAX_OUTSTANDING {
                self.segments.push_back(Sent { seq, end, at, ambiguous: false });
            }
            return;
        }
        let first = self.segments.partition_point(|sent| !seq.is_before(sent.end));
        let mut known = false;
        for sent in self.segments.range_mut(first..) {
            if !sent.seq.is_before(end) {
                break;
            }
            sent.ambiguous = true;
            known = true;
        }
        if !known && self.segments.len() < MAX_OUTSTANDING {
            self.segments.insert(first, Sent { seq, end, at, ambiguous: true });
        }
    }

    /// When the oldest segment was sent.
    pub fn oldest(&self) -> Option<Instant> {
        self.segments.front().map(|sent| sent.at)
    }

    /// How long ago the segment that ends at `end` was sent, if it was sent only once.
    pub fn age(&self, at: Instant, end: SequenceNumber) -> Option<Duration> {
        let found = self.segments.partition_point(|sent| sent.end.is_before(end));
        let sent = self.segments.get(found).filter(|sent| sent.end == end && !sent.ambiguous)?;
        Some(at.since(sent.at))
    }

    /// Removes the segments that `ack` covers. Returns the age of the newest of them, because the
    /// ACK reports its arrival. `None` if one of them is ambiguous: above a repaired hole, the ACK
    /// would report the arrival of the repair.
    pub fn acknowledge(&mut self, at: Instant, ack: SequenceNumber) -> Option<Duration> {
        let mut newest = None;
        let mut ambiguous = false;
        while let Some(first) = self.segments.front_mut() {
            if first.end.after(ack) > 0 {
                if first.seq.is_before(ack) {
                    // This packet was several segments on the wire. Those that were acknowledged
                    // show how long a segment takes.
                    first.seq = ack;
                    ambiguous |= first.ambiguous;
                    newest = Some(at.since(first.at));
                }
                break;
            }
            ambiguous |= first.ambiguous;
            newest = Some(at.since(first.at));
            self.segments.pop_front();
        }
        newest.filter(|_| !ambiguous)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    const fn seq(number: u32) -> SequenceNumber {
        SequenceNumber(number)
    }

    #[test]
    fn an_ack_times_the_newest_segment_that_it_covers() {
        let mut outstanding = Outstanding::default();
        outstanding.send(at(0), seq(0), seq(100), true);
        outstanding.send(at(7), seq(100), seq(200), true);
        assert_eq!(outstanding.acknowledge(at(20), seq(200)), Some(Duration::from_millis(13)));
        assert_eq!(outstanding.acknowledge(at(21), seq(200)), None);
    }

    #[test]
    fn an_ack_of_a_part_times_a_packet_that_was_segments_on_the_wire() {
        let mut outstanding = Outstanding::default();
        outstanding.send(at(0), seq(0), seq(14_480), true);
        assert_eq!(outstanding.acknowledge(at(20), seq(1448)), Some(Duration::from_millis(20)));
        assert_eq!(outstanding.acknowledge(at(21), seq(1448)), None, "nothing new");
        assert_eq!(outstanding.acknowledge(at(27), seq(14_480)), Some(Duration::from_millis(27)));
    }

    #[test]
    fn karn_a_segment_sent_twice_is_not_timed_nor_what_waited_for_it() {
        let mut outstanding = Outstanding::default();
        outstanding.send(at(0), seq(0), seq(100), true);
        outstanding.send(at(1), seq(100), seq(200), true);
        outstanding.send(at(30), seq(0), seq(100), false);
        assert_eq!(outstanding.acknowledge(at(40), seq(200)), None);
    }

    #[test]
    fn hostile_numbers_do_not_fill_the_memory() {
        let mut outstanding = Outstanding::default();
        for number in 0..100_000_u32 {
            let start = seq(number.wrapping_mul(2_654_435_761));
            outstanding.send(at(0), start, start + 1, number % 3 == 0);
        }
        assert!(outstanding.segments.len() <= MAX_OUTSTANDING);
    }
}
