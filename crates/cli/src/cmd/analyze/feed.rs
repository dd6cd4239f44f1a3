//! A capture as several threads take it: each batch has what happened to one thread's part of the connections.

use super::input::Packets;
use super::relay::Source;
use fullpipe_flow::capture::Packet;
use fullpipe_flow::{Arrival, Config, Counts, Headers, Intake, Sorted};
use fullpipe_model::units::{Duration, Instant};

/// Packets of a round, and the captured time after which it ends before it has them: a live capture is told as it comes.
const ROUND: u64 = 1 << 16;
const ROUND_TIME: Duration = Duration::from_secs(1);

/// What happens in a capture.
pub enum Event<'a> {
    Segment(&'a Arrival),
    /// The capture's clock moved on.
    Tick(Instant),
    /// A round ends here: what finished in it is told before what finishes in the next.
    Round,
}

/// Ends rounds, by the capture's packets and clock only.
#[derive(Default)]
pub struct Rounds {
    packets: u64,
    began: Instant,
}

impl Rounds {
    /// A packet comes, at a tick of the capture's clock or none; gives what happens before it.
    pub fn before(&mut self, tick: Option<Instant>) -> impl Iterator<Item = Event<'static>> + use<> {
        let ends = tick.filter(|now| {
            let is_over = now.since(self.began) >= ROUND_TIME || self.began.since(*now) >= ROUND_TIME;
            is_over || self.packets >= ROUND
        });
        if let Some(now) = ends {
            *self = Rounds { packets: 0, began: now };
        }
        self.packets += 1;
        tick.map(Event::Tick).into_iter().chain(ends.map(|_| Event::Round))
    }
}

/// Reads a capture and gives each packet to the thread of its connection, its plain headers unread.
pub struct Feed<'a> {
    packets: Packets<'a>,
    intake: Intake,
    rounds: Rounds,
}

impl<'a> Feed<'a> {
    /// From a capture's first packet.
    pub fn new(packets: Packets<'a>, config: &Config) -> Self {
        Feed { packets, intake: Intake::new(config), rounds: Rounds::default() }
    }

    /// What was counted, and why a file was not read to its end.
    pub fn finish(self) -> (Counts, Result<(), String>) {
        (self.intake.finish(), self.packets.finish())
    }
}

impl Source for Feed<'_> {
    type Batch = Batch;

    fn read(&mut self, batches: &mut [Batch]) -> bool {
        let Feed { packets, intake, rounds } = self;
        packets.read(|packet: &Packet<'_>| {
            let tick = intake.tick(packet.at);
            for event in rounds.before(tick) {
                let packed = match event {
                    Event::Tick(now) => Packed::Tick(now),
                    _ => Packed::Round,
                };
                batches.iter_mut().for_each(|batch| batch.events.push(packed));
            }
            if let Some(sorted) = intake.sort(packet) {
                batches[sorted.shard(batches.len())].push(sorted);
            }
        })
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
                Packed::Segment => read.next().into_iter().for_each(|arrival| take(Event::Segment(arrival))),
                Packed::Tick(now) => take(Event::Tick(*now)),
                Packed::Round => take(Event::Round),
            }
        }
        events.clear();
        headers.clear();
        segments.clear();
    }
}
