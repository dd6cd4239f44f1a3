//! A command behind a link: `fullpipe link .. -- CMD`.
//!
//! Two network namespaces with the link between them. In the near one runs the command. The far one
//! is one of three things, all with the address that `{server}` stands for:
//! * a **server**: another command, started first and waited for until it listens. Nothing else is
//!   reachable;
//! * a **gateway** to everything that the machine reaches, and to its loopback ([`gateway`]);
//! * the **machine** itself, as a router ([`nat`]).
//!
//! Order: [`Before::look`] outside, before anything is forked (what the machine's network is like,
//! a process left there); then, inside [`fullpipe_kernel::sandbox`], [`Place::make`], the link
//! itself (whoever calls decides by which engine), [`Place::start_server`], [`Place::start`], and
//! [`Program::wait`] until it ends. The sandbox's end ends the rest.

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
pub use delivery::{Delivery, Owed};
pub use nat::NatError;
pub use run::{Program, ProgramEvent, RunError};

use run::expand;

use delivery::Far;
use fullpipe_kernel::descriptors::DescriptorLimit;
use fullpipe_kernel::journal::JournalError;
use fullpipe_kernel::netlink::{Netlink, Network, Route, RouteMetrics};
use fullpipe_kernel::netns::NetNs;
use fullpipe_kernel::outside::Outside;
use fullpipe_kernel::port::{PortConfig, PortError, PortPair};
use fullpipe_kernel::program::{Identity, Surroundings};
use fullpipe_kernel::sandbox::Inside;
use fullpipe_kernel::sock_diag::SockDiag;
use fullpipe_kernel::wire::Wire;
use fullpipe_kernel::{Refused, clock};
use fullpipe_model::units::{Bytes, Duration};
use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

/// The device at either end.
const DEVICE: &str = "wan0";
/// How long a server may take until it listens.
const READY_WITHIN: Duration = Duration::from_secs(20);
/// How often it is looked whether it does.
const LOOK: Duration = Duration::from_millis(2);
/// How long a server may take to end when it is asked to.
const ENDS_WITHIN: Duration = Duration::from_secs(2);
const RESOLV_CONF: &str = "/etc/resolv.conf";

/// What is at the far end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FarEnd {
    /// A namespace in which the other command runs, and nothing else.
    Server,
    /// The way to all that the machine reaches, for connections and datagrams: `gateway`.
    Gateway,
    /// The machine itself, which routes packets on: `nat`.
    Machine,
}

/// Why a command could not be put behind a link.
#[derive(Debug, thiserror::Error)]
pub enum CommandLinkError {
    /// The devices.
    #[error(transparent)]
    Ports(#[from] PortError),
    /// A request to the kernel.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// The gateway.
    #[error("{0}; or start the other end too (--server), which needs no gateway")]
    Gateway(Refused),
    /// The machine as a router.
    #[error(transparent)]
    Nat(#[from] NatError),
    /// A file that the command is shown.
    #[error("write {path}: {cause}; free some space", path = path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// The kernel's answer.
        cause: std::io::Error,
    },
    /// The scratch folder.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A program.
    #[error(transparent)]
    Run(#[from] RunError),
}

/// What must be known before the run leaves the machine's network.
#[derive(Debug)]
pub struct Before {
    far_end: FarEnd,
    addresses: Addresses,
    default_route6: bool,
    identity: Identity,
    descriptors: DescriptorLimit,
    process: u32,
    resolv_conf: String,
    outside: Option<Arc<Outside>>,
    /// Where [`FarEnd::Machine`] is.
    machine: Option<Arc<NetNs>>,
}

impl Before {
    /// Looks around, and for a gateway leaves a process behind. From `main`, before any thread,
    /// before the sandbox.
    pub fn look(far_end: FarEnd) -> Result<Before, Refused> {
        let text = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let taken = addresses::parse_routes(&text("/proc/net/route"));
        Ok(Before {
            far_end,
            addresses: Addresses::beside(&taken),
            default_route6: addresses::has_default_route6(&text("/proc/net/ipv6_route")),
            identity: Identity::own(),
            descriptors: DescriptorLimit::own(),
            process: std::process::id(),
            resolv_conf: text(RESOLV_CONF),
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

impl Before {
    /// Fails where the way out has ended: behind it every connection would fail, and nobody be told
    /// why.
    pub fn check(&self) -> Result<(), CommandLinkError> {
        self.outside.as_ref().map_or(Ok(()), |outside| Ok(outside.check()?))
    }
}

/// Two namespaces that can be joined by a link.
#[derive(Debug)]
pub struct Place {
    /// Where the server or the gateway is.
    pub far: Arc<NetNs>,
    /// Where the command runs.
    pub near: NetNs,
    /// Their addresses.
    pub addresses: Addresses,
    far_end: FarEnd,
    /// The far end's device.
    device: String,
    nat: Option<nat::Nat>,
    /// Those of a gateway.
    connections: Option<Arc<connections::Connections>>,
    surroundings: Surroundings,
    counters: Arc<GatewayCounters>,
}

impl Place {
    /// Makes the namespaces, their loopback devices up and nothing between them.
    pub fn make(before: &Before, inside: &Inside) -> Result<Place, CommandLinkError> {
        let mut files = Vec::new();
        let gateway = IpAddr::V4(before.addresses.far);
        let replaced = resolver::replace(&before.resolv_conf, gateway)
            .filter(|_| before.far_end != FarEnd::Server);
        if let Some(replaced) = replaced {
            let path = inside.journal().scratch_directory("link")?.join("resolv.conf");
            std::fs::write(&path, replaced.text)
                .map_err(|cause| CommandLinkError::File { path: path.clone(), cause })?;
            // Read by the command's own user, which in a user namespace is another than ours.
            files.push((path, PathBuf::from(RESOLV_CONF)));
        }
        Ok(Place {
            far: match (&before.machine, before.far_end) {
                (Some(machine), _) => Arc::clone(machine),
                (None, FarEnd::Server) => Arc::new(NetNs::create("server")?),
                (None, _) => Arc::new(NetNs::create("gateway")?),
            },
            near: NetNs::create("command")?,
            addresses: before.addresses,
            far_end: before.far_end,
            // On the machine it is one among others, and its name must be free.
            device: before
                .machine
                .as_ref()
                .map_or(DEVICE.into(), |_| format!("fpl{}", before.process)),
            nat: None,
            connections: None,
            surroundings: Surroundings {
                identity: before.identity,
                files,
                descriptors: before.descriptors,
            },
            counters: Arc::default(),
        })
    }

    /// Gives both ends a port of the link: `a` the far one's, `b` the command's.
    pub fn ports(&self, mtu: Bytes) -> Result<Arc<PortPair>, PortError> {
        let (far, near) = (self.addresses.of_far(), self.addresses.of_near());
        let far = PortConfig { ns: &self.far, device: &self.device, addresses: &far };
        let near = PortConfig { ns: &self.near, device: DEVICE, addresses: &near };
        PortPair::create(&far, &near, mtu).map(Arc::new)
    }

    /// The same where the kernel's netem is to stand between them.
    pub fn wire(&self, mtu: Bytes, gso_max_segs: u32) -> Result<Wire, Refused> {
        let (far, near) = (self.addresses.of_far(), self.addresses.of_near());
        let far = PortConfig { ns: &self.far, device: &self.device, addresses: &far };
        let near = PortConfig { ns: &self.near, device: DEVICE, addresses: &near };
        Wire::create(&far, &near, mtu, gso_max_segs)
    }

    /// Leads everything from the command's end over the link, and on from there. The ports must be
    /// there.
    pub fn open_ways(&mut self, before: &Before) -> Result<(), CommandLinkError> {
        if self.far_end == FarEnd::Server {
            return Ok(());
        }
        let mut netlink = Netlink::open(&self.near)?;
        let default = |any: IpAddr, gateway: IpAddr| Route {
            destination: Network::new(any, 0),
            gateway: Some(gateway),
            device: DEVICE.into(),
            metrics: RouteMetrics::default(),
        };
        netlink.set_route(&default(Ipv4Addr::UNSPECIFIED.into(), self.addresses.far.into()))?;
        let gateway = (self.addresses.far, self.addresses.far6);
        let resolver = resolver::replace(&before.resolv_conf, gateway.0.into())
            .map(|replaced| replaced.resolver);
        let Some(outside) = &before.outside else {
            let nat = nat::Nat::start(&self.far, &self.device, &self.addresses, resolver)?;
            if nat.carries_ipv6() && netlink.takes_ipv6(DEVICE)? {
                netlink.set_route(&default(
                    Ipv6Addr::UNSPECIFIED.into(),
                    self.addresses.far6.into(),
                ))?;
            }
            self.nat = Some(nat);
            return Ok(());
        };
        if before.default_route6 && netlink.takes_ipv6(DEVICE)? {
            // Where the machine has none, a program must not be led to try IPv6 first.
            netlink
                .set_route(&default(Ipv6Addr::UNSPECIFIED.into(), self.addresses.far6.into()))?;
        }
        let destinations = destinations::Destinations { gateway, resolver };
        let started =
            gateway::start(&self.far, DEVICE, &self.near, outside, destinations, &self.counters);
        self.connections = Some(started.map_err(CommandLinkError::Gateway)?);
        Ok(())
    }

    /// Looks, once the command has ended, for what it is still owed.
    pub fn delivery(&self) -> Result<Delivery, CommandLinkError> {
        let far = match (self.far_end, &self.connections) {
            (FarEnd::Server, _) => Far::Server(SockDiag::open_in(&self.far)?),
            (_, Some(connections)) => {
                Far::Gateway(SockDiag::open_in(&self.far)?, Arc::clone(connections))
            }
            (_, None) => Far::World,
        };
        Ok(Delivery::new(SockDiag::open_in(&self.near)?, far))
    }

    /// Lets the server end once the command has: one that listens no more is waited for, for
    /// `span`, as it works on what it was sent; one that goes on is asked to end (SIGTERM). Whether
    /// it has ended.
    pub fn end_server(
        &self,
        server: &mut Program,
        inside: &Inside,
        span: Duration,
    ) -> Result<bool, CommandLinkError> {
        let goes_on = !SockDiag::open_in(&self.far)?.listeners()?.is_empty();
        if goes_on {
            server.ask_to_end();
        }
        let span = if goes_on { span.min(ENDS_WITHIN) } else { span };
        Ok(matches!(server.wait(inside, span)?, ProgramEvent::Ended(_)))
    }

    /// What the gateway could not carry, as it is counted; `None` where there is no gateway.
    pub fn gateway_counters(&self) -> Option<Arc<GatewayCounters>> {
        (self.far_end == FarEnd::Gateway).then(|| Arc::clone(&self.counters))
    }

    /// Starts the other end's command by the shell and waits until it listens.
    pub fn start_server(&self, line: &str) -> Result<Program, CommandLinkError> {
        debug_assert_eq!(self.far_end, FarEnd::Server);
        let line = line.replace(run::PLACEHOLDER, &self.addresses.far.to_string());
        let mut command = Command::new("sh");
        // Standard output is the command's.
        command.args(["-c", &line]).stdin(Stdio::null()).stdout(std::io::stderr());
        let mut server = self.start_in(&self.far, command, &format!("server `{line}`"))?;
        let mut diag = SockDiag::open_in(&self.far)?;
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

    /// Starts the command; `{server}` in its words is the far end's address.
    pub fn start(&self, words: &[OsString]) -> Result<Program, CommandLinkError> {
        let words = expand(words, self.addresses.far.into());
        let Some((program, arguments)) = words.split_first() else {
            return Err(RunError::NoCommand.into());
        };
        let mut command = Command::new(program);
        command.args(arguments);
        self.start_in(&self.near, command, &program.to_string_lossy())
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

/// Makes a folder for captures where there is none.
pub fn make_folder(path: &Path) -> Result<(), CommandLinkError> {
    std::fs::create_dir_all(path)
        .map_err(|cause| CommandLinkError::File { path: path.into(), cause })
}
