//! A capture as threads take it: its packets sorted, its clock's ticks, and the ends of rounds.
//!
//! [`Feed::read`] is the one place that reads. What it reads goes straight to the analysis where
//! there is one thread ([`Sink`]), and in batches to the threads of a
//! [`Relay`](crate::relay::Relay) where there are more: each batch has what happened to one
//! thread's part of the connections.

use crate::error::Error;
use crate::relay::Source;
use crate::stream::Stream;
use fullpipe_flow::capture::Packet;
use fullpipe_flow::{Arrival, Config, Counts, Headers, Intake, Sorted};
use fullpipe_model::units::{Duration, Instant};

/// Packets of a round, and the captured time after which it ends before it has them: a live capture
/// is reported as it comes. Rounds end at ticks of the capture's clock, as connections do.
const ROUND: u64 = 1 << 16;
const ROUND_TIME: Duration = Duration::from_secs(1);
/// Packets after which a round ends without a tick: in a capture without times there is none.
const ROUND_MAX: u64 = 4 * ROUND;

/// What happens in a capture.
pub enum Event<'a> {
    /// The capture's first packet is of this time.
    Start(Instant),
    Segment(&'a Arrival),
    /// The capture's clock moved on.
    Tick(Instant),
    /// A round ends here: what finished in it is given before what finishes in the next.
    Round,
}

/// Who takes what is read.
pub trait Sink {
    /// What happens between packets.
    fn event(&mut self, event: Event<'static>);
    /// A packet, to be counted by `intake`.
    fn packet(&mut self, intake: &mut Intake, packet: &Packet<'_>);
}

/// Reads a capture.
pub struct Feed {
    stream: Stream,
    intake: Intake,
    rounds: Rounds,
}

impl Feed {
    /// From a capture's first packet.
    pub fn new(stream: Stream, config: &Config) -> Self {
        Feed { stream, intake: Intake::new(config), rounds: Rounds::default() }
    }

    /// Reads on; false once nothing is left.
    pub fn read(&mut self, sink: &mut impl Sink) -> bool {
        let Feed { stream, intake, rounds } = self;
        stream.read(|packet| {
            let tick = intake.tick(packet.at);
            rounds.before(packet.at, tick, |event| sink.event(event));
            sink.packet(intake, packet);
        })
    }

    /// What was counted, and why files were not read to their ends.
    pub fn finish(self) -> (Counts, Vec<Error>) {
        (self.intake.finish(), self.stream.into_errors())
    }
}

/// Ends rounds, by the capture's packets and clock only.
#[derive(Default)]
struct Rounds {
    has_begun: bool,
    packets: u64,
    began: Instant,
}

impl Rounds {
    /// A packet comes, with a tick of the capture's clock or none; gives what happens before it.
    #[inline]
    fn before(
        &mut self,
        at: Instant,
        tick: Option<Instant>,
        mut event: impl FnMut(Event<'static>),
    ) {
        if !self.has_begun {
            self.has_begun = true;
            event(Event::Start(at));
        }
        let mut ends = self.packets >= ROUND_MAX;
        if let Some(now) = tick {
            let is_over =
                now.since(self.began) >= ROUND_TIME || self.began.since(now) >= ROUND_TIME;
            ends |= is_over || self.packets >= ROUND;
            event(Event::Tick(now));
        }
        if ends {
            self.packets = 0;
            self.began = tick.unwrap_or(self.began);
            event(Event::Round);
        }
        self.packets += 1;
    }
}

impl Source for Feed {
    type Batch = Batch;

    fn read(&mut self, batches: &mut [Batch]) -> bool {
        Feed::read(self, &mut Batches(batches))
    }
}

/// A batch for each thread.
struct Batches<'a>(&'a mut [Batch]);

impl Sink for Batches<'_> {
    fn event(&mut self, event: Event<'static>) {
        let packed = match event {
            Event::Start(at) => Packed::Start(at),
            Event::Tick(now) => Packed::Tick(now),
            Event::Round => Packed::Round,
            Event::Segment(_) => return,
        };
        self.0.iter_mut().for_each(|batch| batch.events.push(packed));
    }

    fn packet(&mut self, intake: &mut Intake, packet: &Packet<'_>) {
        if let Some(sorted) = intake.sort(packet) {
            self.0[sorted.shard(self.0.len())].push(sorted);
        }
    }
}

/// Events for one thread, in the capture's order.
#[derive(Default)]
pub struct Batch {
    events: Vec<Packed>,
    /// What belongs to [`Packed::Headers`], one after another.
    headers: Vec<u8>,
    /// What belongs to [`Packed::Segment`].
    segments: Vec<Arrival>,
}

#[derive(Clone, Copy)]
enum Packed {
    Headers(Headers),
    Segment,
    Start(Instant),
    Tick(Instant),
    Round,
}

impl Batch {
    fn push(&mut self, sorted: Sorted<'_>) {
        match sorted {
            Sorted::Headers(headers, bytes, _) => {
                self.events.push(Packed::Headers(headers));
                self.headers.extend_from_slice(bytes);
            }
            Sorted::Segment(arrival) => {
                self.events.push(Packed::Segment);
                self.segments.push(arrival);
            }
        }
    }

    /// Takes all events.
    pub fn drain(&mut self, mut take: impl FnMut(Event<'_>)) {
        let Batch { events, headers, segments } = self;
        let (mut bytes, mut read) = (&headers[..], segments.iter());
        for packed in &*events {
            match packed {
                Packed::Headers(packet) => {
                    let (own, behind) = bytes.split_at(packet.bytes());
                    bytes = behind;
                    if let Some(arrival) = packet.read(own) {
                        take(Event::Segment(&arrival));
                    }
                }
                Packed::Segment => {
                    read.next().into_iter().for_each(|arrival| take(Event::Segment(arrival)));
                }
                Packed::Start(at) => take(Event::Start(*at)),
                Packed::Tick(now) => take(Event::Tick(*now)),
                Packed::Round => take(Event::Round),
            }
        }
        events.clear();
        headers.clear();
        segments.clear();
    }
}
