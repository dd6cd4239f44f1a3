//! A TCP segment, as the analysis sees it.
//!
//! [`Segment::from_ip`] reads an IP packet's bytes tolerantly. Captures cut packets (snap lengths),
//! so lengths come from the IP header, and a missing part of the TCP header is absent rather than
//! an error. IP headers and extension headers are sliced by `etherparse`; the TCP header is read
//! here, because even a cut header must give its ports and numbers.

mod flow_key;
mod ip_header;
mod options;
mod protocol;
mod record;
mod sequence;

pub use flow_key::FlowKey;
pub use ip_header::IpHeader;
pub use options::{SackBlocks, TcpOptions};
pub use protocol::ApplicationProtocol;
pub use record::{PayloadStart, SshSoftware};
pub use sequence::SequenceNumber;

use super::{half, word};
use etherparse::{IpNumber, LaxIpSlice};
use fullpipe_model::units::Bytes;
use std::net::{IpAddr, SocketAddr};

/// The control bits of a TCP header (RFC 9293 section 3.1, RFC 3168).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Flags(pub u8);

#[allow(missing_docs, reason = "the names are RFC 9293's")]
impl Flags {
    pub const FIN: Flags = Flags(0x01);
    pub const SYN: Flags = Flags(0x02);
    pub const RST: Flags = Flags(0x04);
    pub const PSH: Flags = Flags(0x08);
    pub const ACK: Flags = Flags(0x10);
    pub(crate) const URG: Flags = Flags(0x20);
    pub const ECE: Flags = Flags(0x40);
    pub const CWR: Flags = Flags(0x80);

    /// Whether any bit of `bits` is set.
    pub const fn any(self, bits: Flags) -> bool {
        self.0 & bits.0 != 0
    }
}

impl std::ops::BitOr for Flags {
    type Output = Flags;
    fn bitor(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }
}

/// One TCP segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// Its sender.
    pub source: SocketAddr,
    /// Its receiver.
    pub destination: SocketAddr,
    /// IPv4's identification, which most senders count up: the order in which a sender's packets
    /// were made.
    pub ip_id: Option<u16>,
    /// A router marked it with "congestion experienced" (RFC 3168).
    pub ce: bool,
    /// What else of the IP header the path may change.
    pub ip: IpHeader,
    /// SEG.SEQ: the number of its first byte (or of its SYN or FIN).
    pub seq: SequenceNumber,
    /// SEG.ACK; meaningful where [`Flags::ACK`] is set.
    pub ack: SequenceNumber,
    /// Control bits.
    pub flags: Flags,
    /// SEG.WND as in the header, not scaled.
    pub window: u16,
    /// Length of the payload by the IP header, however much of it was captured.
    pub payload: Bytes,
    /// How the payload begins.
    pub payload_start: PayloadStart,
    /// Options.
    pub options: TcpOptions,
    /// The packet ends inside its TCP header, or the header says that it is shorter than a header
    /// can be: the packet passed, but its numbers mean nothing.
    pub is_broken: bool,
    /// The capture cut the packet within its TCP header: options may be missing.
    pub is_header_cut: bool,
}

/// What an IP packet contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parsed {
    /// A TCP segment.
    Tcp(Segment),
    /// A fragment of something that may be TCP; fragments are not put together.
    Fragment,
    /// Too little of a TCP header to tell its numbers.
    Cut,
    /// Something other than TCP.
    Other,
}

/// The ECN field's "congestion experienced".
const ECN_CE: u8 = 3;

/// What a segment takes from its IP header.
struct IpFields {
    source: IpAddr,
    destination: IpAddr,
    ip_id: Option<u16>,
    ce: bool,
    header: IpHeader,
}

impl Segment {
    /// Reads the packet that begins with its IP header at `ip`; `original_length` is what it had on
    /// the wire from there, used where the IP header gives no length (packets of segmentation
    /// offload above 64 KiB), or more than there was.
    pub fn from_ip(ip: &[u8], original_length: usize) -> Parsed {
        match Self::from_plain_ipv4(ip, original_length) {
            Some(segment) => Parsed::Tcp(segment),
            None => Self::from_any_ip(ip, original_length),
        }
    }

    #[cold]
    fn from_any_ip(ip: &[u8], original_length: usize) -> Parsed {
        let Ok((sliced, _)) = LaxIpSlice::from_slice(ip) else { return Parsed::Other };
        let payload = sliced.payload();
        if payload.ip_number != IpNumber::TCP {
            return Parsed::Other;
        }
        let total = match &sliced {
            LaxIpSlice::Ipv4(slice) => usize::from(slice.header().total_len()),
            LaxIpSlice::Ipv6(slice) => match slice.header().payload_length() {
                0 => 0,
                length => usize::from(length) + 40,
            },
        };
        // Where the TCP header starts in the packet, after extension headers.
        let start = payload.payload.as_ptr() as usize - ip.as_ptr() as usize;
        let total = if total == 0 { original_length } else { total.min(original_length) };
        if payload.fragmented {
            return Parsed::Fragment;
        }
        let (source, destination) = (sliced.source_addr(), sliced.destination_addr());
        let (ip_id, ce) = match &sliced {
            LaxIpSlice::Ipv4(slice) => {
                (Some(slice.header().identification()), slice.header().ecn().value() == ECN_CE)
            }
            LaxIpSlice::Ipv6(slice) => (None, slice.header().ecn().value() == ECN_CE),
        };
        match Self::from_tcp(
            payload.payload,
            total.saturating_sub(start),
            IpFields { source, destination, ip_id, ce, header: IpHeader::of(ip) },
        ) {
            Some(segment) => Parsed::Tcp(segment),
            None => Parsed::Cut,
        }
    }

    /// TCP after an IPv4 header without options, complete as far as it is read. Nearly every packet
    /// is of this kind, and this is five times as fast as the general way. `None` for all others.
    // Inlined, because a segment is large and each call that returns one would copy it.
    #[inline]
    pub(crate) fn from_plain_ipv4(ip: &[u8], original_length: usize) -> Option<Segment> {
        let header = ip.first_chunk::<20>()?;
        let fragmented = half(header, 6)? & 0x3fff != 0;
        if header[0] != 0x45 || header[9] != IpNumber::TCP.0 || fragmented || original_length < 20 {
            return None;
        }
        let total = match usize::from(half(header, 2)?) {
            0 => original_length,
            total if total < 20 => return None,
            total => total.min(original_length),
        };
        let address =
            |at: usize| IpAddr::from([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        // The link's padding is not part of the packet.
        let tcp = &ip[20..total.clamp(20, ip.len())];
        let fields = IpFields {
            source: address(12),
            destination: address(16),
            ip_id: Some(half(header, 4)?),
            ce: header[1] & 3 == ECN_CE,
            header: IpHeader { ttl: header[8], class: header[1] },
        };
        Self::from_tcp(tcp, total - 20, fields)
    }

    /// Reads a TCP header at `tcp`; `length` is that of header and payload on the wire.
    #[inline]
    fn from_tcp(
        tcp: &[u8],
        length: usize,
        IpFields { source, destination, ip_id, ce, header: ip }: IpFields,
    ) -> Option<Self> {
        // A header that ends before the window is of no use; checksum and urgent pointer are not
        // needed.
        let header = tcp.first_chunk::<16>()?;
        let header_length = usize::from(header[12] >> 4) * 4;
        let is_broken = header_length < 20 || header_length > length;
        let options = tcp.get(20..header_length.min(tcp.len())).unwrap_or_default();
        // Behind a header that cannot be believed there is nothing to read.
        let payload = if is_broken { &[] } else { tcp.get(header_length..).unwrap_or_default() };
        Some(Segment {
            source: SocketAddr::new(source, half(header, 0)?),
            destination: SocketAddr::new(destination, half(header, 2)?),
            ip_id,
            ce,
            ip,
            seq: SequenceNumber(word(header, 4)?),
            ack: SequenceNumber(word(header, 8)?),
            flags: Flags(header[13]),
            window: half(header, 14)?,
            payload: Bytes::new(length.saturating_sub(header_length) as u64),
            payload_start: PayloadStart::of(payload),
            options: TcpOptions::parse(options),
            is_broken,
            is_header_cut: !is_broken && header_length > tcp.len(),
        })
    }

    /// What was captured of the payload of the segment that was read from this IP packet, at most
    /// `most` bytes.
    #[cold]
    pub(crate) fn payload_in(ip: &[u8], most: usize) -> &[u8] {
        let Ok((sliced, _)) = LaxIpSlice::from_slice(ip) else { return &[] };
        let tcp = sliced.payload().payload;
        let start = tcp.get(12).map_or(tcp.len(), |byte| usize::from(byte >> 4) * 4);
        let payload = tcp.get(start.max(20)..).unwrap_or_default();
        &payload[..payload.len().min(most)]
    }

    /// Payload as a length in sequence space.
    pub fn payload_len(&self) -> u32 {
        u32::try_from(self.payload.get()).unwrap_or(u32::MAX)
    }

    /// The number after the last byte, SYN and FIN counted (RFC 9293: SEG.SEQ + SEG.LEN).
    pub fn end(&self) -> SequenceNumber {
        let control = u32::from(self.flags.any(Flags::SYN)) + u32::from(self.flags.any(Flags::FIN));
        self.seq + self.payload_len().wrapping_add(control)
    }
}

#[cfg(test)]
mod tests;
