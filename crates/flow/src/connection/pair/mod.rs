//! Two captures of the same connections, from two places: what passed both, what was lost between
//! them and in which direction, how long each direction took, and what the path changed in headers.
//!
//! One capture has to guess where a packet was lost. Two know: a segment that passed the first
//! place and not the second was lost between them. [`Pairing`] takes the packets of both captures,
//! in any order between the two; [`Pairing::finish`] compares them:
//!
//! 1. connections are matched by their addresses and ports, or, where something on the way
//!    translated those, by the sequence numbers of what they carried;
//! 2. the two clocks are compared by the packets that passed both places ([`Clocks`]);
//! 3. each segment that passed the place nearer to its sender is looked for at the other one: by
//!    bytes, because either capture may have merged segments (segmentation offload), and by its
//!    time stamp, IP identification and order where bytes were sent more than once.
//!
//! Memory is 32 bytes for each packet of a TCP connection while they are read, and less than as
//! much again while they are compared, for one direction of one connection at a time.

mod answers;
mod busy;
mod by_start;
mod changes;
mod clocks;
mod copies;
mod course;
mod crossings;
mod fates;
mod matching;
mod paired;
mod parted;
mod segments;
mod sighting;
mod sorted;
mod way;

pub use changes::{HeaderChange, HeaderField};
pub use clocks::{ClockPiece, Clocks};
pub use course::{CourseSpan, WayCourse};
pub use paired::{PairedCaptures, PairedConnection};
pub use way::{QueueDelay, SegmentCount, WayBetween};

use crate::capture::segment::{FlowKey, Segment};
use fullpipe_model::units::{Duration, Instant};
use sighting::Sighted;
use std::collections::HashMap;

/// One of the two places at which packets were captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Tap {
    /// The place of the capture that was named first.
    A,
    /// The place of the other one.
    B,
}

impl Tap {
    /// Both of them.
    pub const ALL: [Tap; 2] = [Tap::A, Tap::B];

    /// The other one.
    pub const fn other(self) -> Tap {
        match self {
            Tap::A => Tap::B,
            Tap::B => Tap::A,
        }
    }

    const fn at(self) -> usize {
        self as usize
    }
}

/// More packets of a capture are not kept: 256 MiB.
const MOST_SIGHTINGS: u64 = 1 << 23;

/// A clock that goes back by more was set back.
const MOST_OUT_OF_ORDER: Duration = Duration::from_millis(100);

/// What one place saw.
#[derive(Debug, Default)]
struct TapView {
    /// The connections, by their first packets; several where ports were used again.
    connections: Vec<Sighted>,
    /// The last one between two ends.
    last_of: HashMap<FlowKey, usize, foldhash::fast::RandomState>,
    /// That of the packet before: most packets are of the same.
    last: Option<(FlowKey, usize)>,
    /// The times of the first and the last packet of any kind.
    span: Option<(Instant, Instant)>,
    /// What is added to its clock, which was set back.
    set_back: Duration,
    packets: u64,
    kept: u64,
    left_out: u64,
}

/// Collects the packets of two captures, and compares them.
#[derive(Debug, Default)]
pub struct Pairing {
    taps: [TapView; 2],
    is_drawn: bool,
}

impl Pairing {
    /// Nothing seen yet.
    pub fn new() -> Self {
        Pairing::default()
    }

    /// The same, which also keeps the course of each direction, to be drawn
    /// ([`WayBetween::course`]).
    pub fn drawn(self) -> Self {
        Pairing { is_drawn: true, ..self }
    }

    /// The next packet of one of the captures: its time and, if it is of a connection that is
    /// meant, the segment in it. Packets of the same capture come in its order.
    pub fn push(&mut self, tap: Tap, at: Instant, segment: Option<&Segment>) {
        self.taps[tap.at()].push(at, segment);
    }

    /// Compares what both saw.
    pub fn finish(self) -> PairedCaptures {
        paired::compare(self.taps, self.is_drawn)
    }
}

impl TapView {
    fn push(&mut self, at: Instant, segment: Option<&Segment>) {
        self.packets += 1;
        let at = self.steady(at);
        let Some(segment) = segment.filter(|one| !one.is_broken) else { return };
        if self.kept == MOST_SIGHTINGS {
            self.left_out += 1;
            return;
        }
        self.kept += 1;
        let (key, by_first) = FlowKey::of(segment);
        let known = match self.last {
            Some((last, number)) if last == key => Some(number),
            _ => self.last_of.get(&key).copied(),
        };
        let known = known.filter(|at| !self.connections[*at].is_over_for(segment, by_first));
        let number = known.unwrap_or_else(|| {
            let number = self.connections.len();
            self.connections.push(Sighted::new(key, at));
            self.last_of.insert(key, number);
            number
        });
        self.last = Some((key, number));
        self.connections[number].push(at, segment, by_first);
    }

    /// The time of a packet by a clock that never goes back by more than packets are captured out
    /// of order.
    fn steady(&mut self, at: Instant) -> Instant {
        let mut at = at + self.set_back;
        let (first, last) = self.span.unwrap_or((at, at));
        let back = last.since(at);
        if back > MOST_OUT_OF_ORDER {
            self.set_back = self.set_back.saturating_add(back);
            at = last;
        }
        self.span = Some((first.min(at), last.max(at)));
        at
    }
}

#[cfg(test)]
mod tests;
