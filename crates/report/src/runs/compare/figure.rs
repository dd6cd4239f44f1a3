//! The figures of a row by which two results are compared.

use fullpipe_flow::schema::RunRow;
use fullpipe_model::units::{Bytes, Duration, ParseError, Rate};
use serde::{Serialize, Serializer};

/// Which direction of a figure is worse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Worse {
    /// Less is worse: goodput.
    Less,
    /// More is worse: times, retransmissions.
    More,
    /// Neither by itself: windows, packets.
    Neither,
}

/// The unit of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FigureKind {
    Rate,
    Time,
    Bytes,
    Count,
    Share,
}

/// A column of results that can be compared; its value is that of [`RunRow`]'s column of the same
/// name.
#[derive(Debug)]
pub struct Figure {
    name: &'static str,
    kind: FigureKind,
    worse: Worse,
    of: fn(&RunRow) -> Option<f64>,
}

macro_rules! figures {
    ($($name:literal $kind:ident $worse:ident $of:expr;)*) => {
        &[$(Figure { name: $name, kind: FigureKind::$kind, worse: Worse::$worse, of: $of }),*]
    };
}

fn rate(rate: Rate) -> Option<f64> {
    Some(rate.as_f64())
}

fn time(time: Duration) -> Option<f64> {
    Some(time.as_micros() as f64)
}

fn bytes(bytes: Bytes) -> Option<f64> {
    Some(bytes.as_f64())
}

fn count(count: u64) -> Option<f64> {
    Some(count as f64)
}

/// Every figure, the most important first.
pub static FIGURES: &[Figure] = figures![
    "goodput_bps" Rate Less |row| rate(row.goodput);
    "body_bytes" Bytes Less |row| bytes(row.body);
    "duration_us" Time More |row| time(row.duration);
    "connect_us" Time More |row| row.connect.and_then(time);
    "starttransfer_us" Time More |row| row.starttransfer.and_then(time);
    "total_us" Time More |row| row.total.and_then(time);
    "handshake_rtt_us" Time More |row| row.handshake_rtt.and_then(time);
    "rtt_min_us" Time More |row| row.rtt_min.and_then(time);
    "rtt_p50_us" Time More |row| row.rtt_p50.and_then(time);
    "rtt_p99_us" Time More |row| row.rtt_p99.and_then(time);
    "retransmission" Count More |row| count(row.retransmission);
    "duplicate_ack" Count More |row| count(row.duplicate_ack);
    "out_of_order" Count More |row| count(row.out_of_order);
    "window_full" Count More |row| count(row.window_full);
    "zero_window" Count More |row| count(row.zero_window);
    "queue_dropped" Count More |row| count(row.queue_dropped);
    "lost" Count Neither |row| count(row.lost);
    "packets" Count Neither |row| count(row.packets);
    "window_max_bytes" Bytes Neither |row| row.window_max.and_then(|window| bytes(window.bytes()));
    "in_flight_max_bytes" Bytes Neither |row| bytes(row.in_flight_max);
    "in_flight_mean_bytes" Bytes Neither |row| row.in_flight_mean.and_then(bytes);
    "law_bps" Rate Neither |row| row.law.and_then(rate);
    "limit_share" Share Neither |row| Some(row.limit_share);
    "link_late_p50_us" Time More |row| time(row.link_late_p50);
    "link_late_p99_us" Time More |row| time(row.link_late_p99);
    "link_late_max_us" Time More |row| time(row.link_late_max);
];

impl Figure {
    /// The figure with this name, with its unit (`goodput_bps`) or without (`goodput`).
    pub fn named(name: &str) -> Option<&'static Figure> {
        FIGURES.iter().find(|figure| figure.name == name || figure.short() == name)
    }

    /// The name of the column.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The name without its unit.
    pub fn short(&self) -> &'static str {
        let unit = match self.kind {
            FigureKind::Rate => "_bps",
            FigureKind::Time => "_us",
            FigureKind::Bytes => "_bytes",
            FigureKind::Count | FigureKind::Share => "",
        };
        self.name.strip_suffix(unit).unwrap_or(self.name)
    }

    /// Whether it concerns the emulator, not the transfer.
    pub fn is_lateness(&self) -> bool {
        self.name.starts_with("link_late_")
    }

    /// Which direction is worse.
    pub fn worse(&self) -> Worse {
        self.worse
    }

    pub(super) fn of(&self, row: &RunRow) -> Option<f64> {
        (self.of)(row)
    }

    /// A value for people.
    pub(super) fn show(&self, value: f64) -> String {
        match self.kind {
            FigureKind::Rate => Rate::from_bits_per_sec_f64(value).to_string(),
            FigureKind::Time => Duration::from_secs_f64(value / 1e6).to_string(),
            FigureKind::Bytes => Bytes::from_f64(value).to_string(),
            FigureKind::Count if value.fract() == 0.0 => format!("{value:.0}"),
            FigureKind::Count => format!("{value:.1}"),
            FigureKind::Share => format!("{:.1} %", value * 100.0),
        }
    }

    /// Parses an amount in the figure's unit.
    pub(super) fn amount(&self, text: &str) -> Result<f64, AmountError> {
        Ok(match self.kind {
            FigureKind::Rate => text.parse::<Rate>()?.as_f64(),
            FigureKind::Time => text.parse::<Duration>()?.as_nanos() as f64 / 1e3,
            FigureKind::Bytes => text.parse::<Bytes>()?.as_f64(),
            FigureKind::Count | FigureKind::Share => {
                number(text).ok_or_else(|| AmountError::Number(text.into()))?
            }
        })
    }
}

/// A plain non-negative decimal number.
pub(super) fn number(text: &str) -> Option<f64> {
    let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    text.parse().ok().filter(|_| plain)
}

impl Serialize for Figure {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(self.name)
    }
}

impl PartialEq for Figure {
    fn eq(&self, other: &Figure) -> bool {
        self.name == other.name
    }
}

/// Why a text is not an amount of a figure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AmountError {
    /// Of a quantity.
    Quantity(ParseError),
    /// Of a count or share.
    Number(String),
}

impl From<ParseError> for AmountError {
    fn from(error: ParseError) -> Self {
        AmountError::Quantity(error)
    }
}

impl std::fmt::Display for AmountError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            AmountError::Quantity(error) => error.fmt(f),
            AmountError::Number(text) => {
                write!(f, "'{text}' is no number; write for example 10, or 5%")
            }
        }
    }
}

impl std::error::Error for AmountError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_figure_is_the_column_of_its_name() {
        // Give every figure of this row another number.
        let mut document = serde_json::to_value(RunRow::default()).unwrap();
        for (number, figure) in FIGURES.iter().enumerate() {
            assert!(document.get(figure.name).is_some(), "{} is no column", figure.name);
            document[figure.name] = (number as u64 + 1).into();
        }
        let row: RunRow = serde_json::from_value(document).unwrap();
        for (number, figure) in FIGURES.iter().enumerate() {
            assert_eq!(figure.of(&row), Some(number as f64 + 1.0), "{}", figure.name);
            assert_eq!(Figure::named(figure.name), Some(figure));
            assert_eq!(Figure::named(figure.short()), Some(figure));
        }
        assert!(Figure::named("name").is_none() && Figure::named("").is_none());
    }

    #[test]
    fn amounts_are_in_the_columns_unit() {
        let amount = |name: &str, text: &str| Figure::named(name).unwrap().amount(text).ok();
        assert_eq!(amount("goodput", "10mbit"), Some(1e7));
        assert_eq!(amount("rtt_p99", "2ms"), Some(2000.0));
        assert_eq!(amount("window_max", "1KiB"), Some(1024.0));
        assert_eq!(amount("retransmission", "10"), Some(10.0));
        for (name, text) in
            [("goodput", "10"), ("rtt_p99", "1mbit"), ("lost", "-1"), ("lost", "inf"), ("lost", "")]
        {
            assert_eq!(amount(name, text), None, "{name} {text}");
        }
    }
}
