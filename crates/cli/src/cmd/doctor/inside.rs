//! What the lab and `link` need, tried in namespaces that end with the command.

use super::{Ability, Obstacle};
use crate::sentence::Sentence;
use fullpipe_kernel::Refused;
use fullpipe_kernel::network::netns::NetNs;
use fullpipe_kernel::network::port::{PortConfig, PortKind, PortPair};
use fullpipe_kernel::network::wire::Wire;
use fullpipe_kernel::socket::transparent;
use fullpipe_model::units::Bytes;

/// What needs namespaces.
pub fn commands() -> Sentence {
    Sentence::as_is("lab run, demo, link -- CMD")
}

const MTU: Bytes = Bytes::new(1500);

/// What works in namespaces of one's own.
pub fn abilities() -> Vec<Ability> {
    let fast =
        Sentence::new("lab run, demo and link, at full speed", "lab run、demo 和 link，全速");
    let slow = Sentence::new(
        "lab run, demo and link where tun does not work",
        "lab run、demo 和 link，在 tun 不可用时",
    );
    let netem_link = Sentence::new(
        "lab run with link.engine = \"netem\"",
        "lab run，link.engine = \"netem\" 时",
    );
    vec![
        Ability::of(("tun", "tun"), fast, tun()),
        Ability::of(("veth", "veth"), slow, veth()),
        Ability::of(("netem", "netem"), netem_link, netem()),
        Ability::of(("nftables", "nftables"), Sentence::as_is("link -- CMD"), nftables()),
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

fn tun() -> Result<Sentence, Obstacle> {
    with_hosts(|a, b| PortPair::of_kind(PortKind::Tun, a, b, MTU))?;
    Ok(Sentence::new("two devices made from /dev/net/tun", "已由 /dev/net/tun 创建两个设备"))
}

fn veth() -> Result<Sentence, Obstacle> {
    with_hosts(|a, b| PortPair::of_kind(PortKind::Veth, a, b, MTU))?;
    Ok(Sentence::new("two pairs made, with packet sockets", "已创建两对设备及其数据包套接字"))
}

fn netem() -> Result<Sentence, Obstacle> {
    with_hosts(|a, b| Wire::create(a, b, MTU, 1))?;
    Ok(Sentence::new("the kernel has sch_netem", "内核有 sch_netem"))
}

fn nftables() -> Result<Sentence, Obstacle> {
    transparent::nft(&NetNs::create("gateway")?, "add table inet fullpipe\n")?;
    Ok(Sentence::new("nft made a table", "nft 已创建一张表"))
}
