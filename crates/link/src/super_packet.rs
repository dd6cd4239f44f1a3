//! Super-packets: with segmentation offload a kernel passes up to 64 KB as one packet.
//!
//! A frame is `[virtio net header, 10 bytes][link header, 0 or 14 bytes][IP packet]`, in the layout
//! of `include/uapi/linux/virtio_net.h`. With a GSO type its payload stands for segments of
//! `gso_size` bytes that were never cut. [`Layout`] says where the cuts are, and [`Layout::header`]
//! writes the headers of any run of segments so that the receiving kernel sees what the wire would
//! have carried. Fields follow `net/ipv4/tcp_offload.c`: the sequence number advances, the IP ID
//! counts up, FIN and PSH are on the last segment only, CWR on the first only, and the checksum
//! field has the sum of the pseudo-header for the new length, as NEEDS_CSUM requires.
//!
//! The bytes are untrusted. Anything that is not exactly a super-packet as kernels make them
//! (contradicting lengths, a checksum in an unexpected place, fragments, an IPv6 routing header)
//! passes whole and untouched, as one packet.

use super::headers::Headers;
use etherparse::checksum::Sum16BitWords;
use fullpipe_model::link::rule::Protocol;

/// Length of the virtio net header.
pub const VNET_LEN: usize = 10;
/// Virtio, Ethernet, IPv4 or IPv6 with extensions, TCP with options. No header is longer, or the
/// frame passes whole.
pub const HEADER_MAX: usize = 256;

const NEEDS_CSUM: u8 = 1;
const GSO_NONE: u8 = 0;
const GSO_TCPV4: u8 = 1;
const GSO_TCPV6: u8 = 4;
const GSO_UDP_L4: u8 = 5;
const GSO_ECN: u8 = 0x80;
const CE: u8 = 3;

/// The layout of a frame. Small enough to keep beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// Offset of the IP packet.
    ip: usize,
    /// Offset of the TCP or UDP header; equals `ip` if there is nothing to cut.
    transport: usize,
    /// Offset of the payload.
    payload: usize,
    /// Length of the frame.
    len: usize,
    /// Payload bytes of each segment except the last.
    segment: usize,
    /// Number of segments, at least one.
    count: u16,
    udp: bool,
}

impl Layout {
    /// Parses the headers of `frame`, whose link header has `l2_len` bytes. `None` if it is too
    /// short to be a frame at all.
    pub fn parse(frame: &[u8], l2_len: usize) -> Option<Layout> {
        Self::read(frame, l2_len).map(|(layout, _)| layout)
    }

    /// The same for a frame of `len` bytes of which only the beginning is there, including its
    /// headers.
    pub fn parse_start(frame: &[u8], len: usize, l2_len: usize) -> Option<Layout> {
        Self::read_start(frame, len, l2_len).map(|(layout, _)| layout)
    }

    /// The same, with the parsed headers; `None` for those if it is not an IP packet.
    pub fn read(frame: &[u8], l2_len: usize) -> Option<(Layout, Option<Headers>)> {
        Self::read_start(frame, frame.len(), l2_len)
    }

    fn read_start(frame: &[u8], len: usize, l2_len: usize) -> Option<(Layout, Option<Headers>)> {
        let ip = VNET_LEN + l2_len;
        if frame.len() < ip + 20 || len < frame.len() {
            return None;
        }
        let headers = Headers::read(&frame[ip..]);
        let cut =
            headers.as_ref().and_then(|headers| Self::of_super_packet(frame, len, ip, headers));
        let whole =
            Layout { ip, transport: ip, payload: ip, len, segment: 0, count: 1, udp: false };
        Some((cut.unwrap_or(whole), headers))
    }

    /// The layout of a frame with a GSO type; `None` if it cannot be cut.
    fn of_super_packet(frame: &[u8], len: usize, ip: usize, headers: &Headers) -> Option<Layout> {
        let segment = usize::from(u16::from_ne_bytes([frame[4], frame[5]]));
        let csum_start = usize::from(u16::from_ne_bytes([frame[6], frame[7]]));
        let csum_offset = usize::from(u16::from_ne_bytes([frame[8], frame[9]]));
        let (v4, protocol) = (frame[ip] >> 4 == 4, headers.key.protocol);
        let udp = protocol == Protocol::UDP;
        match (frame[1] & !GSO_ECN, v4, protocol) {
            (GSO_TCPV4, true, Protocol::TCP)
            | (GSO_TCPV6, false, Protocol::TCP)
            | (GSO_UDP_L4, _, Protocol::UDP) => {}
            _ => return None,
        }
        let transport = ip + headers.transport.filter(|_| !headers.routed)?;
        let header = if udp { 8 } else { usize::from(frame.get(transport + 12)? >> 4) * 4 };
        let payload = transport + header;
        let said = if v4 {
            usize::from(u16::from_be_bytes([frame[ip + 2], frame[ip + 3]]))
        } else {
            usize::from(u16::from_be_bytes([frame[ip + 4], frame[ip + 5]])) + 40
        };
        // With NEEDS_CSUM the kernel says where the transport header is; that must match.
        let needs_csum = frame[0] & NEEDS_CSUM != 0;
        let sound = said == len - ip
            && (!needs_csum
                || (VNET_LEN + csum_start == transport && csum_offset == checksum_at(udp)))
            && (udp || header >= 20)
            && payload <= HEADER_MAX
            && payload < len
            && payload <= frame.len()
            && segment > 0;
        if !sound {
            return None;
        }
        let count = u16::try_from((len - payload).div_ceil(segment)).ok()?;
        Some(Layout { ip, transport, payload, len, segment, count, udp })
    }

    /// Number of segments.
    pub fn count(&self) -> u16 {
        self.count
    }

    /// Length of segment `index` as an IP packet.
    pub fn ip_len(&self, index: u16) -> usize {
        let (start, end) = self.payload_range(index, 1);
        self.payload - self.ip + (end - start)
    }

    /// The range of the payload of `count` segments from `index` in the frame; the whole IP packet
    /// if nothing is cut.
    pub fn payload_range(&self, index: u16, count: u16) -> (usize, usize) {
        let start = self.payload + usize::from(index) * self.segment;
        let last = usize::from(index) + usize::from(count) >= usize::from(self.count);
        let end = if last { self.len } else { start + usize::from(count) * self.segment };
        (start, end)
    }

    /// Whether these segments are the whole frame, unchanged.
    pub fn is_whole(&self, index: u16, count: u16) -> bool {
        index == 0 && count == self.count
    }

    /// Whether the headers are known, so that a part can get its own.
    pub fn is_cuttable(&self) -> bool {
        self.payload > self.ip
    }

    /// Offset of the IP packet.
    pub fn ip_start(&self) -> usize {
        self.ip
    }

    /// TCP flags of segment `index` of a frame with these flags.
    pub fn flags(&self, of_frame: u8, index: u16) -> u8 {
        flags(of_frame, index, index + 1 == self.count)
    }

    /// Offset of the payload of segment `index` from that of the first segment.
    pub fn payload_offset(&self, index: u16) -> usize {
        usize::from(index) * self.segment
    }

    /// Writes virtio, link, IP and transport headers for `count` segments from `index` into `out`;
    /// returns their length. The payload that follows is [`Layout::payload_range`]. Only if
    /// [`Layout::is_cuttable`].
    pub fn header(
        &self,
        frame: &[u8],
        index: u16,
        count: u16,
        out: &mut [u8; HEADER_MAX],
    ) -> usize {
        let head = self.payload;
        out[..head].copy_from_slice(&frame[..head]);
        if !self.is_cuttable() {
            return head;
        }
        let (start, end) = self.payload_range(index, count);
        let ip_len = head - self.ip + (end - start);
        let transport_len = head - self.transport + (end - start);
        if count == 1 {
            out[1] = GSO_NONE;
            out[2..6].fill(0);
        }
        // A new length needs a new checksum: the receiving kernel trusts ours, as it trusted the
        // sender's.
        out[0] = NEEDS_CSUM;
        out[6..8].copy_from_slice(&((self.transport - VNET_LEN) as u16).to_ne_bytes());
        out[8..10].copy_from_slice(&(checksum_at(self.udp) as u16).to_ne_bytes());
        let pseudo =
            self.ip_header(&mut out[self.ip..self.transport], ip_len, transport_len, index);
        self.transport_header(
            &mut out[self.transport..head],
            index,
            end == self.len,
            transport_len,
            pseudo,
        );
        head
    }

    /// Sets length, ID and checksum of the IP header; returns the pseudo-header's sum.
    fn ip_header(
        &self,
        ip: &mut [u8],
        ip_len: usize,
        transport_len: usize,
        index: u16,
    ) -> Sum16BitWords {
        let protocol = if self.udp { Protocol::UDP } else { Protocol::TCP };
        let addresses = if ip[0] >> 4 == 4 {
            let id = u16::from_be_bytes([ip[4], ip[5]]).wrapping_add(index);
            ip[2..4].copy_from_slice(&(ip_len as u16).to_be_bytes());
            ip[4..6].copy_from_slice(&id.to_be_bytes());
            ip[10..12].fill(0);
            let sum = Sum16BitWords::new().add_slice(ip).ones_complement().to_be();
            ip[10..12].copy_from_slice(&sum.to_be_bytes());
            12..20
        } else {
            ip[4..6].copy_from_slice(&((ip_len - 40) as u16).to_be_bytes());
            8..40
        };
        Sum16BitWords::new()
            .add_slice(&ip[addresses])
            .add_2bytes([0, protocol.0])
            .add_2bytes((transport_len as u16).to_be_bytes())
    }

    fn transport_header(
        &self,
        header: &mut [u8],
        index: u16,
        last: bool,
        len: usize,
        pseudo: Sum16BitWords,
    ) {
        let checksum = (!pseudo.ones_complement().to_be()).to_be_bytes();
        if self.udp {
            header[4..6].copy_from_slice(&(len as u16).to_be_bytes());
            header[6..8].copy_from_slice(&checksum);
            return;
        }
        let seq = u32::from_be_bytes([header[4], header[5], header[6], header[7]]);
        let seq = seq.wrapping_add(u32::from(index) * self.segment as u32);
        header[4..8].copy_from_slice(&seq.to_be_bytes());
        header[13] = flags(header[13], index, last);
        header[16..18].copy_from_slice(&checksum);
    }

    /// Segment `index` as the wire carries it, without its payload: IP and transport headers with
    /// complete checksums in `out`. Returns their range in `out`, and the payload's range in
    /// `frame`.
    pub fn on_wire(
        &self,
        frame: &[u8],
        index: u16,
        out: &mut [u8; HEADER_MAX],
    ) -> (std::ops::Range<usize>, std::ops::Range<usize>) {
        if self.is_cuttable() {
            let head = self.header(frame, index, 1, out);
            let (start, end) = self.payload_range(index, 1);
            let at = self.transport + checksum_at(self.udp);
            finish_checksum(&mut out[..head], &frame[start..end], self.transport, at, self.udp);
            return (self.ip..head, start..end);
        }
        // Nothing to cut: the available headers are copied, so that the checksum can be completed
        // in them.
        let head = frame.len().min(HEADER_MAX);
        out[..head].copy_from_slice(&frame[..head]);
        if frame[0] & NEEDS_CSUM != 0 {
            let start = VNET_LEN + usize::from(u16::from_ne_bytes([frame[6], frame[7]]));
            let offset = usize::from(u16::from_ne_bytes([frame[8], frame[9]]));
            let at = start + offset;
            if start >= self.ip && start <= head && at + 2 <= head {
                finish_checksum(&mut out[..head], &frame[head..], start, at, offset == 6);
            }
        }
        (self.ip..head, head..frame.len())
    }
}

/// FIN and PSH are on the last segment only, CWR on the first only.
fn flags(of_frame: u8, index: u16, last: bool) -> u8 {
    const FIN_AND_PSH: u8 = 0x09;
    const CWR: u8 = 0x80;
    of_frame & !(if last { 0 } else { FIN_AND_PSH }) & !(if index > 0 { CWR } else { 0 })
}

/// Offset of the checksum in a transport header.
fn checksum_at(udp: bool) -> usize {
    if udp { 6 } else { 16 }
}

/// Sets "congestion experienced" in the IP packet that begins at `ip`, which must contain its first
/// bytes (RFC 3168).
pub fn mark(ip: &mut [u8]) {
    if ip[0] >> 4 == 6 {
        ip[1] |= CE << 4;
        return;
    }
    let old = [ip[0], ip[1]];
    ip[1] |= CE;
    // RFC 1624, equation 3: HC' = ~(~HC + ~m + m').
    let sum = Sum16BitWords::new()
        .add_2bytes([!ip[10], !ip[11]])
        .add_2bytes(old.map(|byte| !byte))
        .add_2bytes([ip[0], ip[1]]);
    let checksum = sum.ones_complement().to_be();
    ip[10..12].copy_from_slice(&checksum.to_be_bytes());
}

/// Replaces the pseudo-header's sum at `at` by the checksum of everything from `start`.
fn finish_checksum(head: &mut [u8], rest: &[u8], start: usize, at: usize, udp: bool) {
    // An odd number of bytes in `head` would shift the words of `rest`, so sum its first byte with
    // the head's last.
    let odd = (head.len() - start) % 2 == 1 && !rest.is_empty();
    let mut sum = Sum16BitWords::new();
    if odd {
        let (body, tail) = head[start..].split_at(head.len() - start - 1);
        sum = sum.add_slice(body).add_2bytes([tail[0], rest[0]]).add_slice(&rest[1..]);
    } else {
        sum = sum.add_slice(&head[start..]).add_slice(rest);
    }
    let mut checksum = sum.ones_complement().to_be();
    if udp && checksum == 0 {
        checksum = 0xffff;
    }
    head[at..at + 2].copy_from_slice(&checksum.to_be_bytes());
}

#[cfg(test)]
pub(super) mod tests;
