//! No answer: an end that opens a connection gets no reply, or an end that replies gets none back.

use super::DataSeen;
use crate::connection::Direction;
use fullpipe_model::units::Duration;

/// Bits of Wireshark's `tcp.completeness`.
const SYN: u8 = 1;
const SYN_ACK: u8 = 2;
const RST: u8 = 32;
/// One SYN at the end of a capture may have been answered after it.
const ATTEMPTS_LEAST: u64 = 2;
/// No stack tries again sooner. Two packets closer together are one packet, captured twice.
const TIME_LEAST: Duration = Duration::from_millis(200);

/// A handshake that was attempted and never completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoAnswer {
    /// The number of SYNs, or of answers to a SYN, that were captured.
    pub attempts: u64,
    /// From the first packet to the last.
    pub time: Duration,
    /// The SYN was answered, and the answer was not acknowledged.
    pub is_half_open: bool,
}

impl NoAnswer {
    /// Finds this in a connection, for the direction whose end got no answer.
    pub(super) fn of(seen: DataSeen<'_>) -> Option<Self> {
        let connection = seen.connection;
        let parts = connection.completeness & !RST;
        let is_half_open = match (parts, seen.direction) {
            (SYN, Direction::ClientToServer) => false,
            (parts, Direction::ServerToClient) if parts == SYN | SYN_ACK || parts == SYN_ACK => {
                true
            }
            _ => return None,
        };
        let other = match seen.direction {
            Direction::ClientToServer => Direction::ServerToClient,
            Direction::ServerToClient => Direction::ClientToServer,
        };
        // A reset is an answer.
        if !is_half_open && connection.facts(other).packets > 0 {
            return None;
        }
        let facts = seen.facts();
        let attempts = facts.packets.saturating_sub(facts.loss.duplicate_packets);
        let time = connection.duration;
        let was_repeated = attempts >= ATTEMPTS_LEAST && time >= TIME_LEAST;
        was_repeated.then_some(NoAnswer { attempts, time, is_half_open })
    }
}
