//! Connections as rows, one for each direction that has packets: for CSV and Parquet.

use super::Report;
use fullpipe_flow::capture::LinkType;
use fullpipe_flow::connection::{Connection, Direction, Label};
use fullpipe_flow::diagnosis::{DiagnosedConnection, Diagnosis};
use fullpipe_flow::{Analyzer, Config};
use fullpipe_model::units::{Duration, Instant, Window};
use std::fmt::Write;

/// A value in a row.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// A word or a name.
    Text(String),
    /// A count, or a quantity in the unit that its column names; absent where the capture does not tell.
    Number(Option<u64>),
    /// A fraction, 0 to 1; absent where the capture does not tell.
    Fraction(Option<f64>),
}

/// What a column's cells are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Words and names.
    Text,
    /// Counts and quantities.
    Number,
    /// Fractions.
    Fraction,
}

impl Cell {
    /// What the cells of its column are.
    pub const fn kind(&self) -> Kind {
        match self {
            Cell::Text(_) => Kind::Text,
            Cell::Number(_) => Kind::Number,
            Cell::Fraction(_) => Kind::Fraction,
        }
    }
}

impl std::fmt::Display for Cell {
    /// As CSV has it (RFC 4180): quoted where it must be, empty where absent.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Cell::Text(text) if text.contains(['"', ',', '\n', '\r']) => {
                write!(f, "\"{}\"", text.replace('"', "\"\""))
            }
            Cell::Text(text) => f.write_str(text),
            Cell::Number(Some(number)) => number.fmt(f),
            Cell::Number(None) | Cell::Fraction(None) => Ok(()),
            Cell::Fraction(Some(fraction)) => write!(f, "{fraction:.4}"),
        }
    }
}

/// A row as a line of CSV, its end included.
pub fn csv_line(row: &[(&'static str, Cell)], line: &mut String) {
    for (number, (_, cell)) in row.iter().enumerate() {
        if number > 0 {
            line.push(',');
        }
        match cell {
            // Nearly all cells of very many rows: formatting is most of what a short connection costs.
            Cell::Number(Some(number)) => push_digits(*number, line),
            Cell::Number(None) | Cell::Fraction(None) => {}
            // Exact, where formatting falls back to arbitrary precision.
            Cell::Fraction(Some(0.0)) => line.push_str("0.0000"),
            Cell::Fraction(Some(1.0)) => line.push_str("1.0000"),
            Cell::Text(_) | Cell::Fraction(_) => {
                // A string takes whatever is written.
                let _ = write!(line, "{cell}");
            }
        }
    }
    line.push('\n');
}

fn push_digits(mut number: u64, line: &mut String) {
    let mut digits = [0; 20];
    let mut start = digits.len();
    loop {
        start -= 1;
        digits[start] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    line.extend(digits[start..].iter().map(|digit| char::from(*digit)));
}

/// The rows of a file's connections: columns by name, the same in every row; the unit is in the name.
pub fn rows(file: &str, connections: &[DiagnosedConnection]) -> impl Iterator<Item = Vec<(&'static str, Cell)>> {
    let both = |explained| [Direction::ClientToServer, Direction::ServerToClient].map(|way| (explained, way));
    let directions = connections.iter().flat_map(both);
    let seen = directions.filter(|(explained, way)| explained.connection.facts(*way).packets > 0);
    seen.map(move |(explained, way)| row(file, explained, way))
}

/// The columns of [`rows`], for a file that must know them before its first row.
pub fn columns() -> Vec<(&'static str, Kind)> {
    // The columns do not depend on the connection; the least one there is has a packet.
    let syn =
        [&[0x45, 0, 0, 40, 0, 0, 0, 0, 64, 6, 0, 0][..], &[0; 8], &[0; 12], &[0x50, 2, 0, 0, 0, 0, 0, 0]].concat();
    let mut analyzer = Analyzer::new(Config::default());
    analyzer.push(Instant::ZERO, LinkType::RAW, &syn, syn.len());
    let report = Report::new("", analyzer.finish());
    rows(&report.file, &report.connections)
        .next()
        .unwrap_or_default()
        .into_iter()
        .map(|(name, cell)| (name, cell.kind()))
        .collect()
}

/// Room for a row's cells; more would only cost time.
const COLUMNS: usize = 80;

fn row(file: &str, explained: &DiagnosedConnection, direction: Direction) -> Vec<(&'static str, Cell)> {
    let connection = &explained.connection;
    let facts = connection.facts(direction);
    let number = |number: u64| Cell::Number(Some(number));
    let micros = |time: Option<Duration>| Cell::Number(time.map(Duration::as_micros));
    let window = |window: Option<Window>| Cell::Number(window.map(|window| window.bytes().get()));
    let way = match direction {
        Direction::ClientToServer => "client_to_server",
        Direction::ServerToClient => "server_to_client",
    };
    let limited_by = explained.diagnosis(direction).map(Diagnosis::limited_by);
    let limit_confidence = explained.diagnosis(direction).map(|diagnosis| diagnosis.verdict.confidence);
    let mut row = Vec::with_capacity(COLUMNS);
    row.extend([
        ("file", Cell::Text(file.into())),
        ("id", number(connection.id)),
        ("client", Cell::Text(connection.client.to_string())),
        ("server", Cell::Text(connection.server.to_string())),
        ("direction", Cell::Text(way.into())),
        ("start_ns", number(connection.start.as_nanos())),
        ("duration_us", number(connection.duration.as_micros())),
        ("handshake_rtt_us", micros(connection.handshake_rtt)),
        ("close", Cell::Text(word(connection.close))),
        ("completeness", number(connection.completeness.into())),
        ("captured_at", Cell::Text(word(connection.vantage.place))),
        ("captured_at_confidence", Cell::Fraction(Some(connection.vantage.confidence))),
        ("packets", number(facts.packets)),
        ("wire_bytes", number(facts.wire.get())),
        ("payload_bytes", number(facts.payload.get())),
        ("unique_payload_bytes", number(facts.unique_payload.get())),
        ("goodput_bps", Cell::Number(facts.goodput.map(|rate| rate.bits_per_sec()))),
        ("goodput_peak_bps", Cell::Number(facts.goodput_peak.map(|rate| rate.bits_per_sec()))),
        ("rtt_count", number(facts.rtt.count)),
        ("rtt_min_us", micros(facts.rtt.min)),
        ("rtt_p50_us", micros(facts.rtt.p50)),
        ("rtt_p95_us", micros(facts.rtt.p95)),
        ("rtt_p99_us", micros(facts.rtt.p99)),
        ("rtt_max_us", micros(facts.rtt.max)),
        ("window_scale", Cell::Number(facts.window.scale.map(u64::from))),
        ("window_min_bytes", window(facts.window.min)),
        ("window_p50_bytes", window(facts.window.p50)),
        ("window_max_bytes", window(facts.window.max)),
        ("in_flight_max_bytes", number(facts.in_flight_max.get())),
    ]);
    row.extend(Label::ALL.map(|label| (label.name(), number(facts.labels.of(label)))));
    row.extend([
        ("lost_segments", number(facts.loss.lost_segments)),
        ("spurious_retransmissions", number(facts.loss.spurious_retransmissions)),
        ("reordered_segments", number(facts.loss.reordered_segments)),
        ("congestion_experienced", number(facts.loss.congestion_experienced)),
        ("ecn_echo", number(facts.manner.ecn_echo.into())),
        ("congestion_window_reduced", number(facts.manner.congestion_window_reduced.into())),
        ("advancing_acks", number(facts.manner.advancing_acks.into())),
        ("stretch_acks", number(facts.manner.stretch_acks.into())),
        ("delayed_acks", number(facts.manner.delayed_acks.into())),
        ("burst_max_packets", number(facts.manner.burst_max_packets.into())),
        ("silence_max_us", number(facts.manner.silence_max.as_micros())),
        ("warnings", Cell::Text(warnings(connection))),
    ]);
    row.push(("limited_by", Cell::Text(limited_by.map_or("", |most| most.limit.name()).into())));
    row.push(("limit_cause", Cell::Text(limited_by.and_then(|most| most.limit.cause()).unwrap_or("").into())));
    row.push(("limit_share", Cell::Fraction(limited_by.map(|most| most.share))));
    row.push(("limit_confidence", Cell::Fraction(limit_confidence)));
    row.push(("lost_us", number(if direction == connection.bulk() { explained.lost().as_micros() } else { 0 })));
    row
}

/// The word that JSON has for it.
fn word(value: impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        _ => String::new(),
    }
}

fn warnings(connection: &Connection) -> String {
    connection.warnings.iter().map(word).collect::<Vec<_>>().join(" ")
}
