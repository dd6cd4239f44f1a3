//! One thread reads packets down to their TCP headers, others analyse: each has its part of the connections.
//!
//! Segments travel in batches that are used again, and few wait at a time: the slowest thread sets the pace, and memory
//! stays bounded. Where connections are wanted as they finish, the capture is cut into rounds by its own packets and clock:
//! what finished in a round is put together, numbered and told before what finished in the next, so that the answer does
//! not depend on how many threads there are.

use super::input::Source;
use fullpipe_flow::capture::Packet;
use fullpipe_flow::connection::Connection;
use fullpipe_flow::{Analysis, Analyzer, Arrival, Config, Counts, Intake};
use fullpipe_model::units::{Duration, Instant};
use fullpipe_report::analysis::Explained;
use std::collections::HashMap;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::ScopedJoinHandle;

/// Events of a batch (some 100 KB, so that what one core wrote is still in a cache when another reads it), and batches
/// that may wait for a thread.
const BATCH: usize = 512;
const WAITING: usize = 8;
/// Packets of a round, and the captured time after which it ends before it has them: a live capture is told as it comes.
const ROUND: u64 = 1 << 16;
const ROUND_TIME: Duration = Duration::from_secs(1);
/// Rounds that may wait to be told.
const UNTOLD: usize = 2;

#[derive(Clone, Copy)]
enum Event {
    Segment(Arrival),
    /// The capture's clock moved on.
    Tick(Instant),
    /// A round ends here.
    Round,
}

/// Analyses a capture with `count` threads; the result is that of one. Beside it, why a file was not read to its end.
pub fn analyze(source: &Source, config: &Config, count: usize) -> (Analysis, Result<(), String>) {
    std::thread::scope(|scope| {
        let (mut lanes, mut workers) = (Vec::new(), Vec::new());
        for _ in 0..count {
            let (lane, batches, done) = Lane::new();
            workers.push(scope.spawn(move || {
                let mut analyzer = Analyzer::new(config.clone());
                work(&batches, &done, |event| match event {
                    Event::Tick(now) => analyzer.retire(now),
                    Event::Segment(arrival) => drop(analyzer.track(&arrival)),
                    Event::Round => {}
                });
                analyzer.finish()
            }));
            lanes.push(lane);
        }
        let (counts, read) = distribute(source, config, lanes);
        (Analysis::merge(counts, workers.into_iter().map(joined)), read)
    })
}

/// Analyses a capture with `count` threads and gives connections to `tell` as they finish, a round at a time and in the
/// order of their first packets within it. Gives what was counted, and why a file was not read to its end.
///
/// # Errors
/// The first of `tell`; what comes after it is not told.
pub fn stream<E>(
    source: &Source,
    config: &Config,
    count: usize,
    mut tell: impl FnMut(Vec<Explained>) -> Result<(), E>,
) -> Result<(Counts, Result<(), String>), E> {
    let mut told = Ok(());
    // The capture is read to its end all the same: the exit code is that of the whole.
    let mut tell = |connections| {
        if told.is_ok() {
            told = tell(connections);
        }
    };
    let (counts, read) =
        if count == 1 { alone(source, config, &mut tell) } else { together(source, config, count, &mut tell) };
    told.map(|()| (counts, read))
}

/// Reads and analyses on this thread, with nothing to hand over.
fn alone(source: &Source, config: &Config, tell: &mut impl FnMut(Vec<Explained>)) -> (Counts, Result<(), String>) {
    let (mut intake, mut part, mut numbers) = (Intake::new(config), Part::new(config.clone()), Numbers::new(1));
    let read = events(source, &mut intake, |event| {
        if let Some(round) = part.take(event) {
            tell(numbers.put_together(vec![round]));
        }
    });
    let (counts, round) = part.finish();
    tell(numbers.put_together(vec![round]));
    let mut all = intake.finish();
    all += counts;
    (all, read)
}

/// Reads on one thread, analyses on `count`, and tells on this.
fn together(
    source: &Source,
    config: &Config,
    count: usize,
    tell: &mut impl FnMut(Vec<Explained>),
) -> (Counts, Result<(), String>) {
    std::thread::scope(|scope| {
        let (mut lanes, mut workers, mut parts) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..count {
            let (lane, batches, done) = Lane::new();
            let (tells, rounds) = sync_channel(UNTOLD);
            workers.push(scope.spawn(move || {
                let mut part = Part::new(config.clone());
                // Who takes the rounds goes only where all the rest is given up.
                work(&batches, &done, |event| part.take(event).into_iter().for_each(|round| drop(tells.send(round))));
                let (counts, round) = part.finish();
                let _ = tells.send(round);
                counts
            }));
            lanes.push(lane);
            parts.push(rounds);
        }
        let reader = scope.spawn(move || distribute(source, config, lanes));
        let mut numbers = Numbers::new(count);
        while let Some(rounds) = parts.iter().map(|part| part.recv().ok()).collect::<Option<Vec<_>>>() {
            tell(numbers.put_together(rounds));
        }
        let (mut counts, read) = joined(reader);
        workers.into_iter().for_each(|worker| counts += joined(worker));
        (counts, read)
    })
}

/// Reads a capture and gives each segment to the lane of its connection.
fn distribute(source: &Source, config: &Config, mut lanes: Vec<Lane>) -> (Counts, Result<(), String>) {
    let count = lanes.len();
    let mut intake = Intake::new(config);
    let read = events(source, &mut intake, |event| match event {
        Event::Segment(arrival) => lanes[arrival.shard(count)].push(event),
        Event::Tick(_) => lanes.iter_mut().for_each(|lane| lane.push(event)),
        Event::Round => lanes.iter_mut().for_each(Lane::end_round),
    });
    lanes.into_iter().for_each(Lane::finish);
    (intake.finish(), read)
}

/// Reads a capture down to what happens in it.
fn events(source: &Source, intake: &mut Intake, mut take: impl FnMut(Event)) -> Result<(), String> {
    let (mut packets, mut began) = (0, Instant::ZERO);
    let each = |packet: &Packet<'_>| {
        if let Some(now) = intake.tick(packet.at) {
            take(Event::Tick(now));
            if now.since(began) >= ROUND_TIME || began.since(now) >= ROUND_TIME || packets >= ROUND {
                (packets, began) = (0, now);
                take(Event::Round);
            }
        }
        packets += 1;
        if let Some(arrival) = intake.open(packet) {
            take(Event::Segment(arrival));
        }
    };
    source.packets(each)
}

fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// The way to one thread, and back for the batches that it is done with.
struct Lane {
    batch: Vec<Event>,
    full: SyncSender<Vec<Event>>,
    empty: Receiver<Vec<Event>>,
}

impl Lane {
    fn new() -> (Self, Receiver<Vec<Event>>, Sender<Vec<Event>>) {
        let (full, batches) = sync_channel(WAITING);
        let (done, empty) = channel();
        (Lane { batch: Vec::with_capacity(BATCH), full, empty }, batches, done)
    }

    fn push(&mut self, event: Event) {
        self.batch.push(event);
        if self.batch.len() >= BATCH {
            self.send();
        }
    }

    fn end_round(&mut self) {
        self.batch.push(Event::Round);
        self.send();
    }

    fn send(&mut self) {
        let next = self.empty.try_recv().unwrap_or_else(|_| Vec::with_capacity(BATCH));
        // A thread ends before its lane only by a panic, which the join tells.
        let _ = self.full.send(std::mem::replace(&mut self.batch, next));
    }

    fn finish(mut self) {
        self.send();
    }
}

fn work(batches: &Receiver<Vec<Event>>, done: &Sender<Vec<Event>>, mut take: impl FnMut(Event)) {
    for mut batch in batches {
        batch.drain(..).for_each(&mut take);
        // The reader may have finished; nobody needs the batch then.
        let _ = done.send(batch);
    }
}

/// What happened to one thread's part of the connections in a round.
struct Round {
    /// Of each that opened, the number of its first packet.
    opened: Vec<u64>,
    finished: Vec<Explained>,
}

/// One thread's part of the connections, told round by round.
struct Part {
    analyzer: Analyzer,
    opened: Vec<u64>,
    count: u64,
}

impl Part {
    fn new(config: Config) -> Self {
        Part { analyzer: Analyzer::new(config), opened: Vec::new(), count: 0 }
    }

    /// Gives what happened in a round where one ends.
    fn take(&mut self, event: Event) -> Option<Round> {
        match event {
            Event::Tick(now) => self.analyzer.retire(now),
            Event::Segment(arrival) => {
                // An analyzer counts its connections from 0.
                if self.analyzer.track(&arrival).is_some_and(|facts| facts.connection == self.count) {
                    self.count += 1;
                    self.opened.push(arrival.number);
                }
            }
            Event::Round => {
                let finished = self.analyzer.drain();
                return Some(Round::new(std::mem::take(&mut self.opened), finished));
            }
        }
        None
    }

    fn finish(self) -> (Counts, Round) {
        let Analysis { counts, connections } = self.analyzer.finish();
        (counts, Round::new(self.opened, connections))
    }
}

impl Round {
    fn new(opened: Vec<u64>, finished: Vec<Connection>) -> Self {
        Round { opened, finished: finished.into_iter().map(Explained::new).collect() }
    }
}

/// From each thread's numbers of its open connections to those of the whole capture: by first packet, as one analyzer
/// counts them.
struct Numbers {
    /// For each thread, how many it opened, and the numbers of those that are open.
    parts: Vec<(u64, HashMap<u64, u64>)>,
    next: u64,
}

impl Numbers {
    fn new(count: usize) -> Self {
        Numbers { parts: vec![Default::default(); count], next: 0 }
    }

    /// The connections that finished in a round, by their numbers in the capture.
    fn put_together(&mut self, rounds: Vec<Round>) -> Vec<Explained> {
        let mut opened: Vec<(u64, usize)> = Vec::new();
        for (part, round) in rounds.iter().enumerate() {
            opened.extend(round.opened.iter().map(|first| (*first, part)));
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
            all.extend(round.finished.into_iter().map(|mut explained| {
                let own = explained.connection.id;
                explained.connection.id = numbers.remove(&own).unwrap_or(own);
                explained
            }));
        }
        all.sort_unstable_by_key(|explained| explained.connection.id);
        all
    }
}
