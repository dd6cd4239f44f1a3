//! Outgoing packets: parts of a frame, unchanged or with what the link did to them (pure).
//!
//! Most of what leaves is unchanged except for its own headers ([`Layout::header`]). A congestion
//! mark is set in the header that is written anyway. Corruption needs the whole packet: its
//! checksums are completed first, then the bit is flipped, and the virtio header says nothing about
//! checksums, so the receiving kernel verifies them.
//!
//! **Which bit.** The model draws a bit of the IP packet. Two places are spared, because a flipped
//! bit there would not make a segment that fails its checksum: the IP header (a router on the path
//! would have dropped the packet) and TCP's data offset (Linux checks it before the checksum, and
//! counts another error). A bit drawn there is moved into the transport header or payload. So each
//! corrupted segment that reaches a socket increments `TcpInCsumErrors`.

use super::headers::Headers;
use super::super_packet::{HEADER_MAX, Layout, VNET_LEN, mark};
use fullpipe_model::link::Bit;
use fullpipe_model::link::rule::Protocol;
use std::io::IoSlice;

/// What the link did to a packet in addition to delaying it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Treatment {
    /// Marked: congestion experienced.
    pub mark: bool,
    /// The flipped bit, if any.
    pub corrupt: Option<Bit>,
}

impl Treatment {
    fn is_none(self) -> bool {
        self == Treatment::default()
    }
}

/// Segments of a frame that leave together.
#[derive(Debug, Clone, Copy)]
pub struct Parts<'a> {
    /// The frame.
    pub frame: &'a [u8],
    /// Its layout.
    pub layout: &'a Layout,
    /// Index of the first segment.
    pub index: u16,
    /// Number of segments: one if it is corrupted.
    pub count: u16,
    /// What was done to each segment.
    pub treatment: Treatment,
}

/// Room for headers and for a corrupted packet.
#[derive(Debug)]
pub struct Scratch {
    head: [u8; HEADER_MAX],
    packet: Vec<u8>,
}

impl Default for Scratch {
    fn default() -> Self {
        Scratch { head: [0; HEADER_MAX], packet: Vec::with_capacity(super::ring::FRAME_MAX) }
    }
}

impl<'a> Parts<'a> {
    /// The frame to write, in up to two parts.
    pub fn slices(&self, scratch: &'a mut Scratch) -> [IoSlice<'a>; 2] {
        let Parts { frame, layout, index, count, treatment } = *self;
        if treatment.is_none() && layout.is_whole(index, count) {
            return [IoSlice::new(frame), IoSlice::new(&[])];
        }
        let Scratch { head, packet } = scratch;
        if treatment.corrupt.is_some() {
            let wire = self.on_wire(index, head);
            packet.clear();
            packet.resize(VNET_LEN, 0);
            packet.extend_from_slice(&frame[VNET_LEN..layout.ip_start()]);
            let ip = packet.len();
            packet.extend_from_slice(wire.head);
            packet.extend_from_slice(wire.payload);
            if let Some(flipped) =
                packet.get_mut(ip..).and_then(|packet| packet.get_mut(wire.flip?.byte as usize))
            {
                *flipped ^= 1 << (wire.flip.map_or(0, |bit| bit.bit) & 7);
            }
            return [IoSlice::new(packet), IoSlice::new(&[])];
        }
        let (head_len, (start, end)) = if layout.is_cuttable() {
            (layout.header(frame, index, count, head), layout.payload_range(index, count))
        } else {
            let head_len = frame.len().min(HEADER_MAX);
            head[..head_len].copy_from_slice(&frame[..head_len]);
            (head_len, (head_len, frame.len()))
        };
        if treatment.mark {
            mark(&mut head[layout.ip_start()..head_len]);
        }
        [IoSlice::new(&head[..head_len]), IoSlice::new(&frame[start..end])]
    }

    /// Segment `index` as the wire carries it: the IP packet with complete checksums.
    pub fn on_wire<'h>(&self, index: u16, head: &'h mut [u8; HEADER_MAX]) -> Wire<'h>
    where
        'a: 'h,
    {
        let (head_range, payload_range) = self.layout.on_wire(self.frame, index, head);
        if self.treatment.mark {
            mark(&mut head[head_range.clone()]);
        }
        let (head, payload) = (&head[head_range], &self.frame[payload_range]);
        let flip = self.treatment.corrupt.map(|bit| moved(bit, head, head.len() + payload.len()));
        Wire { head, payload, flip }
    }
}

/// A packet on the wire.
#[derive(Debug, Clone, Copy)]
pub struct Wire<'a> {
    /// The IP packet's first bytes: all of its headers.
    pub head: &'a [u8],
    /// The rest of it.
    pub payload: &'a [u8],
    /// The flipped bit of it, if any.
    pub flip: Option<Bit>,
}

impl Wire<'_> {
    /// Length of the IP packet.
    pub fn len(&self) -> usize {
        self.head.len() + self.payload.len()
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends its first `captured` bytes to `out`, with the bit flipped if it is among them.
    pub fn append_to(&self, out: &mut Vec<u8>, captured: usize) {
        let start = out.len();
        let from_head = self.head.len().min(captured);
        out.extend_from_slice(&self.head[..from_head]);
        out.extend_from_slice(&self.payload[..captured - from_head]);
        if let Some(bit) = self.flip.filter(|bit| (bit.byte as usize) < captured) {
            out[start + bit.byte as usize] ^= 1 << (bit.bit & 7);
        }
    }
}

/// Moves `bit` of a packet of `len` bytes that begins with `head` out of the spared places.
fn moved(bit: Bit, head: &[u8], len: usize) -> Bit {
    const DATA_OFFSET: usize = 12;
    const CHECKSUM: usize = 16;
    let headers = Headers::read(head);
    let shortest = if head.first().is_some_and(|first| first >> 4 == 6) { 40 } else { 20 };
    let above = headers.and_then(|headers| headers.transport).unwrap_or(shortest);
    let tcp = headers.is_some_and(|headers| {
        headers.transport.is_some() && headers.key.protocol == Protocol::TCP
    });
    let drawn = bit.byte as usize;
    if len <= above {
        return Bit { byte: drawn.min(len.saturating_sub(1)) as u32, ..bit };
    }
    let byte = if drawn < above || drawn >= len { above + drawn % (len - above) } else { drawn };
    let byte =
        if tcp && byte == above + DATA_OFFSET { (above + CHECKSUM).min(len - 1) } else { byte };
    Bit { byte: byte as u32, ..bit }
}

#[cfg(test)]
mod tests {
    use super::super::super_packet::tests::{check, super_packet};
    use super::*;
    use etherparse::{Ipv4Header, Ipv6Header};
    use proptest::prelude::*;

    const FLAGS: usize = 0;
    const GSO_TYPE: usize = 1;

    fn written(parts: &Parts<'_>) -> Vec<u8> {
        let mut scratch = Scratch::default();
        parts.slices(&mut scratch).iter().flat_map(|part| part.to_vec()).collect()
    }

    fn ecn(packet: &[u8]) -> u8 {
        if packet[0] >> 4 == 4 { packet[1] & 3 } else { packet[1] >> 4 & 3 }
    }

    proptest! {
        /// A mark changes the ECN field and nothing else that the wire would not change with it.
        #[test]
        fn a_mark_is_in_every_segment_and_checksums_stay_right(
            v6: bool, l2 in prop_oneof![Just(0usize), Just(14)], payload in prop::collection::vec(any::<u8>(), 1..9000), ect in 1u8..3,
        ) {
            let mut frame = super_packet(v6, l2, &payload, 1448, false);
            let ip = VNET_LEN + l2;
            if v6 {
                frame[ip + 1] |= ect << 4;
            } else {
                frame[ip + 1] |= ect;
                let mut header = Ipv4Header::from_slice(&frame[ip..]).unwrap().0;
                header.header_checksum = header.calc_header_checksum();
                frame[ip..ip + 20].copy_from_slice(&header.to_bytes());
            }
            let layout = Layout::parse(&frame, l2).unwrap();
            let treatment = Treatment { mark: true, corrupt: None };
            let parts = Parts { frame: &frame, layout: &layout, index: 0, count: layout.count(), treatment };
            let marked = written(&parts);
            prop_assert_eq!(marked.len(), frame.len());
            let again = Layout::parse(&marked, l2).unwrap();
            for index in 0..layout.count() {
                let mut head = [0; HEADER_MAX];
                let wire = parts.on_wire(index, &mut head);
                let packet = [wire.head, wire.payload].concat();
                check(&packet);
                prop_assert_eq!(ecn(&packet), 3);
                let reparsed = Parts { frame: &marked, layout: &again, index, count: 1, treatment: Treatment::default() };
                let mut head = [0; HEADER_MAX];
                let wire = reparsed.on_wire(index, &mut head);
                prop_assert_eq!([wire.head, wire.payload].concat(), packet);
            }
        }

        /// One bit differs from the packet with final checksums, past the IP header and not in the
        /// data offset; the receiver is told nothing that would keep it from looking.
        #[test]
        fn corruption_is_one_bit_that_the_transport_checksum_covers(
            v6: bool, l2 in prop_oneof![Just(0usize), Just(14)], payload in prop::collection::vec(any::<u8>(), 0..4000),
            byte in 0u32..1600, bit in 0u8..8, pick: u16,
        ) {
            let frame = super_packet(v6, l2, &payload, 1448, false);
            let layout = Layout::parse(&frame, l2).unwrap();
            let index = pick % layout.count();
            let sound = Parts { frame: &frame, layout: &layout, index, count: 1, treatment: Treatment::default() };
            let treatment = Treatment { mark: false, corrupt: Some(Bit { byte, bit }) };
            let out = written(&Parts { treatment, ..sound });
            prop_assert_eq!((out[FLAGS], out[GSO_TYPE]), (0, 0));
            let packet = &out[VNET_LEN + l2..];
            let mut head = [0; HEADER_MAX];
            let wire = sound.on_wire(index, &mut head);
            let right = [wire.head, wire.payload].concat();
            prop_assert_eq!(packet.len(), right.len());
            let differ: Vec<_> = (0..packet.len()).filter(|&at| packet[at] != right[at]).collect();
            prop_assert_eq!(differ.len(), 1);
            prop_assert_eq!((packet[differ[0]] ^ right[differ[0]]).count_ones(), 1);
            let transport = if v6 { 40 } else { 20 };
            prop_assert!(differ[0] >= transport && differ[0] != transport + 12);
            // The capture shows the same.
            let mut captured = Vec::new();
            let mut head = [0; HEADER_MAX];
            Parts { treatment, ..sound }.on_wire(index, &mut head).append_to(&mut captured, right.len());
            prop_assert_eq!(&captured[..], packet);
        }
    }

    #[test]
    fn a_packet_that_is_no_super_packet_is_marked_too() {
        let header =
            Ipv6Header { payload_length: 3, traffic_class: 2, hop_limit: 9, ..Default::default() };
        let frame = [&[0; VNET_LEN][..], &header.to_bytes(), b"abc"].concat();
        let layout = Layout::parse(&frame, 0).unwrap();
        let treatment = Treatment { mark: true, corrupt: None };
        let out = written(&Parts { frame: &frame, layout: &layout, index: 0, count: 1, treatment });
        assert_eq!(Ipv6Header::from_slice(&out[VNET_LEN..]).unwrap().0.traffic_class, 3);
        assert_eq!(&out[out.len() - 3..], b"abc");
    }
}
