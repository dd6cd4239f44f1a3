//! IP in IP: where the inner packet starts in the packet of a tunnel.

use super::layer::{Inside, half};

/// An IP header, as far as tunnels and fragments need it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ip<'a> {
    /// Protocol of the payload, extension headers passed.
    pub protocol: u8,
    /// What follows the headers.
    pub payload: &'a [u8],
    /// The fragment's fields, if it is a fragment.
    pub fragment: Option<Fragment<'a>>,
}

/// One fragment of an IP packet (RFC 791 section 2.3, RFC 8200 section 4.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fragment<'a> {
    /// Both addresses, as in the header.
    pub addresses: &'a [u8],
    pub identification: u32,
    pub protocol: u8,
    /// Headers before the fragment's data; the fragment header of IPv6 is not one of them.
    pub headers: &'a [u8],
    /// Where in `headers` the protocol of the payload is.
    pub protocol_at: usize,
    pub offset: usize,
    pub more: bool,
    /// The captured part of the data, and how much was sent.
    pub data: &'a [u8],
    pub length: usize,
}

const TCP: u8 = 6;

impl<'a> Ip<'a> {
    /// Reads the headers of an IP packet.
    pub fn parse(ip: &'a [u8]) -> Option<Self> {
        match ip.first()? >> 4 {
            4 => Self::parse_v4(ip),
            6 => Self::parse_v6(ip),
            _ => None,
        }
    }

    fn parse_v4(ip: &'a [u8]) -> Option<Self> {
        let header = ip.first_chunk::<20>()?;
        let headers = usize::from(header[0] & 15) * 4;
        let protocol = header[9];
        // With segmentation offload the length is 0 if it does not fit.
        let total = match usize::from(half(header, 2)?) {
            0 => ip.len(),
            total => total,
        };
        let payload = ip.get(headers.max(20)..total.min(ip.len()))?;
        let place = half(header, 6)?;
        let (more, offset) = (place & 0x2000 != 0, usize::from(place & 0x1fff) * 8);
        let fragment = (more || offset > 0).then(|| Fragment {
            addresses: &ip[12..20],
            identification: u32::from(u16::from_be_bytes([header[4], header[5]])),
            protocol,
            headers: &ip[..headers.max(20)],
            protocol_at: 9,
            offset,
            more,
            data: payload,
            length: total.saturating_sub(headers),
        });
        Some(Ip { protocol, payload, fragment })
    }

    fn parse_v6(ip: &'a [u8]) -> Option<Self> {
        const HEADER: usize = 40;
        let header = ip.first_chunk::<HEADER>()?;
        let total = match usize::from(half(header, 4)?) {
            0 => ip.len(),
            length => HEADER + length,
        };
        let end = total.min(ip.len());
        let (mut protocol, mut protocol_at, mut at) = (header[6], 6, HEADER);
        while at <= end {
            let rest = &ip[at..end];
            let length = match protocol {
                // Hop-by-hop, routing, destination and mobility options: length in units of 8
                // bytes, the first left out.
                0 | 43 | 60 | 135 => (usize::from(*rest.get(1)?) + 1) * 8,
                // Authentication (RFC 4302): in units of 4, two left out.
                51 => (usize::from(*rest.get(1)?) + 2) * 4,
                44 => {
                    let fragment = rest.first_chunk::<8>()?;
                    let place = u16::from_be_bytes([fragment[2], fragment[3]]);
                    let (more, offset) = (place & 1 != 0, usize::from(place & !7));
                    if more || offset > 0 {
                        let identification = u32::from_be_bytes([
                            fragment[4],
                            fragment[5],
                            fragment[6],
                            fragment[7],
                        ]);
                        let fragment = Fragment {
                            addresses: &ip[8..HEADER],
                            identification,
                            protocol: fragment[0],
                            headers: &ip[..at],
                            protocol_at,
                            offset,
                            more,
                            data: &rest[8..],
                            length: total.saturating_sub(at + 8),
                        };
                        return Some(Ip {
                            protocol: fragment.protocol,
                            payload: &rest[8..],
                            fragment: Some(fragment),
                        });
                    }
                    8
                }
                _ => return Some(Ip { protocol, payload: rest, fragment: None }),
            };
            (protocol, protocol_at, at) = (*rest.first()?, at, at + length);
        }
        None
    }

    /// What the packet carries for a tunnel; `None` if it belongs to no tunnel.
    pub fn inside(&self) -> Option<Inside<'a>> {
        match self.protocol {
            TCP => None,
            // IP in IP (RFC 2003), 6in4 (RFC 4213), IPv6 in IPv6 (RFC 2473).
            4 | 41 => Some(Inside::Ip(self.payload)),
            47 => gre(self.payload),
            17 => udp(self.payload),
            // Ethernet (RFC 8986), MPLS (RFC 4023).
            143 => Some(Inside::Ethernet(self.payload)),
            137 => Some(Inside::Mpls(self.payload)),
            _ => None,
        }
    }
}

/// The length of a field of GRE's header that is there where one of these bits is set.
fn field(flags: u16, bits: u16) -> usize {
    if flags & bits != 0 { 4 } else { 0 }
}

/// GRE (RFC 2784, 2890), PPTP's variant (RFC 2637), ERSPAN (draft-foschiano-erspan).
fn gre(packet: &[u8]) -> Option<Inside<'_>> {
    let (flags, protocol) = (half(packet, 0)?, half(packet, 2)?);
    if flags & 7 == 1 {
        // Version 1: payload length and call, then sequence and acknowledgement.
        let header = 8 + field(flags, 0x1000) + field(flags, 0x0080);
        return (protocol == 0x880b).then(|| packet.get(header..).map(Inside::Ppp))?;
    }
    // Checksum and offset are present if either bit is set; source routes (RFC 1701) are not
    // followed.
    let sum = field(flags, 0x8000 | 0x4000);
    let rest = packet.get(4 + sum + field(flags, 0x2000) + field(flags, 0x1000)..)?;
    Some(match protocol {
        // Type I has no header of its own, and no sequence number either.
        0x88be if flags & 0x1000 == 0 => Inside::Ethernet(rest),
        0x88be => Inside::Ethernet(rest.get(8..)?),
        // Type III: 12 bytes, and 8 more if its last bit is set.
        0x22eb => Inside::Ethernet(rest.get(if *rest.get(11)? & 1 != 0 { 20 } else { 12 }..)?),
        // Aruba's access points: 802.11 frames.
        0x8200..=0x82f0 => Inside::Wlan(rest),
        ethertype => Inside::EtherType(ethertype, rest),
    })
}

/// Tunnels over UDP, known by their registered destination port.
fn udp(packet: &[u8]) -> Option<Inside<'_>> {
    let rest = packet.get(8..)?;
    match half(packet, 2)? {
        // VXLAN (RFC 7348); 8472 is what Linux used before the registration.
        4789 | 8472 => (rest.first()? & 0x08 != 0).then(|| rest.get(8..).map(Inside::Ethernet))?,
        // VXLAN-GPE (draft-ietf-nvo3-vxlan-gpe): the last byte of the flags' word says what
        // follows.
        4790 => match (*rest.get(3)?, rest.get(8..)?) {
            (1 | 2, packet) => Some(Inside::Ip(packet)),
            (3, frame) => Some(Inside::Ethernet(frame)),
            _ => None,
        },
        // Geneve (RFC 8926): the options' length in units of four bytes.
        6081 => {
            let options = usize::from(rest.first()? & 0x3f) * 4;
            Some(Inside::EtherType(half(rest, 2)?, rest.get(8 + options..)?))
        }
        // MPLS in UDP (RFC 7510).
        6635 => Some(Inside::Mpls(rest)),
        2152 => gtp_u(rest),
        _ => None,
    }
}

/// GTP-U (3GPP TS 29.281): an IP packet behind a header with optional fields and extension headers.
fn gtp_u(packet: &[u8]) -> Option<Inside<'_>> {
    const G_PDU: u8 = 255;
    let header = packet.first_chunk::<8>()?;
    // Version 1 with protocol type 1.
    if header[0] >> 4 != 3 || header[1] != G_PDU {
        return None;
    }
    if header[0] & 7 == 0 {
        return Some(Inside::Ip(&packet[8..]));
    }
    let (mut next, mut at) = (if header[0] & 4 != 0 { *packet.get(11)? } else { 0 }, 12);
    while next != 0 {
        let length = usize::from(*packet.get(at)?) * 4;
        if length == 0 {
            return None;
        }
        next = *packet.get(at + length - 1)?;
        at += length;
    }
    packet.get(at..).map(Inside::Ip)
}
