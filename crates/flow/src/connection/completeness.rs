//! Which parts of a connection were captured, as Wireshark's `tcp.completeness` counts them.

use crate::capture::segment::{Flags, Segment};

/// The parts, in the order of their bits.
const PARTS: [&str; 6] = ["SYN", "SYN-ACK", "ACK", "data", "FIN", "RST"];

/// The bits of Wireshark's `tcp.completeness`: 1 SYN, 2 SYN-ACK, 4 ACK, 8 data, 16 FIN, 32 RST.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Completeness(u8);

impl Completeness {
    /// Notes a segment of either end.
    pub fn note(&mut self, segment: &Segment) {
        let [syn, ack, fin, rst] =
            [Flags::SYN, Flags::ACK, Flags::FIN, Flags::RST].map(|flag| segment.flags.any(flag));
        let opening = match (syn, ack) {
            (true, false) => 1,
            (true, true) => 2,
            (false, true) => 4,
            (false, false) => 0,
        };
        let data = if segment.payload_len() > 0 { 8 } else { 0 };
        let closing = if fin { 16 } else { 0 } | if rst { 32 } else { 0 };
        self.0 |= opening | data | closing;
    }

    /// The bits.
    pub fn bits(self) -> u8 {
        self.0
    }
}

/// The names of the parts whose bits are set.
pub(super) fn parts(bits: u8) -> impl Iterator<Item = &'static str> {
    (0..).zip(PARTS).filter(move |(bit, _)| bits & 1 << bit != 0).map(|(_, name)| name)
}
