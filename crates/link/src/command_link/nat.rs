//! The way out by routing: the program's packets themselves go on, from this machine's address.
//!
//! The far end of the link is a device of the machine's own network namespace; what comes over the
//! link is routed on, its source address replaced (masquerading). So the program's TCP connections
//! end at the servers that they are for, not at a gateway: losses, congestion control and windows
//! are those between the two over the whole way, and every protocol passes. It takes root, and a
//! machine that forwards packets already (`net.ipv4.ip_forward`): that is a decision about the
//! whole machine, and not ours. IPv6 goes the same way where the machine forwards that too
//! (`net.ipv6.conf.all.forwarding`); elsewhere the program has no way out by IPv6.
//!
//! What is made goes with the processes that hold it: the device with the descriptor of the link,
//! the rules with a session of `nft` to which they belong (`flags owner`).

use fullpipe_kernel::netns::NetNs;
use fullpipe_kernel::sysctl::{self, SysctlError};
use fullpipe_kernel::transparent::{NftSession, nft};
use fullpipe_kernel::{Refused, clock};
use fullpipe_model::units::Duration;
use std::net::{IpAddr, Ipv4Addr};

use super::Addresses;

/// How long `nft` may take.
const WITHIN: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(2);

/// Why packets cannot be routed.
#[derive(Debug, thiserror::Error)]
pub enum NatError {
    /// The machine is no router.
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
    /// A setting of the link's own device.
    #[error(transparent)]
    Sysctl(#[from] SysctlError),
    /// A request to the kernel.
    #[error(transparent)]
    Refused(#[from] Refused),
}

/// Rules that last as long as this value.
#[derive(Debug)]
pub struct Nat {
    _session: NftSession,
    ipv6: bool,
}

impl Nat {
    /// Starts to masquerade what comes from the near address over `device`, which is in `machine`;
    /// what is for the far address goes to the machine's loopback, names to `resolver`.
    pub fn start(
        machine: &NetNs,
        device: &str,
        addresses: &Addresses,
        resolver: Option<IpAddr>,
    ) -> Result<Nat, NatError> {
        let is_set = |name: &str| {
            let value = name.parse().map(|name| sysctl::read(machine, &name));
            matches!(value, Ok(Ok(value)) if value == "1")
        };
        if !is_set("net.ipv4.ip_forward") {
            return Err(NatError::NoForwarding);
        }
        let ipv6 = is_set("net.ipv6.conf.all.forwarding");
        // Of the link's own device: what comes over it may be for the loopback.
        if let Ok(name) = format!("net.ipv4.conf.{device}.route_localnet").parse() {
            sysctl::write(machine, &name, "1")?;
        }
        let table = format!("fullpipe_{device}");
        let session = NftSession::start(machine, &rules(&table, device, addresses, resolver))?;
        let deadline = clock::now() + WITHIN;
        // The last of the rules is there when all are.
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

const LAST: &str = "out";

/// As nftables text, a command a line, as a session reads it.
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
