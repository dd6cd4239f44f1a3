//! One line a packet, with its labels.

use super::rows::Stored;
use super::{Analyze, input};
use crate::failure::Failure;
use fullpipe_analyze::LabelledPacket;
use fullpipe_flow::connection::{Direction, Label, LabelSet};
use fullpipe_flow::segment::Flags;
use fullpipe_model::units::Duration;
use fullpipe_report::analysis::{self, Cell};
use serde::{Serialize, Serializer};
use std::io::{BufWriter, StdoutLock, Write};
use std::net::SocketAddr;

/// Something with the name of the file that it is from.
#[derive(Serialize)]
pub struct InFile<'a, T> {
    pub file: &'a str,
    #[serde(flatten)]
    pub what: T,
}

/// What is printed of a packet. Sequence numbers count from each direction's first.
#[derive(Serialize)]
struct Line {
    number: u64,
    time_ns: u64,
    #[serde(skip)]
    time: Duration,
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

/// Where lines go.
enum Lines {
    Text(BufWriter<StdoutLock<'static>>),
    Json(BufWriter<StdoutLock<'static>>),
    Parquet(Box<Stored>),
}

impl Lines {
    fn new(analyze: &Analyze) -> Result<Self, Failure> {
        let out = || BufWriter::new(std::io::stdout().lock());
        Ok(match &analyze.parquet {
            Some(file) => Lines::Parquet(Box::new(Stored::new(file, &COLUMNS)?)),
            None if analyze.jsonl => Lines::Json(out()),
            None => Lines::Text(out()),
        })
    }

    fn write(&mut self, file: &str, line: &Line) -> Result<(), Failure> {
        match self {
            Lines::Text(out) => line.write(out)?,
            Lines::Json(out) => {
                serde_json::to_writer(&mut *out, &InFile { file, what: line }).map_err(std::io::Error::from)?;
                writeln!(out)?;
            }
            Lines::Parquet(stored) => stored.row(line.cells(file))?,
        }
        Ok(())
    }

    fn finish(self) -> Result<(), Failure> {
        match self {
            Lines::Text(mut out) | Lines::Json(mut out) => Ok(out.flush()?),
            Lines::Parquet(stored) => stored.finish(),
        }
    }
}

/// Prints every packet of a connection that was asked for.
pub fn print(analyze: &Analyze) -> Result<u8, Failure> {
    let captures = input::captures(&analyze.files, analyze.as_one)?;
    let mut lines = Lines::new(analyze)?;
    let mut is_whole = true;
    for capture in captures {
        let name = capture.name().to_owned();
        let mut errors = Vec::new();
        for packet in capture.labelled_packets(&analyze.options()) {
            match packet {
                Ok(packet) if analyze.connection.is_none_or(|only| only == packet.facts.connection) => {
                    lines.write(&name, &Line::new(&packet))?;
                }
                Ok(_) => {}
                Err(error) => errors.push(error),
            }
        }
        is_whole &= analyze.problem(errors)?.is_none();
    }
    lines.finish()?;
    Ok(Analyze::code(is_whole))
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
    fn new(packet: &LabelledPacket) -> Self {
        let LabelledPacket { number, at, time, ref facts, ref segment, sequence, ack } = *packet;
        let differs = facts.difference.filter(|_| facts.labels != facts.wireshark);
        Line {
            number,
            time_ns: at.as_nanos(),
            time,
            connection: facts.connection,
            direction: facts.direction,
            source: segment.source,
            destination: segment.destination,
            flags: flags(segment.flags),
            sequence,
            ack,
            window: segment.window,
            payload_bytes: segment.payload.get(),
            labels: facts.labels,
            differs: differs.map(|difference| Differs { wireshark: facts.wireshark, why: difference.words() }),
        }
    }

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

    fn write(&self, out: &mut impl Write) -> std::io::Result<()> {
        let time = self.time.as_secs_f64();
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
