//! What became of each of the sender's segments: which arrived, in which order, and what was copied
//! on the way. Told by the link's own log where there is one, else by both edges' captures
//! together.

use super::score::{Data, Edge};
use fullpipe_flow::capture::Unpack;
use fullpipe_flow::capture::segment::{Segment, SequenceNumber};
use fullpipe_model::link::log::{Decoder, Direction, Fate, Record};
use fullpipe_model::link::rule::PacketKey;
use std::collections::{HashMap, VecDeque};
use std::io::Read;
use std::path::{Path, PathBuf};

/// A packet that left the link: which of the sender's segments it is, and whether that one had left
/// before.
#[derive(Debug, Clone, Copy)]
pub struct Arrival {
    pub which: usize,
    pub copy: bool,
}

/// The truth of a run. Segments are numbered as the sender's capture has them.
#[derive(Debug)]
pub struct Fates {
    /// Whether a segment repeats bytes that were sent before it.
    pub again: Vec<bool>,
    /// Whether neither it nor a copy of it arrived, or the receiver refused what did.
    pub lost: Vec<bool>,
    /// Whether the receiver refused it: it arrived, and had to be sent again all the same.
    pub refused: Vec<bool>,
    /// For each segment of the receiver's capture which one it is; `None` where that cannot be
    /// told.
    pub arrivals: Vec<Option<Arrival>>,
}

impl Fates {
    /// By both captures: what tells one transmission from every other is the identification that
    /// its IP header was given, and its numbers.
    pub fn of_edges(sender: &Edge, receiver: &Edge) -> Self {
        let key = |segment: &Segment| {
            let stamp = segment.options.timestamps.map(|(value, _)| value);
            (segment.ip_id, segment.seq.0, segment.payload_len(), stamp)
        };
        let sent: HashMap<_, usize> = sender
            .data
            .iter()
            .enumerate()
            .rev()
            .map(|(at, data)| (key(&data.segment), at))
            .collect();
        let found = receiver.data.iter().map(|data| sent.get(&key(&data.segment)).copied());
        Fates::new(sender, receiver, found.collect())
    }

    /// By the link's log: of the segments with the same numbers the first in the capture is the
    /// first in the log. What was in the link when the run ended has no fate, and is not counted as
    /// lost.
    pub fn of_log(file: &Path, sender: &Edge, receiver: &Edge) -> Self {
        let mut logged = Logged::read(file, sender);
        let sent = sender
            .data
            .iter()
            .map(|data| logged.sent.get_mut(&numbers(&data.segment)).and_then(VecDeque::pop_front));
        let sent: Vec<Option<u64>> = sent.collect();
        let segments: HashMap<u64, usize> =
            sent.iter().enumerate().filter_map(|(at, number)| Some(((*number)?, at))).collect();
        let left = receiver.data.iter().map(|data| {
            let number = logged.left.get_mut(&numbers(&data.segment)).and_then(VecDeque::pop_front);
            number.map(|number| segments[&number])
        });
        let found: Vec<Option<usize>> = left.collect();
        let unseen: usize = logged.left.values().map(VecDeque::len).sum();
        assert_eq!(
            unseen,
            0,
            "{}: what left the link is in the receiver's capture",
            file.display()
        );
        assert!(
            found.iter().all(Option::is_some),
            "{}: what was captured left the link",
            file.display()
        );
        let mut fates = Fates::new(sender, receiver, found);
        for (lost, number) in fates.lost.iter_mut().zip(&sent) {
            *lost &= number.is_some();
        }
        fates
    }

    fn new(sender: &Edge, receiver: &Edge, found: Vec<Option<usize>>) -> Self {
        let mut taken = vec![false; sender.data.len()];
        for (which, refused) in found.iter().zip(refused(receiver)) {
            if let Some(which) = *which {
                taken[which] |= !refused;
            }
        }
        let mut arrived = vec![false; sender.data.len()];
        let arrivals = found.into_iter().map(|which| {
            which.map(|which| Arrival { which, copy: std::mem::replace(&mut arrived[which], true) })
        });
        let arrivals = arrivals.collect();
        let lost = taken.iter().map(|taken| !taken).collect();
        let refused =
            arrived.iter().zip(&taken).map(|(arrived, taken)| *arrived && !taken).collect();
        let again = sender.data.iter().scan(None::<SequenceNumber>, |next, data| {
            let again = next.is_some_and(|next| data.segment.seq.is_before(next));
            let end = data.segment.end();
            *next = Some(next.map_or(end, |next| next.max(end)));
            Some(again)
        });
        Fates { again: again.collect(), lost, refused, arrivals }
    }

    /// First transmissions that something sent later arrived before (RFC 4737), in the order of
    /// arrival.
    pub fn overtaken(&self) -> Vec<bool> {
        let mut highest = None;
        let is_late = |arrival: &Option<Arrival>| {
            let Some(Arrival { which, .. }) =
                arrival.filter(|arrival| !arrival.copy && !self.again[arrival.which])
            else {
                return false;
            };
            let late = highest.is_some_and(|highest| which < highest);
            highest = highest.max(Some(which));
            late
        };
        self.arrivals.iter().map(is_late).collect()
    }

    /// Those overtaken (in the order of arrival) of which an ACK at the sender told, as it reported
    /// something above that had arrived, and not them; without those that the receiver refused. Of
    /// the others nothing there can be known: Linux holds ACKs back above a hole, and what fills up
    /// meanwhile looks as if it had come in order.
    pub fn told(&self, sender: &Edge) -> Vec<bool> {
        let firsts: Vec<(usize, &Segment)> = sender
            .data
            .iter()
            .map(|data| &data.segment)
            .enumerate()
            .filter(|(at, _)| !self.again[*at])
            .collect();
        let mut reported = vec![false; firsts.len()];
        let mut open = vec![false; sender.data.len()];
        let mut lowest = 0;
        for answer in &sender.answers {
            let ack = answer.segment.ack;
            let blocks = answer.segment.options.sack.as_slice();
            let is_told = |segment: &Segment| {
                let in_block = |(from, to): &(SequenceNumber, SequenceNumber)| {
                    !segment.seq.is_before(*from) && !to.is_before(segment.end())
                };
                !ack.is_before(segment.end()) || blocks.iter().any(in_block)
            };
            for (reported, (_, segment)) in reported.iter_mut().zip(&firsts).skip(lowest) {
                *reported |= is_told(segment);
            }
            lowest += reported[lowest..].iter().take_while(|reported| **reported).count();
            let top = reported.iter().rposition(|reported| *reported).unwrap_or(0);
            for at in lowest..top.max(lowest) {
                open[firsts[at].0] |= !reported[at];
            }
        }
        let overtaken = self.overtaken().into_iter().zip(&self.arrivals);
        let is_told = |arrival: &Arrival| open[arrival.which] && !self.refused[arrival.which];
        overtaken.map(|(late, arrival)| late && arrival.as_ref().is_some_and(is_told)).collect()
    }
}

/// Which of the segments at the receiver's edge its stack refused by their timestamps (PAWS, RFC
/// 7323 section 5.3, as Linux does it: a timestamp may be one tick behind). Told from that edge's
/// packets alone: what the receiver had acknowledged when each came says whose timestamp was the
/// recent one.
fn refused(receiver: &Edge) -> Vec<bool> {
    let mut answers = receiver.answers.iter().peekable();
    let (mut acked, mut recent) = (None::<SequenceNumber>, None::<u32>);
    let mut is_refused = |Data { number, segment, .. }: &Data| {
        while let Some(answer) = answers.next_if(|answer| answer.number < *number) {
            acked = Some(answer.segment.ack);
        }
        let Some((stamp, _)) = segment.options.timestamps else { return false };
        let behind = recent.map_or(0, |recent| recent.wrapping_sub(stamp) as i32);
        // What is wholly old is not looked at: it is no part of the window.
        let moves = acked
            .is_none_or(|acked| !acked.is_before(segment.seq) && !segment.end().is_before(acked));
        if behind <= 0 && moves {
            recent = Some(stamp);
        }
        behind > 1
    };
    receiver.data.iter().map(&mut is_refused).collect()
}

/// The log of a run, packed or not, where it has one.
pub fn log_in(folder: &Path) -> Option<PathBuf> {
    ["link.log", "link.log.gz"].into_iter().map(|name| folder.join(name)).find(|path| path.exists())
}

type Numbers = (u32, u32);

fn numbers(segment: &Segment) -> Numbers {
    (segment.seq.0, segment.payload_len())
}

/// The numbers that the link gave the packets of a connection's data.
#[derive(Default)]
struct Logged {
    /// As they came.
    sent: HashMap<Numbers, VecDeque<u64>>,
    /// As they left, copies too.
    left: HashMap<Numbers, VecDeque<u64>>,
}

impl Logged {
    fn read(file: &Path, sender: &Edge) -> Self {
        let mut records: Vec<Record> =
            records(file).into_iter().filter(|record| is_of(sender, record)).collect();
        let mut logged = Logged::default();
        let key =
            |record: &Record| record.tcp.map(|tcp| (tcp.seq, tcp.payload.get() as u32)).unwrap();
        records.sort_by_key(|record| record.number);
        for record in records.iter().filter(|record| !record.copy) {
            logged.sent.entry(key(record)).or_default().push_back(record.number);
        }
        let mut left: Vec<(_, &Record)> =
            records.iter().filter_map(|record| Some((departure(record)?, record))).collect();
        left.sort_by_key(|(at, _)| *at);
        for (_, record) in left {
            logged.left.entry(key(record)).or_default().push_back(record.number);
        }
        logged
    }
}

fn departure(record: &Record) -> Option<fullpipe_model::units::Instant> {
    match record.fate {
        Fate::Departed { at, .. } => Some(at),
        Fate::Dropped { .. } => None,
    }
}

/// Whether a packet carries data of this connection.
fn is_of(sender: &Edge, record: &Record) -> bool {
    let (from, to) = (sender.connection.server, sender.connection.client);
    let is_flow = |flow: &PacketKey| {
        flow.source == from.ip()
            && flow.destination == to.ip()
            && flow.ports == Some((from.port(), to.port()))
    };
    let has_data = record.tcp.is_some_and(|tcp| tcp.payload.get() > 0);
    record.direction == Direction::ToClient && has_data && record.flow.as_ref().is_some_and(is_flow)
}

fn records(file: &Path) -> Vec<Record> {
    let failed = |error: &dyn std::fmt::Display| -> ! { panic!("{}: {error}", file.display()) };
    let opened = std::fs::File::open(file).unwrap_or_else(|error| failed(&error));
    let mut unpacked = Unpack::new(opened).unwrap_or_else(|error| failed(&error));
    let mut bytes = Vec::new();
    unpacked.read_to_end(&mut bytes).unwrap_or_else(|error| failed(&error));
    let mut decoder = Decoder::new();
    decoder.push(&bytes);
    let mut records = Vec::new();
    while let Some(record) = decoder.poll().unwrap_or_else(|error| failed(&error)) {
        records.push(record);
    }
    decoder.finish().unwrap_or_else(|error| failed(&error));
    records
}
