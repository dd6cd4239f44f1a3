//! Routing as the way out: the program's packets themselves are forwarded, with this machine's
//! address.
//!
//! The far end of the link is a device in the machine's own network namespace. Packets from the
//! link are routed onwards with a new source address (masquerading). So the program's TCP
//! connections end at the real servers, not at a gateway: losses, congestion control and windows
//! are those of the whole path, and every protocol passes. This needs root, and a machine that
//! already forwards packets (`net.ipv4.ip_forward`), because that is a decision about the whole
//! machine. IPv6 works the same way if the machine forwards it too
//! (`net.ipv6.conf.all.forwarding`); otherwise the program has no IPv6 route.
//!
//! Everything made here ends with the processes that hold it: the device with the link's
//! descriptor, the rules with the `nft` session that owns them (`flags owner`).

use fullpipe_kernel::host::sysctl::{self, SysctlError};
use fullpipe_kernel::network::netns::NetNs;
use fullpipe_kernel::socket::transparent::{NftSession, nft};
use fullpipe_kernel::{Refused, host::clock};
use fullpipe_model::units::Duration;
use std::net::{IpAddr, Ipv4Addr};

use super::Addresses;

/// How long `nft` may take.
const WITHIN: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(2);

/// Why packets cannot be routed.
#[derive(Debug, thiserror::Error)]
pub enum NatError {
    /// The machine does not forward packets.
    #[error(
        "route packets of the command: net.ipv4.ip_forward of this machine is 0; leave --nat out (the gateway needs \
         nothing of the machine), or let it forward packets with `sysctl -w net.ipv4.ip_forward=1`"
    )]
    NoForwarding,
    /// The run has no power over the machine's network.
    #[error(
        "route packets of the command: --nat makes a device in this machine's own network, which takes root; run it with \
         sudo, or leave --nat out: the gateway takes no privilege"
    )]
    NoRoot,
    /// A setting of the link's own device failed.
    #[error(transparent)]
    Sysctl(#[from] SysctlError),
    /// The kernel refused a request.
    #[error(transparent)]
    Refused(#[from] Refused),
}

/// Rules that exist as long as this value.
#[derive(Debug)]
pub struct Nat {
    _session: NftSession,
    ipv6: bool,
}

impl Nat {
    /// Masquerades packets from the near address over `device`, which is in `machine`. Packets to
    /// the far address go to the machine's loopback, DNS queries to `resolver`.
    pub fn start(
        machine: &NetNs,
        device: &str,
        addresses: &Addresses,
        resolver: Option<IpAddr>,
    ) -> Result<Nat, NatError> {
        if !is_set(machine, "net.ipv4.ip_forward") {
            return Err(NatError::NoForwarding);
        }
        let ipv6 = is_set(machine, "net.ipv6.conf.all.forwarding");
        // For the link's own device: packets from the link may go to the loopback.
        if let Ok(name) = format!("net.ipv4.conf.{device}.route_localnet").parse() {
            sysctl::write(machine, &name, "1")?;
        }
        let table = format!("fullpipe_{device}");
        let session = NftSession::start(machine, &rules(&table, device, addresses, resolver))?;
        let deadline = clock::now() + WITHIN;
        // When the last rule is there, all are.
        while let Err(refused) = nft(machine, &format!("list chain inet {table} {LAST}\n")) {
            if clock::now() >= deadline {
                return Err(refused.into());
            }
            std::thread::park_timeout(LOOK.into());
        }
        Ok(Nat { _session: session, ipv6 })
    }

    /// Whether the machine forwards IPv6 as well.
    pub fn carries_ipv6(&self) -> bool {
        self.ipv6
    }
}

/// Whether this sysctl of `machine` is on.
fn is_set(machine: &NetNs, name: &str) -> bool {
    let value = name.parse().map(|name| sysctl::read(machine, &name));
    matches!(value, Ok(Ok(value)) if value == "1")
}

const LAST: &str = "out";

/// The rules as nftables text for a session, one command on each line.
fn rules(table: &str, device: &str, addresses: &Addresses, resolver: Option<IpAddr>) -> String {
    let Addresses { far, near, near6, .. } = addresses;
    let mut text = format!(
        "add table inet {table} {{ flags owner; }}\n\
         add chain inet {table} in {{ type nat hook prerouting priority dstnat; policy accept; }}\n"
    );
    if let Some(IpAddr::V4(resolver)) = resolver {
        for protocol in ["udp", "tcp"] {
            let rule = format!(
                "iifname \"{device}\" ip daddr {far} {protocol} dport 53 dnat ip to {resolver}"
            );
            text.push_str(&format!("add rule inet {table} in {rule}\n"));
        }
    }
    for protocol in ["udp", "tcp"] {
        let loopback = Ipv4Addr::LOCALHOST;
        let rule = format!(
            "iifname \"{device}\" ip daddr {far} meta l4proto {protocol} dnat ip to {loopback}"
        );
        text.push_str(&format!("add rule inet {table} in {rule}\n"));
    }
    text.push_str(&format!(
        "add chain inet {table} {LAST} {{ type nat hook postrouting priority srcnat; policy accept; }}\n\
         add rule inet {table} {LAST} ip saddr {near} oifname != {{ \"{device}\", \"lo\" }} masquerade\n\
         add rule inet {table} {LAST} ip6 saddr {near6} oifname != {{ \"{device}\", \"lo\" }} masquerade\n"
    ));
    text
}
