//! The requested size of a queue.

use crate::units::{Bytes, Duration, ParseError};

/// The size of a queue: `100kB`, `1000packets`, `20ms` or `1.5bdp`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueLimit {
    /// Bytes of IP packets.
    Bytes(Bytes),
    /// Packets of any size.
    Packets(u64),
    /// The bytes that the rate serialises in this time.
    Time(Duration),
    /// Hundredths of the path's bandwidth-delay product.
    BdpPercent(u32),
}

impl Default for QueueLimit {
    /// One BDP: what a loss-based congestion control needs to keep the link busy after it halves
    /// its window.
    fn default() -> Self {
        QueueLimit::BdpPercent(100)
    }
}

impl std::fmt::Display for QueueLimit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            QueueLimit::Bytes(bytes) => f.write_str(&bytes.to_exact()),
            QueueLimit::Packets(packets) => write!(f, "{packets}packets"),
            QueueLimit::Time(time) => f.write_str(&time.to_exact()),
            QueueLimit::BdpPercent(percent) if percent % 100 == 0 => {
                write!(f, "{}bdp", percent / 100)
            }
            QueueLimit::BdpPercent(percent) => {
                let text = format!("{}.{:02}", percent / 100, percent % 100);
                write!(f, "{}bdp", text.trim_end_matches('0'))
            }
        }
    }
}

impl std::str::FromStr for QueueLimit {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let trimmed = text.trim();
        if let Some(count) = number_of(trimmed, ["packets", "packet"]) {
            return count
                .parse()
                .map(QueueLimit::Packets)
                .map_err(|_| wrong(text, "not a whole number of packets"));
        }
        if let Some(factor) = number_of(trimmed, ["bdp", "BDP"]) {
            let factor: f64 = factor.parse().map_err(|_| wrong(text, "not a number of BDPs"))?;
            if !(0.01..=1000.0).contains(&factor) {
                return Err(wrong(text, "must be between 0.01bdp and 1000bdp"));
            }
            return Ok(QueueLimit::BdpPercent((factor * 100.0).round() as u32));
        }
        if let Ok(time) = trimmed.parse() {
            return Ok(QueueLimit::Time(time));
        }
        trimmed.parse().map(QueueLimit::Bytes).map_err(|error| wrong(text, &error.to_string()))
    }
}

/// What stands before the first of `units` that `text` ends with.
fn number_of<'a>(text: &'a str, units: [&str; 2]) -> Option<&'a str> {
    units.iter().find_map(|unit| text.strip_suffix(unit)).map(str::trim)
}

fn wrong(text: &str, problem: &str) -> ParseError {
    ParseError::Unit {
        quantity: "queue",
        text: text.into(),
        problem: problem.into(),
        example: "100kB, 1000packets, 20ms or 1.5bdp",
    }
}

impl serde::Serialize for QueueLimit {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for QueueLimit {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = <String as serde::Deserialize>::deserialize(d)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}
