//! The half of an analysis that no connection has a part in: each packet's link headers, tunnels and TCP header are read,
//! and what is not TCP is counted.
//!
//! [`crate::Analyzer`] has an intake of its own. To use several threads, one thread drives an intake and gives each
//! [`Arrival`] to the analyzer that [`Arrival::shard`] names, and each tick to all of them, in the capture's order: first
//! [`Intake::tick`], then [`Intake::open`]. So every packet is framed and read once, and the answer is that of one thread.

use crate::analyzer::{Config, Counts, length_behind_link};
use crate::capture::{LinkType, Opened, Opener, Packet};
use crate::connection::Labels;
use crate::filter::Filter;
use crate::segment::{FlowKey, Parsed, Segment};
use fullpipe_model::units::{Duration, Instant};

/// A TCP segment with its place in the capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// When it was captured.
    pub at: Instant,
    /// Of which packet, from 1.
    pub number: u64,
    /// Bytes of the packet on the wire, link header included.
    pub wire: usize,
    /// The segment.
    pub segment: Segment,
}

impl Arrival {
    /// Which of `count` analyzers its connection belongs to; the same for both directions.
    pub fn shard(&self, count: usize) -> usize {
        FlowKey::of(&self.segment).0.shard(count)
    }
}

/// Packets in, TCP segments out.
#[derive(Debug)]
pub struct Intake {
    opener: Opener,
    labels: Labels,
    filter: Option<Filter>,
    clock: Clock,
    counts: Counts,
}

impl Intake {
    /// An intake that has seen nothing.
    pub fn new(config: &Config) -> Self {
        Intake {
            opener: Opener::new(config.layer),
            labels: config.labels,
            filter: config.filter.clone(),
            clock: Clock::default(),
            counts: Counts::default(),
        }
    }

    /// The capture's clock moved on to that of the next packet: where it gives a time,
    /// [`retire`](crate::Analyzer::retire) comes before that packet.
    pub fn tick(&mut self, at: Instant) -> Option<Instant> {
        self.clock.tick(at)
    }

    /// The TCP segment of the next packet, if there is one in it that [`Config::filter`] lets through.
    pub fn open(&mut self, packet: &Packet<'_>) -> Option<Arrival> {
        let Packet { at, link_type, data, original_length: wire } = *packet;
        self.counts.packets += 1;
        let number = self.counts.packets;
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
        if self.filter.as_ref().is_some_and(|filter| !filter.matches(segment.source, segment.destination)) {
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
        if let Some(ip) = plain_tcp(link, data) {
            return Segment::from_ip(ip, wire.saturating_sub(data.len() - ip.len()));
        }
        match self.opener.open(link, data) {
            Opened::Ip(ip) => {
                let fcs = if self.labels == Labels::Wireshark { trailer_by_wireshark(link, data) } else { 0 };
                Segment::from_ip(ip, length_behind_link(data, ip, wire).saturating_sub(fcs))
            }
            Opened::Fragment => Parsed::Fragment,
            Opened::Other => Parsed::Other,
        }
    }
}

/// When connections are looked through for those to finish: by the capture's time and not by their own packets, so that
/// it does not matter which of them an analyzer has.
#[derive(Debug)]
struct Clock {
    /// The time of the packet before.
    before: Instant,
    ticked: Instant,
}

impl Default for Clock {
    fn default() -> Self {
        Clock { before: Instant::ZERO, ticked: Instant::ZERO }
    }
}

/// Captured time between two ticks: short beside every timeout, long beside a packet.
const TICK: Duration = Duration::from_millis(10);

impl Clock {
    fn tick(&mut self, at: Instant) -> Option<Instant> {
        // A clock that steps for a single packet ends nothing.
        let now = at.min(std::mem::replace(&mut self.before, at));
        let has_moved = now.since(self.ticked) >= TICK || self.ticked.since(now) >= TICK;
        has_moved.then(|| {
            self.ticked = now;
            now
        })
    }
}

/// Bytes at a frame's end that Wireshark takes for a checksum: after FabricPath's tag always, also where there is none. A
/// packet without options or data then ends inside its TCP header.
fn trailer_by_wireshark(link: LinkType, data: &[u8]) -> usize {
    let is_fabric_path = link == LinkType::ETHERNET && data.get(12..14) == Some(&[0x89, 0x03]);
    if is_fabric_path { 4 } else { 0 }
}

/// The IP packet behind a plain Ethernet header, if it is whole TCP over IPv4 without options: nearly every packet is, and
/// needs no opener.
fn plain_tcp(link: LinkType, data: &[u8]) -> Option<&[u8]> {
    const TCP: u8 = 6;
    let (ethernet, ip) = data.split_first_chunk::<14>()?;
    let header = ip.first_chunk::<20>()?;
    let fragmented = u16::from_be_bytes([header[6], header[7]]) & 0x3fff != 0;
    let plain = link == LinkType::ETHERNET && ethernet[12..] == [8, 0] && header[0] == 0x45 && header[9] == TCP;
    (plain && !fragmented).then_some(ip)
}
