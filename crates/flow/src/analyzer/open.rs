//! An open connection as the analyzer keeps it, and one that has ended.
//!
//! Where many are open, a connection is its only packet until the second comes. The packet is then
//! read again, with the same result as if it had been read at once.

use crate::capture::segment::FlowKey;
use crate::config::Config;
use crate::connection::{CapturedSegment, Finished, Opening, Tracker};
use crate::diagnosis::DiagnosedConnection;
use crate::frames::Seats;
use crate::intake::Arrival;
use fullpipe_model::units::Instant;

/// A connection that has had one packet.
#[derive(Debug)]
pub(super) struct Lone {
    id: u64,
    arrival: Arrival,
    from_first: bool,
    reuses_ports: bool,
}

impl Lone {
    /// The connection `id` of this packet. `from_first` says whether its sender is the first end of
    /// the connection's key, `reuses_ports` whether there was another one before.
    pub fn new(id: u64, arrival: &Arrival, from_first: bool, reuses_ports: bool) -> Self {
        Lone { id, arrival: *arrival, from_first, reuses_ports }
    }

    /// The connection with all that its packet shows.
    fn tracker(&self, config: &Config) -> Tracker {
        let Lone { id, ref arrival, from_first, reuses_ports } = *self;
        let Arrival { at, number, .. } = *arrival;
        let (trace, keeps_order) = (None, config.spans);
        let opening = Opening { id, first_packet: number, at, from_first, trace, keeps_order };
        let mut tracker = Tracker::new(opening);
        let seats = &Seats::default();
        let captured = CapturedSegment {
            reuses_ports,
            ..CapturedSegment::of(arrival, &[], seats, from_first)
        };
        tracker.push(config, captured);
        tracker
    }
}

/// An open connection.
#[derive(Debug)]
pub(super) enum Open {
    /// It has had one packet, and no points of graphs are recorded.
    Lone(Box<Lone>),
    /// It is followed packet by packet.
    Tracked(Box<Tracker>),
}

impl Open {
    /// Its number in the capture.
    pub fn id(&self) -> u64 {
        match self {
            Open::Lone(lone) => lone.id,
            Open::Tracked(tracker) => tracker.id(),
        }
    }

    /// The number of its first packet.
    pub fn first_packet(&self) -> u64 {
        match self {
            Open::Lone(lone) => lone.arrival.number,
            Open::Tracked(tracker) => tracker.first_packet(),
        }
    }

    /// The time of its last packet.
    pub fn last(&self) -> Instant {
        match self {
            Open::Lone(lone) => lone.arrival.at,
            Open::Tracked(tracker) => tracker.last(),
        }
    }

    /// The tracker, for its next packet.
    pub fn tracker(&mut self, config: &Config) -> &mut Tracker {
        if let Open::Lone(lone) = self {
            *self = Open::Tracked(Box::new(lone.tracker(config)));
        }
        match self {
            Open::Tracked(tracker) => tracker,
            Open::Lone(_) => unreachable!("it has just been replaced"),
        }
    }

    /// The tracker, where points of graphs may be recorded.
    pub fn traced(&mut self) -> Option<&mut Tracker> {
        match self {
            Open::Lone(_) => None,
            Open::Tracked(tracker) => Some(tracker),
        }
    }

    /// Ends the connection between these ends. The capture went on until `until`.
    pub fn ended(self, key: FlowKey, config: &Config, until: Instant) -> Ended {
        match self {
            Open::Lone(lone) => Ended { id: lone.id, until, kind: EndedAs::Lone(lone, key) },
            Open::Tracked(tracker) => {
                let found = Box::new(diagnosed(*tracker, key, config, until));
                Ended { id: found.connection.id, until, kind: EndedAs::Diagnosed(found) }
            }
        }
    }
}

/// A connection that has ended. It is diagnosed, unless it is one packet only: that takes a fifth
/// of the memory, and little time to diagnose.
#[derive(Debug)]
pub struct Ended {
    id: u64,
    /// How far the capture had gone.
    until: Instant,
    kind: EndedAs,
}

#[derive(Debug)]
enum EndedAs {
    Lone(Box<Lone>, FlowKey),
    Diagnosed(Box<DiagnosedConnection>),
}

impl Ended {
    /// Its number.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Gives it another number.
    pub fn renumber(&mut self, id: u64) {
        self.id = id;
    }

    /// Computes its findings now, on the calling thread, unless it is one packet only.
    #[must_use]
    pub fn with_findings(self) -> Self {
        let kind = match self.kind {
            EndedAs::Diagnosed(found) => EndedAs::Diagnosed(Box::new(found.with_findings())),
            lone @ EndedAs::Lone(..) => lone,
        };
        Ended { kind, ..self }
    }

    /// The connection with its diagnoses, by the configuration with which it was followed.
    pub fn diagnosed(self, config: &Config) -> DiagnosedConnection {
        let mut found = match self.kind {
            EndedAs::Lone(lone, key) => diagnosed(lone.tracker(config), key, config, self.until),
            EndedAs::Diagnosed(found) => *found,
        };
        if found.connection.id != self.id {
            found.renumber(self.id);
        }
        found
    }
}

fn diagnosed(
    tracker: Tracker,
    key: FlowKey,
    config: &Config,
    until: Instant,
) -> DiagnosedConnection {
    let Finished { connection, verdicts, trace } = tracker.finish(key, config, until);
    DiagnosedConnection::from_capture(connection, verdicts).with_trace(trace)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What makes a packet worth keeping in place of a connection.
    #[test]
    fn a_lone_packet_is_small() {
        assert!(size_of::<Lone>() <= 240, "{} bytes", size_of::<Lone>());
        assert!(size_of::<Open>() <= 16, "{} bytes", size_of::<Open>());
    }
}
