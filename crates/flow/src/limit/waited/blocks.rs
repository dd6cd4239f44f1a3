//! A writer that a clock wakes while its earlier blocks are on their way.
//!
//! After a segment that is not full, TCP has nothing more to send. What follows a pause then was
//! written in that pause: by a writer that waited for its clock, or for room in the send buffer. A
//! full buffer makes its writer go on with the ACK that empties it, at a fixed part of the round
//! trip. A clock wakes its writer whatever arrives.

use super::{Beat, OF_A_CLOCK, Pause, WITHIN_A_BLOCK, Waited, beat};
use crate::capture::segment::SequenceNumber;
use crate::limit::percentiles::Sorted;
use fullpipe_model::units::Duration;

/// So many pauses are looked at together: a moment of a stream of pictures, and little memory for
/// each connection.
const TOGETHER: usize = 48;
/// Of a clock's pauses, so many end without an ACK: 1 in 5. ACKs of earlier blocks come for as much
/// of the time as the blocks take, so some end with one by chance.
const UNPROMPTED_ONE_IN: usize = 5;
/// A writer's blocks are as long as its programmer chose: a multiple of one of these.
const ROUND: [u64; 2] = [1_000, 1_024];
/// Blocks of pictures differ by at least this part of the middle one. A pause that ended when a
/// part of a block had passed would end earlier or later by that, so their times are to be this
/// even.
const VARIED: f64 = 0.3;
const EVEN: f64 = 0.03;
/// A round trip of this much more or less than a multiple of the period is none; of more periods
/// than that, none can be told.
const OFF_BEAT: f64 = 0.1;
const BEATS_MOST: f64 = 5.0;

/// A pause, and what was written before it.
#[derive(Debug, Clone, Copy)]
struct Block {
    bytes: u64,
    pause: Pause,
    /// Whether an ACK came just before the pause's end.
    is_prompted: bool,
}

/// A writer's pauses, as they come.
#[derive(Debug, Clone, Default)]
pub(crate) struct BlockPauses {
    blocks: Vec<Block>,
    /// Where the latest ended.
    written: Option<SequenceNumber>,
    /// When the blocks before ended.
    from: f64,
    clocked: Clocked,
}

/// For how long a clock woke the writer.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Clocked {
    /// Its period; 0 before the first was seen. All in seconds.
    period: f64,
    /// The time in which it was seen, and the pauses in that time.
    time: f64,
    idle: f64,
}

impl BlockPauses {
    /// Notes a pause before the data from `seq` on, and whether an ACK came just before its end.
    /// `rtt` is the least round trip.
    pub fn add(
        &mut self,
        seq: SequenceNumber,
        pause: Pause,
        is_prompted: bool,
        rtt: Option<Duration>,
    ) {
        // Where the first block began is not known.
        let bytes = self.written.replace(seq).map_or(0, |before| seq.distance(before));
        self.blocks.push(Block { bytes: bytes.into(), pause, is_prompted });
        if self.blocks.len() == TOGETHER {
            self.look(rtt);
        }
    }

    /// For how long a clock woke the writer.
    pub fn finish(mut self, rtt: Option<Duration>) -> Clocked {
        self.look(rtt);
        self.clocked
    }

    fn look(&mut self, rtt: Option<Duration>) {
        let Some(last) = self.blocks.last().copied() else { return };
        let time = last.pause.end - self.from;
        let blocks = whole(&self.blocks);
        let pauses: Vec<Pause> = blocks.iter().map(|block| block.pause).collect();
        let found = beat(&pauses, time).filter(|beat| {
            are_unprompted(&blocks)
                || (is_off_beat(beat.period, rtt)
                    && (are_round(&blocks) || are_varied(&blocks, beat)))
        });
        if let Some(beat) = found {
            self.clocked.period = beat.period;
            self.clocked.time += time;
            self.clocked.idle += pauses.iter().map(|pause| pause.length()).sum::<f64>();
        }
        self.from = last.pause.end;
        self.blocks.clear();
    }
}

/// Blocks with what short pauses divide as one.
fn whole(pieces: &[Block]) -> Vec<Block> {
    let long = Sorted::new(pieces.iter().map(|piece| piece.pause.length())).percentile(90);
    let mut before = 0;
    let whole = pieces.iter().filter_map(|piece| {
        before += piece.bytes;
        let is_whole = piece.pause.length() >= WITHIN_A_BLOCK * long;
        is_whole.then(|| Block { bytes: std::mem::take(&mut before), ..*piece })
    });
    whole.collect()
}

fn are_unprompted(blocks: &[Block]) -> bool {
    let unprompted = blocks.iter().filter(|block| !block.is_prompted).count();
    unprompted * UNPROMPTED_ONE_IN >= blocks.len()
}

/// Whether nearly all are as long as each other, and that is a round number.
fn are_round(blocks: &[Block]) -> bool {
    let middle = Sorted::new(blocks.iter().map(|block| block.bytes as f64)).percentile(50) as u64;
    let equal = blocks.iter().filter(|block| block.bytes == middle).count();
    ROUND.iter().any(|round| middle.is_multiple_of(*round)) && 10 * equal >= 9 * blocks.len()
}

/// Whether they differ, and their times do not.
fn are_varied(blocks: &[Block], beat: &Beat) -> bool {
    let bytes = Sorted::new(blocks.iter().map(|block| block.bytes as f64));
    let spread = bytes.percentile(90) - bytes.percentile(10);
    spread >= VARIED * bytes.percentile(50) && beat.uneven <= EVEN * beat.period
}

/// Whether the round trip is no multiple of the period.
fn is_off_beat(period: f64, rtt: Option<Duration>) -> bool {
    let beats = rtt.map_or(0.0, |rtt| rtt.as_secs_f64() / period);
    (1.0..BEATS_MOST).contains(&beats) && (beats - beats.round()).abs() >= OFF_BEAT
}

impl Clocked {
    /// What it says of a transfer that sent its last data after `time` seconds, if it was seen for
    /// most of that.
    pub fn waited(self, time: f64) -> Option<Waited> {
        let idle = self.idle / self.time;
        (self.time > 0.0 && 2.0 * self.time >= time && idle >= OF_A_CLOCK)
            .then_some(Waited { halves: [idle; 2], period: Some(self.period) })
    }
}

#[cfg(test)]
mod tests;
