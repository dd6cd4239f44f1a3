//! What a link adds to every packet: headers below IP, and cells.

use super::grammar::{Reader, WordsError, words_serde};
use crate::units::{Bytes, Rate};
use std::num::NonZeroU32;

/// The rate of a link with its overhead, in the grammar of netem's `rate`.
///
/// Text: `RATE [PACKETOVERHEAD [CELLSIZE [CELLOVERHEAD]]]`: `1gbit`, `1gbit 38` (Ethernet,
/// including preamble and gap), `8mbit 8 48 5` (ATM).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateWords {
    /// Bits per second of everything, overhead included.
    pub rate: Rate,
    /// What each packet takes in addition to its own bytes.
    pub overhead: Overhead,
}

/// Bytes that a packet takes on a link in addition to its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Overhead {
    /// Bytes added to each packet; negative for compressed headers.
    pub packet: i32,
    /// Payload of a cell; a packet takes whole cells.
    pub cell: Option<NonZeroU32>,
    /// Bytes added to each cell; may be negative.
    pub cell_overhead: i32,
}

impl Overhead {
    /// No overhead: the rate is a layer-3 rate.
    pub const NONE: Overhead = Overhead { packet: 0, cell: None, cell_overhead: 0 };

    /// Bytes that a packet of `size` takes on the link.
    pub fn on_wire(&self, size: Bytes) -> Bytes {
        if *self == Overhead::NONE {
            return size;
        }
        let size = i128::from(size.get()) + i128::from(self.packet);
        let size = size.max(0);
        let size = match self.cell {
            None => size,
            Some(cell) => {
                let cell = i128::from(cell.get());
                (size + cell - 1) / cell * (cell + i128::from(self.cell_overhead)).max(0)
            }
        };
        Bytes::new(u64::try_from(size).unwrap_or(u64::MAX))
    }
}

impl std::fmt::Display for RateWords {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.rate.to_exact())?;
        let Overhead { packet, cell, cell_overhead } = self.overhead;
        if self.overhead != Overhead::NONE {
            write!(f, " {packet}")?;
        }
        if cell.is_some() || cell_overhead != 0 {
            write!(f, " {}", cell.map_or(0, NonZeroU32::get))?;
        }
        if cell_overhead != 0 { write!(f, " {cell_overhead}") } else { Ok(()) }
    }
}

impl std::str::FromStr for RateWords {
    type Err = WordsError;

    fn from_str(text: &str) -> Result<Self, WordsError> {
        let mut words = Reader::new(
            "rate",
            "1gbit (bits), 125MB/s (bytes), or 8mbit 8 48 5 (with overhead and cells)",
            text,
        );
        let rate = words.value("rate")?;
        let overhead = Overhead {
            packet: words.optional("packet overhead")?.unwrap_or_default(),
            cell: words.optional::<u32>("cell size")?.and_then(NonZeroU32::new),
            cell_overhead: words.optional("cell overhead")?.unwrap_or_default(),
        };
        words.end()?;
        Ok(RateWords { rate, overhead })
    }
}

words_serde!(RateWords);

#[cfg(test)]
mod tests {
    use super::super::tests::{evenly, link, refused, run};
    use super::*;
    use crate::units::Duration;

    #[test]
    fn cells_are_whole() {
        let atm: RateWords = "8mbit 8 48 5".parse().unwrap();
        // 1508 bytes are 32 cells of 48, each 53 on the wire; 40 + 8 is one.
        assert_eq!(atm.overhead.on_wire(Bytes::new(1500)), Bytes::new(32 * 53));
        assert_eq!(atm.overhead.on_wire(Bytes::new(40)), Bytes::new(53));
        assert_eq!(atm.to_string().parse(), Ok(atm));
        let compressed: RateWords = "1mbit -20".parse().unwrap();
        assert_eq!(compressed.overhead.on_wire(Bytes::new(40)), Bytes::new(20));
        assert_eq!(compressed.overhead.on_wire(Bytes::new(10)), Bytes::ZERO);
    }

    #[test]
    fn the_rate_is_that_of_the_wire() {
        // 1500 + 38 bytes at 1 Gbit/s are 12.304 us.
        let outcome =
            run(&mut link("rate = '1gbit 38'\nqueue = '2MB'", 1), evenly(1001, Duration::ZERO));
        let span = outcome.departures[1000].at.since(outcome.departures[0].at);
        assert_eq!(span, Duration::from_nanos(12_304_000));
    }

    #[test]
    fn overhead_that_means_nothing_is_refused() {
        assert!(refused("rate = '1mbit -1500'").contains("so negative"));
        assert!(refused("rate = '1mbit 0 0 5'").contains("no cell size"));
        assert!(refused("rate = '1mbit 0 48 5 9'").contains("'9' is not expected"));
    }
}
