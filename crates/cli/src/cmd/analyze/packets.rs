//! One line a packet, with its labels.

use super::rows::Stored;
use super::{Analyze, input};
use crate::failure::{Failure, Kind};
use fullpipe_flow::capture::{Opened, Opener, Packet};
use fullpipe_flow::connection::{Direction, Label, LabelSet};
use fullpipe_flow::segment::{Flags, Parsed, Segment, SequenceNumber};
use fullpipe_flow::{Analyzer, Config, PacketFacts, length_behind_link};
use fullpipe_model::units::Instant;
use fullpipe_report::analysis::{self, Cell};
use serde::{Serialize, Serializer};
use std::collections::HashMap;
use std::io::{BufWriter, Write};
use std::net::SocketAddr;

/// Something with the name of the file that it is from.
#[derive(Serialize)]
pub struct InFile<'a, T> {
    pub file: &'a str,
    #[serde(flatten)]
    pub what: T,
}

/// What is told of a packet. Sequence numbers count from each direction's first.
#[derive(Serialize)]
struct Line {
    number: u64,
    time_ns: u64,
    connection: u64,
    direction: Direction,
    source: SocketAddr,
    destination: SocketAddr,
    flags: String,
    sequence: u32,
    ack: Option<u32>,
    window: u16,
    payload_bytes: u64,
    #[serde(serialize_with = "names")]
    labels: LabelSet,
    /// Wireshark's labels and why ours are others, where they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    differs: Option<Differs>,
}

#[derive(Serialize)]
struct Differs {
    #[serde(serialize_with = "names")]
    wireshark: LabelSet,
    why: &'static str,
}

fn names<S: Serializer>(labels: &LabelSet, s: S) -> Result<S::Ok, S::Error> {
    s.collect_seq(labels.iter().map(|label| label.name()))
}

/// Prints every packet of a connection that was asked for.
pub fn print(analyze: &Analyze) -> Result<u8, Failure> {
    let mut out = BufWriter::new(std::io::stdout().lock());
    let mut stored = analyze.parquet.as_deref().map(|file| Stored::new(file, &COLUMNS)).transpose()?;
    let mut is_whole = true;
    for source in input::sources(&analyze.files, analyze.as_one)? {
        let mut packets = Packets::new(analyze.config(), analyze.connection);
        let name = source.name();
        let mut written: Result<(), Failure> = Ok(());
        let mut tell = |packet: &Packet<'_>| {
            let Some(line) = packets.line(packet).filter(|_| written.is_ok()) else { return };
            written = if let Some(stored) = &mut stored {
                stored.row(line.cells(&name))
            } else if analyze.jsonl {
                let line = InFile { file: &name, what: &line };
                let json = serde_json::to_writer(&mut out, &line).map_err(std::io::Error::from);
                json.and_then(|()| writeln!(out)).map_err(Failure::from)
            } else {
                line.write(packets.start, &mut out).map_err(Failure::from)
            };
        };
        let mut all = source.packets();
        while all.read(&mut tell) {}
        let read = all.finish();
        written?;
        is_whole &= analyze.tell(read.err().as_deref());
    }
    out.flush()?;
    stored.map_or(Ok(()), Stored::finish)?;
    Ok(if is_whole { 0 } else { Failure::code(Kind::Input) })
}

struct Packets {
    analyzer: Analyzer,
    opener: Opener,
    only: Option<u64>,
    number: u64,
    start: Instant,
    /// First numbers of the client's and the server's data, of connections that are open.
    first: HashMap<u64, [Option<SequenceNumber>; 2]>,
}

impl Packets {
    fn new(config: Config, only: Option<u64>) -> Self {
        Packets {
            opener: Opener::new(config.layer),
            analyzer: Analyzer::new(config),
            only,
            number: 0,
            start: Instant::ZERO,
            first: HashMap::new(),
        }
    }

    /// The packet's line, where it is of a connection that was asked for.
    fn line(&mut self, packet: &Packet<'_>) -> Option<Line> {
        self.number += 1;
        if self.number == 1 {
            self.start = packet.at;
        }
        let facts = self.analyzer.push_packet(packet);
        // What is finished is not told here: memory follows the connections that are open.
        for finished in self.analyzer.drain() {
            self.first.remove(&finished.id);
        }
        let Opened::Ip(ip) = self.opener.open(packet.link_type, packet.data) else { return None };
        let facts = facts.filter(|facts| self.only.is_none_or(|only| only == facts.connection))?;
        let Parsed::Tcp(segment) = Segment::from_ip(ip, length_behind_link(packet.data, ip, packet.original_length))
        else {
            return None;
        };
        Some(self.tell(packet.at, facts, &segment))
    }

    fn tell(&mut self, at: Instant, facts: PacketFacts, segment: &Segment) -> Line {
        let first = self.first.entry(facts.connection).or_default();
        let (own, other) = match facts.direction {
            Direction::ClientToServer => (0, 1),
            Direction::ServerToClient => (1, 0),
        };
        let is_ack = segment.flags.any(Flags::ACK);
        // A SYN begins the numbers anew.
        if first[own].is_none() || segment.flags.any(Flags::SYN) {
            first[own] = Some(segment.seq);
        }
        if first[other].is_none() && is_ack {
            first[other] = Some(segment.ack);
        }
        let from = |first: Option<SequenceNumber>, number: SequenceNumber| {
            number.0.wrapping_sub(first.map_or(0, |first| first.0))
        };
        Line {
            number: self.number,
            time_ns: at.as_nanos(),
            connection: facts.connection,
            direction: facts.direction,
            source: segment.source,
            destination: segment.destination,
            flags: flags(segment.flags),
            sequence: from(first[own], segment.seq),
            ack: is_ack.then(|| from(first[other], segment.ack)),
            window: segment.window,
            payload_bytes: segment.payload.get(),
            labels: facts.labels,
            differs: facts
                .difference
                .filter(|_| facts.labels != facts.wireshark)
                .map(|difference| Differs { wireshark: facts.wireshark, why: difference.words() }),
        }
    }
}

/// The letters that tcpdump uses.
fn flags(flags: Flags) -> String {
    let letters = [
        (Flags::SYN, 'S'),
        (Flags::FIN, 'F'),
        (Flags::RST, 'R'),
        (Flags::PSH, 'P'),
        (Flags::URG, 'U'),
        (Flags::ECE, 'E'),
        (Flags::CWR, 'W'),
        (Flags::ACK, '.'),
    ];
    letters.into_iter().filter(|(flag, _)| flags.any(*flag)).map(|(_, letter)| letter).collect()
}

/// The columns of a packet's row.
const COLUMNS: [(&str, analysis::Kind); 15] = [
    ("file", analysis::Kind::Text),
    ("number", analysis::Kind::Number),
    ("time_ns", analysis::Kind::Number),
    ("connection", analysis::Kind::Number),
    ("direction", analysis::Kind::Text),
    ("source", analysis::Kind::Text),
    ("destination", analysis::Kind::Text),
    ("flags", analysis::Kind::Text),
    ("sequence", analysis::Kind::Number),
    ("ack", analysis::Kind::Number),
    ("window", analysis::Kind::Number),
    ("payload_bytes", analysis::Kind::Number),
    ("labels", analysis::Kind::Text),
    ("labels_wireshark", analysis::Kind::Text),
    ("why", analysis::Kind::Text),
];

impl Line {
    /// The packet as a row of [`COLUMNS`]; labels are words with spaces between them.
    fn cells(&self, file: &str) -> [Cell; 15] {
        let text = |text: &dyn std::fmt::Display| Cell::Text(text.to_string());
        let number = |number: u64| Cell::Number(Some(number));
        let direction = match self.direction {
            Direction::ClientToServer => "client_to_server",
            Direction::ServerToClient => "server_to_client",
        };
        let words = |labels: LabelSet| Cell::Text(labels.iter().map(Label::name).collect::<Vec<_>>().join(" "));
        [
            text(&file),
            number(self.number),
            number(self.time_ns),
            number(self.connection),
            text(&direction),
            text(&self.source),
            text(&self.destination),
            text(&self.flags),
            number(self.sequence.into()),
            Cell::Number(self.ack.map(u64::from)),
            number(self.window.into()),
            number(self.payload_bytes),
            words(self.labels),
            words(self.differs.as_ref().map_or(self.labels, |differs| differs.wireshark)),
            text(&self.differs.as_ref().map_or("", |differs| differs.why)),
        ]
    }

    fn write(&self, start: Instant, out: &mut impl Write) -> std::io::Result<()> {
        let time = Instant::from_nanos(self.time_ns).since(start).as_secs_f64();
        write!(out, "{:>6} {time:>12.6} #{} ", self.number, self.connection)?;
        write!(out, "{} > {} [{}] seq {}", self.source, self.destination, self.flags, self.sequence)?;
        if let Some(ack) = self.ack {
            write!(out, " ack {ack}")?;
        }
        write!(out, " win {} len {}", self.window, self.payload_bytes)?;
        if self.labels != LabelSet::default() {
            write!(out, "  # {}", listed(self.labels))?;
        }
        if let Some(Differs { wireshark, why }) = &self.differs {
            write!(out, "  (wireshark: {}; {why})", listed(*wireshark))?;
        }
        writeln!(out)
    }
}

fn listed(labels: LabelSet) -> String {
    let names: Vec<_> = labels.iter().map(|label| label.name()).collect();
    if names.is_empty() { "none".into() } else { names.join(", ") }
}

#[cfg(test)]
mod tests;
