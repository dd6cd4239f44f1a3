//! One line for each packet, with its labels.

use super::{Analyze, buffered_out, input};
use crate::cmd::stored::Stored;
use crate::failure::Failure;
use crate::terminal::remark;
use fullpipe_analyze::LabelledPacket;
use fullpipe_columnar::Layout;
use fullpipe_flow::Language;
use fullpipe_flow::connection::LabelSet;
use fullpipe_flow::schema::{Object, PACKETS, PacketRow};
use fullpipe_report::connection::analysis::remarks;
use std::io::{BufWriter, StdoutLock, Write};

/// The destination of the lines.
enum Lines {
    Text(BufWriter<StdoutLock<'static>>),
    Json(BufWriter<StdoutLock<'static>>),
    Parquet(Box<Stored>),
}

impl Lines {
    fn new(analyze: &Analyze) -> Result<Self, Failure> {
        Ok(match &analyze.parquet {
            Some(file) => Lines::Parquet(Box::new(Stored::new(file, &Layout::of(PACKETS))?)),
            None if analyze.jsonl => Lines::Json(buffered_out()),
            None => Lines::Text(buffered_out()),
        })
    }

    fn write(&mut self, file: &str, packet: &LabelledPacket) -> Result<(), Failure> {
        let row = packet.row(file);
        match self {
            Lines::Text(out) => write_text(packet, &row, out)?,
            Lines::Json(out) => {
                serde_json::to_writer(&mut *out, &Object::new(PACKETS, &row))
                    .map_err(std::io::Error::from)?;
                writeln!(out)?;
            }
            Lines::Parquet(stored) => stored.row(Layout::cells(PACKETS, &row))?,
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

/// Prints every packet of the selected connections.
pub fn print(analyze: &Analyze) -> Result<u8, Failure> {
    let captures = input::captures(&analyze.files, analyze.as_one)?;
    let mut lines = Lines::new(analyze)?;
    let mut is_whole = true;
    for capture in captures {
        let name = capture.name().to_owned();
        let mut errors = Vec::new();
        let mut packets = capture.labelled_packets(&analyze.options());
        for packet in &mut packets {
            match packet {
                Ok(packet)
                    if analyze.connection.is_none_or(|only| only == packet.facts.connection) =>
                {
                    lines.write(&name, &packet)?;
                }
                Ok(_) => {}
                Err(error) => errors.push(error),
            }
        }
        for told in remarks(&packets.counts(), Language::English) {
            remark(&format!("fullpipe: {name}: {told}"));
        }
        is_whole &= super::problem(errors)?.is_none();
    }
    lines.finish()?;
    Ok(Analyze::code(is_whole))
}

fn write_text(
    packet: &LabelledPacket,
    row: &PacketRow<'_>,
    out: &mut impl Write,
) -> std::io::Result<()> {
    let LabelledPacket { number, facts, segment, sequence, .. } = packet;
    let time = packet.time.as_secs_f64();
    write!(out, "{number:>6} {time:>12.6} #{} ", facts.connection)?;
    write!(out, "{} > {} [{}] seq {sequence}", segment.source, segment.destination, row.flags())?;
    if let Some(ack) = packet.ack {
        write!(out, " ack {ack}")?;
    }
    write!(out, " win {} len {}", segment.window, segment.payload.get())?;
    if facts.labels != LabelSet::default() {
        write!(out, "  # {}", listed(facts.labels))?;
    }
    if let Some(why) = row.why() {
        write!(out, "  (wireshark: {}; {why})", listed(facts.wireshark))?;
    }
    writeln!(out)
}

fn listed(labels: LabelSet) -> String {
    let names: Vec<_> = labels.iter().map(|label| label.name()).collect();
    if names.is_empty() { "none".into() } else { names.join(", ") }
}
