//! The loop of every analysis: reads a capture in rounds, with one thread or several.
//!
//! The capture's own packets and clock cut it into rounds ([`crate::feed`]). Each thread has a
//! [`Part`] of the connections, and the results of a round are combined from all parts before the
//! next round is considered. So the result does not depend on the number of threads, and memory
//! does not grow with the capture.
//!
//! With one thread, the caller's own thread reads and analyses whenever the caller asks for the
//! next round. With more, whichever thread is idle reads on for all ([`Relay`]) and parses each
//! packet only as far as needed to find its connection. Headers travel in reused batches, and only
//! few rounds are queued.

use crate::error::Error;
use crate::feed::{CaptureEvent, Feed, Sink};
use crate::options::Options;
use crate::relay::{Lane, Relay};
use crate::stream::PacketStream;
use fullpipe_flow::capture::Packet;
use fullpipe_flow::{Config, Counts, Intake};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

/// The most queued rounds of a thread.
const WAITING: usize = 2;

/// One thread's part of the connections, in rounds.
pub trait Part: Send + Sized + 'static {
    /// The result of a round.
    type Round: Send + 'static;
    /// The last rounds.
    type Last: Iterator<Item = Self::Round>;

    /// Handles an event; returns the result of a round if it ends one.
    fn take(&mut self, event: CaptureEvent<'_>) -> Option<Self::Round>;
    /// Ends the capture; returns the last rounds, and this part's counts.
    fn finish(self) -> (Self::Last, Counts);
}

/// What is known at the end of a capture.
#[derive(Default)]
pub struct End {
    pub counts: Counts,
    pub errors: Vec<Error>,
}

/// A running analysis.
pub struct Drive<P: Part> {
    threads: Threads<P>,
    end: End,
}

enum Threads<P: Part> {
    One(Box<Alone<P>>),
    /// Only the caller's thread, after the end of the capture.
    Last(P::Last),
    Several(Together<P>),
    Ended,
}

impl<P: Part> Drive<P> {
    pub fn new(stream: PacketStream, options: &Options, new: impl Fn(&Config) -> P) -> Self {
        let feed = Feed::new(stream, &options.config);
        let count = options.threads.get();
        // All parts together keep open what one would.
        let max_open = options.config.max_open.div_ceil(count);
        let config = Config { max_open, ..options.config.clone() };
        let threads = match count {
            1 => {
                Threads::One(Box::new(Alone { feed, part: new(&config), rounds: VecDeque::new() }))
            }
            count => Threads::Several(Together::start(feed, count, || new(&config))),
        };
        Drive { threads, end: End::default() }
    }

    /// The next round of each part, with `None` for parts that have ended; `None` at the end.
    pub fn next(&mut self) -> Option<Vec<Option<P::Round>>> {
        loop {
            match &mut self.threads {
                Threads::One(alone) => {
                    if let Some(round) = alone.next() {
                        return Some(vec![Some(round)]);
                    }
                }
                Threads::Last(rounds) => {
                    if let Some(round) = rounds.next() {
                        return Some(vec![Some(round)]);
                    }
                }
                Threads::Several(together) => {
                    let rounds: Vec<_> =
                        together.rounds.iter().map(|part| part.recv().ok()).collect();
                    if rounds.iter().any(Option::is_some) {
                        return Some(rounds);
                    }
                }
                Threads::Ended => return None,
            }
            self.threads = match std::mem::replace(&mut self.threads, Threads::Ended) {
                Threads::One(alone) => {
                    let (mut counts, errors) = alone.feed.finish();
                    let (last, own) = alone.part.finish();
                    counts += own;
                    self.end = End { counts, errors };
                    Threads::Last(last)
                }
                Threads::Several(together) => {
                    self.end = together.join();
                    Threads::Ended
                }
                Threads::Last(_) | Threads::Ended => Threads::Ended,
            };
        }
    }

    /// What is known at the end, after [`Drive::next`] returned `None`.
    pub fn end(&mut self) -> &mut End {
        &mut self.end
    }
}

/// The caller's thread reads and analyses alone.
struct Alone<P: Part> {
    feed: Feed,
    part: P,
    rounds: VecDeque<P::Round>,
}

impl<P: Part> Alone<P> {
    /// Reads until a round has ended; `None` at the end of the capture.
    fn next(&mut self) -> Option<P::Round> {
        let Alone { feed, part, rounds } = self;
        while rounds.is_empty() && feed.read(&mut Straight { part, rounds }) {}
        rounds.pop_front()
    }
}

/// Passes what is read to the only part.
struct Straight<'a, P: Part> {
    part: &'a mut P,
    rounds: &'a mut VecDeque<P::Round>,
}

impl<P: Part> Sink for Straight<'_, P> {
    fn event(&mut self, event: CaptureEvent<'_>) {
        self.rounds.extend(self.part.take(event));
    }

    #[inline]
    fn packet(&mut self, intake: &mut Intake, packet: &Packet<'_>) {
        if let Some((arrival, words)) = intake.open(packet) {
            // A segment never ends a round.
            self.part.take(CaptureEvent::Segment(&arrival, words));
        }
    }
}

/// Several threads that read and analyse, each its part.
struct Together<P: Part> {
    relay: Arc<Relay<Feed>>,
    threads: Vec<JoinHandle<Counts>>,
    rounds: Vec<Receiver<P::Round>>,
}

impl<P: Part> Together<P> {
    fn start(feed: Feed, count: usize, new: impl Fn() -> P) -> Self {
        let relay = Arc::new(Relay::new(feed, count));
        let (mut threads, mut rounds) = (Vec::new(), Vec::new());
        for lane in relay.lanes() {
            let (give, take) = sync_channel(WAITING);
            rounds.push(take);
            let part = new();
            threads.push(std::thread::spawn(move || work(lane, part, &give)));
        }
        Together { relay, threads, rounds }
    }

    fn join(mut self) -> End {
        let mut end = End::default();
        let joined = std::mem::take(&mut self.threads).into_iter().map(JoinHandle::join);
        for counts in joined {
            end.counts += counts.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        }
        match self.relay.take_source() {
            Some(feed) => {
                let (counts, errors) = feed.finish();
                end.counts += counts;
                end.errors = errors;
            }
            None => end.errors.push(Error::Thread),
        }
        end
    }
}

impl<P: Part> Drop for Together<P> {
    fn drop(&mut self) {
        // Threads whose rounds nobody takes end by themselves, but one of them may be waiting in a
        // read.
        self.relay.stop();
    }
}

/// Processes everything in a lane.
fn work<P: Part>(mut lane: Lane<Feed>, mut part: P, rounds: &SyncSender<P::Round>) -> Counts {
    while let Some(mut batch) = lane.next() {
        batch.drain(|event| give(part.take(event), rounds));
        lane.give_back(batch);
    }
    let (last, counts) = part.finish();
    give(last, rounds);
    counts
}

fn give<R>(done: impl IntoIterator<Item = R>, rounds: &SyncSender<R>) {
    // The receiver is dropped only when the whole analysis is abandoned.
    done.into_iter().for_each(|round| drop(rounds.send(round)));
}
