//! What the lab and `link` need, tried in namespaces that end with the command.

use super::{Ability, Obstacle};
use fullpipe_kernel::Refused;
use fullpipe_kernel::network::netns::NetNs;
use fullpipe_kernel::network::port::{PortConfig, PortKind, PortPair};
use fullpipe_kernel::network::wire::Wire;
use fullpipe_kernel::socket::transparent;
use fullpipe_model::units::Bytes;

/// What needs namespaces.
pub const COMMANDS: &str = "lab run, demo, link -- CMD";

const MTU: Bytes = Bytes::new(1500);

/// What works in namespaces of one's own.
pub fn abilities() -> Vec<Ability> {
    vec![
        Ability::of("tun", "lab run, demo and link, at full speed", tun()),
        Ability::of("veth", "lab run, demo and link where tun does not work", veth()),
        Ability::of("netem", "lab run with link.engine = \"netem\"", netem()),
        Ability::of("nftables", "link -- CMD", nftables()),
    ]
}

/// Two hosts, each with a device.
fn with_hosts<T>(
    make: impl FnOnce(&PortConfig<'_>, &PortConfig<'_>) -> Result<T, Refused>,
) -> Result<T, Refused> {
    let [a, b] = [NetNs::create("a")?, NetNs::create("b")?];
    let [a, b] = [&a, &b].map(|ns| PortConfig { ns, device: "wan0", addresses: &[] });
    make(&a, &b)
}

fn tun() -> Result<&'static str, Obstacle> {
    with_hosts(|a, b| PortPair::of_kind(PortKind::Tun, a, b, MTU))?;
    Ok("two devices made from /dev/net/tun")
}

fn veth() -> Result<&'static str, Obstacle> {
    with_hosts(|a, b| PortPair::of_kind(PortKind::Veth, a, b, MTU))?;
    Ok("two pairs made, with packet sockets")
}

fn netem() -> Result<&'static str, Obstacle> {
    with_hosts(|a, b| Wire::create(a, b, MTU, 1))?;
    Ok("the kernel has sch_netem")
}

fn nftables() -> Result<&'static str, Obstacle> {
    transparent::nft(&NetNs::create("gateway")?, "add table inet fullpipe\n")?;
    Ok("nft made a table")
}
