//! The headers between a captured packet's first byte and an IP packet: one `Inside` after another
//! until it is IP.
//!
//! It reads only the fields that say where the next header starts, and no checksums. What is too
//! short or unknown counts as no IP packet.

/// What some bytes begin with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Inside<'a> {
    /// IP of either version.
    Ip(&'a [u8]),
    /// Destination, source, and an Ethertype or a length.
    Ethernet(&'a [u8]),
    /// What an Ethertype says.
    EtherType(u16, &'a [u8]),
    /// IEEE 802.2: service access points, control, perhaps SNAP.
    Llc(&'a [u8]),
    /// PPP's protocol number, with or without address and control before it (RFC 1661).
    Ppp(&'a [u8]),
    /// MPLS's labels (RFC 3032).
    Mpls(&'a [u8]),
    /// An IEEE 802.11 frame.
    Wlan(&'a [u8]),
}

impl<'a> Inside<'a> {
    /// The bytes.
    pub fn bytes(self) -> &'a [u8] {
        match self {
            Inside::Ip(bytes)
            | Inside::Ethernet(bytes)
            | Inside::EtherType(_, bytes)
            | Inside::Llc(bytes)
            | Inside::Ppp(bytes)
            | Inside::Mpls(bytes)
            | Inside::Wlan(bytes) => bytes,
        }
    }
}

/// The most headers between two IP packets; more are a loop that somebody built to keep us busy.
pub(super) const MAX_HEADERS: usize = 16;

/// The IP packet inside, if there is one.
pub(super) fn ip_in(mut inside: Inside<'_>) -> Option<&[u8]> {
    for _ in 0..MAX_HEADERS {
        inside = match inside {
            Inside::Ip(ip) => return matches!(ip.first()? >> 4, 4 | 6).then_some(ip),
            header => behind(header)?,
        };
    }
    None
}

/// What follows the first header; nothing follows IP here.
pub(super) fn behind(inside: Inside<'_>) -> Option<Inside<'_>> {
    match inside {
        Inside::Ip(_) => None,
        Inside::Ethernet(frame) => ethernet(frame),
        Inside::EtherType(ethertype, rest) => behind_ethertype(ethertype, rest),
        Inside::Llc(frame) => llc(frame),
        Inside::Ppp(frame) => ppp(frame),
        Inside::Mpls(frame) => mpls(frame),
        Inside::Wlan(frame) => wlan(frame),
    }
}

/// The two bytes at a place as a number, the high one first.
#[inline]
pub(crate) fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]))
}

/// The four bytes at a place as a number, the highest first.
#[inline]
pub(crate) fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn ethernet(frame: &[u8]) -> Option<Inside<'_>> {
    let ethertype = half(frame, 12)?;
    let rest = frame.get(14..)?;
    // IEEE 802.3 section 3.2.6: from 1536 it is a type, below a length.
    Some(if ethertype < 1536 { Inside::Llc(rest) } else { Inside::EtherType(ethertype, rest) })
}

fn behind_ethertype(ethertype: u16, rest: &[u8]) -> Option<Inside<'_>> {
    Some(match ethertype {
        0x0800 | 0x86dd => Inside::Ip(rest),
        // 802.1Q, 802.1ad and its predecessors: two bytes of control information, then the next
        // Ethertype. Below 1536 it is a length here too.
        0x8100 | 0x88a8 | 0x9100 | 0x9200 => match half(rest, 2)? {
            length if length < 1536 => Inside::Llc(rest.get(4..)?),
            ethertype => Inside::EtherType(ethertype, rest.get(4..)?),
        },
        // VN-Tag: four bytes.
        0x8926 => Inside::EtherType(half(rest, 4)?, rest.get(6..)?),
        // Cisco FabricPath: a tag of two bytes, then the frame that it carries.
        0x8903 => Inside::Ethernet(rest.get(2..)?),
        // 802.1ah: a service tag of four bytes, then the customer's frame.
        0x88e7 => Inside::Ethernet(rest.get(4..)?),
        0x8847 | 0x8848 => Inside::Mpls(rest),
        // PPPoE session (RFC 2516): version and type, code 0, session, length.
        0x8864 => Inside::Ppp(rest.get(6..).filter(|_| rest[1] == 0)?),
        // Transparent Ethernet bridging (RFC 1701).
        0x6558 => Inside::Ethernet(rest),
        _ => return None,
    })
}

fn llc(frame: &[u8]) -> Option<Inside<'_>> {
    match frame.get(..3)? {
        // SNAP with an organisation of zeroes, or that of 802.1H's bridge tunnel: an Ethertype
        // follows.
        [0xaa, 0xaa, 3] => match frame.get(3..6)? {
            [0, 0, 0 | 0xf8] => Some(Inside::EtherType(half(frame, 6)?, frame.get(8..)?)),
            _ => None,
        },
        [6, 6, 3] => Some(Inside::Ip(&frame[3..])),
        _ => None,
    }
}

fn ppp(frame: &[u8]) -> Option<Inside<'_>> {
    let frame = frame.strip_prefix(&[0xff, 0x03]).unwrap_or(frame);
    // RFC 1661 section 6.5: a protocol number whose first byte is odd is one byte long.
    let (protocol, rest) = match *frame.first()? {
        odd if odd & 1 == 1 => (u16::from(odd), &frame[1..]),
        _ => (half(frame, 0)?, frame.get(2..)?),
    };
    match protocol {
        0x0021 | 0x0057 => Some(Inside::Ip(rest)),
        0x0281 | 0x0283 => Some(Inside::Mpls(rest)),
        _ => None,
    }
}

fn mpls(mut frame: &[u8]) -> Option<Inside<'_>> {
    loop {
        let (label, rest) = frame.split_first_chunk::<4>()?;
        frame = rest;
        // The bottom of the stack. MPLS does not say what follows, so the first half byte decides
        // (RFC 4928 section 3).
        if label[2] & 1 == 1 {
            return Some(match frame.first()? >> 4 {
                4 | 6 => Inside::Ip(frame),
                // A pseudowire's control word (RFC 4385), then Ethernet.
                0 => Inside::Ethernet(frame.get(4..)?),
                _ => Inside::Ethernet(frame),
            });
        }
    }
}

fn wlan(frame: &[u8]) -> Option<Inside<'_>> {
    const DATA: u8 = 2;
    let control = frame.get(..2)?;
    let (kind, subtype) = (control[0] >> 2 & 3, control[0] >> 4);
    let (to_ds, from_ds, protected) =
        (control[1] & 1 != 0, control[1] & 2 != 0, control[1] & 0x40 != 0);
    // Subtypes with 4 carry no data; protected frames are encrypted.
    if kind != DATA || subtype & 4 != 0 || protected {
        return None;
    }
    let addresses = if to_ds && from_ds { 30 } else { 24 };
    let has_qos = subtype & 8 != 0;
    if has_qos && frame.get(addresses)? & 0x80 != 0 {
        return None; // several frames in one (A-MSDU)
    }
    // If the frame says +HTC, a field for high throughput control follows.
    let order = if has_qos && control[1] & 0x80 != 0 { 4 } else { 0 };
    frame.get(addresses + if has_qos { 2 } else { 0 } + order..).map(Inside::Llc)
}
