//! Records the packets of one open connection for its graphs.
//!
//! `connection::Tracker` drives it: [`Recorder::see`] with each packet after its own work, and
//! [`Recorder::digest`] when it asks for that; then [`Recorder::finish`]. Packets are written down
//! first, and become points when there are many, or when somebody looks at the graphs.

use super::Trace;
use super::bounds::TraceBounds;
use super::digest::Digest;
use super::direction::DirectionTrace;
use super::packet::{Known, Packet, PacketLog, PathEnds};
use crate::capture::segment::Segment;
use fullpipe_model::units::{Instant, Rate};

/// A packet takes as much memory as so many points, about.
const POINTS: usize = 2;
/// For each point of a line, so many packets are written down before they become points.
const PACKETS: usize = 2;

/// The packets and points of one open connection. Ends are numbered as in the tracker.
#[derive(Debug, Clone)]
pub(crate) struct Recorder {
    start: Instant,
    bounds: TraceBounds,
    log: PacketLog,
    /// Absent until the log is full for the first time, which most connections' never is.
    digest: Option<Box<Digest>>,
}

impl Recorder {
    pub fn new(start: Instant, bounds: TraceBounds) -> Self {
        Recorder { start, bounds, log: PacketLog::default(), digest: None }
    }

    /// How many points, bins and places it holds, or what takes as much memory.
    pub fn held(&self) -> usize {
        POINTS * self.log.len() + self.digest.as_ref().map_or(0, |digest| digest.held())
    }

    /// Keeps at most this much from now on.
    pub fn set_bounds(&mut self, bounds: TraceBounds, ends: &PathEnds) {
        self.bounds = bounds;
        if let Some(digest) = &mut self.digest {
            digest.set_bounds(bounds);
        }
        if self.is_full() {
            self.digest(ends);
        }
    }

    /// Notes the next packet. Returns whether the packets are to be digested.
    #[inline]
    pub fn see(&mut self, segment: &Segment, known: &Known) -> bool {
        self.log.push(Packet::new(segment, known), &segment.options.sack);
        self.is_full()
    }

    /// Whether the points would take less memory than the packets: there are half a dozen lines.
    fn is_full(&self) -> bool {
        self.log.len() >= PACKETS * self.bounds.points
    }

    /// Makes points of the packets so far.
    #[cold]
    pub fn digest(&mut self, ends: &PathEnds) {
        let (start, bounds) = (self.start, self.bounds);
        let digest = self.digest.get_or_insert_with(|| Box::new(Digest::new(start, bounds)));
        self.log.iter().for_each(|(packet, sack)| digest.see(packet, &sack, ends));
        self.log.clear();
    }

    /// The trace. The data of end `client` comes first, as in `goodputs`.
    pub fn finish(self, ends: PathEnds, client: usize, goodputs: [Option<Rate>; 2]) -> Trace {
        let is_long = self.digest.is_some();
        let trace = Trace::new(Recorded { recorder: self, ends, client, goodputs });
        if is_long { trace.digested() } else { trace }
    }
}

/// What a finished connection's trace is made of.
#[derive(Debug, Clone)]
pub(crate) struct Recorded {
    recorder: Recorder,
    ends: PathEnds,
    /// The end that opened the connection.
    client: usize,
    /// Of the client's data and the server's.
    goodputs: [Option<Rate>; 2],
}

impl Recorded {
    /// The graphs of the client's data and of the server's.
    pub(super) fn directions(mut self) -> [Option<DirectionTrace>; 2] {
        self.recorder.digest(&self.ends);
        let digest = self.recorder.digest.map(|digest| digest.finish(self.client, self.goodputs));
        digest.unwrap_or_default()
    }
}
