//! What a captured packet begins with, according to its link type.

use super::layer::{Inside, half, ip_in, word};

/// A link type by its registered number (<https://www.tcpdump.org/linktypes.html>).
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
#[serde(transparent)]
pub struct LinkType(pub u16);

#[allow(missing_docs, reason = "the names are the registry's")]
impl LinkType {
    pub const NULL: LinkType = LinkType(0);
    pub const ETHERNET: LinkType = LinkType(1);
    pub const PPP: LinkType = LinkType(9);
    pub const FDDI: LinkType = LinkType(10);
    pub const PPP_HDLC: LinkType = LinkType(50);
    pub const PPP_ETHER: LinkType = LinkType(51);
    pub const RAW: LinkType = LinkType(101);
    pub const C_HDLC: LinkType = LinkType(104);
    pub const IEEE802_11: LinkType = LinkType(105);
    pub const LOOP: LinkType = LinkType(108);
    pub const LINUX_SLL: LinkType = LinkType(113);
    pub const IEEE802_11_RADIOTAP: LinkType = LinkType(127);
    pub const JUNIPER_ETHER: LinkType = LinkType(178);
    pub const IPV4: LinkType = LinkType(228);
    pub const IPV6: LinkType = LinkType(229);
    pub const NFLOG: LinkType = LinkType(239);
    pub const IPOIB: LinkType = LinkType(242);
    pub const PKTAP: LinkType = LinkType(258);
    pub const ETHERNET_MPACKET: LinkType = LinkType(274);
    pub const LINUX_SLL2: LinkType = LinkType(276);
}

/// The outermost IP packet inside a captured packet, whole or a fragment, if there is one.
pub fn ip_packet(link_type: LinkType, data: &[u8]) -> Option<&[u8]> {
    ip_in(inside_link(link_type, data)?)
}

/// What a captured packet begins with.
pub(super) fn inside_link(link_type: LinkType, data: &[u8]) -> Option<Inside<'_>> {
    Some(match link_type {
        LinkType::ETHERNET => Inside::Ethernet(data),
        // 12 and 14 are what OpenBSD and some others write for raw IP.
        LinkType::RAW | LinkType::IPV4 | LinkType::IPV6 | LinkType(12 | 14) => Inside::Ip(data),
        LinkType::LINUX_SLL => Inside::EtherType(half(data, 14)?, data.get(16..)?),
        LinkType::LINUX_SLL2 => Inside::EtherType(half(data, 0)?, data.get(20..)?),
        LinkType::NULL | LinkType::LOOP => Inside::Ip(behind_address_family(data)?),
        LinkType::PPP | LinkType::PPP_HDLC => Inside::Ppp(data),
        LinkType::PPP_ETHER => Inside::EtherType(0x8864, data),
        // Address and control, then an Ethertype.
        LinkType::C_HDLC => Inside::EtherType(half(data, 2)?, data.get(4..)?),
        // Frame control and two addresses.
        LinkType::FDDI => Inside::Llc(data.get(13..)?),
        LinkType::IEEE802_11 => Inside::Wlan(data),
        LinkType::IEEE802_11_RADIOTAP => {
            let length = u16::from_le_bytes([*data.get(2)?, *data.get(3)?]);
            Inside::Wlan(data.get(usize::from(length)..)?)
        }
        // A global routing header, then RFC 4391's four bytes.
        LinkType::IPOIB => Inside::EtherType(half(data, 40)?, data.get(44..)?),
        LinkType::JUNIPER_ETHER => Inside::Ethernet(behind_juniper(data)?),
        LinkType::NFLOG => Inside::Ip(behind_nflog(data)?),
        // A preamble of eight bytes.
        LinkType::ETHERNET_MPACKET => Inside::Ethernet(data.get(8..)?),
        LinkType::PKTAP => return behind_pktap(data),
        _ => return None,
    })
}

/// What follows the four bytes that name the address family, in the byte order of the machine that
/// captured.
fn behind_address_family(data: &[u8]) -> Option<&[u8]> {
    let (family, ip) = data.split_first_chunk::<4>()?;
    let family = u32::from_be_bytes(*family).min(u32::from_le_bytes(*family));
    // 2 is AF_INET everywhere; AF_INET6 differs: Linux 10, NetBSD and OpenBSD 24, FreeBSD 28, macOS
    // 30.
    matches!(family, 2 | 10 | 24 | 28 | 30).then_some(ip)
}

/// What follows the cookie `MGC`, flags, and an extension where bit 7 says so.
fn behind_juniper(data: &[u8]) -> Option<&[u8]> {
    let rest = data.strip_prefix(b"MGC")?;
    let (flags, rest) = rest.split_first()?;
    // Bit 1: the link header was taken away.
    match (flags & 0x80 != 0, flags & 2 != 0) {
        (_, true) => None,
        (true, _) => rest.get(2 + usize::from(half(rest, 0)?)..),
        _ => Some(rest),
    }
}

/// The packet among the attributes of a netfilter log message: each has a length, a type, and is
/// padded to four bytes.
fn behind_nflog(data: &[u8]) -> Option<&[u8]> {
    const PAYLOAD: u16 = 9;
    let mut rest = data.get(4..)?;
    loop {
        // In the byte order of the machine that captured, which is taken to be little-endian.
        let header = rest.first_chunk::<4>()?;
        let length = usize::from(u16::from_le_bytes([header[0], header[1]]));
        if u16::from_le_bytes([header[2], header[3]]) & 0x3fff == PAYLOAD {
            return rest.get(4..length);
        }
        rest = rest.get(length.max(4).next_multiple_of(4)..)?;
    }
}

/// What is inside Apple's header, which has its own length first and the link type at byte 8, both
/// little-endian.
fn behind_pktap(data: &[u8]) -> Option<Inside<'_>> {
    let inner = LinkType(u16::try_from(word(data, 8)?.swap_bytes()).ok()?);
    if inner == LinkType::PKTAP {
        return None;
    }
    inside_link(inner, data.get(usize::try_from(word(data, 0)?.swap_bytes()).ok()?..)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const IP: [u8; 4] = [0x45, 0, 0, 4];

    #[test]
    fn ip_is_found_behind_every_link_header() {
        let ethernet = |tags: &[u8]| [&[0; 12], tags, &[8, 0], &IP].concat();
        let cases = [
            (LinkType::RAW, IP.to_vec()),
            (LinkType::ETHERNET, ethernet(&[])),
            (LinkType::ETHERNET, ethernet(&[0x81, 0, 0, 7])),
            (LinkType::ETHERNET, ethernet(&[0x88, 0xa8, 0, 7, 0x81, 0, 0, 8])),
            (LinkType::LINUX_SLL, [&[0; 14][..], &[8, 0], &IP].concat()),
            (LinkType::LINUX_SLL2, [&[8, 0][..], &[0; 18], &IP].concat()),
            (LinkType::ETHERNET, ethernet(&[0x89, 0x26, 0, 1, 0, 2])),
            (
                LinkType::ETHERNET,
                [&[0; 12][..], &[0, 12, 0xaa, 0xaa, 3, 0, 0, 0, 8, 0], &IP].concat(),
            ),
            (
                LinkType::ETHERNET,
                [&[0; 12][..], &[0x88, 0x47, 0, 0, 0, 64, 0, 0, 1, 64], &IP].concat(),
            ),
            (
                LinkType::ETHERNET,
                [&[0; 12][..], &[0x88, 0x64, 0x11, 0, 0, 1, 0, 6, 0, 0x21], &IP].concat(),
            ),
            (LinkType::PPP, [&[0xff, 3, 0, 0x21][..], &IP].concat()),
            (LinkType::PPP, [&[0x21][..], &IP].concat()),
            (LinkType::C_HDLC, [&[0x0f, 0, 8, 0][..], &IP].concat()),
            (LinkType::FDDI, [&[0; 13][..], &[0xaa, 0xaa, 3, 0, 0, 0, 8, 0], &IP].concat()),
            (
                LinkType::IEEE802_11,
                [&[0x88, 1][..], &[0; 24], &[0xaa, 0xaa, 3, 0, 0, 0, 8, 0], &IP].concat(),
            ),
            (
                LinkType::NFLOG,
                [&[2, 0, 0, 0][..], &[5, 0, 1, 0, 7, 0, 0, 0], &[8, 0, 9, 0], &IP].concat(),
            ),
            (LinkType::PKTAP, [&[12, 0, 0, 0, 1, 0, 0, 0, 101, 0, 0, 0][..], &IP].concat()),
            (LinkType::NULL, [&[2, 0, 0, 0][..], &IP].concat()),
            (LinkType::LOOP, [&[0, 0, 0, 2][..], &IP].concat()),
        ];
        for (link_type, data) in cases {
            assert_eq!(ip_packet(link_type, &data), Some(&IP[..]), "{link_type:?}");
        }
    }

    #[test]
    fn what_is_not_ip_is_left_alone() {
        let arp = [&[0; 12][..], &[8, 6], &[0; 28]].concat();
        assert_eq!(ip_packet(LinkType::ETHERNET, &arp), None);
        assert_eq!(ip_packet(LinkType(147), &IP), None);
        assert_eq!(ip_packet(LinkType::RAW, &[0x15]), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(link_type: u16, data: Vec<u8>) {
            for link_type in [LinkType(link_type), LinkType::ETHERNET, LinkType::NULL, LinkType::LINUX_SLL2] {
                let _ = ip_packet(link_type, &data);
            }
        }
    }
}
