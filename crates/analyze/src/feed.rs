//! A capture as threads process it: its packets assigned to parts, its clock's ticks, and the ends
//! of rounds.
//!
//! Only [`Feed::read`] reads. With one thread the packets go directly to the analysis ([`Sink`]);
//! with more, they go in batches to the threads of a [`Relay`](crate::relay::Relay), and each batch
//! has the events of one thread's part of the connections.

use crate::error::Error;
use crate::relay::Source;
use crate::stream::PacketStream;
use fullpipe_flow::capture::{FileItem, Packet};
use fullpipe_flow::{Arrival, Config, Counts, Headers, Intake, Sorted};
use fullpipe_model::units::{Duration, Instant};

/// The packets of a round; a round may end earlier, after the captured time of a tick, so that a
/// live capture is reported as it comes. Rounds end at ticks of the capture's clock, as connections
/// do.
const ROUND: u64 = 1 << 16;
const ROUND_TIME: Duration = Duration::from_secs(1);
/// Packets after which a round ends without a tick, because a capture without times has no ticks.
/// Each of them may be a connection, and all that end in a round are held until it ends.
const ROUND_MAX: u64 = 2 * ROUND;

/// An event in a capture.
pub enum CaptureEvent<'a> {
    /// The time of the capture's first packet.
    Start(Instant),
    /// A segment, with the words in it.
    Segment(&'a Arrival, &'a [u8]),
    /// The capture's clock advanced.
    Tick(Instant),
    /// The time of the capture's last packet, which no tick tells.
    End(Instant),
    /// Secrets of TLS connections, before their packets.
    Secrets(&'a [u8]),
    /// A round ends: what finished in it is reported before what finishes in the next.
    Round,
}

/// Receives what is read.
pub trait Sink {
    /// Handles an event between packets.
    fn event(&mut self, event: CaptureEvent<'_>);
    /// Handles a packet, which `intake` counts.
    fn packet(&mut self, intake: &mut Intake, packet: &Packet<'_>);
}

/// Reads a capture.
pub struct Feed {
    stream: PacketStream,
    intake: Intake,
    rounds: Rounds,
}

impl Feed {
    /// A reader at the first packet of a capture.
    pub fn new(stream: PacketStream, config: &Config) -> Self {
        Feed { stream, intake: Intake::new(config), rounds: Rounds::default() }
    }

    /// Reads on; false if nothing is left.
    pub fn read(&mut self, sink: &mut impl Sink) -> bool {
        let Feed { stream, intake, rounds } = self;
        let goes_on = stream.read(|found| {
            let packet = match found {
                FileItem::Packet(packet) => packet,
                FileItem::Secrets(log) => {
                    intake.learn(log);
                    return sink.event(CaptureEvent::Secrets(log));
                }
            };
            let tick = intake.tick(packet.at);
            rounds.before(packet.at, tick, |event| sink.event(event));
            sink.packet(intake, packet);
        });
        if !goes_on {
            sink.event(CaptureEvent::End(intake.now()));
        }
        goes_on
    }

    /// Counts, and why files were not read to their ends.
    pub fn finish(self) -> (Counts, Vec<Error>) {
        let (mut counts, errors) = self.stream.finish();
        counts += self.intake.finish();
        (counts, errors)
    }
}

/// Ends rounds, only by the capture's packets and clock.
#[derive(Default)]
struct Rounds {
    has_begun: bool,
    packets: u64,
    began: Instant,
}

impl Rounds {
    /// Called for each packet, with a tick of the capture's clock if there is one; returns the
    /// events before the packet.
    #[inline]
    fn before(
        &mut self,
        at: Instant,
        tick: Option<Instant>,
        mut event: impl FnMut(CaptureEvent<'_>),
    ) {
        if !self.has_begun {
            self.has_begun = true;
            event(CaptureEvent::Start(at));
        }
        let mut ends = self.packets >= ROUND_MAX;
        if let Some(now) = tick {
            let is_over =
                now.since(self.began) >= ROUND_TIME || self.began.since(now) >= ROUND_TIME;
            ends |= is_over || self.packets >= ROUND;
            event(CaptureEvent::Tick(now));
        }
        if ends {
            self.packets = 0;
            self.began = tick.unwrap_or(self.began);
            event(CaptureEvent::Round);
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

/// One batch for each thread.
struct Batches<'a>(&'a mut [Batch]);

impl Sink for Batches<'_> {
    fn event(&mut self, event: CaptureEvent<'_>) {
        let packed = match event {
            CaptureEvent::Start(at) => Packed::Start(at),
            CaptureEvent::Tick(now) => Packed::Tick(now),
            CaptureEvent::End(at) => Packed::End(at),
            CaptureEvent::Round => Packed::Round,
            CaptureEvent::Secrets(log) => {
                for batch in self.0.iter_mut() {
                    batch.events.push(Packed::Secrets(log.len()));
                    batch.headers.extend_from_slice(log);
                }
                return;
            }
            CaptureEvent::Segment(..) => return,
        };
        self.0.iter_mut().for_each(|batch| batch.events.push(packed));
    }

    fn packet(&mut self, intake: &mut Intake, packet: &Packet<'_>) {
        if let Some(sorted) = intake.sort(packet) {
            self.0[sorted.shard(self.0.len())].push(sorted);
        }
    }
}

/// Events for one thread, in the order of the capture.
#[derive(Default)]
pub struct Batch {
    events: Vec<Packed>,
    /// The data of [`Packed::Headers`], the words of [`Packed::Segment`] and key logs, one after
    /// another.
    headers: Vec<u8>,
    /// The data of [`Packed::Segment`].
    segments: Vec<Arrival>,
}

#[derive(Clone, Copy)]
enum Packed {
    Headers(Headers),
    /// With the length of its words.
    Segment(usize),
    /// With the length of the key log.
    Secrets(usize),
    Start(Instant),
    Tick(Instant),
    End(Instant),
    Round,
}

impl Batch {
    fn push(&mut self, sorted: Sorted<'_>) {
        match sorted {
            Sorted::Headers(headers, bytes, _) => {
                self.events.push(Packed::Headers(headers));
                self.headers.extend_from_slice(bytes);
            }
            Sorted::Segment(arrival, words) => {
                self.events.push(Packed::Segment(words.len()));
                self.segments.push(arrival);
                self.headers.extend_from_slice(words);
            }
        }
    }

    /// Removes all events.
    pub fn drain(&mut self, mut take: impl FnMut(CaptureEvent<'_>)) {
        let Batch { events, headers, segments } = self;
        let (mut bytes, mut read) = (&headers[..], segments.iter());
        for packed in &*events {
            match packed {
                Packed::Headers(packet) => {
                    let (own, behind) = bytes.split_at(packet.bytes());
                    bytes = behind;
                    if let Some((arrival, words)) = packet.read(own) {
                        take(CaptureEvent::Segment(&arrival, words));
                    }
                }
                Packed::Segment(length) => {
                    let (words, behind) = bytes.split_at(*length);
                    bytes = behind;
                    read.next()
                        .into_iter()
                        .for_each(|arrival| take(CaptureEvent::Segment(arrival, words)));
                }
                Packed::Secrets(length) => {
                    let (log, behind) = bytes.split_at(*length);
                    bytes = behind;
                    take(CaptureEvent::Secrets(log));
                }
                Packed::Start(at) => take(CaptureEvent::Start(*at)),
                Packed::Tick(now) => take(CaptureEvent::Tick(*now)),
                Packed::End(at) => take(CaptureEvent::End(*at)),
                Packed::Round => take(CaptureEvent::Round),
            }
        }
        events.clear();
        headers.clear();
        segments.clear();
    }
}
