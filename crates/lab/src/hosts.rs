//! The two hosts of an experiment: network namespaces with their own TCP settings, each with a port
//! of the link.

use fullpipe_kernel::Refused;
use fullpipe_kernel::netlink::{Netlink, Network, Route, RouteMetrics};
use fullpipe_kernel::netns::NetNs;
use fullpipe_kernel::port::{PortConfig, PortError, PortPair};
use fullpipe_kernel::sysctl::{self, NameError, SysctlError};
use fullpipe_kernel::wire::Wire;
use fullpipe_model::scenario::{Host, Hosts as HostsSpec};
use fullpipe_model::units::Bytes;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

/// The server's address on the link. Every run can have the same, because namespaces are separate.
pub const SERVER_ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 77, 0, 1));
/// The client's address.
pub const CLIENT_ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 77, 0, 2));
const DEVICE: &str = "wan0";

/// Why the hosts could not be made.
#[derive(Debug, thiserror::Error)]
pub enum HostsError {
    /// The kernel refused a request.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// The devices could not be made.
    #[error(transparent)]
    Ports(#[from] PortError),
    /// The wire could not be made.
    #[error(transparent)]
    Wire(Refused),
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

/// Two hosts and what joins them: ports between which a link can be put, or a wire for netem. They
/// end with this value and with what joins them.
#[derive(Debug)]
pub struct Hosts<J = Arc<PortPair>> {
    /// Sends the data.
    pub server: NetNs,
    /// Receives it.
    pub client: NetNs,
    /// `a` is the server's, `b` the client's.
    pub ports: J,
}

impl Hosts {
    /// Makes both hosts of a scenario. Sysctls are set before the devices come up, so no connection
    /// can start with other values.
    pub fn create(spec: &HostsSpec, mtu: Bytes) -> Result<Hosts, HostsError> {
        join(spec, |a, b| Ok(Arc::new(PortPair::create(a, b, mtu)?)))
    }
}

impl Hosts<Wire> {
    /// The same, joined by a wire; the hosts send super-packets of up to `gso_max_segs` segments.
    pub(crate) fn create_wired(
        spec: &HostsSpec,
        mtu: Bytes,
        gso_max_segs: u32,
    ) -> Result<Hosts<Wire>, HostsError> {
        join(spec, |a, b| Wire::create(a, b, mtu, gso_max_segs).map_err(HostsError::Wire))
    }
}

impl<J> Hosts<J> {
    /// Separates the hosts from what joins them, which must outlive them.
    pub fn apart(self) -> (Hosts<()>, J) {
        let Hosts { server, client, ports } = self;
        (Hosts { server, client, ports: () }, ports)
    }
}

fn join<J>(
    spec: &HostsSpec,
    join: impl FnOnce(&PortConfig<'_>, &PortConfig<'_>) -> Result<J, HostsError>,
) -> Result<Hosts<J>, HostsError> {
    let (server, client) = (NetNs::create("server")?, NetNs::create("client")?);
    apply_settings("server", &server, &spec.server)?;
    apply_settings("client", &client, &spec.client)?;
    let address = |address| [Network::new(address, 24)];
    let (at_server, at_client) = (address(SERVER_ADDRESS), address(CLIENT_ADDRESS));
    let side = |ns, addresses| PortConfig { ns, device: DEVICE, addresses };
    let ports = join(&side(&server, &at_server[..]), &side(&client, &at_client[..]))?;
    choose_route("server", &server, &spec.server, CLIENT_ADDRESS)?;
    choose_route("client", &client, &spec.client, SERVER_ADDRESS)?;
    Ok(Hosts { server, client, ports })
}

fn apply_settings(host: &'static str, ns: &NetNs, spec: &Host) -> Result<(), HostsError> {
    if let Some(cpu) = spec.cpu {
        // Checked here, where it can be reported, rather than in the threads that are pinned.
        let usable = fullpipe_kernel::sched::cpus()?;
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
    ns: &NetNs,
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
        device: DEVICE.into(),
        metrics,
    };
    let wrong = |cause| match &spec.congestion_control {
        Some(name) => HostsError::CongestionControl { host, name: name.clone(), cause },
        None => HostsError::Refused(cause),
    };
    Netlink::open(ns)?.set_route(&route).map_err(wrong)
}
