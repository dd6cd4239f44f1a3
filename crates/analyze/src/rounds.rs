//! A part's result for a round: the connections that finished, diagnosed.

use crate::drive::Part;
use crate::feed::CaptureEvent;
use crate::numbers::Numbers;
use fullpipe_flow::{Analyzer, Arrival, Config, Counts, Ended, OpenAtEnd, PacketFacts};

/// At the end of the capture, open connections are reported in portions: those that opened within
/// this many packets. All at once they could be a quarter of a million.
const PORTION: u64 = 1 << 12;

/// An analyzer that records which connections open.
pub struct Opening {
    pub analyzer: Analyzer,
    count: u64,
    /// First packets of connections that opened since the last call of `take_opened`.
    opened: Vec<u64>,
}

impl Opening {
    pub fn new(config: &Config) -> Self {
        Opening { analyzer: Analyzer::new(config.clone()), count: 0, opened: Vec::new() }
    }

    #[inline]
    pub fn track(&mut self, arrival: &Arrival, words: &[u8]) -> Option<PacketFacts> {
        let facts = self.analyzer.track(arrival, words)?;
        // An analyzer counts its connections from 0.
        if facts.connection == self.count {
            self.count += 1;
            self.opened.push(arrival.number);
        }
        Some(facts)
    }

    pub fn take_opened(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.opened)
    }
}

/// When to compute findings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Findings {
    /// In the thread that analysed the connection, or for a connection of one packet in that which
    /// takes it.
    AtOnce,
    /// When they are requested.
    Later,
}

impl Findings {
    /// Computes those of connections that have ended, in their part's thread.
    fn of(self, ended: Vec<Ended>) -> Vec<Ended> {
        match self {
            Findings::AtOnce => ended.into_iter().map(Ended::with_findings).collect(),
            Findings::Later => ended,
        }
    }
}

/// Reports connections as they finish.
pub struct Finishing {
    opening: Opening,
    findings: Findings,
}

/// The result of one part in a round.
pub struct Round {
    /// The number of the first packet of each connection that opened.
    opened: Vec<u64>,
    finished: Vec<Ended>,
}

impl Finishing {
    pub fn new(config: &Config, findings: Findings) -> Self {
        Finishing { opening: Opening::new(config), findings }
    }

    fn round(&mut self) -> Round {
        let finished = self.findings.of(self.opening.analyzer.drain_ended());
        Round { opened: self.opening.take_opened(), finished }
    }
}

impl Part for Finishing {
    type Round = Round;
    type Last = Last;

    #[inline]
    fn take(&mut self, event: CaptureEvent<'_>) -> Option<Round> {
        match event {
            CaptureEvent::Segment(arrival, words) => _ = self.opening.track(arrival, words),
            CaptureEvent::Tick(now) => self.opening.analyzer.retire(now),
            CaptureEvent::End(at) => self.opening.analyzer.ends_at(at),
            CaptureEvent::Round => return Some(self.round()),
            CaptureEvent::Secrets(log) => self.opening.analyzer.learn(log),
            CaptureEvent::Start(_) => {}
        }
        None
    }

    fn finish(mut self) -> (Last, Counts) {
        let finished = Some(self.round());
        let (open, counts) = self.opening.analyzer.finish_in_portions();
        (Last { finished, open, before: 0, findings: self.findings }, counts)
    }
}

/// The last rounds: one with what finished before the end of the capture, and those with what did
/// not.
pub struct Last {
    finished: Option<Round>,
    open: OpenAtEnd,
    before: u64,
    findings: Findings,
}

impl Iterator for Last {
    type Item = Round;

    fn next(&mut self) -> Option<Round> {
        if self.finished.is_some() {
            return self.finished.take();
        }
        if self.open.is_empty() {
            return None;
        }
        self.before += PORTION;
        let finished = self.findings.of(self.open.opened_before(self.before));
        Some(Round { opened: Vec::new(), finished })
    }
}

/// The connections that finished in a round, sorted by their numbers in the capture; `None` stands
/// for a part that has ended.
pub fn put_together(numbers: &mut Numbers, rounds: Vec<Option<Round>>) -> Vec<Ended> {
    let opened = rounds.iter().enumerate();
    numbers.open(opened.flat_map(|(part, round)| Some((part, &*round.as_ref()?.opened))));
    let mut all = Vec::new();
    for (part, round) in rounds.into_iter().enumerate() {
        all.extend(round.into_iter().flat_map(|round| round.finished).map(|mut ended| {
            let number = numbers.close(part, ended.id());
            ended.renumber(number);
            ended
        }));
    }
    all.sort_by_key(Ended::id);
    all
}
