//! The queue's room.

use crate::units::Bytes;

/// How much may wait: bytes or packets, or no bound. An empty queue always admits a packet, however
/// small its room, because the transmitter itself holds one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Capacity {
    /// Any number of bytes.
    Unlimited,
    /// This many bytes, the unserialised part of the packet in service included.
    Bytes(Bytes),
    /// This many packets, the one in service included.
    Packets(u64),
}

impl Capacity {
    pub(super) fn admits(self, waiting: Bytes, waiting_packets: u64, size: Bytes) -> bool {
        match self {
            Capacity::Unlimited => true,
            Capacity::Bytes(limit) => waiting_packets == 0 || waiting.saturating_add(size) <= limit,
            Capacity::Packets(limit) => waiting_packets == 0 || waiting_packets < limit,
        }
    }
}
