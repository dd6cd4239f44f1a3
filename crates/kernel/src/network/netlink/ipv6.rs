//! Whether a device has IPv6.
//!
//! It does not if its MTU is smaller than IPv6 requires of every link (1280 bytes, RFC 8200,
//! section 5; the kernel then removes the protocol from the device), if the kernel was built or
//! started without IPv6, or if `net.ipv6.conf.*.disable_ipv6` is 1. The kernel refuses every IPv6
//! setting of such a device, each in a different way, so callers check first.

use fullpipe_model::units::Bytes;
use netlink_packet_route::link::{AfSpecInet6, AfSpecUnspec, LinkAttribute, LinkMessage};

use super::{Netlink, Network};
use crate::Refused;

/// The smallest MTU for IPv6 (RFC 8200, section 5; `IPV6_MIN_MTU` in the kernel).
pub const IPV6_MTU_MIN: Bytes = Bytes::new(1280);

impl Netlink {
    /// Whether `device` can have IPv6 addresses and routes now.
    pub fn takes_ipv6(&mut self, device: &str) -> Result<bool, Refused> {
        let link = self.link(device)?;
        Ok(settings(&link).is_some_and(|settings| {
            !settings.iter().any(
                |setting| matches!(setting, AfSpecInet6::DevConf(conf) if conf.disable_ipv6 != 0),
            )
        }))
    }

    /// Adds those of `addresses` whose protocol `device` has; IPv4 addresses are always added.
    pub fn add_addresses(&mut self, device: &str, addresses: &[Network]) -> Result<(), Refused> {
        let takes_ipv6 =
            addresses.iter().any(|network| network.address.is_ipv6()) && self.takes_ipv6(device)?;
        let wanted = addresses.iter().filter(|network| network.address.is_ipv4() || takes_ipv6);
        wanted.copied().try_for_each(|network| self.add_address(device, network))
    }
}

/// Whether `link` has IPv6 settings now, and will still have them with this MTU.
pub(super) fn keeps_settings(link: &LinkMessage, mtu: Option<Bytes>) -> bool {
    settings(link).is_some() && mtu.is_none_or(|mtu| mtu >= IPV6_MTU_MIN)
}

fn settings(link: &LinkMessage) -> Option<&[AfSpecInet6]> {
    let families = link.attributes.iter().find_map(|attribute| match attribute {
        LinkAttribute::AfSpecUnspec(families) => Some(families),
        _ => None,
    })?;
    families.iter().find_map(|family| match family {
        AfSpecUnspec::Inet6(settings) => Some(settings.as_slice()),
        _ => None,
    })
}
