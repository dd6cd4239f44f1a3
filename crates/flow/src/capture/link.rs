//! What a captured packet begins with, and where the IP packet inside it starts.

/// A link type by its registered number (<https://www.tcpdump.org/linktypes.html>).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct LinkType(pub u16);

#[allow(missing_docs, reason = "the names are the registry's")]
impl LinkType {
    pub const NULL: LinkType = LinkType(0);
    pub const ETHERNET: LinkType = LinkType(1);
    pub const RAW: LinkType = LinkType(101);
    pub const LOOP: LinkType = LinkType(108);
    pub const LINUX_SLL: LinkType = LinkType(113);
    pub const IPV4: LinkType = LinkType(228);
    pub const IPV6: LinkType = LinkType(229);
    pub const LINUX_SLL2: LinkType = LinkType(276);
}

const ETHERTYPE_IPV4: u16 = 0x0800;
const ETHERTYPE_IPV6: u16 = 0x86dd;

/// The IP packet inside of a captured one, if there is one.
///
/// Understands raw IP, Ethernet with any number of 802.1Q and 802.1ad tags, Linux cooked captures (both versions) and
/// BSD loopback. Tunnels are not entered.
pub fn ip_packet(link_type: LinkType, data: &[u8]) -> Option<&[u8]> {
    let ip = match link_type {
        // 12 and 14 are what OpenBSD and some others write for raw IP.
        LinkType::RAW | LinkType::IPV4 | LinkType::IPV6 | LinkType(12 | 14) => data,
        LinkType::ETHERNET => behind_ethertype(data, 12, 14)?,
        LinkType::LINUX_SLL => behind_ethertype(data, 14, 16)?,
        LinkType::LINUX_SLL2 => behind_ethertype(data, 0, 20)?,
        LinkType::NULL | LinkType::LOOP => behind_address_family(data)?,
        _ => return None,
    };
    matches!(ip.first()? >> 4, 4 | 6).then_some(ip)
}

/// What follows a header of `length` bytes that has its Ethertype at `at`, VLAN tags skipped.
fn behind_ethertype(data: &[u8], mut at: usize, mut length: usize) -> Option<&[u8]> {
    const VLAN_TAGS: [u16; 3] = [0x8100, 0x88a8, 0x9100];
    loop {
        let ethertype = u16::from_be_bytes([*data.get(at)?, *data.get(at + 1)?]);
        if !VLAN_TAGS.contains(&ethertype) {
            return matches!(ethertype, ETHERTYPE_IPV4 | ETHERTYPE_IPV6).then(|| data.get(length..))?;
        }
        // A tag is two bytes of control information and the next Ethertype.
        (at, length) = (length + 2, length + 4);
    }
}

/// What follows the four bytes that name the address family, in the byte order of the machine that captured.
fn behind_address_family(data: &[u8]) -> Option<&[u8]> {
    let (family, ip) = data.split_first_chunk::<4>()?;
    let family = u32::from_be_bytes(*family).min(u32::from_le_bytes(*family));
    // 2 is AF_INET everywhere; AF_INET6 differs: Linux 10, NetBSD and OpenBSD 24, FreeBSD 28, macOS 30.
    matches!(family, 2 | 10 | 24 | 28 | 30).then_some(ip)
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
