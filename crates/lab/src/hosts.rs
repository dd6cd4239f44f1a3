//! The two hosts of an experiment: the ends of a link, with their own TCP settings.

use fullpipe_kernel::Refused;
use fullpipe_kernel::host::sysctl::{self, NameError, SysctlError};
use fullpipe_kernel::network::netlink::{Netlink, Network, Route, RouteMetrics};
use fullpipe_kernel::network::netns::NetNs;
use fullpipe_link::{CarrierError, Junction, LinkEnd, LinkEnds};
use fullpipe_model::change::{Scope, Sysctl};
use fullpipe_model::scenario::{Host, Hosts, LinkEngine, Path};
use std::net::{IpAddr, Ipv4Addr};

/// The server's address on the link. Every run can have the same, because namespaces are separate.
pub const SERVER_ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 77, 0, 1));
/// The client's address.
pub const CLIENT_ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 77, 0, 2));
/// Prefix length of the network that both share.
const PREFIX_LEN: u8 = 24;

/// Why the hosts could not be made.
#[derive(Debug, thiserror::Error)]
pub enum HostsError {
    /// The kernel refused a request.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// What joins them could not be made.
    #[error(transparent)]
    Junction(#[from] CarrierError),
    /// A sysctl's name is invalid.
    #[error("set {host}'s sysctl: {cause}")]
    Name {
        /// The host.
        host: &'static str,
        /// The problem.
        cause: NameError,
    },
    /// A sysctl's value is invalid.
    #[error("set {host}'s sysctl: {cause}")]
    Sysctl {
        /// The host.
        host: &'static str,
        /// The problem.
        cause: SysctlError,
    },
    /// The CPU of its application is not available.
    #[error("pin {host}'s application to CPU {cpu}: it may use {}; choose one of them", listed(.usable))]
    Cpu {
        /// The host.
        host: &'static str,
        /// The requested CPU.
        cpu: u32,
        /// The available CPUs.
        usable: Vec<usize>,
    },
    /// This kernel does not have the congestion control.
    #[error(
        "choose {host}'s congestion control {name}: {cause}; `sysctl net.ipv4.tcp_available_congestion_control` names \
         those that are loaded, `modprobe tcp_{name}` loads another"
    )]
    CongestionControl {
        /// The host.
        host: &'static str,
        /// The requested one.
        name: String,
        /// The kernel's answer.
        cause: Refused,
    },
}

/// "0, 1, 5"
fn listed(cpus: &[usize]) -> String {
    cpus.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// Makes both hosts of a scenario and what `engine` needs between them to carry `path`. Sysctls are
/// set before the devices come up, so no connection can start with other values. The hosts must not
/// be used after what joins them has ended.
///
/// # Errors
/// A setting is invalid or not available here, or the hosts cannot be joined.
pub fn join_hosts(
    spec: &Hosts,
    engine: LinkEngine,
    path: &Path,
) -> Result<(LinkEnds, Junction), HostsError> {
    let (server, client) = (NetNs::create("server")?, NetNs::create("client")?);
    apply_settings("server", &server, &spec.server)?;
    apply_settings("client", &client, &spec.client)?;
    let hosts = LinkEnds {
        server: LinkEnd::new(server, &[Network::new(SERVER_ADDRESS, PREFIX_LEN)]),
        client: LinkEnd::new(client, &[Network::new(CLIENT_ADDRESS, PREFIX_LEN)]),
    };
    let junction = hosts.join(engine, path)?;
    choose_route("server", &hosts.server, &spec.server, CLIENT_ADDRESS)?;
    choose_route("client", &hosts.client, &spec.client, SERVER_ADDRESS)?;
    Ok((hosts, junction))
}

/// Sets those sysctls of both hosts that the whole machine has, which in a guest is theirs alone.
/// Where both name one, the client's holds.
pub(crate) fn set_machine(spec: &Hosts) -> Result<(), HostsError> {
    for (host, settings) in [("server", &spec.server), ("client", &spec.client)] {
        for (key, value) in settings.sysctl.iter().filter(|(key, _)| belongs_to_machine(key)) {
            let name: sysctl::Name =
                key.parse().map_err(|cause| HostsError::Name { host, cause })?;
            sysctl::write_own(&name, &value.0)
                .map_err(|cause| HostsError::Sysctl { host, cause })?;
        }
    }
    Ok(())
}

fn belongs_to_machine(key: &str) -> bool {
    Sysctl::named(key).is_some_and(|sysctl| sysctl.scope() == Scope::Machine)
}

/// The hosts without what [`set_machine`] has set.
pub(crate) fn without_machine(spec: &Hosts) -> Hosts {
    let mut own = spec.clone();
    for host in [&mut own.server, &mut own.client] {
        host.sysctl.retain(|key, _| !belongs_to_machine(key));
    }
    own
}

fn apply_settings(host: &'static str, ns: &NetNs, spec: &Host) -> Result<(), HostsError> {
    if let Some(cpu) = spec.cpu {
        // Checked here, where it can be reported, rather than in the threads that are pinned.
        let usable = fullpipe_kernel::process::sched::cpus()?;
        if !usable.contains(&(cpu as usize)) {
            return Err(HostsError::Cpu { host, cpu, usable });
        }
    }
    for (key, value) in &spec.sysctl {
        let name: sysctl::Name = key.parse().map_err(|cause| HostsError::Name { host, cause })?;
        sysctl::write(ns, &name, &value.0).map_err(|cause| HostsError::Sysctl { host, cause })?;
    }
    Ok(())
}

/// Sets the properties of connections to the peer by a route. Unlike the sysctl, a route accepts
/// any congestion control that the kernel has, even in a namespace where those outside
/// `tcp_allowed_congestion_control` are refused.
fn choose_route(
    host: &'static str,
    end: &LinkEnd,
    spec: &Host,
    peer: IpAddr,
) -> Result<(), HostsError> {
    let metrics = RouteMetrics {
        congctl: spec.congestion_control.clone(),
        initcwnd: spec.initcwnd,
        initrwnd: spec.initrwnd,
        ..RouteMetrics::default()
    };
    if metrics == RouteMetrics::default() {
        return Ok(());
    }
    let route = Route {
        destination: Network::new(peer, 32),
        gateway: None,
        device: end.device.clone(),
        metrics,
    };
    Netlink::open(&end.ns)?.set_route(&route).map_err(|cause| match &spec.congestion_control {
        Some(name) => HostsError::CongestionControl { host, name: name.clone(), cause },
        None => HostsError::Refused(cause),
    })
}
