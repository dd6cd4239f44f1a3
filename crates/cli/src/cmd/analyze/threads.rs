//! One thread reads packets down to their TCP headers, others analyse: each has its part of the connections.
//!
//! Segments travel in batches that are used again, and few wait at a time: the slowest thread sets the pace, and memory
//! stays bounded.

use super::input::Source;
use fullpipe_flow::{Analysis, Analyzer, Arrival, Config, Intake};
use fullpipe_model::units::Instant;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};

/// Events of a batch (some 100 KB, so that what one core wrote is still in a cache when another reads it), and batches
/// that may wait for a thread.
const BATCH: usize = 512;
const WAITING: usize = 8;

enum Event {
    Segment(Arrival),
    /// The capture's clock moved on.
    Tick(Instant),
}

/// Analyses a capture with `count` threads; the result is that of one. Beside it, why a file was not read to its end.
pub fn analyze(source: &Source, config: &Config, count: usize) -> (Analysis, Result<(), String>) {
    std::thread::scope(|scope| {
        let (mut lanes, mut workers) = (Vec::new(), Vec::new());
        for _ in 0..count {
            let (full, batches) = sync_channel(WAITING);
            let (done, empty) = channel();
            workers.push(scope.spawn(move || work(config.clone(), &batches, &done)));
            lanes.push(Lane { batch: Vec::with_capacity(BATCH), full, empty });
        }
        let mut intake = Intake::new(config);
        let read = source.packets(
            |packet| {
                if let Some(now) = intake.tick(packet.at) {
                    lanes.iter_mut().for_each(|lane| lane.push(Event::Tick(now)));
                }
                if let Some(arrival) = intake.open(packet) {
                    lanes[arrival.shard(count)].push(Event::Segment(arrival));
                }
            },
            || {},
        );
        lanes.into_iter().for_each(Lane::finish);
        let part = |worker: std::thread::ScopedJoinHandle<'_, Analysis>| {
            worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        let parts = std::iter::once(intake.finish()).chain(workers.into_iter().map(part));
        (Analysis::merge(parts), read)
    })
}

/// The way to one thread, and back for the batches that it is done with.
struct Lane {
    batch: Vec<Event>,
    full: SyncSender<Vec<Event>>,
    empty: Receiver<Vec<Event>>,
}

impl Lane {
    fn push(&mut self, event: Event) {
        self.batch.push(event);
        if self.batch.len() == BATCH {
            let next = self.empty.try_recv().unwrap_or_else(|_| Vec::with_capacity(BATCH));
            // A thread ends before its lane only by a panic, which the join tells.
            let _ = self.full.send(std::mem::replace(&mut self.batch, next));
        }
    }

    fn finish(self) {
        let _ = self.full.send(self.batch);
    }
}

fn work(config: Config, batches: &Receiver<Vec<Event>>, done: &Sender<Vec<Event>>) -> Analysis {
    let mut analyzer = Analyzer::new(config);
    for mut batch in batches {
        for event in batch.drain(..) {
            match event {
                Event::Tick(now) => analyzer.retire(now),
                Event::Segment(arrival) => {
                    analyzer.track(&arrival);
                }
            }
        }
        // The reader may have finished; nobody needs the batch then.
        let _ = done.send(batch);
    }
    analyzer.finish()
}
