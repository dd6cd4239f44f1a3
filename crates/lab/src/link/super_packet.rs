//! Super-packets: what a kernel with segmentation offload hands over as one packet of up to 64 KB.
//!
//! A frame is `[virtio net header, 10 bytes][link header, 0 or 14 bytes][IP packet]`, in the layout of
//! `include/uapi/linux/virtio_net.h`. With a GSO type its payload stands for segments of `gso_size` bytes that were never
//! cut; [`Layout`] says where the cuts are, and [`Layout::header`] writes the headers of any run of segments so that the
//! receiving kernel sees what the wire would have carried. Fields follow `net/ipv4/tcp_offload.c`: sequence number
//! advanced, IP ID counted up, FIN and PSH on the last segment only, CWR on the first only, and in the checksum field
//! the sum of the pseudo-header for the new length, as NEEDS_CSUM promises.
//!
//! Foreign bytes: whatever does not parse is passed on whole, as a wire would.

use etherparse::checksum::Sum16BitWords;

/// Length of the virtio net header.
pub const VNET_LEN: usize = 10;
/// Virtio, Ethernet, IPv4 or IPv6 with extensions, TCP with options: no header is longer, or the frame is passed whole.
pub const HEADER_MAX: usize = 256;

const NEEDS_CSUM: u8 = 1;
const GSO_NONE: u8 = 0;
const GSO_TCPV4: u8 = 1;
const GSO_TCPV6: u8 = 4;
const GSO_UDP_L4: u8 = 5;
const GSO_ECN: u8 = 0x80;
const TCP: u8 = 6;
const UDP: u8 = 17;

/// How a frame is made up. Cheap to keep beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// Where the IP packet begins.
    ip: usize,
    /// Where the TCP or UDP header begins; equals `ip` where there is nothing to cut.
    transport: usize,
    /// Where the payload begins.
    payload: usize,
    /// Length of the frame.
    len: usize,
    /// Payload bytes of each segment but the last.
    segment: usize,
    /// Number of segments, at least one.
    count: u16,
    udp: bool,
}

impl Layout {
    /// Reads the headers of `frame`, whose link header is `l2_len` long. `None` if it is too short to be a frame at all.
    pub fn parse(frame: &[u8], l2_len: usize) -> Option<Layout> {
        let ip = VNET_LEN + l2_len;
        if frame.len() < ip + 20 {
            return None;
        }
        let whole = Layout { ip, transport: ip, payload: ip, len: frame.len(), segment: 0, count: 1, udp: false };
        Some(Self::parse_gso(frame, ip).unwrap_or(whole))
    }

    /// The cuts of a frame that carries a GSO type; `None` if it is not one that can be cut.
    fn parse_gso(frame: &[u8], ip: usize) -> Option<Layout> {
        let gso_type = frame[1] & !GSO_ECN;
        let segment = usize::from(u16::from_ne_bytes([frame[4], frame[5]]));
        let csum_start = usize::from(u16::from_ne_bytes([frame[6], frame[7]]));
        let version = frame[ip] >> 4;
        let (protocol, min_ip) = match (gso_type, version) {
            (GSO_TCPV4, 4) => (TCP, 20),
            (GSO_TCPV6, 6) => (TCP, 40),
            (GSO_UDP_L4, 4) => (UDP, 20),
            (GSO_UDP_L4, 6) => (UDP, 40),
            _ => return None,
        };
        let needs_csum = frame[0] & NEEDS_CSUM != 0;
        // With NEEDS_CSUM the kernel says where the transport header is, IPv6 extension headers included.
        let transport = match version {
            _ if needs_csum => VNET_LEN + csum_start,
            4 => ip + usize::from(frame[ip] & 15) * 4,
            _ => ip + 40,
        };
        let header = match protocol {
            TCP => usize::from(frame.get(transport + 12)? >> 4) * 4,
            _ => 8,
        };
        let payload = transport + header;
        let fits = transport >= ip + min_ip
            && (protocol == UDP || header >= 20)
            && payload <= HEADER_MAX
            && payload < frame.len()
            && segment > 0;
        let count = u16::try_from((frame.len().checked_sub(payload)?).div_ceil(segment.max(1))).ok()?;
        fits.then_some(Layout { ip, transport, payload, len: frame.len(), segment, count, udp: protocol == UDP })
    }

    /// Number of segments.
    pub fn count(&self) -> u16 {
        self.count
    }

    /// Length of the IP packet that segment `index` is.
    pub fn ip_len(&self, index: u16) -> usize {
        let (start, end) = self.payload_range(index, 1);
        self.payload - self.ip + (end - start)
    }

    /// Where in the frame the payload of `count` segments from `index` lies; the whole IP packet where nothing is cut.
    pub fn payload_range(&self, index: u16, count: u16) -> (usize, usize) {
        let start = self.payload + usize::from(index) * self.segment;
        let last = usize::from(index) + usize::from(count) >= usize::from(self.count);
        let end = if last { self.len } else { start + usize::from(count) * self.segment };
        (start, end)
    }

    /// Whether the frame, as it is, is the run of all its segments.
    pub fn is_whole(&self, index: u16, count: u16) -> bool {
        index == 0 && count == self.count
    }

    /// Writes virtio, link, IP and transport headers for `count` segments from `index` into `out`; returns their length.
    /// The payload to follow is [`Layout::payload_range`].
    pub fn header(&self, frame: &[u8], index: u16, count: u16, out: &mut [u8; HEADER_MAX]) -> usize {
        let head = self.payload;
        out[..head].copy_from_slice(&frame[..head]);
        if self.payload == self.ip {
            // Not a packet that can be cut: it has no headers that are known.
            return head;
        }
        let (start, end) = self.payload_range(index, count);
        let ip_len = head - self.ip + (end - start);
        let transport_len = head - self.transport + (end - start);
        if count == 1 {
            out[1] = GSO_NONE;
            out[2..6].fill(0);
        }
        let pseudo = self.ip_header(&mut out[self.ip..self.transport], ip_len, transport_len, index);
        self.transport_header(&mut out[self.transport..head], index, end == self.len, transport_len, pseudo);
        head
    }

    /// Sets length, ID and checksum of the IP header; returns the pseudo-header's sum.
    fn ip_header(&self, ip: &mut [u8], ip_len: usize, transport_len: usize, index: u16) -> Sum16BitWords {
        let protocol = if self.udp { UDP } else { TCP };
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
            .add_2bytes([0, protocol])
            .add_2bytes((transport_len as u16).to_be_bytes())
    }

    fn transport_header(&self, header: &mut [u8], index: u16, last: bool, len: usize, pseudo: Sum16BitWords) {
        let checksum = (!pseudo.ones_complement().to_be()).to_be_bytes();
        if self.udp {
            header[4..6].copy_from_slice(&(len as u16).to_be_bytes());
            header[6..8].copy_from_slice(&checksum);
            return;
        }
        let seq = u32::from_be_bytes([header[4], header[5], header[6], header[7]]);
        let seq = seq.wrapping_add(u32::from(index) * self.segment as u32);
        header[4..8].copy_from_slice(&seq.to_be_bytes());
        if !last {
            header[13] &= !0x09;
        }
        if index > 0 {
            header[13] &= !0x80;
        }
        header[16..18].copy_from_slice(&checksum);
    }

    /// Segment `index` as the wire carries it, without its payload: IP and transport headers with final checksums in
    /// `out`. Returns where they lie in `out`, and where the payload lies in `frame`.
    pub fn on_wire(
        &self,
        frame: &[u8],
        index: u16,
        out: &mut [u8; HEADER_MAX],
    ) -> (std::ops::Range<usize>, std::ops::Range<usize>) {
        if self.count > 1 || self.payload > self.ip {
            let head = self.header(frame, index, 1, out);
            let (start, end) = self.payload_range(index, 1);
            if frame[0] & NEEDS_CSUM != 0 {
                let at = self.transport + if self.udp { 6 } else { 16 };
                finish_checksum(&mut out[..head], &frame[start..end], self.transport, at, self.udp);
            }
            return (self.ip..head, start..end);
        }
        // Nothing to cut: the headers in reach are copied, so that the checksum can be completed in them.
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

/// Replaces the pseudo-header's sum at `at` by the checksum over everything from `start`.
fn finish_checksum(head: &mut [u8], rest: &[u8], start: usize, at: usize, udp: bool) {
    // An odd number of bytes in `head` would shift the words of `rest`: sum the first byte of it with the head's last.
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
