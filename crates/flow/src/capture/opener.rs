//! From a captured packet to the IP packet that carries the transport: removes link headers and
//! tunnels, and puts fragments together.
//!
//! Tunnels are entered by default, as tshark does: 6in4 and IP in IP, GRE with Ethernet or ERSPAN
//! inside, VXLAN, Geneve, GTP-U, MPLS over UDP or IP. An IP header that an ICMP error quotes is not
//! entered: it belongs to a packet that was sent earlier, not to one that passed here.

use super::LinkType;
use super::fragments::Fragments;
use super::layer::{Inside, ip_in};
use super::link::inside_link;
use super::tunnel::{Fragment, Ip};

/// Which IP packet of a tunnelled packet is analysed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Layer {
    /// The innermost: tunnels are entered.
    #[default]
    Inner,
    /// The first: what a tunnel carries is its payload.
    Outer,
}

/// What a captured packet contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opened<'a> {
    /// An IP packet, whole.
    Ip(&'a [u8]),
    /// A fragment of an IP packet; others are still missing.
    Fragment,
    /// No IP packet.
    Other,
}

/// The deepest nesting of IP packets in IP packets that is entered.
pub(super) const MAX_TUNNELS: usize = 8;

/// Opens packets, one after another in the capture's order.
///
/// Memory is bounded whatever the packets are: at most 256 incomplete packets of 64 KiB wait for
/// their fragments.
#[derive(Debug, Default)]
pub struct Opener {
    layer: Layer,
    fragments: Fragments,
    /// The last packet that was put together.
    whole: Vec<u8>,
}

enum FoundFormat<'a> {
    Ip(&'a [u8]),
    Fragment(Fragment<'a>),
    Other,
}

impl Opener {
    /// An opener that has seen no fragments.
    pub fn new(layer: Layer) -> Self {
        Opener { layer, ..Opener::default() }
    }

    /// The IP packet in the bytes of a captured packet. If that is the last missing fragment, it is
    /// the packet put together.
    pub fn open<'a>(&'a mut self, link: LinkType, data: &'a [u8]) -> Opened<'a> {
        match inside_link(link, data).map_or(FoundFormat::Other, |inside| walk(inside, self.layer))
        {
            FoundFormat::Ip(ip) => Opened::Ip(ip),
            FoundFormat::Other => Opened::Other,
            FoundFormat::Fragment(fragment) => match self.fragments.add(&fragment) {
                Some(whole) => self.open_whole(whole),
                None => Opened::Fragment,
            },
        }
    }

    fn open_whole(&mut self, mut whole: Vec<u8>) -> Opened<'_> {
        for _ in 0..MAX_TUNNELS {
            let start = match walk(Inside::Ip(&whole), self.layer) {
                FoundFormat::Ip(ip) => ip.as_ptr() as usize - whole.as_ptr() as usize,
                FoundFormat::Other => return Opened::Other,
                FoundFormat::Fragment(fragment) => match self.fragments.add(&fragment) {
                    Some(inner) => {
                        whole = inner;
                        continue;
                    }
                    None => return Opened::Fragment,
                },
            };
            self.whole = whole;
            return Opened::Ip(&self.whole[start..]);
        }
        Opened::Other
    }
}

/// Goes from one IP packet to the next inside it, as deep as `layer` requires.
fn walk(mut inside: Inside<'_>, layer: Layer) -> FoundFormat<'_> {
    for _ in 0..MAX_TUNNELS {
        let Some(ip) = ip_in(inside) else { return FoundFormat::Other };
        // What cannot be read here cannot be entered; the code that reads segments decides whether
        // it is TCP.
        let Some(headers) = Ip::parse(ip) else { return FoundFormat::Ip(ip) };
        if let Some(fragment) = headers.fragment {
            return FoundFormat::Fragment(fragment);
        }
        match headers.inside().filter(|_| layer == Layer::Inner) {
            Some(next) => inside = next,
            None => return FoundFormat::Ip(ip),
        }
    }
    FoundFormat::Other
}

#[cfg(test)]
mod tests;
