//! A packet as the link sees it, and what the link reports about its fate.

use crate::units::{Bytes, Duration, Instant};

/// A packet as the link sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet {
    /// Size of the IP packet.
    pub size: Bytes,
    /// A hash of its addresses, ports and protocol: packets of one flow share it. Only FQ-CoDel
    /// looks at it.
    pub flow: u32,
    /// Whether it can carry a congestion mark.
    pub ecn: Ecn,
}

impl From<Bytes> for Packet {
    /// A packet of no particular flow that cannot be marked.
    fn from(size: Bytes) -> Self {
        Packet { size, flow: 0, ecn: Ecn::NotEct }
    }
}

/// The ECN field of an IP header (RFC 3168, section 5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Ecn {
    /// Not ECN-capable.
    #[default]
    NotEct,
    /// ECN-capable, L4S (RFC 9331).
    Ect1,
    /// ECN-capable.
    Ect0,
    /// Congestion experienced.
    Ce,
}

impl Ecn {
    /// The two low bits of the IPv4 TOS or the IPv6 traffic class.
    pub const fn from_bits(traffic_class: u8) -> Self {
        match traffic_class & 3 {
            0 => Ecn::NotEct,
            1 => Ecn::Ect1,
            2 => Ecn::Ect0,
            _ => Ecn::Ce,
        }
    }

    /// Whether a congestion mark reaches the receiver on it.
    pub const fn is_capable(self) -> bool {
        !matches!(self, Ecn::NotEct)
    }
}

/// Why a packet did not pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DropCause {
    /// Drawn by the loss model.
    Loss,
    /// The queue had no room.
    QueueFull,
    /// The queue's discipline dropped it to signal congestion (CoDel, RED).
    Discipline,
}

/// The immediate decision of [`super::Link::push`]. A discipline that decides later may still drop
/// an admitted packet; [`super::Link::poll`] reports that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub struct Fate {
    /// Bytes that were waiting when it arrived.
    pub backlog: Bytes,
    /// For the packet itself: admitted, or why not.
    pub original: Result<(), DropCause>,
    /// For its duplicate, if it has one.
    pub copy: Option<Result<(), DropCause>>,
}

impl Fate {
    /// How many of the two were admitted, each of which comes out of [`super::Link::poll`] once.
    pub fn admitted(&self) -> u32 {
        u32::from(self.original.is_ok()) + u32::from(self.copy.is_some_and(|copy| copy.is_ok()))
    }
}

/// An event from [`super::Link::poll`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event<T> {
    /// A packet leaves the link.
    Departure(Departure<T>),
    /// A packet that had been admitted is dropped.
    Drop(Dropped<T>),
}

/// A packet that leaves the link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Departure<T> {
    /// The pushed item.
    pub item: T,
    /// When it leaves, by the model.
    pub at: Instant,
    /// How long it waited for the transmitter.
    pub queued: Duration,
    /// Congestion experienced: to be set in its header.
    pub mark: bool,
    /// A bit to be flipped in it, after its checksums are final.
    pub corrupt: Option<Bit>,
    /// Whether this is the duplicate, not the original.
    pub copy: bool,
}

/// A packet that was admitted and then dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dropped<T> {
    /// The pushed item.
    pub item: T,
    /// When.
    pub at: Instant,
    /// How long it had waited.
    pub queued: Duration,
    /// Why.
    pub cause: DropCause,
    /// Whether this is the duplicate, not the original.
    pub copy: bool,
}

/// A bit of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Bit {
    /// Which byte of the IP packet, from 0.
    pub byte: u32,
    /// Which bit of it, 0 (lowest) to 7.
    pub bit: u8,
}

/// Totals of a direction so far.
///
/// `arrived + duplicated = departed + lost + queue_dropped + discipline_dropped + ` packets inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct Counters {
    /// Packets pushed.
    pub arrived_packets: u64,
    /// Copies made of them.
    pub duplicated_packets: u64,
    /// Packets that departed.
    pub departed_packets: u64,
    /// Bytes (of IP packets) that departed.
    pub departed_bytes: u64,
    /// Packets lost at random.
    pub lost_packets: u64,
    /// Packets that found the queue full.
    pub queue_dropped_packets: u64,
    /// Packets that the queue's discipline dropped.
    pub discipline_dropped_packets: u64,
    /// Packets that got a congestion mark.
    pub marked_packets: u64,
    /// Packets with a bit flipped.
    pub corrupted_packets: u64,
    /// Packets that skipped the delay.
    pub reordered_packets: u64,
    /// The most bytes that ever waited, the packet being serialised included.
    pub queue_max_bytes: u64,
}
