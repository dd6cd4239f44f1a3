//! What a part of the connections makes of a round: the connections that finished, explained.

use crate::drive::Part;
use crate::explained::Explained;
use crate::feed::Event;
use crate::numbers::Numbers;
use fullpipe_flow::connection::Connection;
use fullpipe_flow::{Analyzer, Arrival, Config, Counts, OpenAtEnd, PacketFacts};

/// At the capture's end, what is still open is given in portions: the connections that opened
/// within so many packets. All at once they could be a quarter of a million.
const PORTION: u64 = 1 << 12;

/// An analyzer that notes which connections open.
pub struct Opening {
    pub analyzer: Analyzer,
    count: u64,
    /// First packets of those that opened since they were last taken.
    opened: Vec<u64>,
}

impl Opening {
    pub fn new(config: &Config) -> Self {
        Opening { analyzer: Analyzer::new(config.clone()), count: 0, opened: Vec::new() }
    }

    #[inline]
    pub fn track(&mut self, arrival: &Arrival) -> Option<PacketFacts> {
        let facts = self.analyzer.track(arrival)?;
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

/// Gives connections as they finish.
pub struct Finishing<T> {
    opening: Opening,
    explain: fn(Connection) -> T,
}

/// What happened to one part in a round.
pub struct Round<T> {
    /// Of each connection that opened, the number of its first packet.
    opened: Vec<u64>,
    finished: Vec<T>,
}

impl<T> Finishing<T> {
    pub fn new(config: &Config, explain: fn(Connection) -> T) -> Self {
        Finishing { opening: Opening::new(config), explain }
    }

    fn round(&mut self) -> Round<T> {
        let finished = self.opening.analyzer.drain();
        let finished = finished.into_iter().map(self.explain).collect();
        Round { opened: self.opening.take_opened(), finished }
    }
}

impl<T: Send + 'static> Part for Finishing<T> {
    type Round = Round<T>;
    type Last = Last<T>;

    #[inline]
    fn take(&mut self, event: Event<'_>) -> Option<Round<T>> {
        match event {
            Event::Segment(arrival) => _ = self.opening.track(arrival),
            Event::Tick(now) => self.opening.analyzer.retire(now),
            Event::Round => return Some(self.round()),
            Event::Start(_) => {}
        }
        None
    }

    fn finish(mut self) -> (Last<T>, Counts) {
        let finished = Some(self.round());
        let (open, counts) = self.opening.analyzer.finish_in_portions();
        (Last { finished, open, before: 0, explain: self.explain }, counts)
    }
}

/// The last rounds: one of what finished before the capture's end, and those of what did not.
pub struct Last<T> {
    finished: Option<Round<T>>,
    open: OpenAtEnd,
    before: u64,
    explain: fn(Connection) -> T,
}

impl<T> Iterator for Last<T> {
    type Item = Round<T>;

    fn next(&mut self) -> Option<Round<T>> {
        if self.finished.is_some() {
            return self.finished.take();
        }
        if self.open.is_empty() {
            return None;
        }
        self.before += PORTION;
        let finished = self.open.opened_before(self.before).into_iter().map(self.explain).collect();
        Some(Round { opened: Vec::new(), finished })
    }
}

/// The connections that finished in a round, by their numbers in the capture; `None` for a part
/// that has ended.
pub fn put_together<T: Explained>(numbers: &mut Numbers, rounds: Vec<Option<Round<T>>>) -> Vec<T> {
    let opened = rounds.iter().enumerate();
    numbers.open(opened.flat_map(|(part, round)| Some((part, &*round.as_ref()?.opened))));
    let mut all = Vec::new();
    for (part, round) in rounds.into_iter().enumerate() {
        all.extend(round.into_iter().flat_map(|round| round.finished).map(|mut explained| {
            let own = explained.number();
            explained.renumber(numbers.close(part, own));
            explained
        }));
    }
    // One move each: they are large.
    all.sort_by_cached_key(|explained| explained.number());
    all
}
