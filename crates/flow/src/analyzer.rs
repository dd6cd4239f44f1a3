//! Packets in, connections out.

use crate::capture::{Layer, LinkType, Opened, Opener, Packet};
use crate::connection::{Connection, Direction, LabelSet, Tracker};
use crate::filter::Filter;
use crate::limit::{CapturePoint, PathHint};
use crate::segment::{Parsed, Segment};
use fullpipe_model::units::{Duration, Instant};
use std::collections::HashMap;
use std::net::SocketAddr;

/// How to analyse.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// Where the capture was taken.
    pub capture_point: CapturePoint,
    /// What is known of the path from elsewhere.
    pub hint: PathHint,
    /// Length of the limits' intervals; by default the round trip, at least 10 ms.
    pub interval: Option<Duration>,
    /// Connections that are kept at most; packets of further ones are counted as [`Analysis::untracked`].
    pub max_connections: usize,
    /// Which IP packet of a tunnelled one is analysed.
    pub layer: Layer,
    /// Which connections; all by default.
    pub filter: Option<Filter>,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            capture_point: CapturePoint::Unknown,
            hint: PathHint::default(),
            interval: None,
            max_connections: 1 << 20,
            layer: Layer::default(),
            filter: None,
        }
    }
}

/// What was found in a capture.
#[derive(Debug, Clone, Default, serde::Serialize)]
pub struct Analysis {
    /// Packets given.
    pub packets: u64,
    /// Of them, not TCP over IP (or behind something that is not entered, as a tunnel).
    pub not_tcp: u64,
    /// Of them, IP fragments before the one that completes their packet, or whose packet was never complete.
    pub fragments: u64,
    /// Of them, cut before the end of the numbers in their TCP header.
    pub cut: u64,
    /// Of them, TCP of connections that [`Config::filter`] leaves out.
    pub filtered: u64,
    /// Of them, TCP of connections beyond [`Config::max_connections`].
    pub untracked: u64,
    /// Connections by first packet.
    pub connections: Vec<Connection>,
}

/// What one packet was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PacketFacts {
    /// [`Connection::id`] of its connection.
    pub connection: u64,
    /// Which way it went, by what is known of the connection so far.
    pub direction: Direction,
    /// Its labels.
    pub labels: LabelSet,
}

/// Analyses a capture as a stream: [`push`](Analyzer::push) each packet in the capture's order, then
/// [`finish`](Analyzer::finish).
#[derive(Debug)]
pub struct Analyzer {
    config: Config,
    opener: Opener,
    open: HashMap<(SocketAddr, SocketAddr), Tracker>,
    next_id: u64,
    analysis: Analysis,
}

impl Analyzer {
    /// An analyzer that has seen nothing.
    pub fn new(config: Config) -> Self {
        let opener = Opener::new(config.layer);
        Analyzer { config, opener, open: HashMap::new(), next_id: 0, analysis: Analysis::default() }
    }

    /// The next packet, as [`crate::capture::Reader`] gives it.
    pub fn push_packet(&mut self, packet: &Packet<'_>) -> Option<PacketFacts> {
        self.push(packet.at, packet.link_type, packet.data, packet.original_length)
    }

    /// The next packet: when it was captured, what it begins with, what was kept of it, and its length on the wire.
    /// Gives what it was, if it belongs to a connection.
    pub fn push(&mut self, at: Instant, link: LinkType, data: &[u8], original_length: usize) -> Option<PacketFacts> {
        self.analysis.packets += 1;
        let ip = match self.opener.open(link, data) {
            Opened::Ip(ip) => ip,
            Opened::Fragment => {
                self.analysis.fragments += 1;
                return None;
            }
            Opened::Other => {
                self.analysis.not_tcp += 1;
                return None;
            }
        };
        // A packet put together from fragments may be longer than the last of them.
        let behind_link = original_length.saturating_sub(data.len().saturating_sub(ip.len()));
        match Segment::from_ip(ip, behind_link) {
            Parsed::Tcp(segment) => self.push_segment(at, &segment, original_length),
            Parsed::Fragment => {
                self.analysis.fragments += 1;
                None
            }
            Parsed::Cut => {
                self.analysis.cut += 1;
                None
            }
            Parsed::Other => {
                self.analysis.not_tcp += 1;
                None
            }
        }
    }

    /// Ends the capture.
    pub fn finish(mut self) -> Analysis {
        let config = &self.config;
        let open = self.open.into_values().map(|tracker| tracker.finish(config));
        self.analysis.connections.extend(open);
        self.analysis.connections.sort_by_key(|connection| connection.id);
        self.analysis
    }

    fn push_segment(&mut self, at: Instant, segment: &Segment, wire: usize) -> Option<PacketFacts> {
        if self.config.filter.as_ref().is_some_and(|filter| !filter.matches(segment.source, segment.destination)) {
            self.analysis.filtered += 1;
            return None;
        }
        let key = (segment.source.min(segment.destination), segment.source.max(segment.destination));
        let mut reused = false;
        if self.open.get(&key).is_some_and(|tracker| tracker.is_reused_by(segment)) {
            reused = true;
            let tracker = self.open.remove(&key)?;
            self.analysis.connections.push(tracker.finish(&self.config));
        }
        if !self.open.contains_key(&key) {
            if self.open.len() + self.analysis.connections.len() >= self.config.max_connections {
                self.analysis.untracked += 1;
                return None;
            }
            self.open.insert(key, Tracker::new(self.next_id, at, segment));
            self.next_id += 1;
        }
        let tracker = self.open.get_mut(&key)?;
        let (labels, by_client) = tracker.push(&self.config, at, segment, wire, reused);
        let direction = if by_client { Direction::ClientToServer } else { Direction::ServerToClient };
        Some(PacketFacts { connection: tracker.id(), direction, labels })
    }
}
