//! The links of a direction side by side: one for each rule and one for the rest, and which of them
//! is due first.
//!
//! A rule is known by what it matches. When the path is changed, the link of a rule that is there
//! before and after is changed in place; a rule that is new gets an empty link; the link of a rule
//! that is gone takes no more packets and is kept until what is on it has left. Each has random
//! draws of its own, which do not depend on the other rules.

use super::lane::Lane;
use super::ring::Ring;
use super::sizing::{coalescing_time, ring_size};
use super::statistics::RuleStatistics;
use fullpipe_model::link::rule::{Classifier, Match, PacketKey};
use fullpipe_model::link::{Config, Counters, Link};
use fullpipe_model::scenario::Path as LinkPath;
use fullpipe_model::units::{Bytes, Duration, Instant};

/// A direction of a path, and memory for it where that is to be taken.
#[derive(Debug)]
pub struct OneWay {
    /// In their order; the last has no match and takes the rest.
    ways: Vec<LaneConfig>,
    seed: u64,
}

#[derive(Debug)]
struct LaneConfig {
    matches: Option<Match>,
    config: Config,
    /// Of the whole path: a queue of "n x BDP" has its size from it.
    rtt: Duration,
    /// Segments of a frame that depart within this time are handed over together.
    coalesce: Duration,
    /// Memory that it needs.
    size: Bytes,
    /// Memory that was taken for it, where it had none or less.
    ring: Option<Ring>,
}

/// Memory that the link of a rule (`None`: of the rest) has.
pub type LaneMemory = (Option<Match>, Bytes);

/// Which of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Towards {
    /// Way of the data.
    Client,
    /// Way of the acknowledgements.
    Server,
}

impl OneWay {
    /// One of the two directions of `path`. `coalesce` is chosen by the rates where it is not
    /// given.
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
        // Two directions, two random streams: the same seed must not lose the ACK of every packet
        // it loses.
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

    /// Takes memory, and touches it, for those links that have not enough in `had`. Returns what
    /// they have then. This takes time: it is for the caller to do, not for the thread that moves
    /// packets.
    pub fn allocate(&mut self, had: &[LaneMemory]) -> Vec<LaneMemory> {
        let has = |way: &mut LaneConfig| {
            let had =
                had.iter().find(|(matches, _)| *matches == way.matches).map(|(_, size)| *size);
            if had.is_none_or(|had| had < way.size) {
                way.ring = Some(Ring::new(way.size.get() as usize));
            }
            (way.matches, had.map_or(way.size, |had| had.max(way.size)))
        };
        self.ways.iter_mut().map(has).collect()
    }

    /// Segments of a frame of the rest that are due within this time are handed over together.
    pub fn coalesce(&self) -> Duration {
        self.ways.last().map_or(Duration::ZERO, |way| way.coalesce)
    }

    fn matches(&self) -> Vec<Match> {
        self.ways.iter().filter_map(|way| way.matches).collect()
    }

    /// The random source of a rule depends on nothing but the rule and the path's own seed.
    fn seed(&self, matches: Option<Match>) -> u64 {
        let Some(matches) = matches else { return self.seed };
        // FNV-1a of its text.
        let fold = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        self.seed ^ matches.to_string().bytes().fold(0xcbf2_9ce4_8422_2325, fold)
    }
}

impl LaneConfig {
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
    /// One for each match, then that of the rest.
    lanes: Vec<Lane>,
    /// Of rules that are no more, until what is on them has left.
    draining: Vec<Lane>,
    /// What links counted that are no more.
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

    /// Another path from `now` on.
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
                *gone = sum(*gone, lane.link().counters());
            }
            !lane.is_empty()
        });
    }

    /// The link that takes the rest: its memory is read into.
    pub fn rest(&mut self) -> &mut Lane {
        let last = self.lanes.len() - 1;
        &mut self.lanes[last]
    }

    /// Which rule is for a packet; `None`: it takes the rest, as one does that is not IP.
    pub fn rule(&self, key: Option<&PacketKey>) -> Option<usize> {
        key.filter(|_| !self.matches.is_empty()).and_then(|key| self.classifier.classify(key))
    }

    /// The link of a rule and that of the rest.
    pub fn rule_and_rest(&mut self, rule: usize) -> Option<(&mut Lane, &mut Lane)> {
        let (rest, rules) = self.lanes.split_last_mut()?;
        rules.get_mut(rule).map(|lane| (lane, rest))
    }

    /// Memory that nothing is in any more.
    pub fn superfluous(&mut self) -> Option<Ring> {
        self.lanes
            .iter_mut()
            .chain(&mut self.draining)
            .find_map(|lane| lane.memory_mut().superfluous())
    }

    /// The link that is due first, and when.
    pub fn earliest(&mut self) -> Option<(&mut Lane, Instant)> {
        let lanes = self.lanes.iter_mut().chain(&mut self.draining);
        lanes.filter_map(|lane| lane.due().map(|due| (lane, due))).min_by_key(|(_, due)| *due)
    }

    /// Whether any of them waits for segments that are worth joining.
    pub fn join_writes(&self) -> bool {
        self.lanes.iter().any(|lane| lane.coalesce() > Duration::ZERO)
    }

    fn all(&self) -> impl Iterator<Item = &Lane> {
        self.lanes.iter().chain(&self.draining)
    }

    /// What all of them counted.
    pub fn counters(&self) -> Counters {
        self.all().fold(self.gone, |total, lane| sum(total, lane.link().counters()))
    }

    /// What the links of the rules have done by `now`, in the order of the rules.
    pub fn rules(&self, now: Instant) -> Vec<RuleStatistics> {
        let rules = self.matches.iter().zip(&self.lanes).map(|(matches, lane)| {
            let link = lane.link();
            RuleStatistics { matches: *matches, link: link.counters(), queue: link.backlog(now) }
        });
        rules.collect()
    }

    /// Bytes that wait at `now`.
    pub fn backlog(&self, now: Instant) -> Bytes {
        self.all().fold(Bytes::ZERO, |total, lane| total.saturating_add(lane.link().backlog(now)))
    }

    /// Packets on all of them.
    pub fn inside(&self) -> usize {
        self.all().map(|lane| lane.link().len()).sum()
    }
}

/// Both together; the longest queue is the longest of either.
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
