//! The two ends of a link: network namespaces, each with a device that leads to the link.
//!
//! Order of calls: [`LinkEnds::join`] makes both devices and what is between them. It carries
//! nothing until [`Carrier::start`](crate::Carrier::start) starts a link there, so routes and
//! further settings can be made first.

use crate::error::CarrierError;
use crate::netem::{NetemLinkError, gso_max_segs, lacks};
use fullpipe_kernel::network::netlink::Network;
use fullpipe_kernel::network::netns::NetNs;
use fullpipe_kernel::network::port::{PortConfig, PortPair};
use fullpipe_kernel::network::wire::Wire;
use fullpipe_model::scenario::{LinkEngine, Path};
use std::sync::Arc;

/// The usual name of the device at either end.
pub const DEVICE: &str = "wan0";

/// One end of a link.
#[derive(Debug, Clone)]
pub struct LinkEnd {
    /// The namespace.
    pub ns: Arc<NetNs>,
    /// The device in it that leads to the link, at most 15 bytes.
    pub device: String,
    /// The device's addresses, each of which adds a route to its network.
    pub addresses: Vec<Network>,
}

impl LinkEnd {
    /// An end with the usual device.
    pub fn new(ns: NetNs, addresses: &[Network]) -> LinkEnd {
        LinkEnd { ns: Arc::new(ns), device: DEVICE.into(), addresses: addresses.into() }
    }

    fn config(&self) -> PortConfig<'_> {
        PortConfig { ns: &self.ns, device: &self.device, addresses: &self.addresses }
    }
}

/// Both ends of a link.
#[derive(Debug, Clone)]
pub struct LinkEnds {
    /// The end that data comes from: a server, a gateway, or this machine.
    pub server: LinkEnd,
    /// The end that data goes to: a client, or the command behind the link.
    pub client: LinkEnd,
}

/// What joins both ends of a link. It ends with this value.
#[derive(Debug)]
pub enum Junction {
    /// Ports for our own link: `a` is the server's, `b` the client's.
    Ports(Arc<PortPair>),
    /// A wire for netem: `A` is the server's side, `B` the client's.
    Wire {
        /// The wire.
        wire: Wire,
        /// The most MTU segments of a super-packet on it.
        segments: u32,
    },
}

impl LinkEnds {
    /// Makes both devices, with the MTU of `path`, and what `engine` needs between them.
    ///
    /// # Errors
    /// The kernel has no devices for it, or `engine` cannot emulate `path`.
    pub fn join(&self, engine: LinkEngine, path: &Path) -> Result<Junction, CarrierError> {
        let (server, client) = (self.server.config(), self.client.config());
        match engine {
            LinkEngine::Own => {
                Ok(Junction::Ports(Arc::new(PortPair::create(&server, &client, path.mtu)?)))
            }
            LinkEngine::Netem => {
                if let Some(word) = lacks(path) {
                    return Err(NetemLinkError::Foreign(word).into());
                }
                let segments = gso_max_segs(path);
                let wire = Wire::create(&server, &client, path.mtu, segments);
                Ok(Junction::Wire { wire: wire.map_err(NetemLinkError::from)?, segments })
            }
        }
    }
}
