//! What a direction of a path is asked to be.

use super::Capacity;
use crate::units::{Bytes, Duration, ParseError, Probability, Rate};

/// Queues are never asked to be smaller than this many full-size packets by default: a short path has a tiny BDP, but no
/// real queue is that short.
const DEFAULT_QUEUE_PACKETS_MIN: u64 = 64;

/// The size of a packet where only its number is known (the usual MTU of Ethernet).
const FULL_PACKET: u64 = 1500;

/// The fastest link and the longest delay that are not taken for a typing error.
const RATE_MAX: Rate = Rate::from_bits_per_sec(1_000_000_000_000);
const DELAY_MAX: Duration = Duration::from_secs(60);

/// One direction of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Config {
    /// Propagation delay, one way.
    pub delay: Duration,
    /// Bits of IP packets per second; `None`: no serialisation time.
    pub rate: Option<Rate>,
    /// The room of the queue before the transmitter.
    pub queue: QueueLimit,
    /// Probability that a packet is lost, drawn for each by itself.
    pub loss: Probability,
}

/// How the room of a queue is asked for: `100kB`, `1000packets`, `20ms` or `1.5bdp`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueLimit {
    /// Bytes of IP packets.
    Bytes(Bytes),
    /// Packets of any size.
    Packets(u64),
    /// What the rate serialises in this time.
    Time(Duration),
    /// This many hundredths of the path's bandwidth-delay product.
    BdpPercent(u32),
}

impl Default for QueueLimit {
    /// One BDP: what a loss-based congestion control needs to keep the link busy after it halves its window.
    fn default() -> Self {
        QueueLimit::BdpPercent(100)
    }
}

/// Why a direction cannot be emulated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// A rate of zero carries nothing.
    #[error("link rate 0 carries nothing: leave `rate` out for a link without one, or use loss = \"100%\"")]
    NoRate,
    /// Faster than anything there is.
    #[error("link rate {0} is above {RATE_MAX}, the largest that is taken for real")]
    Rate(Rate),
    /// Longer than any path.
    #[error("link delay {0} is above {DELAY_MAX}, the longest that is taken for real")]
    Delay(Duration),
    /// A queue that counts time or BDP needs a rate.
    #[error("link queue {0} needs a rate: without one nothing ever queues")]
    QueueWithoutRate(QueueLimit),
    /// A queue that holds nothing.
    #[error("link queue {0} holds less than one packet of {FULL_PACKET} bytes")]
    QueueTooSmall(QueueLimit),
}

impl Config {
    /// Checks bounds and combinations; every configuration from outside passes here.
    pub fn checked(self) -> Result<Self, ConfigError> {
        match self.rate {
            Some(Rate::ZERO) => return Err(ConfigError::NoRate),
            Some(rate) if rate > RATE_MAX => return Err(ConfigError::Rate(rate)),
            None if matches!(self.queue, QueueLimit::Time(_)) => {
                return Err(ConfigError::QueueWithoutRate(self.queue));
            }
            _ => {}
        }
        if self.delay > DELAY_MAX {
            return Err(ConfigError::Delay(self.delay));
        }
        let holds = match (self.queue, self.rate) {
            (QueueLimit::Bytes(bytes), _) => bytes.get(),
            (QueueLimit::Packets(packets), _) => packets.saturating_mul(FULL_PACKET),
            (QueueLimit::Time(time), Some(rate)) => rate.over(time).get(),
            (QueueLimit::BdpPercent(percent), _) => u64::from(percent) * FULL_PACKET,
            (QueueLimit::Time(_), None) => FULL_PACKET,
        };
        if holds < FULL_PACKET {
            return Err(ConfigError::QueueTooSmall(self.queue));
        }
        Ok(self)
    }

    /// The room of the queue on a path of `rtt`.
    pub fn capacity(&self, rtt: Duration) -> Capacity {
        let Some(rate) = self.rate else {
            return Capacity::Unlimited;
        };
        match self.queue {
            QueueLimit::Bytes(bytes) => Capacity::Bytes(bytes),
            QueueLimit::Packets(packets) => Capacity::Packets(packets),
            QueueLimit::Time(time) => Capacity::Bytes(rate.over(time)),
            QueueLimit::BdpPercent(percent) => {
                let bytes = u128::from(rate.over(rtt).get()) * u128::from(percent) / 100;
                let floor = DEFAULT_QUEUE_PACKETS_MIN * FULL_PACKET;
                Capacity::Bytes(Bytes::new(u64::try_from(bytes).unwrap_or(u64::MAX).max(floor)))
            }
        }
    }

    /// Bytes that can be on this direction at once, waiting and propagating; `None` without a rate.
    pub fn bytes_in_flight(&self, rtt: Duration) -> Option<Bytes> {
        let rate = self.rate?;
        let queue = match self.capacity(rtt) {
            Capacity::Bytes(bytes) => bytes,
            Capacity::Packets(packets) => Bytes::new(packets.saturating_mul(FULL_PACKET)),
            Capacity::Unlimited => return None,
        };
        Some(rate.over(self.delay).saturating_add(queue))
    }

    /// How many full-size packets to make room for up front, within reason.
    pub(super) fn packets_in_flight(&self, capacity: Capacity) -> usize {
        const MOST: u64 = 1 << 20;
        let queue = match capacity {
            Capacity::Bytes(bytes) => bytes.get() / FULL_PACKET,
            Capacity::Packets(packets) => packets,
            Capacity::Unlimited => 4096,
        };
        let wire = self.rate.map_or(4096, |rate| rate.over(self.delay).get() / FULL_PACKET);
        queue.saturating_add(wire).saturating_add(64).min(MOST) as usize
    }
}

impl std::fmt::Display for QueueLimit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            QueueLimit::Bytes(bytes) => f.write_str(&bytes.to_exact()),
            QueueLimit::Packets(packets) => write!(f, "{packets}packets"),
            QueueLimit::Time(time) => f.write_str(&time.to_exact()),
            QueueLimit::BdpPercent(percent) if percent % 100 == 0 => write!(f, "{}bdp", percent / 100),
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
        let number = |unit: &str| trimmed.strip_suffix(unit).map(str::trim);
        if let Some(count) = number("packets").or_else(|| number("packet")) {
            return count.parse().map(QueueLimit::Packets).map_err(|_| wrong(text, "not a whole number of packets"));
        }
        if let Some(factor) = number("bdp").or_else(|| number("BDP")) {
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
