//! What of an IP header the path may change.

/// The fields of an IP header that the path may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct IpHeader {
    /// Time to live, or hop limit.
    pub ttl: u8,
    /// DSCP and ECN.
    pub class: u8,
}

impl IpHeader {
    /// Of a packet that begins with its IP header.
    pub(super) fn of(ip: &[u8]) -> IpHeader {
        match ip {
            [first, class, ..] if first >> 4 == 4 => {
                IpHeader { ttl: ip.get(8).copied().unwrap_or_default(), class: *class }
            }
            [first, second, _, _, _, _, _, ttl, ..] if first >> 4 == 6 => {
                IpHeader { ttl: *ttl, class: first << 4 | second >> 4 }
            }
            _ => IpHeader::default(),
        }
    }
}
