//! Segments that a kernel shows as one packet, and the headers of that packet.
//!
//! Which segments merge is the rule of `tcp_gro_receive` (net/ipv4/tcp_offload.c): one connection
//! and direction, contiguous, the same acknowledgement, window and options; a push, a FIN or a
//! segment shorter than the first ends the run. Segments that one super-packet was cut into fulfil
//! it too.

use super::CapturedRecord;
use crate::capture::ip_packet;
use crate::capture::segment::{Flags, Parsed, Segment};
use crate::intake::length_behind_link;
use etherparse::checksum::Sum16BitWords;
use fullpipe_model::units::Instant;

/// What IPv4's total length can say.
const PACKET_MAX: usize = 65_535;
const IPV4_TTL: usize = 8;
const IPV4_CHECKSUM: usize = 10;
const IPV6_HOP_LIMIT: usize = 7;
const IPV6_HEADER: usize = 40;
const TCP_FLAGS: usize = 13;
/// What may differ between segments of one packet, as only its last has it.
const LAST_ONLY: u8 = Flags::FIN.0 | Flags::PSH.0;

/// A TCP segment in a record, and where its headers are.
#[derive(Debug, Clone, Copy)]
pub(super) struct Headers {
    pub segment: Segment,
    /// Where in the record's data the IP packet and its TCP header begin.
    ip: usize,
    tcp: usize,
    /// Where the TCP header ends.
    end: usize,
    /// Length of the IP packet.
    length: usize,
}

impl Headers {
    /// `None` where it is not TCP behind a plain IP header, or the headers are not all there.
    pub fn read(record: &CapturedRecord) -> Option<Headers> {
        let data = &record.data;
        let packet = ip_packet(record.link_type, data)?;
        let ip = packet.as_ptr() as usize - data.as_ptr() as usize;
        let wire = length_behind_link(data, packet, record.original_length);
        let Parsed::Tcp(segment) = Segment::from_ip(packet, wire) else { return None };
        let tcp = match packet.first()? >> 4 {
            4 => ip + usize::from(packet[0] & 15) * 4,
            // Extension headers are left alone.
            6 if packet.get(6) == Some(&6) => ip + IPV6_HEADER,
            _ => return None,
        };
        let end = tcp + usize::from(data.get(tcp + 12)? >> 4) * 4;
        let whole = !segment.is_broken && end <= data.len();
        let length = end - ip + segment.payload.get() as usize;
        whole.then_some(Headers { segment, ip, tcp, end, length })
    }
}

/// A packet in the making.
#[derive(Debug)]
pub(super) struct MergedPacket {
    pub record: CapturedRecord,
    /// `None`: nothing can be added to it.
    pub headers: Option<Headers>,
    /// When its last segment came.
    pub last_at: Instant,
    end: u32,
}

impl MergedPacket {
    /// A packet by itself to which nothing is added.
    pub fn closed(record: CapturedRecord) -> MergedPacket {
        MergedPacket { last_at: record.at, record, headers: None, end: 0 }
    }

    /// A packet that may grow.
    pub fn new(record: CapturedRecord, headers: Headers) -> MergedPacket {
        let segment = &headers.segment;
        let alone = Flags::SYN | Flags::RST | Flags::URG | Flags(LAST_ONLY);
        let grows = segment.payload_len() > 0 && !segment.flags.any(alone);
        let end = segment.end().0;
        MergedPacket { last_at: record.at, record, headers: grows.then_some(headers), end }
    }

    /// Whether both are of one direction of one connection.
    pub fn is_of(&self, other: &Segment) -> bool {
        self.headers.is_some_and(|own| {
            own.segment.source == other.source && own.segment.destination == other.destination
        })
    }

    /// Adds the segment if a kernel would.
    pub fn join(&mut self, record: &CapturedRecord, with: &Headers) -> bool {
        let Some(own) = &mut self.headers else { return false };
        let (first, next) = (&own.segment, &with.segment);
        let payload = next.payload_len();
        let options =
            self.record.data[own.tcp + 20..own.end] == record.data[with.tcp + 20..with.end];
        let fits = next.seq.0 == self.end
            && (1..=first.payload_len()).contains(&payload)
            && own.length + payload as usize <= PACKET_MAX
            && (first.flags.0 ^ next.flags.0) & !LAST_ONLY == 0
            && (first.ack, first.window, first.ce) == (next.ack, next.window, next.ce)
            && options;
        if !fits {
            return false;
        }
        own.length += payload as usize;
        self.end = self.end.wrapping_add(payload);
        self.last_at = record.at;
        self.record.original_length += payload as usize;
        self.record.data[own.tcp + TCP_FLAGS] |= next.flags.0;
        set_length(&mut self.record.data, own.ip, own.length);
        if payload < first.payload_len() || next.flags.any(Flags(LAST_ONLY)) {
            self.headers = None;
        }
        true
    }
}

/// Writes the length of the IP packet that begins at `ip`.
fn set_length(data: &mut [u8], ip: usize, length: usize) {
    let is_v4 = data[ip] >> 4 == 4;
    let (at, length) = if is_v4 { (ip + 2, length) } else { (ip + 4, length - IPV6_HEADER) };
    let length = u16::try_from(length).unwrap_or(0);
    data[at..at + 2].copy_from_slice(&length.to_be_bytes());
    if is_v4 {
        sum_ipv4(&mut data[ip..]);
    }
}

/// Completes an IPv4 header's checksum.
fn sum_ipv4(packet: &mut [u8]) {
    let length = usize::from(packet[0] & 15) * 4;
    packet[IPV4_CHECKSUM..IPV4_CHECKSUM + 2].fill(0);
    let sum = Sum16BitWords::new().add_slice(&packet[..length]).ones_complement().to_be();
    packet[IPV4_CHECKSUM..IPV4_CHECKSUM + 2].copy_from_slice(&sum.to_be_bytes());
}

/// One hop further on.
pub(super) fn lower_hop_limit(record: &mut CapturedRecord) {
    let Some(Headers { ip, .. }) = Headers::read(record) else { return };
    let packet = &mut record.data[ip..];
    if packet[0] >> 4 == 4 {
        packet[IPV4_TTL] = packet[IPV4_TTL].saturating_sub(1);
        sum_ipv4(packet);
    } else {
        packet[IPV6_HOP_LIMIT] = packet[IPV6_HOP_LIMIT].saturating_sub(1);
    }
}
