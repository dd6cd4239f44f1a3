//! Packets in, diagnosed connections out.
//!
//! Memory follows the connections that are open, not the packets: a connection is finished when it
//! has been closed for [`Config::linger`], silent for [`Config::idle_timeout`], replaced by another
//! on its ports, or when [`Config::max_open`] forces out those silent for longest. What is finished
//! waits in the analyzer until [`Analyzer::drain`] takes it, or [`Analyzer::finish`].
//!
//! Where many connections are open, one that has had a single packet is kept as that packet: a scan
//! of ports opens a connection with each packet, and a packet is a fifth of a connection's memory.
//!
//! To use several threads, let one at a time drive an [`Intake`], and each an analyzer of its part
//! of the connections, as `fullpipe-analyze` does. The result is that of one analyzer, as long as
//! none of the limits above is met: each analyzer has them for itself.

mod open;

pub use open::Ended;

use crate::capture::segment::FlowKey;
use crate::capture::{LinkType, Packet};
use crate::config::{Config, Counts};
use crate::connection::{CapturedSegment, Difference, Direction, LabelSet, Opening, Seen, Tracker};
use crate::diagnosis::DiagnosedConnection;
use crate::frames::Seats;
use crate::intake::{Arrival, Intake};
use crate::trace::Budget;
use fullpipe_model::units::{Duration, Instant};
use open::{Lone, Open};
use std::collections::{HashMap, VecDeque};

/// Open connections from which on a new one is kept as its packet until the second comes. Below it,
/// the memory is not worth reading packets twice.
const MANY: usize = 1 << 14;

/// What was found in a capture.
#[derive(Debug, Clone, Default, serde::Serialize)]
pub struct Analysis {
    /// Its packets.
    #[serde(flatten)]
    pub counts: Counts,
    /// Connections by first packet, each with what held its data.
    pub connections: Vec<DiagnosedConnection>,
}

/// What one packet was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PacketFacts {
    /// The [`id`](crate::connection::Connection::id) of its connection.
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
    open: HashMap<FlowKey, Open, foldhash::fast::RandomState>,
    /// Closed connections, by when they may be finished.
    closed: VecDeque<(Instant, FlowKey, u64)>,
    /// How far the capture has gone, by its ticks.
    now: Instant,
    /// When silent connections are next looked for.
    sweep_at: Instant,
    next_id: u64,
    /// Present where the points of graphs are recorded.
    traces: Option<Budget>,
    ended: Vec<Ended>,
    counts: Counts,
    /// How many connections' frames are read.
    seats: Seats,
}

impl Analyzer {
    /// An analyzer that has seen nothing.
    pub fn new(config: Config) -> Self {
        Analyzer {
            intake: Intake::new(&config),
            traces: config.trace.map(Budget::new),
            config,
            open: HashMap::default(),
            closed: VecDeque::new(),
            now: Instant::ZERO,
            sweep_at: Instant::ZERO,
            next_id: 0,
            ended: Vec::new(),
            counts: Counts::default(),
            seats: Seats::default(),
        }
    }

    /// Learns secrets of TLS connections from a key log that the capture itself has, before the
    /// packets of those connections.
    pub fn learn(&mut self, log: &[u8]) {
        if self.config.frames {
            self.config.keys.learn(log);
            self.intake.learn(log);
        }
    }

    /// The next packet, as [`crate::capture::Reader`] gives it.
    pub fn push_packet(&mut self, packet: &Packet<'_>) -> Option<PacketFacts> {
        if let Some(now) = self.intake.tick(packet.at) {
            self.retire(now);
        }
        let (arrival, words) = self.intake.open(packet)?;
        self.track(&arrival, words)
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
    pub fn drain(&mut self) -> Vec<DiagnosedConnection> {
        self.drain_ended().into_iter().map(|ended| ended.diagnosed(&self.config)).collect()
    }

    /// The same for callers that diagnose them in portions.
    pub fn drain_ended(&mut self) -> Vec<Ended> {
        std::mem::take(&mut self.ended)
    }

    /// How many connections are open.
    pub fn open_connections(&self) -> usize {
        self.open.len()
    }

    /// Ends the capture.
    pub fn finish(mut self) -> Analysis {
        self.ends_at(self.intake.now());
        let config = &self.config;
        let open = std::mem::take(&mut self.open).into_iter();
        self.ended.extend(open.map(|(key, open)| open.ended(key, config, self.now)));
        self.ended.sort_unstable_by_key(Ended::id);
        let connections = self.ended.into_iter().map(|ended| ended.diagnosed(config)).collect();
        self.counts += self.intake.finish();
        Analysis { counts: self.counts, connections }
    }

    /// Ends the capture where very many connections may be open: they are finished only as they are
    /// taken. What was finished before is to be [drained](Analyzer::drain) first.
    pub fn finish_in_portions(self) -> (OpenAtEnd, Counts) {
        let mut open: Vec<_> = self.open.into_iter().collect();
        open.sort_unstable_by_key(|(_, open)| open.id());
        let mut counts = self.counts;
        counts += self.intake.finish();
        let (config, open) = (self.config, open.into_iter().peekable());
        (OpenAtEnd { config, now: self.now, open }, counts)
    }

    /// The next segment of this analyzer's connections, where the [`Intake`] is another, with the
    /// words in it.
    pub fn track(&mut self, arrival: &Arrival, words: &[u8]) -> Option<PacketFacts> {
        let Arrival { at, number, ref segment, .. } = *arrival;
        if let Some(traces) = &mut self.traces
            && traces.is_due()
        {
            let open = self.open.len();
            traces.count(open, self.open.values_mut().filter_map(Open::traced), &self.config);
        }
        let (key, from_first) = FlowKey::of(segment);
        let mut reuses_ports = false;
        if let Some(open) = self.open.get_mut(&key) {
            let tracker = open.tracker(&self.config);
            if !tracker.is_reused_by(segment, from_first) {
                let captured = CapturedSegment::of(arrival, words, &self.seats, from_first);
                return Some(see(tracker, &self.config, &mut self.closed, key, captured));
            }
            reuses_ports = true;
            let open = self.open.remove(&key)?;
            self.ended.push(open.ended(key, &self.config, self.now));
        }
        if self.open.len() + self.ended.len() >= self.config.max_connections {
            self.counts.untracked += 1;
            return None;
        }
        if self.open.len() >= self.config.max_open / 4 {
            self.finish_closed_for_longest();
        }
        if self.open.len() >= self.config.max_open.max(1) {
            self.force_out();
        }
        let trace = self.traces.as_mut().and_then(Budget::opens);
        // Graphs have the account on their time axis.
        let keeps_order = self.config.spans || trace.is_some();
        let opening =
            Opening { id: self.next_id, first_packet: number, at, from_first, trace, keeps_order };
        let mut tracker = Tracker::new(opening);
        self.next_id += 1;
        self.forget_closed();
        let captured = CapturedSegment {
            reuses_ports,
            ..CapturedSegment::of(arrival, words, &self.seats, from_first)
        };
        let facts = see(&mut tracker, &self.config, &mut self.closed, key, captured);
        // What an end says is not kept with a lone packet.
        let is_lone =
            self.open.len() >= MANY && trace.is_none() && !tracker.is_closed() && words.is_empty();
        let open = if is_lone {
            Open::Lone(Box::new(Lone::new(opening.id, arrival, from_first, reuses_ports)))
        } else {
            Open::Tracked(Box::new(tracker))
        };
        self.open.insert(key, open);
        Some(facts)
    }

    /// Notes the time of the capture's last packet: whoever still waits does so until then.
    pub fn ends_at(&mut self, at: Instant) {
        self.now = self.now.max(at);
    }

    /// Finishes what was closed or silent long enough at `at`, as [`Intake::tick`] gives it.
    pub fn retire(&mut self, at: Instant) {
        self.ends_at(at);
        while let Some((due, key, id)) = self.closed.front().copied().filter(|(due, ..)| *due <= at)
        {
            self.closed.pop_front();
            let Some(open) = self.open.get(&key).filter(|open| open.id() == id) else {
                continue;
            };
            let again = open.last() + self.config.linger;
            if again > at && again > due {
                self.closed.push_back((again, key, id));
            } else if let Some(open) = self.open.remove(&key) {
                self.ended.push(open.ended(key, &self.config, self.now));
            }
        }
        let timeout = self.config.idle_timeout;
        let next = at + Duration::from_nanos(timeout.as_nanos() / 4 + 1);
        // A clock that stepped back must not put the next look off for ever.
        if at >= self.sweep_at || next < self.sweep_at {
            self.sweep_at = next;
            self.finish_where(|open| at.since(open.last()) > timeout);
        }
    }

    /// Leaves out of the queue of the closed what was finished otherwise, before it outgrows what
    /// is open: where no time passes (a hostile capture, or one without times), nothing in it is
    /// ever due.
    fn forget_closed(&mut self) {
        if self.closed.len() > 1024 + 2 * self.open.len() {
            let open = &self.open;
            self.closed.retain(|(_, key, id)| open.get(key).is_some_and(|open| open.id() == *id));
        }
    }

    /// Finishes the connection that has been closed for longest: it lingers no more.
    fn finish_closed_for_longest(&mut self) {
        while let Some((_, key, id)) = self.closed.pop_front() {
            if self.open.get(&key).is_some_and(|open| open.id() == id)
                && let Some(open) = self.open.remove(&key)
            {
                self.ended.push(open.ended(key, &self.config, self.now));
                return;
            }
        }
    }

    /// Finishes the quarter of the open connections that was silent for longest.
    fn force_out(&mut self) {
        let mut last: Vec<Instant> = self.open.values().map(Open::last).collect();
        let quarter = last.len() / 4;
        let (_, oldest, _) = last.select_nth_unstable(quarter);
        let oldest = *oldest;
        self.counts.forced_out += self.finish_where(|open| open.last() <= oldest);
    }

    /// Finishes open connections by their id, so that the order does not depend on the hash; gives
    /// how many.
    fn finish_where(&mut self, mut is_meant: impl FnMut(&Open) -> bool) -> u64 {
        let mut found: Vec<_> = self.open.extract_if(|_, open| is_meant(open)).collect();
        found.sort_unstable_by_key(|(_, open)| open.id());
        let count = found.len() as u64;
        self.ended
            .extend(found.into_iter().map(|(key, open)| open.ended(key, &self.config, self.now)));
        count
    }
}

/// The connections that were open when the capture ended, by first packet.
#[derive(Debug)]
pub struct OpenAtEnd {
    config: Config,
    now: Instant,
    open: std::iter::Peekable<std::vec::IntoIter<(FlowKey, Open)>>,
}

impl OpenAtEnd {
    /// Whether all were taken.
    pub fn is_empty(&self) -> bool {
        self.open.len() == 0
    }

    /// Finishes the next, up to the one whose first packet has the number `packet`.
    pub fn opened_before(&mut self, packet: u64) -> Vec<Ended> {
        std::iter::from_fn(|| self.open.next_if(|(_, open)| open.first_packet() < packet))
            .map(|(key, open)| open.ended(key, &self.config, self.now))
            .collect()
    }
}

/// Gives a segment to its connection, and notes when that is closed.
fn see(
    tracker: &mut Tracker,
    config: &Config,
    closed: &mut VecDeque<(Instant, FlowKey, u64)>,
    key: FlowKey,
    captured: CapturedSegment<'_>,
) -> PacketFacts {
    let was_closed = tracker.is_closed();
    let seen = tracker.push(config, captured);
    if tracker.is_closed() && !was_closed {
        closed.push_back((captured.at + config.linger, key, tracker.id()));
    }
    let direction =
        if seen.by_client { Direction::ClientToServer } else { Direction::ServerToClient };
    let Seen { labels, wireshark, difference, .. } = seen;
    PacketFacts { connection: tracker.id(), direction, labels, wireshark, difference }
}
