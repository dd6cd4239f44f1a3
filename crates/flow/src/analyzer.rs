//! Packets in, connections out.
//!
//! Memory follows the connections that are open, not the packets: a connection is finished when it
//! has been closed for [`Config::linger`], silent for [`Config::idle_timeout`], replaced by another
//! on its ports, or when [`Config::max_open`] forces out those silent for longest. What is finished
//! waits in the analyzer until [`Analyzer::drain`] takes it, or [`Analyzer::finish`].
//!
//! To use several threads, let one at a time drive an [`Intake`], and each an analyzer of its part
//! of the connections, as `fullpipe-analyze` does. The result is that of one analyzer, as long as
//! none of the limits above is met: each analyzer has them for itself.

use crate::capture::{Layer, LinkType, Packet};
use crate::connection::{Connection, Difference, Direction, LabelSet, Labels, Seen, Tracker};
use crate::filter::Filter;
use crate::intake::{Arrival, Intake};
use crate::limit::{CapturePoint, PathHint};
use crate::segment::{FlowKey, Segment};
use fullpipe_model::units::{Duration, Instant};
use std::collections::{HashMap, VecDeque};

/// How to analyse.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// Where the capture was taken.
    pub capture_point: CapturePoint,
    /// What is known of the path from elsewhere.
    pub hint: PathHint,
    /// Length of the limits' intervals; by default the round trip, at least 10 ms.
    pub interval: Option<Duration>,
    /// Connections that are kept at most, finished ones that were not drained included; packets of
    /// further ones are counted as [`Counts::untracked`].
    pub max_connections: usize,
    /// Connections that are open at a time at most; beyond it the quarter that was silent for
    /// longest is finished early, and counted as [`Counts::forced_out`].
    pub max_open: usize,
    /// How long a closed connection's late packets still belong to it; by default 2 MSL of 2
    /// minutes (RFC 9293, 3.4.2).
    pub linger: Duration,
    /// How long an open connection may be silent; by default 2 hours and 4 minutes (RFC 5382,
    /// REQ-5).
    pub idle_timeout: Duration,
    /// Whose definitions the labels follow.
    pub labels: Labels,
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
            max_open: 1 << 18,
            linger: Duration::from_secs(240),
            idle_timeout: Duration::from_secs(7440),
            labels: Labels::default(),
            layer: Layer::default(),
            filter: None,
        }
    }
}

/// What became of a capture's packets, and how many connections were not told whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct Counts {
    /// Packets given.
    pub packets: u64,
    /// Of them, not TCP over IP (or behind something that is not entered, as a tunnel).
    pub not_tcp: u64,
    /// Of them, IP fragments before the one that completes their packet, or whose packet was never
    /// complete.
    pub fragments: u64,
    /// Of them, cut before the end of the numbers in their TCP header.
    pub cut: u64,
    /// Of them, TCP of connections that [`Config::filter`] leaves out.
    pub filtered: u64,
    /// Of them, TCP of connections beyond [`Config::max_connections`].
    pub untracked: u64,
    /// Connections finished early because of [`Config::max_open`]; what came later of them is a
    /// connection of its own.
    pub forced_out: u64,
}

impl std::ops::AddAssign for Counts {
    fn add_assign(&mut self, other: Counts) {
        // All of them by name, so that a new one is not forgotten.
        let Counts { packets, not_tcp, fragments, cut, filtered, untracked, forced_out } = other;
        self.packets += packets;
        self.not_tcp += not_tcp;
        self.fragments += fragments;
        self.cut += cut;
        self.filtered += filtered;
        self.untracked += untracked;
        self.forced_out += forced_out;
    }
}

/// What was found in a capture.
#[derive(Debug, Clone, Default, serde::Serialize)]
pub struct Analysis {
    /// Its packets.
    #[serde(flatten)]
    pub counts: Counts,
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
    /// Its labels, by [`Config::labels`].
    pub labels: LabelSet,
    /// The labels that Wireshark gives it.
    pub wireshark: LabelSet,
    /// Why the two differ, where they do.
    pub difference: Option<Difference>,
}

/// Analyses a capture as a stream: [`push`](Analyzer::push) each packet in the capture's order,
/// then [`finish`](Analyzer::finish).
#[derive(Debug)]
pub struct Analyzer {
    config: Config,
    intake: Intake,
    /// The hash is keyed anew in each process, so that no capture can be made to collide.
    open: HashMap<FlowKey, Box<Tracker>, foldhash::fast::RandomState>,
    /// Closed connections, by when they may be finished.
    closed: VecDeque<(Instant, FlowKey, u64)>,
    /// When silent connections are next looked for.
    sweep_at: Instant,
    next_id: u64,
    analysis: Analysis,
}

impl Analyzer {
    /// An analyzer that has seen nothing.
    pub fn new(config: Config) -> Self {
        Analyzer {
            intake: Intake::new(&config),
            config,
            open: HashMap::default(),
            closed: VecDeque::new(),
            sweep_at: Instant::ZERO,
            next_id: 0,
            analysis: Analysis::default(),
        }
    }

    /// The next packet, as [`crate::capture::Reader`] gives it.
    pub fn push_packet(&mut self, packet: &Packet<'_>) -> Option<PacketFacts> {
        if let Some(now) = self.intake.tick(packet.at) {
            self.retire(now);
        }
        let arrival = self.intake.open(packet)?;
        self.track(&arrival)
    }

    /// The next packet: when it was captured, what it begins with, what was kept of it, and its
    /// length on the wire. Gives what it was, if it belongs to a connection.
    pub fn push(
        &mut self,
        at: Instant,
        link: LinkType,
        data: &[u8],
        original_length: usize,
    ) -> Option<PacketFacts> {
        self.push_packet(&Packet { at, link_type: link, data, original_length })
    }

    /// Takes the connections that are finished so far, in the order in which they were finished: so
    /// a capture of any number of connections passes through bounded memory.
    pub fn drain(&mut self) -> Vec<Connection> {
        std::mem::take(&mut self.analysis.connections)
    }

    /// How many connections are open.
    pub fn open_connections(&self) -> usize {
        self.open.len()
    }

    /// Ends the capture.
    pub fn finish(mut self) -> Analysis {
        let config = &self.config;
        let open = self.open.into_iter().map(|(key, tracker)| tracker.finish(key, config));
        self.analysis.connections.extend(open);
        self.analysis.connections.sort_unstable_by_key(|connection| connection.id);
        self.analysis.counts += self.intake.finish();
        self.analysis
    }

    /// Ends the capture where very many connections may be open: they are finished only as they are
    /// taken. What was finished before is to be [drained](Analyzer::drain) first.
    pub fn finish_in_portions(self) -> (OpenAtEnd, Counts) {
        let mut open: Vec<_> = self.open.into_iter().collect();
        open.sort_unstable_by_key(|(_, tracker)| tracker.id());
        let mut counts = self.analysis.counts;
        counts += self.intake.finish();
        (OpenAtEnd { config: self.config, open: open.into_iter().peekable() }, counts)
    }

    /// The next segment of this analyzer's connections, where the [`Intake`] is another.
    pub fn track(&mut self, arrival: &Arrival) -> Option<PacketFacts> {
        let Arrival { at, number, wire, ref segment } = *arrival;
        let (key, from_first) = FlowKey::of(segment);
        let mut reused = false;
        if let Some(tracker) = self.open.get_mut(&key) {
            if !tracker.is_reused_by(segment, from_first) {
                return Some(see(
                    tracker,
                    &self.config,
                    &mut self.closed,
                    at,
                    segment,
                    (key, from_first, wire, false),
                ));
            }
            reused = true;
            let tracker = self.open.remove(&key)?;
            self.analysis.connections.push(tracker.finish(key, &self.config));
        }
        if self.open.len() + self.analysis.connections.len() >= self.config.max_connections {
            self.analysis.counts.untracked += 1;
            return None;
        }
        if self.open.len() >= self.config.max_open.max(1) {
            self.force_out();
        }
        let tracker = Box::new(Tracker::new((self.next_id, number), at, from_first));
        self.next_id += 1;
        self.forget_closed();
        let tracker = self.open.entry(key).or_insert(tracker);
        Some(see(
            tracker,
            &self.config,
            &mut self.closed,
            at,
            segment,
            (key, from_first, wire, reused),
        ))
    }

    /// Finishes what was closed or silent long enough at `at`, as [`Intake::tick`] gives it.
    pub fn retire(&mut self, at: Instant) {
        while let Some((due, key, id)) = self.closed.front().copied().filter(|(due, ..)| *due <= at)
        {
            self.closed.pop_front();
            let Some(tracker) = self.open.get(&key).filter(|tracker| tracker.id() == id) else {
                continue;
            };
            let again = tracker.last() + self.config.linger;
            if again > at && again > due {
                self.closed.push_back((again, key, id));
            } else if let Some(tracker) = self.open.remove(&key) {
                self.analysis.connections.push(tracker.finish(key, &self.config));
            }
        }
        let timeout = self.config.idle_timeout;
        let next = at + Duration::from_nanos(timeout.as_nanos() / 4 + 1);
        // A clock that stepped back must not put the next look off for ever.
        if at >= self.sweep_at || next < self.sweep_at {
            self.sweep_at = next;
            self.finish_where(|tracker| at.since(tracker.last()) > timeout);
        }
    }

    /// Leaves out of the queue of the closed what was finished otherwise, before it outgrows what
    /// is open: where no time passes (a hostile capture, or one without times), nothing in it is
    /// ever due.
    fn forget_closed(&mut self) {
        if self.closed.len() > 1024 + 2 * self.open.len() {
            let open = &self.open;
            self.closed
                .retain(|(_, key, id)| open.get(key).is_some_and(|tracker| tracker.id() == *id));
        }
    }

    /// Finishes the quarter of the open connections that was silent for longest.
    fn force_out(&mut self) {
        let mut last: Vec<Instant> = self.open.values().map(|tracker| tracker.last()).collect();
        let quarter = last.len() / 4;
        let (_, oldest, _) = last.select_nth_unstable(quarter);
        let oldest = *oldest;
        self.analysis.counts.forced_out += self.finish_where(|tracker| tracker.last() <= oldest);
    }

    /// Finishes open connections by their id, so that the order does not depend on the hash; gives
    /// how many.
    fn finish_where(&mut self, mut is_meant: impl FnMut(&Tracker) -> bool) -> u64 {
        let mut found: Vec<_> = self.open.extract_if(|_, tracker| is_meant(tracker)).collect();
        found.sort_unstable_by_key(|(_, tracker)| tracker.id());
        let count = found.len() as u64;
        self.analysis
            .connections
            .extend(found.into_iter().map(|(key, tracker)| tracker.finish(key, &self.config)));
        count
    }
}

/// The connections that were open when the capture ended, by first packet.
#[derive(Debug)]
pub struct OpenAtEnd {
    config: Config,
    open: std::iter::Peekable<std::vec::IntoIter<(FlowKey, Box<Tracker>)>>,
}

impl OpenAtEnd {
    /// Whether all were taken.
    pub fn is_empty(&self) -> bool {
        self.open.len() == 0
    }

    /// Finishes the next, up to the one whose first packet has the number `packet`.
    pub fn opened_before(&mut self, packet: u64) -> Vec<Connection> {
        let next = || self.open.next_if(|(_, tracker)| tracker.first_packet() < packet);
        std::iter::from_fn(next).map(|(key, tracker)| tracker.finish(key, &self.config)).collect()
    }
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

/// Gives a segment to its connection, and notes when that is closed.
fn see(
    tracker: &mut Tracker,
    config: &Config,
    closed: &mut VecDeque<(Instant, FlowKey, u64)>,
    at: Instant,
    segment: &Segment,
    (key, from_first, wire, reused): (FlowKey, bool, usize, bool),
) -> PacketFacts {
    let was_closed = tracker.is_closed();
    let seen = tracker.push(config, at, segment, (from_first, wire, reused));
    if tracker.is_closed() && !was_closed {
        closed.push_back((at + config.linger, key, tracker.id()));
    }
    let direction =
        if seen.by_client { Direction::ClientToServer } else { Direction::ServerToClient };
    let Seen { labels, wireshark, difference, .. } = seen;
    PacketFacts { connection: tracker.id(), direction, labels, wireshark, difference }
}
