//! What finished, told round by round: what finished in one is put together, numbered and told before what finished in the
//! next, so that the answer does not depend on how many threads there are.

use super::feed::Event;
use fullpipe_flow::connection::Connection;
use fullpipe_flow::diagnosis::DiagnosedConnection;
use fullpipe_flow::{Analyzer, Config, Counts};
use std::collections::HashMap;

/// At the capture's end, what is still open is told in portions: the connections that opened within so many packets. All at
/// once they could be a quarter of a million.
const PORTION: u64 = 1 << 12;

/// What is made of a connection for whoever tells it.
pub type Explain = fn(Connection) -> DiagnosedConnection;

/// What happened to one thread's part of the connections in a round.
pub struct Round {
    /// Of each that opened, the number of its first packet.
    opened: Vec<u64>,
    finished: Vec<DiagnosedConnection>,
}

/// One thread's part of the connections, told round by round.
pub struct Part {
    analyzer: Analyzer,
    explain: Explain,
    opened: Vec<u64>,
    count: u64,
}

impl Part {
    pub fn new(config: Config, explain: Explain) -> Self {
        Part { analyzer: Analyzer::new(config), explain, opened: Vec::new(), count: 0 }
    }

    /// Gives what happened in a round where one ends.
    pub fn take(&mut self, event: Event<'_>) -> Option<Round> {
        match event {
            Event::Tick(now) => self.analyzer.retire(now),
            Event::Segment(arrival) => {
                // An analyzer counts its connections from 0.
                if self.analyzer.track(arrival).is_some_and(|facts| facts.connection == self.count) {
                    self.count += 1;
                    self.opened.push(arrival.number);
                }
            }
            Event::Round => return Some(self.round()),
        }
        None
    }

    fn round(&mut self) -> Round {
        Round::new(std::mem::take(&mut self.opened), self.analyzer.drain(), self.explain)
    }

    /// Gives the last rounds to `tell`: one of what finished before the capture's end, and those of what did not.
    pub fn finish(mut self, mut tell: impl FnMut(Round)) -> Counts {
        tell(self.round());
        let (mut open, counts) = self.analyzer.finish_in_portions();
        let mut before = 0;
        while !open.is_empty() {
            before += PORTION;
            tell(Round::new(Vec::new(), open.opened_before(before), self.explain));
        }
        counts
    }
}

impl Round {
    fn new(opened: Vec<u64>, finished: Vec<Connection>, explain: Explain) -> Self {
        Round { opened, finished: finished.into_iter().map(explain).collect() }
    }
}

/// From each thread's numbers of its open connections to those of the whole capture: by first packet, as one analyzer
/// counts them.
pub struct Numbers {
    /// For each thread, how many it opened, and the numbers of those that are open.
    parts: Vec<(u64, HashMap<u64, u64>)>,
    next: u64,
}

impl Numbers {
    pub fn new(count: usize) -> Self {
        Numbers { parts: vec![Default::default(); count], next: 0 }
    }

    /// The connections that finished in a round, by their numbers in the capture; `None` for a thread that has ended.
    pub fn put_together(&mut self, rounds: Vec<Option<Round>>) -> Vec<DiagnosedConnection> {
        let mut opened: Vec<(u64, usize)> = Vec::new();
        for (part, round) in rounds.iter().enumerate() {
            opened.extend(round.iter().flat_map(|round| &round.opened).map(|first| (*first, part)));
        }
        opened.sort_unstable();
        for (_, part) in opened {
            let (count, numbers) = &mut self.parts[part];
            numbers.insert(*count, self.next);
            *count += 1;
            self.next += 1;
        }
        let mut all = Vec::new();
        for (round, (_, numbers)) in rounds.into_iter().zip(&mut self.parts) {
            all.extend(round.into_iter().flat_map(|round| round.finished).map(|mut explained| {
                let own = explained.connection.id;
                explained.connection.id = numbers.remove(&own).unwrap_or(own);
                explained
            }));
        }
        // One move each: they are large.
        all.sort_by_cached_key(|explained| explained.connection.id);
        all
    }
}
