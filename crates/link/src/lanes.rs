//! The links of a direction: one for each rule and a default one; and which of them is due first.
//!
//! A rule is identified by its match. When the path changes, a rule that exists before and after
//! keeps its link, which is changed in place; a new rule gets an empty link; the link of a removed
//! rule takes no more packets and is kept until its packets have left. Each has its own random
//! draws, which do not depend on the other rules.

use super::lane::Lane;
use super::ring::Ring;
use super::sizing::{coalescing_time, ring_size};
use super::statistics::RuleStatistics;
use fullpipe_model::link::rule::{Classifier, Match, PacketKey};
use fullpipe_model::link::{Config, Counters, Link};
use fullpipe_model::scenario::Path as LinkPath;
use fullpipe_model::units::{Bytes, Duration, Instant};

/// The configuration of one direction of a path, with memory once it is allocated.
#[derive(Debug)]
pub struct OneWay {
    /// In order; the last has no match and takes all other packets.
    ways: Vec<LaneConfig>,
    seed: u64,
}

#[derive(Debug)]
struct LaneConfig {
    matches: Option<Match>,
    config: Config,
    /// Round-trip time of the whole path, for queue sizes in BDP.
    rtt: Duration,
    /// Segments of a frame that depart within this time are delivered together.
    coalesce: Duration,
    /// The memory that it needs.
    size: Bytes,
    /// Memory allocated for it, if it had none or too little.
    ring: Option<Ring>,
}

/// The memory of a rule's link; `None` is the default link.
pub type LaneMemory = (Option<Match>, Bytes);

/// A direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Towards {
    /// The direction of the data.
    Client,
    /// The direction of the acknowledgements.
    Server,
}

impl OneWay {
    /// One of the two directions of `path`. Without `coalesce` the rates decide.
    pub fn of(path: &LinkPath, towards: Towards, coalesce: Option<Duration>) -> OneWay {
        let way = |matches, to_client: &Config, to_server: &Config, rtt| {
            let config = if towards == Towards::Client { to_client } else { to_server };
            let fastest = to_client.rate_max().max(to_server.rate_max());
            let coalesce = coalesce.unwrap_or_else(|| coalescing_time(fastest));
            LaneConfig {
                matches,
                config: config.clone(),
                rtt,
                coalesce,
                size: ring_size(config, rtt),
                ring: None,
            }
        };
        let rules = path
            .rules
            .iter()
            .map(|rule| way(Some(rule.matches), &rule.to_client, &rule.to_server, rule.rtt()));
        let rest = way(None, &path.to_client, &path.to_server, path.rtt());
        // The directions have different random streams: otherwise the same seed would lose the ACK
        // of every packet that it loses.
        let seed = path.seed.wrapping_mul(2).wrapping_add(u64::from(towards == Towards::Server));
        OneWay { ways: rules.chain([rest]).collect(), seed }
    }

    /// A direction without rules.
    pub fn plain(config: Config, rtt: Duration, coalesce: Duration, seed: u64) -> OneWay {
        let size = ring_size(&config, rtt);
        OneWay {
            ways: vec![LaneConfig { matches: None, config, rtt, coalesce, size, ring: None }],
            seed,
        }
    }

    /// Each link and the memory that it needs.
    pub fn memory(&self) -> impl Iterator<Item = (&Config, Bytes)> {
        self.ways.iter().map(|way| (&way.config, way.size))
    }

    /// Allocates and touches memory for those links that have too little in `had`, and returns what
    /// they have then. This takes time, so the caller does it, not the thread that moves packets.
    pub fn allocate(&mut self, had: &[LaneMemory]) -> Vec<LaneMemory> {
        self.ways.iter_mut().map(|way| way.allocate(had)).collect()
    }

    /// Segments of a frame on the default link that are due within this time are delivered
    /// together.
    pub fn coalesce(&self) -> Duration {
        self.ways.last().map_or(Duration::ZERO, |way| way.coalesce)
    }

    fn matches(&self) -> Vec<Match> {
        self.ways.iter().filter_map(|way| way.matches).collect()
    }

    /// A rule's random source depends only on the rule and the path's seed.
    fn seed(&self, matches: Option<Match>) -> u64 {
        let Some(matches) = matches else { return self.seed };
        // FNV-1a of its text.
        let hash = matches.to_string().bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        self.seed ^ hash
    }
}

impl LaneConfig {
    /// [`OneWay::allocate`] for one of its links.
    fn allocate(&mut self, had: &[LaneMemory]) -> LaneMemory {
        let had = had.iter().find(|(matches, _)| *matches == self.matches).map(|(_, size)| *size);
        if had.is_none_or(|had| had < self.size) {
            self.ring = Some(Ring::new(self.size.get() as usize));
        }
        (self.matches, had.map_or(self.size, |had| had.max(self.size)))
    }

    fn lane(self, seed: u64) -> Lane {
        let ring = self.ring.unwrap_or_else(|| Ring::new(self.size.get() as usize));
        Lane::new(Link::new(&self.config, self.rtt, seed), ring, self.coalesce)
    }
}

/// All links of a direction.
#[derive(Debug)]
pub struct Lanes {
    matches: Vec<Match>,
    classifier: Classifier,
    /// One for each match, then the default one.
    lanes: Vec<Lane>,
    /// Links of removed rules, until their packets have left.
    draining: Vec<Lane>,
    /// Counters of removed links.
    gone: Counters,
}

impl Lanes {
    /// The links of `path`.
    pub fn new(path: OneWay) -> Self {
        let matches = path.matches();
        let seeds: Vec<_> = path.ways.iter().map(|way| path.seed(way.matches)).collect();
        Lanes {
            classifier: Classifier::new(matches.clone()),
            matches,
            lanes: path.ways.into_iter().zip(seeds).map(|(way, seed)| way.lane(seed)).collect(),
            draining: Vec::new(),
            gone: Counters::default(),
        }
    }

    /// Changes the path from `now` on.
    pub fn set(&mut self, path: OneWay, now: Instant) {
        let before = std::mem::replace(&mut self.matches, path.matches());
        self.classifier = Classifier::new(self.matches.clone());
        let mut old: Vec<_> =
            before.into_iter().map(Some).chain([None]).zip(self.lanes.drain(..)).collect();
        let seeds: Vec<_> = path.ways.iter().map(|way| path.seed(way.matches)).collect();
        for (way, seed) in path.ways.into_iter().zip(seeds) {
            let lane = match old.iter().position(|(matches, _)| *matches == way.matches) {
                Some(at) => {
                    let (_, mut lane) = old.remove(at);
                    lane.set(&way.config, way.rtt, way.coalesce, way.ring, now);
                    lane
                }
                None => way.lane(seed),
            };
            self.lanes.push(lane);
        }
        self.draining.extend(old.into_iter().map(|(_, lane)| lane));
        let gone = &mut self.gone;
        self.draining.retain(|lane| {
            if lane.is_empty() {
                *gone = sum(*gone, lane.counters());
            }
            !lane.is_empty()
        });
    }

    /// The default link; frames are read into its memory.
    pub fn rest(&mut self) -> &mut Lane {
        let last = self.lanes.len() - 1;
        &mut self.lanes[last]
    }

    /// The index of the rule for a packet; `None`: the default link, also for packets that are not
    /// IP.
    pub fn rule(&self, key: Option<&PacketKey>) -> Option<usize> {
        key.filter(|_| !self.matches.is_empty()).and_then(|key| self.classifier.classify(key))
    }

    /// The link of a rule and the default link.
    pub fn rule_and_rest(&mut self, rule: usize) -> Option<(&mut Lane, &mut Lane)> {
        let (rest, rules) = self.lanes.split_last_mut()?;
        rules.get_mut(rule).map(|lane| (lane, rest))
    }

    /// Unused memory.
    pub fn superfluous(&mut self) -> Option<Ring> {
        self.all_mut().find_map(|lane| lane.memory_mut().superfluous())
    }

    /// The link that is due first, and when.
    pub fn earliest(&mut self) -> Option<(&mut Lane, Instant)> {
        let due = self.all_mut().filter_map(|lane| lane.due().map(|due| (lane, due)));
        due.min_by_key(|(_, due)| *due)
    }

    /// Whether any of them joins segments.
    pub fn join_writes(&self) -> bool {
        self.lanes.iter().any(|lane| lane.coalesce() > Duration::ZERO)
    }

    /// All links, mutable.
    pub fn all_mut(&mut self) -> impl Iterator<Item = &mut Lane> {
        self.lanes.iter_mut().chain(&mut self.draining)
    }

    fn all(&self) -> impl Iterator<Item = &Lane> {
        self.lanes.iter().chain(&self.draining)
    }

    /// The counters of all links.
    pub fn counters(&self) -> Counters {
        self.all().fold(self.gone, |total, lane| sum(total, lane.counters()))
    }

    /// Statistics of the rules' links up to `now`, in the order of the rules.
    pub fn rules(&self, now: Instant) -> Vec<RuleStatistics> {
        let rules = self.matches.iter().zip(&self.lanes).map(|(matches, lane)| RuleStatistics {
            matches: *matches,
            link: lane.counters(),
            queue: lane.link().backlog(now),
        });
        rules.collect()
    }

    /// Bytes waiting at `now`.
    pub fn backlog(&self, now: Instant) -> Bytes {
        self.all().fold(Bytes::ZERO, |total, lane| total.saturating_add(lane.link().backlog(now)))
    }

    /// Packets on all of them.
    pub fn inside(&self) -> usize {
        self.all().map(Lane::inside).sum()
    }
}

/// The sum of two counters; the longest queue is the longer of the two.
fn sum(a: Counters, b: Counters) -> Counters {
    Counters {
        arrived_packets: a.arrived_packets + b.arrived_packets,
        duplicated_packets: a.duplicated_packets + b.duplicated_packets,
        departed_packets: a.departed_packets + b.departed_packets,
        departed_bytes: a.departed_bytes + b.departed_bytes,
        lost_packets: a.lost_packets + b.lost_packets,
        queue_dropped_packets: a.queue_dropped_packets + b.queue_dropped_packets,
        discipline_dropped_packets: a.discipline_dropped_packets + b.discipline_dropped_packets,
        marked_packets: a.marked_packets + b.marked_packets,
        corrupted_packets: a.corrupted_packets + b.corrupted_packets,
        reordered_packets: a.reordered_packets + b.reordered_packets,
        queue_max_bytes: a.queue_max_bytes.max(b.queue_max_bytes),
    }
}
