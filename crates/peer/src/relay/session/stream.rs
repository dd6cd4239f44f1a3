//! One stream of a session: where it stands, and its two directions.

use super::super::reassembly::Reassembly;
use super::super::send_buffer::SendBuffer;
use super::super::window::{Budget, Window};

/// Where a stream stands until data may flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StreamPhase {
    /// The initiator waits for OPENED or REFUSED. The user may have gone (`is_abandoned`): then a
    /// RESET follows the answer, because before it the far end may not know the stream.
    Opening { is_abandoned: bool },
    /// The far end's user has not answered [`super::Event::Incoming`] yet.
    Incoming,
    /// Data flows.
    Open,
}

/// One stream.
#[derive(Debug)]
pub(super) struct RelayStream {
    pub phase: StreamPhase,
    pub send: SendBuffer,
    pub receive: Reassembly,
    pub window: Window,
    /// FIN was queued.
    pub is_fin_sent: bool,
    /// FIN was acknowledged.
    pub is_fin_acknowledged: bool,
    /// The user has read up to the end.
    pub is_end_read: bool,
    /// The user was told that the buffer is full, and waits for room.
    pub wants_room: bool,
}

impl RelayStream {
    pub fn new(phase: StreamPhase, budget: &mut Budget) -> Self {
        RelayStream {
            phase,
            send: SendBuffer::default(),
            receive: Reassembly::default(),
            window: Window::open(budget),
            is_fin_sent: false,
            is_fin_acknowledged: false,
            is_end_read: false,
            wants_room: false,
        }
    }

    /// Whether both directions ended and everything arrived.
    pub fn is_done(&self) -> bool {
        self.is_end_read && self.is_fin_acknowledged && self.send.is_delivered()
    }
}
