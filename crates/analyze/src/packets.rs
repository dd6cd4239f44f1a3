//! The packets of a capture's connections, each with its labels.

use crate::drive::{Drive, Part};
use crate::error::Error;
use crate::feed::CaptureEvent;
use crate::numbers::Numbers;
use crate::options::Options;
use crate::rounds::Opening;
use crate::stream::PacketStream;
use fullpipe_flow::capture::segment::{Flags, Segment, SequenceNumber};
use fullpipe_flow::connection::Direction;
use fullpipe_flow::schema::PacketRow;
use fullpipe_flow::{Arrival, Config, Counts, Ended, PacketFacts};
use fullpipe_model::units::{Duration, Instant};
use std::collections::HashMap;

/// A packet of a TCP connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LabelledPacket {
    /// Its number in the capture, from 1.
    pub number: u64,
    /// When it was captured.
    pub at: Instant,
    /// Time since the capture's first packet.
    pub time: Duration,
    /// Its connection by the capture's numbers, its direction, its labels and why they differ from
    /// Wireshark's.
    pub facts: PacketFacts,
    /// The segment.
    pub segment: Segment,
    /// Its sequence number, relative to the direction's first.
    pub sequence: u32,
    /// Its acknowledgement number, relative to the other direction's first; `None` without ACK.
    pub ack: Option<u32>,
}

impl LabelledPacket {
    /// Its row in a table of packets. `file`: what the table calls the capture.
    pub fn row<'r>(&'r self, file: &'r str) -> PacketRow<'r> {
        let LabelledPacket { number, at, ref facts, ref segment, sequence, ack, .. } = *self;
        PacketRow { file, number, at, facts, segment, sequence, ack }
    }
}

/// The packets of a capture's TCP connections in the order of the capture, each parsed once, by
/// [`Options::threads`] threads. If the capture could not be read to its end, the error comes last.
pub struct LabelledPackets {
    drive: Drive<Labelling>,
    numbers: Numbers,
    round: std::vec::IntoIter<LabelledPacket>,
}

impl LabelledPackets {
    pub(crate) fn new(stream: PacketStream, options: &Options) -> Self {
        LabelledPackets {
            drive: Drive::new(stream, options, Labelling::new),
            numbers: Numbers::new(options.threads.get()),
            round: Vec::new().into_iter(),
        }
    }

    /// What was counted in the capture, once the packets have ended.
    pub fn counts(&mut self) -> Counts {
        self.drive.end().counts
    }

    fn put_together(&mut self, rounds: &[Option<Round>]) -> Vec<LabelledPacket> {
        let opened = rounds.iter().enumerate();
        self.numbers.open(opened.flat_map(|(part, round)| Some((part, &*round.as_ref()?.opened))));
        let mut all =
            Vec::with_capacity(rounds.iter().flatten().map(|round| round.packets.len()).sum());
        for (part, round) in rounds.iter().enumerate() {
            let Some(round) = round else { continue };
            all.extend(round.packets.iter().map(|packet| {
                let connection = self.numbers.of(part, packet.facts.connection);
                let facts = PacketFacts { connection, ..packet.facts };
                LabelledPacket { facts, ..*packet }
            }));
            for own in &round.finished {
                self.numbers.close(part, *own);
            }
        }
        // Each part's packets are already in order.
        all.sort_by_key(|packet| packet.number);
        all
    }
}

impl Iterator for LabelledPackets {
    type Item = Result<LabelledPacket, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(packet) = self.round.next() {
                return Some(Ok(packet));
            }
            let Some(rounds) = self.drive.next() else {
                let errors = &mut self.drive.end().errors;
                return (!errors.is_empty()).then(|| Err(errors.remove(0)));
            };
            self.round = self.put_together(&rounds).into_iter();
        }
    }
}

/// One thread's part of the connections, when their packets are wanted.
struct Labelling {
    opening: Opening,
    start: Instant,
    /// First sequence numbers of the client and the server, for open connections.
    first: HashMap<u64, [Option<SequenceNumber>; 2]>,
    packets: Vec<LabelledPacket>,
}

/// The result of one part in a round.
struct Round {
    /// The number of the first packet of each connection that opened.
    opened: Vec<u64>,
    /// The part's own numbers of connections that finished.
    finished: Vec<u64>,
    packets: Vec<LabelledPacket>,
}

impl Labelling {
    fn new(config: &Config) -> Self {
        let (opening, first) = (Opening::new(config), HashMap::new());
        Labelling { opening, start: Instant::ZERO, first, packets: Vec::new() }
    }

    fn round(&mut self) -> Round {
        let finished: Vec<_> = self.opening.analyzer.drain_ended().iter().map(Ended::id).collect();
        for id in &finished {
            self.first.remove(id);
        }
        Round {
            opened: self.opening.take_opened(),
            finished,
            packets: std::mem::take(&mut self.packets),
        }
    }

    fn label(&mut self, arrival: &Arrival, words: &[u8]) {
        let Some(facts) = self.opening.track(arrival, words) else { return };
        let Arrival { at, number, segment, .. } = *arrival;
        let first = self.first.entry(facts.connection).or_default();
        let (own, other) = match facts.direction {
            Direction::ClientToServer => (0, 1),
            Direction::ServerToClient => (1, 0),
        };
        let has_ack = segment.flags.any(Flags::ACK);
        // A SYN restarts the relative numbers.
        if first[own].is_none() || segment.flags.any(Flags::SYN) {
            first[own] = Some(segment.seq);
        }
        if first[other].is_none() && has_ack {
            first[other] = Some(segment.ack);
        }
        let sequence = counted_from(first[own], segment.seq);
        let ack = has_ack.then(|| counted_from(first[other], segment.ack));
        let time = at.since(self.start);
        self.packets.push(LabelledPacket { number, at, time, facts, segment, sequence, ack });
    }
}

fn counted_from(first: Option<SequenceNumber>, number: SequenceNumber) -> u32 {
    number.0.wrapping_sub(first.map_or(0, |first| first.0))
}

impl Part for Labelling {
    type Round = Round;
    type Last = std::option::IntoIter<Round>;

    fn take(&mut self, event: CaptureEvent<'_>) -> Option<Round> {
        match event {
            CaptureEvent::Start(at) => self.start = at,
            CaptureEvent::Secrets(log) => self.opening.analyzer.learn(log),
            CaptureEvent::Segment(arrival, words) => self.label(arrival, words),
            CaptureEvent::Tick(now) => self.opening.analyzer.retire(now),
            CaptureEvent::End(at) => self.opening.analyzer.ends_at(at),
            CaptureEvent::Round => return Some(self.round()),
        }
        None
    }

    fn finish(mut self) -> (Self::Last, Counts) {
        let last = Some(self.round()).into_iter();
        let (_, counts) = self.opening.analyzer.finish_in_portions();
        (last, counts)
    }
}

#[cfg(test)]
mod tests;
