//! A direction's loss and reordering, as SACK, timestamps and IP identifications show them.
//! Sequence numbers alone only hint at them.
//!
//! Three questions are answered, each by the strongest evidence available:
//!
//! * *Was this segment sent before?* If its bytes passed the capture point before, yes, however
//!   soon it comes. It is then a retransmission, or, if it is the same IP packet again, a duplicate
//!   that the network or the capture made.
//! * *A segment fills a gap: was it late or sent again?* A segment above the gap opened it.
//!   Whatever was sent before that segment has an older timestamp (RFC 7323) or an earlier IP
//!   identification, and was reordered. Whatever was sent after it is a retransmission of data lost
//!   before the capture point. Without either field, the round trip decides: no retransmission
//!   comes sooner.
//! * *Was it lost, or only thought to be lost?* See [`super::repeats`]. If a gap in the SACK blocks
//!   closes without a retransmission, there was reordering behind the capture point.

use super::ranges::Ranges;
use super::repeats::{AckFacts, Corrections, Repeats};
use crate::capture::segment::{Segment, SequenceNumber};
use fullpipe_model::units::{Bytes, Duration, Instant};

/// Most gaps in the captured data that are remembered until their cause is known.
const MAX_GAPS: usize = 256;
/// One tick of a timestamp clock. Equal timestamps are evidence of order only where the round trip
/// is longer than this.
pub(super) const TICKS: Duration = Duration::from_millis(3);

/// Why a segment did not advance the sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// Sent again; its bytes passed the capture point before.
    SentAgain,
    /// Sent again; what it repeats was lost before the capture point.
    Repair,
    /// Sent in order, and overtaken before the capture point.
    Overtaken,
}

#[derive(Debug, Clone, Copy)]
struct Gap {
    from: SequenceNumber,
    to: SequenceNumber,
    /// When the data below the gap and above it came.
    below_at: Instant,
    at: Instant,
    /// The timestamp and IP identification of the segment above the gap.
    stamp: Option<u32>,
    ip_id: Option<u16>,
}

/// What is remembered of one direction's data above the acknowledged number.
#[derive(Debug, Clone, Default)]
pub(super) struct Scoreboard {
    /// The data that the receiver reported by SACK.
    sacked: Ranges,
    /// Retransmissions of data that had not arrived.
    repeats: Repeats,
    /// Data that was sent again or found to be late. It is not counted as late a second time.
    accounted: Ranges,
    gaps: Vec<Gap>,
    /// The least time from data to a SACK block that ends with it. For data that overtook other
    /// data, this is less than any round trip.
    quickest: Option<Duration>,
    counts: LossFacts,
}

/// What became of a direction's data, as far as a capture shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct LossFacts {
    /// Segments that had to be sent again because they were lost: retransmissions that were not
    /// spurious.
    pub lost_segments: u64,
    /// Retransmissions whose data had arrived already, as ACK, SACK or DSACK show.
    pub spurious_retransmissions: u64,
    /// Segments that were overtaken, before the capture point or behind it.
    pub reordered_segments: u64,
    /// Packets that the network or the capture duplicated.
    pub duplicate_packets: u64,
    /// ACKs with a DSACK block.
    pub dsack: u64,
    /// Packets that a router marked "congestion experienced" (RFC 3168).
    pub congestion_experienced: u64,
}

/// Retransmissions of which at least this fraction was not needed are the work of reordering.
const OF_NEEDLESS: f64 = 0.5;
/// Fewer retransmissions may be chance.
const AGAIN_LEAST: u64 = 5;

/// Whether packets overtake each other so far that the sender takes it for loss: of the data that
/// was sent `again` so much was `needless`.
pub(crate) fn is_taken_for_loss(needless: u64, again: u64) -> bool {
    again >= AGAIN_LEAST && needless as f64 >= OF_NEEDLESS * again as f64
}

impl LossFacts {
    /// Whether packets overtake each other so far that the sender takes it for loss.
    pub fn is_reordering(&self) -> bool {
        let needless = self.spurious_retransmissions;
        let again = needless.saturating_add(self.lost_segments);
        is_taken_for_loss(needless, again) && self.reordered_segments >= needless
    }
}

/// An ACK of one direction's data.
#[derive(Debug, Clone, Copy)]
pub(super) struct Acknowledgement<'a> {
    /// When it was captured.
    pub at: Instant,
    pub segment: &'a Segment,
    /// The highest number acknowledged before it.
    pub una: SequenceNumber,
    /// The number after the highest captured.
    pub next: SequenceNumber,
    /// The largest segment of the data so far.
    pub segment_size: u32,
    /// The least time from data to its acknowledgement.
    pub rtt: Option<Duration>,
}

/// A range of data, as SACK reports it.
#[derive(Debug, Clone, Copy)]
struct Block {
    left: SequenceNumber,
    right: SequenceNumber,
}

impl Block {
    fn overlaps(self, from: SequenceNumber, to: SequenceNumber) -> bool {
        self.left.is_before(to) && from.is_before(self.right)
    }

    /// The smallest block that covers both.
    fn joined(self, other: Block) -> Block {
        Block { left: other.left.min(self.left), right: self.right.max(other.right) }
    }
}

/// Separates a DSACK block (RFC 2883) from the other blocks. It is the first block, if that is
/// below the ACK or inside the second block.
fn part_duplicate(
    ack: SequenceNumber,
    blocks: &[(SequenceNumber, SequenceNumber)],
) -> (Option<Block>, &[(SequenceNumber, SequenceNumber)]) {
    let [(left, right), rest @ ..] = blocks else { return (None, blocks) };
    let below = !ack.is_before(*right);
    let inside =
        rest.first().is_some_and(|(from, to)| !left.is_before(*from) && !to.is_before(*right));
    if (below || inside) && left.is_before(*right) {
        (Some(Block { left: *left, right: *right }), rest)
    } else {
        (None, blocks)
    }
}

impl Scoreboard {
    /// Notes a segment that left the gap `from..segment.seq`; what is below it came at `below_at`.
    pub fn open_gap(
        &mut self,
        at: Instant,
        below_at: Instant,
        from: SequenceNumber,
        segment: &Segment,
    ) {
        if self.gaps.len() >= MAX_GAPS {
            self.gaps.remove(0);
        }
        let stamp = segment.options.timestamps.map(|(value, _)| value);
        let (to, ip_id) = (segment.seq, segment.ip_id);
        self.gaps.push(Gap { from, to, below_at, at, stamp, ip_id });
    }

    /// When the data below the gap came in which this number is.
    pub fn below_gap(&self, number: SequenceNumber) -> Option<Instant> {
        let mut gaps = self.gaps.iter();
        let gap = gaps.find(|gap| !number.is_before(gap.from) && number.is_before(gap.to))?;
        Some(gap.below_at)
    }

    /// Judges a segment that does not advance. `new` is how many of its bytes were not captured
    /// before.
    pub fn judge(
        &mut self,
        at: Instant,
        segment: &Segment,
        new: u64,
        rtt: Option<Duration>,
    ) -> Origin {
        let (seq, end) = (segment.seq, segment.end());
        let gap = self.gaps.iter().position(|gap| seq.is_before(gap.to) && gap.from.is_before(end));
        let origin = match gap.filter(|_| new > 0) {
            Some(gap) if self.gaps[gap].was_sent_before(at, segment, rtt) => Origin::Overtaken,
            Some(_) => Origin::Repair,
            None => Origin::SentAgain,
        };
        if let Some(found) = gap {
            let gap = self.gaps[found];
            if gap.from.is_before(seq) && end.is_before(gap.to) && self.gaps.len() < MAX_GAPS {
                self.gaps.insert(found, Gap { to: seq, ..gap });
                self.gaps[found + 1].from = end;
            } else if gap.from.is_before(seq) {
                self.gaps[found].to = seq;
            } else if end.is_before(gap.to) {
                self.gaps[found].from = end;
            } else {
                self.gaps.remove(found);
            }
        }
        if origin == Origin::Overtaken {
            self.accounted.add(seq, end);
            self.counts.reordered_segments += 1;
        }
        origin
    }

    /// Counts a retransmission. `acked` says whether its data was acknowledged before. Returns
    /// whether its data had arrived already.
    pub fn count_repeated(&mut self, at: Instant, segment: &Segment, acked: bool) -> bool {
        let (seq, end) = (segment.seq, segment.end());
        let spurious = acked || self.has(seq, end);
        let is_first = self.accounted.add(seq, end) == u64::from(end.distance(seq));
        if spurious {
            self.counts.spurious_retransmissions += 1;
        } else {
            self.counts.lost_segments += 1;
            self.repeats.sent_again(at, segment, is_first && self.has_above(end));
        }
        spurious
    }

    /// Whether SACK reported all of this range.
    fn has(&self, seq: SequenceNumber, end: SequenceNumber) -> bool {
        self.sacked.within(seq, end) == end.distance(seq) && seq != end
    }

    /// Whether SACK reported anything above this number.
    pub fn has_above(&self, number: SequenceNumber) -> bool {
        self.sacked.end().is_some_and(|end| number.is_before(end))
    }

    /// Bytes above the acknowledged number that SACK reported.
    pub fn sacked_bytes(&self) -> u32 {
        self.sacked.bytes().try_into().unwrap_or(u32::MAX)
    }

    /// How many bytes of this range SACK reported.
    pub fn sacked_within(&self, from: SequenceNumber, to: SequenceNumber) -> u32 {
        self.sacked.within(from, to)
    }

    /// The bytes that are missing before captured data and were not acknowledged.
    pub fn hole(&self, una: Option<SequenceNumber>) -> Bytes {
        let open = self.gaps.iter().filter(|gap| una.is_none_or(|una| !gap.from.is_before(una)));
        open.map(|gap| Bytes::new(gap.to.distance(gap.from).into())).sum()
    }

    /// Notes a SACK block that came `age` after the data that it ends with was sent.
    pub fn reported(&mut self, age: Option<Duration>) {
        self.quickest = age.into_iter().chain(self.quickest).min();
    }

    /// Notes an ACK of this data. Returns whether its SACK blocks report something new.
    pub fn acknowledge(&mut self, acknowledgement: &Acknowledgement<'_>) -> bool {
        let Acknowledgement { at, segment, una, rtt, .. } = *acknowledgement;
        let ack = segment.ack;
        if una.is_before(ack) {
            // Data below the highest SACK block that arrived without being sent again was late.
            let top = self.sacked.end().unwrap_or(una);
            self.note_late(una, top.min(ack), acknowledgement.segment_size);
        }
        let above_hole = self.sacked.end().is_some_and(|top| una.is_before(top));
        let (duplicate, blocks) = part_duplicate(ack, segment.options.sack.as_slice());
        let fresh = self.note_blocks(acknowledgement, blocks);
        let answer = AckFacts {
            at,
            una,
            ack,
            echo: segment.options.timestamps.map(|(_, echo)| echo),
            rtt,
            quickest: self.quickest.into_iter().chain(rtt).min(),
            above_hole,
        };
        let sacked = &self.sacked;
        // A range that was missing before is complete now only if this ACK brought a part of it.
        // Most ACKs report data above the range.
        let outcome = self.repeats.answered(&answer, |from, to| {
            fresh.is_some_and(|fresh| fresh.overlaps(from, to))
                && sacked.within(from, to) == to.distance(from)
        });
        self.revise(outcome);
        if let Some(Block { left, right }) = duplicate {
            self.counts.dsack += 1;
            let outcome = self.repeats.arrived_twice(left, right, &answer);
            self.revise(outcome);
        }
        if una.is_before(ack) {
            self.sacked.forget_before(ack);
            self.accounted.forget_before(ack);
        }
        fresh.is_some()
    }

    /// Notes SACK blocks. Returns one range that covers everything new in them.
    fn note_blocks(
        &mut self,
        acknowledgement: &Acknowledgement<'_>,
        blocks: &[(SequenceNumber, SequenceNumber)],
    ) -> Option<Block> {
        let Acknowledgement { segment, next, segment_size, .. } = *acknowledgement;
        let mut fresh: Option<Block> = None;
        // Data that this ACK reports below the data of an earlier report was late. Blocks of the
        // same ACK are not compared with each other, because the order of their arrival is not
        // known.
        let top = self.sacked.end();
        for &(left, right) in blocks {
            // A block beyond the captured data proves nothing.
            let is_sane =
                left.is_before(right) && !left.is_before(segment.ack) && right.after(next) <= 0;
            if !is_sane {
                continue;
            }
            if let Some(top) = top {
                self.note_late(left, top.min(right), segment_size);
            }
            if self.sacked.add(left, right) > 0 {
                let block = Block { left, right };
                fresh = Some(fresh.map_or(block, |fresh| fresh.joined(block)));
            }
        }
        fresh
    }

    /// The final counts, when the capture has ended. `rtt` is the least time from data to its
    /// acknowledgement.
    pub fn finish(mut self, rtt: Option<Duration>) -> LossFacts {
        let outcome = self.repeats.ended(rtt);
        self.revise(outcome);
        self.counts
    }

    fn revise(&mut self, outcome: Corrections) {
        self.counts.spurious_retransmissions += outcome.spurious;
        self.counts.lost_segments = self.counts.lost_segments.saturating_sub(outcome.spurious);
        self.counts.reordered_segments += outcome.overtaken;
    }

    /// Notes that `from..to`, which lies below data that the receiver already had, arrived only
    /// now.
    fn note_late(&mut self, from: SequenceNumber, to: SequenceNumber, size: u32) {
        if !from.is_before(to) {
            return;
        }
        let late = self.sacked.in_neither(&self.accounted, from, to);
        self.counts.reordered_segments += u64::from(late.div_ceil(size.max(1)));
    }
}

impl Gap {
    /// Whether `segment`, which fills the gap, was sent before the segment above it.
    fn was_sent_before(&self, at: Instant, segment: &Segment, rtt: Option<Duration>) -> bool {
        let stamp = segment.options.timestamps.map(|(value, _)| value);
        let ticks = stamp.zip(self.stamp).map(|(stamp, above)| stamp.wrapping_sub(above) as i32);
        if let Some(ticks) = ticks.filter(|ticks| *ticks != 0) {
            return ticks < 0;
        }
        // Within one tick of a clock that is finer than the round trip, nothing is sent again.
        if ticks.is_some() && rtt.is_some_and(|rtt| rtt > TICKS) {
            return true;
        }
        let ids = segment.ip_id.zip(self.ip_id).filter(|(id, above)| *id != 0 && *above != 0);
        if let Some((id, above)) = ids {
            let step = id.wrapping_sub(above) as i16;
            if step.unsigned_abs() < 1 << 12 {
                return step < 0;
            }
        }
        let soon = rtt.map_or(TICKS, |rtt| Duration::from_nanos(rtt.as_nanos() / 4 * 3));
        at.since(self.at) < soon
    }
}
