//! Several threads that analyse one capture, each its part of the connections: the result is that of one.
//!
//! Whichever has nothing left to do reads on for all ([`Relay`]): no further than to which connection a packet belongs.
//! Headers travel in batches that are used again, and few wait at a time: memory stays bounded. Where connections are wanted
//! as they finish, the capture is cut into rounds by its own packets and clock ([`super::rounds`]).

use super::feed::{Batch, Event, Feed, Rounds};
use super::input::Source;
use super::relay::{Lane, Relay};
use super::rounds::{Explain, Numbers, Part};
use fullpipe_flow::diagnosis::DiagnosedConnection;
use fullpipe_flow::{Analyzer, Config, Counts, Intake};
use fullpipe_report::analysis::Report;
use std::sync::mpsc::sync_channel;
use std::thread::ScopedJoinHandle;

/// Rounds that may wait to be told.
const UNTOLD: usize = 2;

/// Analyses a capture with `count` threads, this one among them; the result is that of one. Beside it, why a file was not
/// read to its end.
pub fn analyze(source: &Source, config: &Config, count: usize) -> (Report, Result<(), String>) {
    if count == 1 {
        let (mut packets, mut analyzer) = (source.packets(), Analyzer::new(config.clone()));
        while packets.read(|packet| _ = analyzer.push_packet(packet)) {}
        return (Report::new(source.name(), analyzer.finish()), packets.finish());
    }
    let relay = Relay::new(Feed::new(source.packets(), config), count);
    let analyze = |lane| {
        let mut analyzer = Analyzer::new(config.clone());
        work(lane, |event| match event {
            Event::Tick(now) => analyzer.retire(now),
            Event::Segment(arrival) => _ = analyzer.track(arrival),
            Event::Round => {}
        });
        Report::new(source.name(), analyzer.finish())
    };
    let parts: Vec<Report> = std::thread::scope(|scope| {
        let mut lanes = relay.lanes();
        let own = lanes.next();
        let others: Vec<_> = lanes.map(|lane| scope.spawn(|| analyze(lane))).collect();
        own.map(analyze).into_iter().chain(others.into_iter().map(joined)).collect()
    });
    let (counts, read) = ended(relay);
    (Report::merge(source.name(), counts, parts), read)
}

/// Analyses a capture with `count` threads and gives connections to `tell` as they finish, explained, a round at a time and
/// in the order of their first packets within it. Gives what was counted, and why a file was not read to its end.
///
/// # Errors
/// The first of `tell`; what comes after it is not told.
pub fn stream<E>(
    source: &Source,
    config: &Config,
    (count, explain): (usize, Explain),
    mut tell: impl FnMut(Vec<DiagnosedConnection>) -> Result<(), E>,
) -> Result<(Counts, Result<(), String>), E> {
    let mut told = Ok(());
    // The capture is read to its end all the same: the exit code is that of the whole.
    let mut tell = |connections: Vec<DiagnosedConnection>| {
        if told.is_ok() && !connections.is_empty() {
            told = tell(connections);
        }
    };
    let (counts, read) = match count {
        1 => alone(source, config, explain, &mut tell),
        _ => together(source, config, (count, explain), &mut tell),
    };
    told.map(|()| (counts, read))
}

/// Reads and analyses on this thread, with nothing to hand over.
fn alone(
    source: &Source,
    config: &Config,
    explain: Explain,
    tell: &mut impl FnMut(Vec<DiagnosedConnection>),
) -> (Counts, Result<(), String>) {
    let (mut part, mut numbers) = (Part::new(config.clone(), explain), Numbers::new(1));
    let (mut packets, mut intake, mut rounds) = (source.packets(), Intake::new(config), Rounds::default());
    let mut tell = |round| tell(numbers.put_together(vec![Some(round)]));
    let mut goes_on = true;
    while goes_on {
        goes_on = packets.read(|packet| {
            let tick = intake.tick(packet.at);
            rounds.before(tick).filter_map(|event| part.take(event)).for_each(&mut tell);
            if let Some(arrival) = intake.open(packet) {
                part.take(Event::Segment(&arrival)).into_iter().for_each(&mut tell);
            }
        });
    }
    let mut counts = intake.finish();
    counts += part.finish(tell);
    (counts, packets.finish())
}

/// Analyses on `count` threads, and tells on this.
fn together(
    source: &Source,
    config: &Config,
    (count, explain): (usize, Explain),
    tell: &mut impl FnMut(Vec<DiagnosedConnection>),
) -> (Counts, Result<(), String>) {
    let relay = Relay::new(Feed::new(source.packets(), config), count);
    let parts = std::thread::scope(|scope| {
        let (mut workers, mut parts) = (Vec::new(), Vec::new());
        for lane in relay.lanes() {
            let (tells, rounds) = sync_channel(UNTOLD);
            parts.push(rounds);
            workers.push(scope.spawn(move || {
                let mut part = Part::new(config.clone(), explain);
                // Who takes the rounds goes only where all the rest is given up.
                let tell = |round| drop(tells.send(round));
                work(lane, |event| part.take(event).into_iter().for_each(tell));
                part.finish(tell)
            }));
        }
        let mut numbers = Numbers::new(count);
        loop {
            let rounds: Vec<_> = parts.iter().map(|part| part.recv().ok()).collect();
            if rounds.iter().all(Option::is_none) {
                break;
            }
            tell(numbers.put_together(rounds));
        }
        workers.into_iter().map(joined).collect::<Vec<_>>()
    });
    let (mut counts, read) = ended(relay);
    parts.into_iter().for_each(|part| counts += part);
    (counts, read)
}

/// Takes all of a lane.
fn work(mut lane: Lane<'_, Feed<'_>>, mut take: impl FnMut(Event<'_>)) {
    while let Some(mut batch) = lane.next() {
        Batch::drain(&mut batch, &mut take);
        lane.give_back(batch);
    }
}

/// What was counted as a capture was read, and why not to its end.
fn ended(relay: Relay<Feed<'_>>) -> (Counts, Result<(), String>) {
    let panicked = || (Counts::default(), Err("reading a capture: a thread failed".into()));
    relay.into_source().map_or_else(panicked, Feed::finish)
}

fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
