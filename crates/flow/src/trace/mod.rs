//! The points of a connection's graphs: time-sequence, acknowledgements, windows, bytes in flight,
//! round trips and throughput, what labelled packets mark, and the stalls.
//!
//! With [`Config::trace`](crate::Config) the analyzer records them while the capture streams by,
//! and [`DiagnosedConnection::trace`](crate::diagnosis::DiagnosedConnection::trace) has them.
//! Memory is bounded: see [`TraceBounds`]. A [`Trace`] serialises as the type of the same name in
//! the page's contract, web/src/data.ts.
//!
//! Everything is as it passed the capture point. There, an ACK has not yet reached the sender, or
//! data has not yet reached the receiver: what the sender knew is later by the round trip between
//! it and the capture point, which [`crate::limit`] takes into account and these graphs do not.

mod bounds;
mod budget;
mod differences;
mod digest;
mod direction;
mod marks;
mod packet;
mod points;
mod rate;
mod recorder;
mod restart;
mod sampled;
mod send_clock;
mod silences;
mod sockets;
mod stall;

pub use bounds::TraceBounds;
pub(crate) use budget::Budget;
pub use direction::DirectionTrace;
pub use marks::{MarkedPlace, Marks};
pub(crate) use packet::{Known, PathEnds};
pub use points::{Point, Points};
pub use rate::RateBins;
pub(crate) use recorder::Recorder;
pub use sockets::{Owner, SocketSeries};
pub use stall::{Stall, StallCause};

use crate::connection::Direction;
use fullpipe_model::units::Bytes;
use recorder::Recorded;
use serde::ser::{Serialize, SerializeStruct, Serializer};
use std::sync::OnceLock;

/// Headers of a packet where only its payload is known: Ethernet, IPv4 and TCP with timestamps.
pub(crate) const WIRE_HEADERS: Bytes = Bytes::new(14 + 20 + 32);

/// The points of a connection's graphs, by whose data they are about.
#[derive(Debug, Clone)]
pub struct Trace {
    /// The packets, until somebody looks at the graphs.
    recorded: Option<Recorded>,
    /// The graphs of the client's data and of the server's.
    directions: OnceLock<[Option<DirectionTrace>; 2]>,
}

impl Trace {
    pub(super) fn new(recorded: Recorded) -> Self {
        Trace { recorded: Some(recorded), directions: OnceLock::new() }
    }

    /// A trace of one direction's data alone.
    pub(super) fn of_direction(direction: Direction, points: DirectionTrace) -> Self {
        let directions = match direction {
            Direction::ClientToServer => [Some(points), None],
            Direction::ServerToClient => [None, Some(points)],
        };
        Trace { recorded: None, directions: OnceLock::from(directions) }
    }

    /// The same with its points made, and without the packets.
    pub(super) fn digested(mut self) -> Self {
        if let Some(recorded) = self.recorded.take() {
            self.directions.get_or_init(|| recorded.directions());
        }
        self
    }

    fn directions(&self) -> &[Option<DirectionTrace>; 2] {
        self.directions
            .get_or_init(|| self.recorded.clone().map(Recorded::directions).unwrap_or_default())
    }

    /// The graphs of one direction's data; `None` if it carried none.
    pub fn direction(&self, direction: Direction) -> Option<&DirectionTrace> {
        let [client, server] = self.directions();
        match direction {
            Direction::ClientToServer => client.as_ref(),
            Direction::ServerToClient => server.as_ref(),
        }
    }

    /// Keeps less: at most `points` events of each line as they are, or half as many merged points,
    /// and bins and places in proportion.
    pub fn thin(&mut self, points: usize) {
        self.directions();
        self.recorded = None;
        let directions = self.directions.get_mut().into_iter().flatten().flatten();
        directions.for_each(|direction| direction.thin(points));
    }
}

impl Serialize for Trace {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let [client, server] = self.directions();
        let mut trace = s.serialize_struct("Trace", 2)?;
        trace.serialize_field(Direction::ClientToServer.name(), client)?;
        trace.serialize_field(Direction::ServerToClient.name(), server)?;
        trace.end()
    }
}
