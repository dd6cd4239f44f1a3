//! Segments that were sent and not yet acknowledged, to measure round-trip times.

use super::passage::Passage;
use crate::capture::segment::SequenceNumber;
use fullpipe_model::units::{Duration, Instant};
use std::collections::VecDeque;

/// Most segments in flight that are remembered one by one: 16,384 of 1448 bytes are 23 MB. Segments
/// beyond this number are counted, but not timed.
const MAX_OUTSTANDING: usize = 1 << 14;

#[derive(Debug, Clone, Copy)]
struct SentData {
    seq: SequenceNumber,
    end: SequenceNumber,
    at: Instant,
    /// Sent more than once, or not in order. An ACK cannot be attributed to this transmission (Karn
    /// and Partridge 1987).
    ambiguous: bool,
    /// It is beyond the number in the window field.
    is_beyond: bool,
    /// The size in which it, or a part of it, was sent last.
    size: u16,
}

/// A segment that is sent.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sending {
    pub at: Instant,
    pub seq: SequenceNumber,
    pub end: SequenceNumber,
    /// It begins at or after everything seen before.
    pub advances: bool,
    /// It is beyond the number in the window field.
    pub is_beyond: bool,
}

/// Segments in flight by sequence number, disjoint.
#[derive(Debug, Clone, Default)]
pub(super) struct Outstanding {
    segments: VecDeque<SentData>,
}

impl Outstanding {
    /// Adds a segment. Of one that was sent once before, returns when that was.
    pub fn send(&mut self, sending: Sending) -> Option<Instant> {
        let Sending { at, seq, end, advances, is_beyond } = sending;
        let size = u16::try_from(end.distance(seq)).unwrap_or(u16::MAX);
        if self.segments.capacity() == 0 {
            // Most connections never have more than one. The usual capacity of four would be a
            // tenth of the memory of a connection.
            self.segments.reserve_exact(1);
        }
        if advances {
            if self.segments.len() < MAX_OUTSTANDING {
                self.segments.push_back(SentData {
                    seq,
                    end,
                    at,
                    ambiguous: false,
                    is_beyond,
                    size,
                });
            }
            return None;
        }
        let first = self.segments.partition_point(|sent| !seq.is_before(sent.end));
        let mut sent_first = None;
        let mut known = false;
        for sent in self.segments.range_mut(first..) {
            if !sent.seq.is_before(end) {
                break;
            }
            if !known && !sent.ambiguous {
                sent_first = Some(sent.at);
            }
            (sent.ambiguous, sent.size) = (true, size);
            known = true;
        }
        if !known && self.segments.len() < MAX_OUTSTANDING {
            let sent = SentData { seq, end, at, ambiguous: true, is_beyond, size };
            self.segments.insert(first, sent);
        }
        sent_first
    }

    /// When the first segment was sent or, where that was just now, the last: what fills a hole
    /// comes first by its number, not by its time.
    pub fn oldest(&self, now: Instant) -> Option<Instant> {
        let first = self.segments.front()?.at;
        if first == now { self.segments.back().map(|last| last.at) } else { Some(first) }
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
    pub fn acknowledge(
        &mut self,
        at: Instant,
        ack: SequenceNumber,
        passage: &mut Passage,
    ) -> Option<Duration> {
        let mut newest = None;
        let mut ambiguous = false;
        while let Some(first) = self.segments.front_mut() {
            if first.end.after(ack) > 0 {
                if first.seq.is_before(ack) {
                    first.note_in(passage, ack.distance(first.seq));
                    // This packet was several segments on the wire. Those that were acknowledged
                    // show how long a segment takes.
                    first.seq = ack;
                    ambiguous |= first.ambiguous;
                    newest = Some(at.since(first.at));
                }
                break;
            }
            first.note_in(passage, first.length());
            ambiguous |= first.ambiguous;
            newest = Some(at.since(first.at));
            self.segments.pop_front();
        }
        newest.filter(|_| !ambiguous)
    }

    /// Notes what arrived of the segments that nothing covers yet; `arrived` says how many bytes of
    /// a range did.
    pub fn finish(
        &self,
        passage: &mut Passage,
        arrived: impl Fn(SequenceNumber, SequenceNumber) -> u32,
    ) {
        for sent in &self.segments {
            let bytes = arrived(sent.seq, sent.end);
            if bytes > 0 {
                sent.note_in(passage, bytes);
            }
        }
    }
}

impl SentData {
    fn length(&self) -> u32 {
        self.end.distance(self.seq)
    }

    /// Notes that so many bytes of it arrived.
    fn note_in(&self, passage: &mut Passage, bytes: u32) {
        let size = self.size.min(u16::try_from(bytes).unwrap_or(u16::MAX));
        let was_split = self.ambiguous && u32::from(self.size) < self.length();
        passage.acknowledged(size, was_split, self.is_beyond && !self.ambiguous);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn send(outstanding: &mut Outstanding, at: Instant, from: u32, to: u32, advances: bool) {
        let (seq, end) = (seq(from), seq(to));
        outstanding.send(Sending { at, seq, end, advances, is_beyond: false });
    }

    fn acknowledge(outstanding: &mut Outstanding, at: Instant, ack: u32) -> Option<Duration> {
        outstanding.acknowledge(at, seq(ack), &mut Passage::default())
    }

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    const fn seq(number: u32) -> SequenceNumber {
        SequenceNumber(number)
    }

    #[test]
    fn an_ack_times_the_newest_segment_that_it_covers() {
        let mut outstanding = Outstanding::default();
        send(&mut outstanding, at(0), 0, 100, true);
        send(&mut outstanding, at(7), 100, 200, true);
        assert_eq!(acknowledge(&mut outstanding, at(20), 200), Some(Duration::from_millis(13)));
        assert_eq!(acknowledge(&mut outstanding, at(21), 200), None);
    }

    #[test]
    fn an_ack_of_a_part_times_a_packet_that_was_segments_on_the_wire() {
        let mut outstanding = Outstanding::default();
        send(&mut outstanding, at(0), 0, 14_480, true);
        assert_eq!(acknowledge(&mut outstanding, at(20), 1448), Some(Duration::from_millis(20)));
        assert_eq!(acknowledge(&mut outstanding, at(21), 1448), None, "nothing new");
        assert_eq!(acknowledge(&mut outstanding, at(27), 14_480), Some(Duration::from_millis(27)));
    }

    #[test]
    fn karn_a_segment_sent_twice_is_not_timed_nor_what_waited_for_it() {
        let mut outstanding = Outstanding::default();
        send(&mut outstanding, at(0), 0, 100, true);
        send(&mut outstanding, at(1), 100, 200, true);
        send(&mut outstanding, at(30), 0, 100, false);
        assert_eq!(acknowledge(&mut outstanding, at(40), 200), None);
    }

    #[test]
    fn the_oldest_is_older_than_what_filled_a_hole_just_now() {
        let mut outstanding = Outstanding::default();
        assert_eq!(outstanding.oldest(at(0)), None);
        send(&mut outstanding, at(1), 500, 600, true);
        assert_eq!(outstanding.oldest(at(1)), Some(at(1)));
        send(&mut outstanding, at(7), 100, 200, false);
        assert_eq!(outstanding.oldest(at(7)), Some(at(1)));
        assert_eq!(outstanding.oldest(at(9)), Some(at(7)));
    }

    #[test]
    fn hostile_numbers_do_not_fill_the_memory() {
        let mut outstanding = Outstanding::default();
        for number in 0..100_000_u32 {
            let start = seq(number.wrapping_mul(2_654_435_761));
            send(&mut outstanding, at(0), start.0, start.0.wrapping_add(1), number % 3 == 0);
        }
        assert!(outstanding.segments.len() <= MAX_OUTSTANDING);
    }
}
