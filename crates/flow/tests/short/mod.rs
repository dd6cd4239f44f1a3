//! A connection of seven packets, of which there can be millions.

use super::path::{self, Seen};

/// A packet of a capture: when, its headers, and its length on the wire.
#[derive(Clone)]
pub struct Packet {
    pub at: u64,
    pub bytes: Vec<u8>,
    pub wire: usize,
}

/// Three packets to open, a request, its answer and the acknowledgement, a reset: `step`
/// nanoseconds apart, from a client of this number.
pub fn short(index: u32, at: u64, step: u64) -> Vec<Packet> {
    let bytes = index.to_be_bytes();
    let client = ([10, bytes[1], bytes[2], bytes[3]], 1024 + (index >> 24) as u16);
    let lines = [
        (true, (0x02, 0, 0, 0)),
        (false, (0x12, 0, 1, 0)),
        (true, (0x10, 1, 1, 0)),
        (true, (0x18, 1, 1, 300)),
        (false, (0x18, 1, 301, 1200)),
        (true, (0x10, 301, 1201, 0)),
        (true, (0x14, 301, 1201, 0)),
    ];
    let times = (0..).map(|number: u64| at + number * step);
    // Each end's window shrinks by what it has not read yet.
    let windows = [1000, 1000, 1000, 1000, 997, 990, 990];
    let seen = times.zip(lines).zip(windows);
    let seen = seen.map(|((at, (from_client, numbers)), window)| Seen {
        window,
        ..Seen::plain(at, from_client, numbers)
    });
    let packet = |seen: Seen| {
        let bytes = path::headers(&seen, client, ([192, 0, 2, 1], 443));
        Packet { at: seen.at, wire: bytes.len() + seen.length as usize, bytes }
    };
    seen.map(packet).collect()
}
