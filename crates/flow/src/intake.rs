//! The half of an analysis that needs no knowledge of connections: reads each packet's link
//! headers, tunnels and TCP header, and counts what is not TCP.
//!
//! [`crate::Analyzer`] has an intake of its own. With several threads, one at a time drives an
//! intake. It passes each result to the analyzer that its `shard` names, and each tick to all
//! analyzers, in the capture's order: first [`Intake::tick`], then [`Intake::sort`], which leaves
//! plain headers to the analyzer's thread. So every packet is framed and read once, and the result
//! is the same as with one thread.

use crate::capture::segment::{FlowKey, Parsed, Segment};
use crate::capture::{LinkType, Opened, Opener, Packet, half, word};
use crate::config::{Config, Counts};
use crate::connection::Labels;
use crate::connection::filter::Filter;
use fullpipe_model::units::{Duration, Instant};

/// A TCP segment with its place in the capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// When it was captured.
    pub at: Instant,
    /// Number of its packet, from 1.
    pub number: u64,
    /// Bytes of the packet on the wire, link header included.
    pub wire: usize,
    /// The segment.
    pub segment: Segment,
}

impl Arrival {
    /// The number of the analyzer, out of `count`, that its connection belongs to; the same for
    /// both directions.
    pub fn shard(&self, count: usize) -> usize {
        FlowKey::of(&self.segment).0.shard(count)
    }
}

/// The headers of a packet whose connection is known and whose TCP header is whole;
/// [`Headers::read`] reads them.
///
/// It is compact, because one thread passes it to another: some 80 bytes a packet with
/// [`Headers::bytes`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Headers {
    at: Instant,
    number: u64,
    wire: u32,
    /// Length of the link's header, and of the captured part of the IP and TCP headers.
    link: u8,
    kept: u8,
}

/// The longest headers of a packet that is [`Sorted::Headers`]: IPv4 without options, TCP with all
/// that it can have.
const MOST_HEADERS: usize = 20 + 60;

impl Headers {
    /// How many bytes of headers belong to it.
    pub fn bytes(&self) -> usize {
        self.kept.into()
    }

    /// The segment, from the bytes that came with it; `None` if they are others.
    #[inline]
    pub fn read(&self, bytes: &[u8]) -> Option<Arrival> {
        let wire = self.wire as usize;
        let segment = Segment::from_plain_ipv4(bytes, wire.saturating_sub(self.link.into()))?;
        Some(Arrival { at: self.at, number: self.number, wire, segment })
    }
}

/// What [`Intake::sort`] makes of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sorted<'a> {
    /// Its connection's analyzer is to read it: the headers with their bytes, and the connection.
    Headers(Headers, &'a [u8], FlowKey),
    /// It is read already, because that was necessary to find its connection.
    Segment(Arrival),
}

impl Sorted<'_> {
    /// The number of the analyzer, out of `count`, that its connection belongs to; the same for
    /// both directions.
    pub fn shard(&self, count: usize) -> usize {
        match self {
            Sorted::Headers(_, _, key) => key.shard(count),
            Sorted::Segment(arrival) => arrival.shard(count),
        }
    }
}

/// From packets to TCP segments.
#[derive(Debug)]
pub struct Intake {
    opener: Opener,
    labels: Labels,
    filter: Option<Filter>,
    clock: PacketClock,
    counts: Counts,
}

impl Intake {
    /// An intake that has seen nothing.
    pub fn new(config: &Config) -> Self {
        Intake {
            opener: Opener::new(config.layer),
            labels: config.labels,
            filter: config.filter.clone(),
            clock: PacketClock::default(),
            counts: Counts::default(),
        }
    }

    /// Moves the capture's clock to the next packet. If this returns a time, call
    /// [`retire`](crate::Analyzer::retire) before that packet.
    pub fn tick(&mut self, at: Instant) -> Option<Instant> {
        self.clock.tick(at)
    }

    /// The time of the packet before.
    pub fn now(&self) -> Instant {
        self.clock.before
    }

    /// Reads the next packet only as far as necessary to know its connection, if it is TCP and
    /// passes [`Config::filter`]. [`Headers::read`] completes that to what [`open`](Intake::open)
    /// returns.
    #[inline]
    pub fn sort<'a>(&mut self, packet: &Packet<'a>) -> Option<Sorted<'a>> {
        let plain = if self.filter.is_none() { plain_headers(packet) } else { None };
        let Some((link, bytes, key)) = plain else {
            return self.open(packet).map(Sorted::Segment);
        };
        self.counts.packets += 1;
        let wire = u32::try_from(packet.original_length).unwrap_or(u32::MAX);
        let headers = Headers {
            at: packet.at,
            number: self.counts.packets,
            wire,
            link,
            kept: bytes.len() as u8,
        };
        Some(Sorted::Headers(headers, bytes, key))
    }

    /// The TCP segment of the next packet, if it contains one that passes [`Config::filter`].
    pub fn open(&mut self, packet: &Packet<'_>) -> Option<Arrival> {
        let Packet { at, link_type, data, original_length: wire } = *packet;
        self.counts.packets += 1;
        let number = self.counts.packets;
        if self.filter.is_none()
            && let Some((before, ip)) = plain_tcp(link_type, data)
            && let Some(segment) = Segment::from_plain_ipv4(ip, wire.saturating_sub(before.into()))
        {
            return Some(Arrival { at, number, wire, segment });
        }
        let segment = match self.parse(link_type, data, wire) {
            Parsed::Tcp(segment) => segment,
            other => {
                let count = match other {
                    Parsed::Fragment => &mut self.counts.fragments,
                    Parsed::Cut => &mut self.counts.cut,
                    _ => &mut self.counts.not_tcp,
                };
                *count += 1;
                return None;
            }
        };
        if self
            .filter
            .as_ref()
            .is_some_and(|filter| !filter.matches(segment.source, segment.destination))
        {
            self.counts.filtered += 1;
            return None;
        }
        Some(Arrival { at, number, wire, segment })
    }

    /// What was counted.
    pub fn finish(self) -> Counts {
        self.counts
    }

    fn parse(&mut self, link: LinkType, data: &[u8], wire: usize) -> Parsed {
        if let Some((_, ip)) = plain_tcp(link, data) {
            return Segment::from_ip(ip, wire.saturating_sub(data.len() - ip.len()));
        }
        self.parse_any(link, data, wire)
    }

    #[cold]
    fn parse_any(&mut self, link: LinkType, data: &[u8], wire: usize) -> Parsed {
        match self.opener.open(link, data) {
            Opened::Ip(ip) => {
                let fcs = if self.labels == Labels::Wireshark {
                    trailer_by_wireshark(link, data)
                } else {
                    0
                };
                Segment::from_ip(ip, length_behind_link(data, ip, wire).saturating_sub(fcs))
            }
            Opened::Fragment => Parsed::Fragment,
            Opened::Other => Parsed::Other,
        }
    }
}

/// When to look for connections that are finished. The capture's time decides, not their own
/// packets, so it does not matter which connections an analyzer has.
#[derive(Debug)]
struct PacketClock {
    /// The time of the packet before.
    before: Instant,
    ticked: Instant,
}

impl Default for PacketClock {
    fn default() -> Self {
        PacketClock { before: Instant::ZERO, ticked: Instant::ZERO }
    }
}

/// Captured time between two ticks: short compared with every timeout, long compared with a packet.
const TICK: Duration = Duration::from_millis(10);

impl PacketClock {
    fn tick(&mut self, at: Instant) -> Option<Instant> {
        // A clock that jumps for a single packet must not end anything.
        let now = at.min(std::mem::replace(&mut self.before, at));
        let has_moved = now.since(self.ticked) >= TICK || self.ticked.since(now) >= TICK;
        has_moved.then(|| {
            self.ticked = now;
            now
        })
    }
}

/// Bytes at a frame's end that Wireshark takes for a checksum: always after FabricPath's tag, even
/// if there is none. A packet without options or data then ends inside its TCP header.
fn trailer_by_wireshark(link: LinkType, data: &[u8]) -> usize {
    let is_fabric_path = link == LinkType::ETHERNET && data.get(12..14) == Some(&[0x89, 0x03]);
    if is_fabric_path { 4 } else { 0 }
}

/// The IP packet behind a plain Ethernet header or none, if it is TCP over IPv4 without options, in
/// one piece: nearly every packet is, and needs no opener. The first value is the length of the
/// link's header.
#[inline]
fn plain_tcp(link: LinkType, data: &[u8]) -> Option<(u8, &[u8])> {
    const TCP: u8 = 6;
    let (before, ip) = match link {
        LinkType::ETHERNET => {
            let (ethernet, ip) = data.split_first_chunk::<14>()?;
            (ethernet[12..] == [8, 0]).then_some((14, ip))?
        }
        LinkType::RAW => (0, data),
        _ => return None,
    };
    let header = ip.first_chunk::<20>()?;
    let fragmented = u16::from_be_bytes([header[6], header[7]]) & 0x3fff != 0;
    (header[0] == 0x45 && header[9] == TCP && !fragmented).then_some((before, ip))
}

/// The headers of a packet that is plain and complete up to the numbers in its TCP header, with the
/// length of the link's header before them, and the connection that they name.
#[inline]
fn plain_headers<'a>(packet: &Packet<'a>) -> Option<(u8, &'a [u8], FlowKey)> {
    let (before, ip) = plain_tcp(packet.link_type, packet.data)?;
    let header = ip.first_chunk::<36>()?;
    let total = usize::from(half(header, 2)?);
    let is_whole =
        total >= header.len() && packet.original_length >= usize::from(before) + header.len();
    let source = (word(header, 12)?, half(header, 20)?);
    let destination = (word(header, 16)?, half(header, 22)?);
    let (key, _) = FlowKey::of_ipv4(source, destination);
    is_whole.then(|| (before, &ip[..ip.len().min(MOST_HEADERS)], key))
}

/// What the IP packet `ip`, found in `data`, had on the wire, if `data` was of `original_length`.
pub fn length_behind_link(data: &[u8], ip: &[u8], original_length: usize) -> usize {
    if data.as_ptr_range().contains(&ip.as_ptr()) {
        original_length.saturating_sub(data.len().saturating_sub(ip.len()))
    } else {
        // Put together from fragments, of which `data` is only the last.
        ip.len()
    }
}

#[cfg(test)]
mod tests;
