//! Addresses for the two ends of a link that do not collide with anything that the machine can
//! reach.
//!
//! A command behind the link still needs the machine's networks; if one of our addresses is also
//! one of theirs, it would hide it. So this looks at the machine's routes and takes the first of a
//! few private networks that does not overlap with any of them; the lab's 10.77.0.0/24 nearly
//! always works.

use fullpipe_kernel::network::netlink::Network;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The addresses of the two ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Addresses {
    /// The far end's address: the server, or the gateway to everything else.
    pub far: Ipv4Addr,
    /// The command's address.
    pub near: Ipv4Addr,
    /// The far end's IPv6 address.
    pub far6: Ipv6Addr,
    /// The command's IPv6 address.
    pub near6: Ipv6Addr,
}

/// Prefix length of the network that both ends share.
pub const PREFIX_LEN: u8 = 24;
/// The same for IPv6.
pub const PREFIX6_LEN: u8 = 64;

/// Candidate networks: private ones (RFC 1918), then those for benchmarks (RFC 2544), then
/// carriers' (RFC 6598).
const CANDIDATES: [[u8; 3]; 6] =
    [[10, 77, 0], [172, 29, 77], [192, 168, 177], [198, 18, 77], [100, 99, 77], [10, 177, 0]];

impl Addresses {
    /// Addresses in the first network that overlaps with no route in `taken`; if all overlap, in
    /// the first network.
    pub fn beside(taken: &[Network]) -> Addresses {
        let free = CANDIDATES.into_iter().find(|&[a, b, c]| {
            let network = Network::new(IpAddr::V4(Ipv4Addr::new(a, b, c, 0)), PREFIX_LEN);
            !taken.iter().any(|route| touch(route, &network))
        });
        let [a, b, c] = free.unwrap_or(CANDIDATES[0]);
        // A unique local prefix (RFC 4193) with 40 random bits of ours.
        let [far6, near6] =
            [1, 2].map(|last| Ipv6Addr::new(0xfd46, 0x7069, 0x7065, 0, 0, 0, 0, last));
        let [far, near] = [1, 2].map(|last| Ipv4Addr::new(a, b, c, last));
        Addresses { far, near, far6, near6 }
    }

    /// The far end's addresses, with their prefix lengths.
    pub fn of_far(&self) -> [Network; 2] {
        [Network::new(self.far.into(), PREFIX_LEN), Network::new(self.far6.into(), PREFIX6_LEN)]
    }

    /// The command's addresses, with their prefix lengths.
    pub fn of_near(&self) -> [Network; 2] {
        [Network::new(self.near.into(), PREFIX_LEN), Network::new(self.near6.into(), PREFIX6_LEN)]
    }
}

/// Whether one overlaps with the other. The default route contains everything, so it does not
/// count.
fn touch(a: &Network, b: &Network) -> bool {
    let (IpAddr::V4(x), IpAddr::V4(y)) = (a.address, b.address) else { return false };
    let shared = a.prefix_len.min(b.prefix_len);
    if a.prefix_len == 0 || b.prefix_len == 0 || shared > 32 {
        return false;
    }
    let mask = u32::MAX << (32 - u32::from(shared));
    u32::from(x) & mask == u32::from(y) & mask
}

/// The networks in `/proc/net/route`, which shows the main table as hexadecimal numbers in the
/// machine's byte order.
pub fn parse_routes(text: &str) -> Vec<Network> {
    text.lines().skip(1).filter_map(parse_route).collect()
}

fn parse_route(line: &str) -> Option<Network> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [destination, mask] = [1, 7].map(|at| u32::from_str_radix(words.get(at)?, 16).ok());
    let address = Ipv4Addr::from(destination?.to_ne_bytes());
    Some(Network::new(IpAddr::V4(address), mask?.count_ones() as u8))
}

/// Whether `/proc/net/ipv6_route` has a default route to a device other than the loopback.
pub fn has_default_route6(text: &str) -> bool {
    text.lines().any(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [destination, length, .., device] = words.as_slice() else { return false };
        *length == "00" && destination.bytes().all(|byte| byte == b'0') && *device != "lo"
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_network_that_the_machine_has_is_not_taken() {
        let routes = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n\
                      eth0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\n\
                      eth0\t0000000A\t00000000\t0001\t0\t0\t0\t000000FF\t0\t0\t0\n";
        let taken = parse_routes(routes);
        assert_eq!(taken.len(), 2);
        assert_eq!(taken[1], Network::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 0)), 8));
        assert_eq!(Addresses::beside(&taken).far, Ipv4Addr::new(172, 29, 77, 1));
        assert_eq!(Addresses::beside(&[]).near, Ipv4Addr::new(10, 77, 0, 2));
    }

    #[test]
    fn a_default_route_of_ipv6_is_seen() {
        let local = "00000000000000000000000000000000 00 00000000000000000000000000000000 00 \
                     00000000000000000000000000000000 ffffffff 00000001 00000000 00200200       lo\n";
        assert!(!has_default_route6(local));
        assert!(has_default_route6(&local.replace("      lo", "    eth0")));
    }

    proptest! {
        #[test]
        fn any_text_is_routes_or_not(text in "\\PC*") {
            parse_routes(&text);
            has_default_route6(&text);
        }

        #[test]
        fn what_is_chosen_touches_nothing_unless_all_is_taken(routes in prop::collection::vec((any::<u32>(), 8u8..=32), 0..20)) {
            let taken: Vec<_> = routes.into_iter().map(|(a, len)| Network::new(IpAddr::V4(a.into()), len)).collect();
            let [far, _] = Addresses::beside(&taken).of_far();
            prop_assert!(!taken.iter().any(|route| touch(route, &far)));
        }
    }
}
