//! How a writer that waits for its send buffer refills it, replayed byte by byte.
//!
//! A blocked writer is woken when the free space is at least half of what is queued
//! (`sk_stream_min_wspace`, include/net/sock.h), that is at two thirds of the buffer. It then
//! writes until the buffer is full, and what it writes last is taken whole. How much that is
//! decides the rate of a small buffer ([`crate::law::send_buffer`], "Small buffers keep whole
//! writes in flight"): one packet of 64 KiB where packets are sent whole, a write of the
//! application where pacing cuts them. Each piece that is cut has an `sk_buff` of its own, so the
//! same write takes more of the buffer the slower it is paced.
//!
//! So what is in flight comes in units, the acknowledgements of a unit come spread over its time on
//! the link, and the writer wakes in the middle of them. No formula has all of that, so the rule is
//! replayed until its pattern stands. Where a unit is a write, and the buffer a few of them, whole
//! writes fit into a round trip or do not: with writes of 256 KiB 1 MiB carries four of them at 100
//! ms, but three at 40.

use crate::law::burst::SteadyPath;
use crate::units::Bytes;
use std::collections::VecDeque;

/// Larger buffers hold so many units that two thirds say it all.
pub(super) const REPLAYED_MAX: Bytes = Bytes::new(64 << 20);
/// What is replayed: times that one buffer passes, the first third of which is not counted.
const ROUNDS: f64 = 60.0;
/// A packet's `sk_buff` (256) and head (576) on x86-64: `sk_wmem_alloc` of a packet of 65160 bytes
/// is 65992.
const PACKET_OVERHEAD: f64 = 832.0;
/// The writer wakes with so much of the buffer's memory in use.
const WAKES_AT: f64 = 2.0 / 3.0;

/// A writer and its send buffer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Refill {
    pub path: SteadyPath,
    /// `sk_sndbuf` in bytes.
    pub sndbuf: f64,
    /// What the application writes at once, in bytes.
    pub write: f64,
    /// What is sent at once, a packet in memory.
    pub burst: f64,
}

/// What a replay came to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Replayed {
    /// Bytes of data a second.
    pub rate: f64,
    /// The most bytes in flight.
    pub peak: f64,
}

/// Data that is taken whole. Its acknowledgements come from `first` to `last`, in seconds.
#[derive(Debug, Clone, Copy)]
struct Unit {
    first: f64,
    last: f64,
    bytes: f64,
    /// Memory over data.
    charged: f64,
}

/// The replay between two refills.
#[derive(Debug, Default)]
struct Flight {
    now: f64,
    link_free: f64,
    in_flight: f64,
    /// Memory in use, in bytes.
    memory: f64,
    sent: f64,
    units: VecDeque<Unit>,
}

impl Flight {
    /// Sends `bytes` in packets of at most `packet` bytes.
    fn send(&mut self, path: SteadyPath, bytes: f64, packet: f64) {
        let (start, rtt) = (self.link_free.max(self.now), path.rtt.as_secs_f64());
        self.link_free = start + path.on_link(bytes);
        let charged = 1.0 + PACKET_OVERHEAD / bytes.min(packet);
        self.units.push_back(Unit {
            first: start + rtt,
            last: self.link_free + rtt,
            bytes,
            charged,
        });
        self.in_flight += bytes;
        self.memory += bytes * charged;
        self.sent += bytes;
    }

    /// Waits until acknowledgements have freed all but `memory`.
    fn wait_for(&mut self, memory: f64) {
        while self.memory > memory {
            let Some(unit) = self.units.front_mut() else { return };
            let wanted = (self.memory - memory) / unit.charged;
            let bytes = if wanted < unit.bytes { wanted } else { unit.bytes };
            let at = unit.first + (unit.last - unit.first) * bytes / unit.bytes;
            self.now = self.now.max(at);
            self.in_flight -= bytes;
            if wanted < unit.bytes {
                unit.first = at;
                unit.bytes -= bytes;
                self.memory = memory;
            } else {
                self.memory -= bytes * unit.charged;
                self.units.pop_front();
            }
        }
    }
}

impl Refill {
    pub fn replay(self) -> Replayed {
        // Packets that pacing does not cut are sent whole, and the buffer is asked before each.
        let is_whole = self.burst >= self.path.super_packet();
        let unit = if is_whole { self.burst.min(self.write) } else { self.write };
        let round = self.path.rtt.as_secs_f64() + self.path.on_link(self.sndbuf + unit);
        let end = ROUNDS * round;
        let mut flight = Flight::default();
        // What is left of a write that is not a multiple of packets is a packet of its own.
        let mut left = self.write;
        let (mut peak, mut since, mut last) = (0.0f64, None, (0.0, 0.0));
        while flight.now < end {
            while flight.memory < self.sndbuf {
                let bytes = unit.min(left);
                flight.send(self.path, bytes, self.burst);
                left = if left > bytes { left - bytes } else { self.write };
            }
            peak = peak.max(flight.in_flight);
            last = (flight.now, flight.sent);
            if flight.now > end / 3.0 {
                since.get_or_insert(last);
            }
            flight.wait_for(self.sndbuf * WAKES_AT);
        }
        let (since, before) = since.unwrap_or_default();
        Replayed { rate: (last.1 - before) / (last.0 - since), peak }
    }
}
