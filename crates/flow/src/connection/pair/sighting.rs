//! What one place saw of a connection.

use super::clocks::{Clocks, nanos};
use crate::capture::segment::{Flags, FlowKey, IpHeader, Segment, SequenceNumber, TcpOptions};
use fullpipe_model::units::{Bytes, Instant};
use std::net::SocketAddr;

/// One packet of a connection, as one place saw it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sighting {
    /// Nanoseconds, by the clock of its place until [`SightedWay::set_clock`].
    pub at: i64,
    pub seq: SequenceNumber,
    pub ack: SequenceNumber,
    pub payload: u32,
    tsval: u32,
    pub window: u16,
    ip_id: u16,
    pub flags: Flags,
    pub header: IpHeader,
    /// Which of time stamp and IP identification there are.
    has: u8,
}

/// What tells a packet from a copy of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Marks {
    tsval: u32,
    ip_id: u16,
    /// Which of time stamp and IP identification there are.
    has: u8,
}

const HAS_TIMESTAMP: u8 = 1;
const HAS_IP_ID: u8 = 2;

impl Sighting {
    fn of(at: i64, segment: &Segment) -> Sighting {
        let timestamp = segment.options.timestamps.map(|(tsval, _)| tsval);
        let has = u8::from(timestamp.is_some()) * HAS_TIMESTAMP
            + u8::from(segment.ip_id.is_some()) * HAS_IP_ID;
        Sighting {
            at,
            seq: segment.seq,
            ack: segment.ack,
            payload: segment.payload_len(),
            tsval: timestamp.unwrap_or_default(),
            window: segment.window,
            ip_id: segment.ip_id.unwrap_or_default(),
            flags: segment.flags,
            header: segment.ip,
            has,
        }
    }

    /// What tells it from a copy.
    pub fn marks(&self) -> Marks {
        Marks { tsval: self.tsval, ip_id: self.ip_id, has: self.has }
    }

    /// Whether the other place's header says the same, hops apart.
    #[inline]
    pub fn is_same_but_for_hops(&self, other: &Sighting) -> bool {
        let of = |one: &Sighting| (one.tsval, one.window, one.ip_id, one.header.class, one.has);
        of(self) == of(other)
    }

    /// What it takes of the sequence space: payload, SYN and FIN.
    pub fn length(&self) -> u32 {
        let control = u32::from(self.flags.any(Flags::SYN)) + u32::from(self.flags.any(Flags::FIN));
        self.payload.saturating_add(control)
    }
}

impl Marks {
    /// TSval (RFC 7323).
    pub fn timestamp(self) -> Option<u32> {
        (self.has & HAS_TIMESTAMP != 0).then_some(self.tsval)
    }

    /// IPv4's identification.
    pub fn ip_id(self) -> Option<u16> {
        (self.has & HAS_IP_ID != 0).then_some(self.ip_id)
    }
}

/// What a SYN proposed, or its answer agreed to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Syn {
    pub seq: SequenceNumber,
    pub flags: Flags,
    pub mss: Option<Bytes>,
    pub window_scale: Option<u8>,
    pub sack_permitted: bool,
    pub has_timestamps: bool,
    pub is_cut: bool,
}

/// One direction of a connection.
#[derive(Debug, Default)]
pub(super) struct SightedWay {
    pub syn: Option<Syn>,
    pub sightings: Vec<Sighting>,
    /// SACK blocks, each with the time of the segment that it came with: most have one.
    pub sacks: Vec<(i64, SequenceNumber, SequenceNumber)>,
}

impl SightedWay {
    /// Makes all times those of A's clock, where they are B's.
    pub fn set_clock(&mut self, clocks: &Clocks) {
        let sightings = self.sightings.iter_mut().map(|one| &mut one.at);
        for at in sightings.chain(self.sacks.iter_mut().map(|(at, ..)| at)) {
            *at = clocks.a_of_b(*at);
        }
    }
}

/// A connection at one place.
#[derive(Debug)]
pub(super) struct Sighted {
    pub key: FlowKey,
    /// When its first packet came.
    pub began: Instant,
    /// What the first end sent, and what the second did.
    pub ways: [SightedWay; 2],
}

impl Sighted {
    pub fn new(key: FlowKey, began: Instant) -> Self {
        Sighted { key, began, ways: Default::default() }
    }

    /// The first end, and the second.
    pub fn ends(&self) -> [SocketAddr; 2] {
        self.key.ends()
    }

    /// Whether `segment` begins another connection between the same ports.
    pub fn is_over_for(&self, segment: &Segment, by_first: bool) -> bool {
        let opens = segment.flags.any(Flags::SYN) && !segment.flags.any(Flags::ACK);
        let way = self.way(by_first);
        opens && way.syn.map_or(!way.sightings.is_empty(), |syn| syn.seq != segment.seq)
    }

    pub fn push(&mut self, at: Instant, segment: &Segment, by_first: bool) {
        let at = nanos(at);
        let way = &mut self.ways[usize::from(!by_first)];
        if way.sightings.is_empty() {
            self.began = self.began.min(Instant::from_nanos(at as u64));
        }
        if segment.flags.any(Flags::SYN) && way.syn.is_none() {
            let TcpOptions { mss, window_scale, sack_permitted, timestamps, .. } = segment.options;
            way.syn = Some(Syn {
                seq: segment.seq,
                flags: segment.flags,
                mss,
                window_scale,
                sack_permitted,
                has_timestamps: timestamps.is_some(),
                is_cut: segment.is_header_cut,
            });
        }
        let blocks = segment.options.sack.as_slice().iter();
        way.sacks.extend(blocks.map(|(from, to)| (at, *from, *to)));
        way.sightings.push(Sighting::of(at, segment));
    }

    fn way(&self, by_first: bool) -> &SightedWay {
        &self.ways[usize::from(!by_first)]
    }

    /// Which of its ends opened it; unknown without a SYN.
    pub fn opener(&self) -> Option<usize> {
        let opens = |way: &SightedWay| way.syn.map(|syn| !syn.flags.any(Flags::ACK));
        match self.ways.each_ref().map(opens) {
            [Some(true), _] | [_, Some(false)] => Some(0),
            [_, Some(true)] | [Some(false), _] => Some(1),
            [None, None] => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // The guide says so, and the bound of a capture's memory rests on it.
    #[test]
    fn a_sighting_takes_32_bytes() {
        assert_eq!(size_of::<Sighting>(), 32);
    }
}
