//! A packet as it is written down for the graphs: in one cache line, so that writing it down costs
//! little. Most connections' graphs are never looked at, and then nothing else is ever done.

use crate::capture::segment::{Flags, SackBlocks, Segment, SequenceNumber};
use crate::connection::LabelSet;
use fullpipe_model::units::{Bytes, Duration, Instant};

/// What is not known.
const UNKNOWN: u32 = u32::MAX;
/// What else is known of a packet, as bits.
const FROM_SECOND: u8 = 1;
const BROKEN: u8 = 1 << 1;
const FOLLOWS_GAP: u8 = 1 << 2;
const ZERO_WINDOW: u8 = 1 << 3;
const STAMPED: u8 = 1 << 4;
const COPY: u8 = 1 << 5;

/// A packet, with what its connection knows after it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Packet {
    pub at: Instant,
    /// Its number in the capture.
    pub number: u64,
    pub seq: SequenceNumber,
    pub ack: SequenceNumber,
    pub payload: u32,
    /// On the wire.
    pub wire: u32,
    pub labels: LabelSet,
    /// The largest segment of its sender so far.
    pub segment_size: u32,
    rtt: u32,
    window: u32,
    stamp: u32,
    in_flight: [u32; 2],
    pub flags: Flags,
    bits: u8,
}

const _: () = assert!(size_of::<Packet>() <= 64);

/// What the connection knows of a packet besides its segment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Known {
    pub at: Instant,
    /// Its number in the capture.
    pub number: u64,
    /// On the wire.
    pub wire: Bytes,
    /// Which end sent it.
    pub from: usize,
    pub labels: LabelSet,
    /// Whether it is a copy of a packet that was captured before.
    pub is_copy: bool,
    /// The round trip that its acknowledgement ends.
    pub rtt: Option<Duration>,
    /// The window that it advertises, where the scale is known.
    pub window: Option<Bytes>,
    /// What each end has in flight.
    pub in_flight: [Option<Bytes>; 2],
    /// IP identifications show that packets before it did not pass the capture point.
    pub follows_gap: bool,
    /// The largest segment of its sender so far.
    pub segment_size: Bytes,
}

/// What a connection knows of its path, its ends by their numbers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PathEnds {
    /// The number of the first byte of each end's data.
    pub origins: [Option<SequenceNumber>; 2],
    /// The handshake's round trip.
    pub path_rtt: Option<Duration>,
    /// The round trip between the capture point and each end, where it is known.
    pub lags: [Option<Duration>; 2],
}

impl Packet {
    pub fn new(segment: &Segment, known: &Known) -> Self {
        Packet {
            at: known.at,
            number: known.number,
            seq: segment.seq,
            ack: segment.ack,
            payload: segment.payload_len(),
            wire: number(known.wire),
            labels: known.labels,
            segment_size: number(known.segment_size),
            rtt: known
                .rtt
                .map_or(UNKNOWN, |time| u32::try_from(time.as_micros()).unwrap_or(UNKNOWN - 1)),
            window: known.window.map_or(UNKNOWN, number),
            stamp: segment.options.timestamps.map_or(0, |(value, _)| value),
            in_flight: known.in_flight.map(|in_flight| in_flight.map_or(UNKNOWN, number)),
            flags: segment.flags,
            bits: bit(known.from == 1, FROM_SECOND)
                | bit(segment.is_broken, BROKEN)
                | bit(known.is_copy, COPY)
                | bit(known.follows_gap, FOLLOWS_GAP)
                | bit(segment.window == 0, ZERO_WINDOW)
                | bit(segment.options.timestamps.is_some(), STAMPED),
        }
    }

    /// Which end sent it.
    pub fn from(&self) -> usize {
        usize::from(self.has(FROM_SECOND))
    }

    /// Whether it is a copy of a packet that was captured before.
    pub fn is_copy(&self) -> bool {
        self.has(COPY)
    }

    /// Whether its numbers mean nothing.
    pub fn is_broken(&self) -> bool {
        self.has(BROKEN)
    }

    /// Whether IP identifications show that packets before it did not pass the capture point.
    pub fn follows_gap(&self) -> bool {
        self.has(FOLLOWS_GAP)
    }

    /// Whether it advertises a window of zero.
    pub fn has_zero_window(&self) -> bool {
        self.has(ZERO_WINDOW)
    }

    /// TSval (RFC 7323).
    pub fn stamp(&self) -> Option<u32> {
        self.has(STAMPED).then_some(self.stamp)
    }

    /// The round trip that its acknowledgement ends, in µs.
    pub fn rtt(&self) -> Option<u64> {
        known(self.rtt)
    }

    /// The window that it advertises in bytes, where the scale is known.
    pub fn window(&self) -> Option<u64> {
        known(self.window)
    }

    /// What each end has in flight, in bytes.
    pub fn in_flight(&self) -> [Option<u64>; 2] {
        self.in_flight.map(known)
    }

    fn has(&self, bit: u8) -> bool {
        self.bits & bit != 0
    }
}

/// Bytes as a column holds them.
fn number(bytes: Bytes) -> u32 {
    u32::try_from(bytes.get()).unwrap_or(UNKNOWN)
}

/// The bit where it is so.
fn bit(is_so: bool, bit: u8) -> u8 {
    if is_so { bit } else { 0 }
}

fn known(number: u32) -> Option<u64> {
    (number != UNKNOWN).then_some(number.into())
}

/// Packets of a chunk of the log: the first chunk's least, and the most, which are 4 KiB. Chunks
/// are never copied, and what one connection gives back another can use.
const CHUNK_LEAST: usize = 8;
const CHUNK: usize = 64;

/// Packets in order.
#[derive(Debug, Clone, Default)]
pub(super) struct PacketLog {
    chunks: Vec<Vec<Packet>>,
    len: usize,
    /// SACK blocks, by the place of their packet. Few packets have any.
    sacks: Vec<(u32, SackBlocks)>,
}

impl PacketLog {
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn push(&mut self, packet: Packet, sack: &SackBlocks) {
        if !sack.is_empty() {
            self.sacks.push((self.len as u32, *sack));
        }
        match self.chunks.last_mut().filter(|chunk| chunk.len() < chunk.capacity()) {
            Some(chunk) => chunk.push(packet),
            None => {
                let mut chunk = Vec::with_capacity(self.len.clamp(CHUNK_LEAST, CHUNK));
                chunk.push(packet);
                self.chunks.push(chunk);
            }
        }
        self.len += 1;
    }

    /// The packets, with their SACK blocks.
    pub fn iter(&self) -> impl Iterator<Item = (&Packet, SackBlocks)> {
        let mut sacks = self.sacks.iter().peekable();
        (0_u32..).zip(self.chunks.iter().flatten()).map(move |(place, packet)| {
            let sack = sacks.next_if(|(of, _)| *of == place);
            (packet, sack.map_or(SackBlocks::default(), |(_, blocks)| *blocks))
        })
    }

    /// Forgets the packets.
    pub fn clear(&mut self) {
        *self = PacketLog::default();
    }
}
