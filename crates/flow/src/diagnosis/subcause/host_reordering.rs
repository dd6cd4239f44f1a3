//! Segments that the sender's own host let out in the wrong order: several queues of its card or of
//! a bond, or a fault of segmentation offload. Captured at that host, nothing of the path lies
//! between the sender and the capture, so nothing of the path can have changed their order.

use super::DataSeen;
use crate::connection::{Direction, Label, Place};

/// One or two may be the capture's own: a buffer for each CPU.
const COUNT_LEAST: u64 = 3;
/// How sure the capture point has to be.
const SURE: f64 = 0.9;

/// Segments that left their own host in the wrong order.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HostReordering {
    /// How many.
    pub count: u64,
    /// Of all its packets with data, 0 to 1.
    pub share: f64,
}

impl HostReordering {
    pub(super) fn of(seen: DataSeen<'_>) -> Option<Self> {
        let vantage = seen.connection.vantage;
        let here = match seen.direction {
            Direction::ClientToServer => Place::Client,
            Direction::ServerToClient => Place::Server,
        };
        if vantage.place != here || vantage.confidence < SURE {
            return None;
        }
        let facts = seen.facts();
        let count = facts.labels.of(Label::OutOfOrder);
        let share = count as f64 / facts.packets.max(1) as f64;
        (count >= COUNT_LEAST).then_some(HostReordering { count, share })
    }
}
