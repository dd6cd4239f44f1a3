//! A transfer that the receive window limits, packet by packet, for tests of several crates.
#![allow(dead_code, reason = "each user takes a part of it")]

/// The round-trip time in nanoseconds.
pub const RTT: u64 = 50_000_000;

/// A segment of a connection from 192.0.2.1 to 198.51.100.2:80, without the bytes of its payload.
pub struct Segment {
    /// The client's port.
    pub port: u16,
    pub to_server: bool,
    pub flags: u8,
    pub seq: u32,
    pub ack: u32,
    /// Bytes of payload that its IP header claims; none follow.
    pub payload: u16,
}

impl Segment {
    /// IPv4 and TCP header.
    pub fn packet(&self) -> Vec<u8> {
        let ends = [([192, 0, 2, 1], self.port), ([198, 51, 100, 2], 80)];
        let (from, to) = if self.to_server { (ends[0], ends[1]) } else { (ends[1], ends[0]) };
        let total = (40 + self.payload).to_be_bytes();
        let ip = [0x45, 0, total[0], total[1], 0, 0, 0x40, 0, 64, 6, 0, 0];
        [
            &ip[..],
            &from.0,
            &to.0,
            &from.1.to_be_bytes(),
            &to.1.to_be_bytes(),
            &self.seq.to_be_bytes(),
            &self.ack.to_be_bytes(),
            &[0x50, self.flags],
            &10_000_u16.to_be_bytes(),
            &[0; 4],
        ]
        .concat()
    }
}

/// Time in nanoseconds and bytes of each packet of `turns` windows of 10 kB from the server, one
/// each round trip of 50 ms, as seen at the server: 1.6 Mbit/s.
pub fn packets(port: u16, turns: u32) -> Vec<(u64, Vec<u8>)> {
    let from_client =
        |flags, seq, ack| Segment { port, to_server: true, flags, seq, ack, payload: 0 }.packet();
    let from_server = |flags, seq, payload| {
        Segment { port, to_server: false, flags, seq, ack: 100, payload }.packet()
    };
    let mut packets = vec![
        (0, from_client(0x02, 99, 0)),
        (10_000, from_server(0x12, 499, 0)),
        (RTT, from_client(0x10, 100, 500)),
    ];
    for turn in 0..turns {
        let at = RTT * u64::from(turn + 1) + 1_000_000;
        for part in 0..10_u32 {
            let seq = 500 + turn * 10_000 + part * 1_000;
            packets.push((at + u64::from(part) * 1_000, from_server(0x10, seq, 1_000)));
        }
        packets.push((at + RTT - 500_000, from_client(0x10, 100, 500 + (turn + 1) * 10_000)));
    }
    packets
}
