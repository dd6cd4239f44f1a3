//! A command behind a link: `fullpipe link .. -- CMD`.
//!
//! There are two network namespaces with the link between them. The command runs in the near one.
//! The far one is one of three things, each with the address that `{server}` stands for:
//! * a **server**: another command, which starts first; the run waits until it listens. Nothing
//!   else is reachable;
//! * a **gateway** to everything that the machine reaches, and to its loopback ([`gateway`]);
//! * the **machine** itself, as a router ([`nat`]).
//!
//! Order of calls: [`MachineNetwork::inspect`] outside, before anything is forked (it also leaves a
//! process there); then, inside [`fullpipe_kernel::run::sandbox`], [`CommandLink::make`], a link
//! between its [`ends`](CommandLink::ends), [`CommandLink::set_routes`],
//! [`CommandLink::start_server`], [`CommandLink::start`], and [`Program::wait`] until it ends. The
//! end of the sandbox ends the rest.

mod addresses;
mod bounds;
mod carry;
mod connections;
mod datagrams;
mod delivery;
mod destinations;
mod gateway;
mod nat;
mod requests;
mod resolver;
mod run;
mod unreachable;

pub use addresses::Addresses;
pub use bounds::{GatewayCounters, GatewayCounts};
pub use delivery::{Delivery, PendingData};
pub use nat::NatError;
pub use run::{Program, ProgramEvent, RunError};

use crate::ends::{DEVICE, LinkEnd, LinkEnds};
use delivery::FarReceiver;
use fullpipe_kernel::network::netlink::{Netlink, Network, Route, RouteMetrics};
use fullpipe_kernel::network::netns::NetNs;
use fullpipe_kernel::process::descriptors::DescriptorLimit;
use fullpipe_kernel::process::program::{Identity, Surroundings};
use fullpipe_kernel::run::journal::JournalError;
use fullpipe_kernel::run::outside::Outside;
use fullpipe_kernel::run::sandbox::Inside;
use fullpipe_kernel::socket::congestion;
use fullpipe_kernel::socket::sock_diag::SockDiag;
use fullpipe_kernel::{Refused, host::clock};
use fullpipe_model::units::Duration;
use run::expand;
use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

/// How long a server may take until it listens.
pub const READY_WITHIN: Duration = Duration::from_secs(20);
/// How often that is checked.
const LOOK: Duration = Duration::from_millis(2);
/// How long a server may take to end after SIGTERM.
const ENDS_WITHIN: Duration = Duration::from_secs(2);
const RESOLV_CONF: &str = "/etc/resolv.conf";

/// What is at the far end of the link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FarEnd {
    /// A namespace in which the other command runs, and nothing else.
    Server,
    /// A gateway for connections and datagrams to everything that the machine reaches: `gateway`.
    Gateway,
    /// The machine itself, which routes packets: `nat`.
    Machine,
}

/// Why a command could not be put behind a link.
#[derive(Debug, thiserror::Error)]
pub enum CommandLinkError {
    /// The kernel refused a request.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// The gateway could not start.
    #[error("{0}; or start the other end too (--server), which needs no gateway")]
    Gateway(Refused),
    /// The machine cannot be a router.
    #[error(transparent)]
    Nat(#[from] NatError),
    /// A file that the command should see could not be written.
    #[error("write {path}: {cause}; free some space", path = path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The kernel's answer.
        cause: std::io::Error,
    },
    /// The scratch folder could not be made.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A program failed.
    #[error(transparent)]
    Run(#[from] RunError),
}

/// What must be known before the run leaves the machine's network.
#[derive(Debug)]
pub struct MachineNetwork {
    far_end: FarEnd,
    addresses: Addresses,
    default_route6: bool,
    identity: Identity,
    descriptors: DescriptorLimit,
    process: u32,
    resolv_conf: String,
    outside: Option<Arc<Outside>>,
    /// The namespace for [`FarEnd::Machine`].
    machine: Option<Arc<NetNs>>,
}

impl MachineNetwork {
    /// Inspects the machine's network and, for a gateway, leaves a process behind. Call it from
    /// `main`, before any thread and before the sandbox.
    pub fn inspect(far_end: FarEnd) -> Result<MachineNetwork, Refused> {
        let taken = addresses::parse_routes(&text_of("/proc/net/route"));
        Ok(MachineNetwork {
            far_end,
            addresses: Addresses::beside(&taken),
            default_route6: addresses::has_default_route6(&text_of("/proc/net/ipv6_route")),
            identity: Identity::own(),
            descriptors: DescriptorLimit::own(),
            process: std::process::id(),
            resolv_conf: text_of(RESOLV_CONF),
            outside: match far_end {
                FarEnd::Gateway => Some(Arc::new(Outside::keep()?)),
                FarEnd::Server | FarEnd::Machine => None,
            },
            machine: match far_end {
                FarEnd::Machine => Some(Arc::new(NetNs::current("this machine")?)),
                FarEnd::Server | FarEnd::Gateway => None,
            },
        })
    }
}

/// Nothing if it cannot be read.
fn text_of(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

impl MachineNetwork {
    /// Fails if the process outside has ended: every connection would fail without an explanation.
    pub fn check(&self) -> Result<(), CommandLinkError> {
        self.outside.as_ref().map_or(Ok(()), |outside| Ok(outside.check()?))
    }
}

/// A command, the other end of its link, and the programs at both.
#[derive(Debug)]
pub struct CommandLink {
    /// What the link joins: the server's end is the far one, the client's is the command's.
    pub ends: LinkEnds,
    addresses: Addresses,
    far_end: FarEnd,
    nat: Option<nat::Nat>,
    /// The connections of a gateway.
    connections: Option<Arc<connections::ConnectionTable>>,
    surroundings: Surroundings,
    counters: Arc<GatewayCounters>,
}

impl CommandLink {
    /// Makes the namespaces with their loopback devices up, not yet joined.
    pub fn make(
        network: &MachineNetwork,
        inside: &Inside,
    ) -> Result<CommandLink, CommandLinkError> {
        let mut files = Vec::new();
        let gateway = IpAddr::V4(network.addresses.far);
        let replaced = resolver::replace(&network.resolv_conf, gateway)
            .filter(|_| network.far_end != FarEnd::Server);
        if let Some(replaced) = replaced {
            let path = inside.journal().scratch_directory("link")?.join("resolv.conf");
            std::fs::write(&path, replaced.text)
                .map_err(|cause| CommandLinkError::File { path: path.clone(), cause })?;
            // The command's own user must be able to read it; in a user namespace that is another
            // user than ours.
            files.push((path, PathBuf::from(RESOLV_CONF)));
        }
        let addresses = network.addresses;
        let far = addresses.of_far();
        let server = match (&network.machine, network.far_end) {
            (Some(machine), _) => LinkEnd {
                ns: Arc::clone(machine),
                // On the machine it is one device among others, so its name must be free.
                device: format!("fpl{}", network.process),
                addresses: far.into(),
            },
            (None, FarEnd::Server) => LinkEnd::new(NetNs::create("server")?, &far),
            (None, _) => LinkEnd::new(NetNs::create("gateway")?, &far),
        };
        let client = LinkEnd::new(NetNs::create("command")?, &addresses.of_near());
        Ok(CommandLink {
            ends: LinkEnds { server, client },
            addresses,
            far_end: network.far_end,
            nat: None,
            connections: None,
            surroundings: Surroundings {
                identity: network.identity,
                files,
                descriptors: network.descriptors,
            },
            counters: Arc::default(),
        })
    }

    /// Routes everything from the command's end over the link, and onwards from there. The ends
    /// must be joined. `congestion_control` is that of connections which begin at either end,
    /// except at the machine's own; a program may still choose another.
    pub fn set_routes(
        &mut self,
        network: &MachineNetwork,
        congestion_control: Option<&str>,
    ) -> Result<(), CommandLinkError> {
        let metrics =
            RouteMetrics { congctl: congestion_control.map(Into::into), ..RouteMetrics::default() };
        if let Some(name) = congestion_control {
            let set = self.set_peer_routes(&metrics);
            // The kernel has loaded it now, or refused it, or takes another one without a word.
            congestion::check_available(&self.ends.client.ns, name)?;
            set?;
        }
        if self.far_end == FarEnd::Server {
            return Ok(());
        }
        let mut netlink = Netlink::open(&self.ends.client.ns)?;
        let default = |any: IpAddr, gateway: IpAddr| Route {
            destination: Network::new(any, 0),
            gateway: Some(gateway),
            device: DEVICE.into(),
            metrics: metrics.clone(),
        };
        netlink.set_route(&default(Ipv4Addr::UNSPECIFIED.into(), self.addresses.far.into()))?;
        let gateway = (self.addresses.far, self.addresses.far6);
        let resolver = resolver::replace(&network.resolv_conf, gateway.0.into())
            .map(|replaced| replaced.resolver);
        let Some(outside) = &network.outside else {
            let LinkEnd { ns, device, .. } = &self.ends.server;
            let nat = nat::Nat::start(ns, device, &self.addresses, resolver)?;
            if nat.carries_ipv6() && netlink.takes_ipv6(DEVICE)? {
                netlink.set_route(&default(
                    Ipv6Addr::UNSPECIFIED.into(),
                    self.addresses.far6.into(),
                ))?;
            }
            self.nat = Some(nat);
            return Ok(());
        };
        if network.default_route6 && netlink.takes_ipv6(DEVICE)? {
            // If the machine has no IPv6, a program must not try it first.
            netlink
                .set_route(&default(Ipv6Addr::UNSPECIFIED.into(), self.addresses.far6.into()))?;
        }
        let destinations = destinations::Destinations { gateway, resolver };
        let started = gateway::start(&self.ends, outside, destinations, &self.counters);
        self.connections = Some(started.map_err(CommandLinkError::Gateway)?);
        Ok(())
    }

    /// Gives the connections of the two ends with each other these properties.
    fn set_peer_routes(&self, metrics: &RouteMetrics) -> Result<(), CommandLinkError> {
        let Addresses { far, near, far6, near6 } = self.addresses;
        let ends = [(&self.ends.client, far, far6), (&self.ends.server, near, near6)];
        let own = if self.far_end == FarEnd::Machine { 1 } else { 2 };
        for (end, peer, peer6) in ends.into_iter().take(own) {
            let mut netlink = Netlink::open(&end.ns)?;
            let mut networks = vec![Network::new(peer.into(), 32)];
            if netlink.takes_ipv6(&end.device)? {
                networks.push(Network::new(peer6.into(), 128));
            }
            for destination in networks {
                let (device, metrics) = (end.device.clone(), metrics.clone());
                netlink.set_route(&Route { destination, gateway: None, device, metrics })?;
            }
        }
        Ok(())
    }

    /// For use after the command has ended: finds undelivered data.
    pub fn delivery(&self) -> Result<Delivery, CommandLinkError> {
        let far = match (self.far_end, &self.connections) {
            (FarEnd::Server, _) => FarReceiver::Server(SockDiag::open_in(&self.ends.server.ns)?),
            (_, Some(connections)) => FarReceiver::Gateway(
                SockDiag::open_in(&self.ends.server.ns)?,
                Arc::clone(connections),
            ),
            (_, None) => FarReceiver::World,
        };
        Ok(Delivery::new(SockDiag::open_in(&self.ends.client.ns)?, far))
    }

    /// Lets the server end after the command. It waits up to `span` for a server that no longer
    /// listens, because it still works on what it was sent; a server that still listens gets
    /// SIGTERM. Returns whether it has ended.
    pub fn end_server(
        &self,
        server: &mut Program,
        inside: &Inside,
        span: Duration,
    ) -> Result<bool, CommandLinkError> {
        let goes_on = !SockDiag::open_in(&self.ends.server.ns)?.listeners()?.is_empty();
        if goes_on {
            server.ask_to_end();
        }
        let span = if goes_on { span.min(ENDS_WITHIN) } else { span };
        Ok(matches!(server.wait(inside, span)?, ProgramEvent::Ended(_)))
    }

    /// Live counters of what the gateway could not carry; `None` without a gateway.
    pub fn gateway_counters(&self) -> Option<Arc<GatewayCounters>> {
        (self.far_end == FarEnd::Gateway).then(|| Arc::clone(&self.counters))
    }

    /// Starts the far end's command by the shell and waits until it listens.
    pub fn start_server(&self, line: &str) -> Result<Program, CommandLinkError> {
        debug_assert_eq!(self.far_end, FarEnd::Server);
        let line = line.replace(run::PLACEHOLDER, &self.addresses.far.to_string());
        let mut command = Command::new("sh");
        // Standard output belongs to the command.
        command.args(["-c", &line]).stdin(Stdio::null()).stdout(std::io::stderr());
        let mut server =
            self.start_in(&self.ends.server.ns, command, &format!("server `{line}`"))?;
        let mut diag = SockDiag::open_in(&self.ends.server.ns)?;
        let deadline = clock::now() + READY_WITHIN;
        while diag.listeners()?.is_empty() {
            if let Some(status) = server.ended()? {
                return Err(RunError::EndedEarly {
                    program: server.name().into(),
                    status: status.to_string(),
                }
                .into());
            }
            if clock::now() >= deadline {
                return Err(RunError::NotListening {
                    program: server.name().into(),
                    within: READY_WITHIN,
                }
                .into());
            }
            server.wait_a_little(LOOK)?;
        }
        Ok(server)
    }

    /// Starts the command; `{server}` in its arguments becomes the far end's address.
    pub fn start(&self, words: &[OsString]) -> Result<Program, CommandLinkError> {
        let words = expand(words, self.addresses.far.into());
        let Some((program, arguments)) = words.split_first() else {
            return Err(RunError::NoCommand.into());
        };
        let mut command = Command::new(program);
        command.args(arguments);
        self.start_in(&self.ends.client.ns, command, &program.to_string_lossy())
    }

    fn start_in(
        &self,
        ns: &NetNs,
        mut command: Command,
        name: &str,
    ) -> Result<Program, CommandLinkError> {
        command.env("FULLPIPE_SERVER", self.addresses.far.to_string());
        ns.start_in(&mut command)?;
        self.surroundings.apply_to(&mut command)?;
        Ok(Program::start(command, name)?)
    }
}

/// Makes a folder for captures if it does not exist.
pub fn make_folder(path: &Path) -> Result<(), CommandLinkError> {
    std::fs::create_dir_all(path)
        .map_err(|cause| CommandLinkError::File { path: path.into(), cause })
}
