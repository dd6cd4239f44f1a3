//! How a connection ends: which ends sent FIN or RST, and whether it was acknowledged.

use super::Close;
use crate::capture::segment::{Flags, Segment, SequenceNumber};

/// The end of a connection, as far as it was captured. The two ends are numbered; 0 is the sender
/// of the first packet seen.
#[derive(Debug)]
pub(super) struct Closing {
    /// How far each end's direction is closed. A reset by either end closes both.
    directions: [DirectionState; 2],
    first: Option<FirstToClose>,
}

/// How far one end's direction is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DirectionState {
    Open,
    /// A FIN was sent. This number acknowledges it.
    Fin(SequenceNumber),
    Closed,
}

/// Which end first sent FIN or RST.
#[derive(Debug, Clone, Copy)]
struct FirstToClose {
    end: u8,
    by_reset: bool,
}

impl Default for Closing {
    fn default() -> Self {
        Closing { directions: [DirectionState::Open; 2], first: None }
    }
}

impl Closing {
    /// Notes a segment that the end `from` sent.
    pub fn note(&mut self, segment: &Segment, from: usize) {
        let by_reset = segment.flags.any(Flags::RST);
        let closes = segment.flags.any(Flags::RST | Flags::FIN);
        let is_open = self.directions.contains(&DirectionState::Open);
        if is_open && closes && (by_reset || self.first.is_none()) {
            self.first = Some(FirstToClose { end: from as u8, by_reset });
        }
        if by_reset {
            self.directions = [DirectionState::Closed; 2];
        } else if closes && self.directions[from] == DirectionState::Open {
            self.directions[from] = DirectionState::Fin(segment.end());
        }
        let other = &mut self.directions[1 - from];
        if let DirectionState::Fin(end) = *other
            && segment.flags.any(Flags::ACK)
            && !segment.ack.is_before(end)
        {
            *other = DirectionState::Closed;
        }
    }

    /// Whether nothing but late packets can follow.
    pub fn is_complete(&self) -> bool {
        self.directions == [DirectionState::Closed; 2]
    }

    /// How the connection ended, where the end `client` is the client.
    pub fn close(&self, client: usize) -> Close {
        match self.first {
            None => Close::Open,
            Some(FirstToClose { end, by_reset: true }) => {
                if usize::from(end) == client {
                    Close::ResetByClient
                } else {
                    Close::ResetByServer
                }
            }
            Some(_) if self.directions.contains(&DirectionState::Open) => Close::HalfClosed,
            Some(_) => Close::Finished,
        }
    }
}
