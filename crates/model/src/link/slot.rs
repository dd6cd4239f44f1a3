//! Slots: packets leave in bursts, as on media that send only in their turn (Wi-Fi, DOCSIS, LTE).

use super::distribution::Distribution;
use super::grammar::{Reader, WordsError, words_serde};
use super::random::{Purpose, RandomStream};
use crate::units::{Bytes, Duration, Instant};
use std::num::NonZeroU32;

/// When the next slot opens and how much it takes.
///
/// Text: `MIN [MAX] [packets N] [bytes SIZE]` or
/// `distribution NAME DELAY JITTER [packets N] [bytes SIZE]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slot {
    /// Time between two slots.
    pub spacing: Spacing,
    /// The most packets in a slot.
    pub packets: Option<NonZeroU32>,
    /// The packet that reaches this many bytes ends the slot.
    pub bytes: Option<Bytes>,
}

/// Time between two slots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Spacing {
    /// Uniform between two values.
    Between {
        /// Shortest.
        min: Duration,
        /// Longest.
        max: Duration,
    },
    /// Random around a mean.
    Distributed {
        /// How.
        distribution: Distribution,
        /// Mean.
        delay: Duration,
        /// Standard deviation (uniform: half the width).
        jitter: Duration,
    },
}

/// The slots of a direction, one after another.
///
/// A packet that is ready when a slot opens leaves in it while there is room; one that is ready
/// later waits for the next slot.
#[derive(Debug)]
pub(super) struct Gate {
    slot: Slot,
    random: RandomStream,
    /// When the present slot opens or opened; `None` before the first packet.
    opens: Option<Instant>,
    packets_left: u32,
    bytes_left: Bytes,
}

impl Gate {
    pub fn new(slot: &Slot, seed: u64) -> Self {
        let random = RandomStream::new(seed, Purpose::Slot);
        let mut gate = Gate {
            slot: slot.clone(),
            random,
            opens: None,
            packets_left: 0,
            bytes_left: Bytes::ZERO,
        };
        gate.refill();
        gate
    }

    /// When a packet that was ready at `ready` leaves. Call it in the order of `ready`, which must
    /// have passed.
    pub fn leaves_at(&mut self, ready: Instant) -> Instant {
        match self.opens {
            Some(opens) if opens >= ready => opens,
            _ => self.next_slot(ready),
        }
    }

    /// The same as far as it is known: when to ask.
    pub fn known(&self, ready: Instant) -> Instant {
        self.opens.map_or(ready, |opens| opens.max(ready))
    }

    /// How many ready packets can leave in the present slot, and when: those with a `ready` no
    /// later than that.
    pub fn present(&self) -> Option<(Instant, u32)> {
        self.opens.map(|opens| (opens, self.packets_left))
    }

    /// A packet of `size` has left.
    pub fn left(&mut self, size: Bytes) {
        self.packets_left = self.packets_left.saturating_sub(1);
        self.bytes_left = self.bytes_left.saturating_sub(size);
        if self.packets_left == 0 || self.bytes_left == Bytes::ZERO {
            let opens = self.opens.unwrap_or_default();
            self.next_slot(opens);
        }
    }

    /// The next slot that opens at `ready` or later. After a pause the first packet begins a new
    /// series of slots.
    fn next_slot(&mut self, ready: Instant) -> Instant {
        let random = self.random.next();
        let spacing = match &self.slot.spacing {
            Spacing::Between { min, max } => {
                let width = u128::from(max.saturating_sub(*min).as_nanos()) + 1;
                min.saturating_add(Duration::from_nanos(
                    ((u128::from(random) * width) >> 64) as u64,
                ))
            }
            Spacing::Distributed { distribution, delay, jitter } => {
                let offset = distribution.offset(random, *jitter);
                Duration::from_nanos(delay.as_nanos().saturating_add_signed(offset))
            }
        };
        let follows = self.opens.map(|opens| opens + spacing).filter(|opens| *opens >= ready);
        let opens = follows.unwrap_or(ready + spacing);
        self.opens = Some(opens);
        self.refill();
        opens
    }

    fn refill(&mut self) {
        self.packets_left = self.slot.packets.map_or(u32::MAX, NonZeroU32::get);
        self.bytes_left = self.slot.bytes.unwrap_or(Bytes::MAX);
    }
}

impl std::fmt::Display for Slot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.spacing {
            Spacing::Between { min, max } if min == max => f.write_str(&min.to_exact())?,
            Spacing::Between { min, max } => write!(f, "{} {}", min.to_exact(), max.to_exact())?,
            Spacing::Distributed { distribution, delay, jitter } => {
                write!(
                    f,
                    "distribution {distribution} {} {}",
                    delay.to_exact(),
                    jitter.to_exact()
                )?;
            }
        }
        if let Some(packets) = self.packets {
            write!(f, " packets {packets}")?;
        }
        self.bytes.map_or(Ok(()), |bytes| write!(f, " bytes {}", bytes.to_exact()))
    }
}

impl std::str::FromStr for Slot {
    type Err = WordsError;

    fn from_str(text: &str) -> Result<Self, WordsError> {
        let example = "20ms, 5ms 20ms packets 10 bytes 64kB, or distribution normal 10ms 2ms";
        let mut words = Reader::new("slot", example, text);
        let spacing = if let Some(distribution) = words.after("distribution")? {
            Spacing::Distributed {
                distribution,
                delay: words.value("delay")?,
                jitter: words.value("jitter")?,
            }
        } else {
            let min = words.value("shortest")?;
            let max = words.optional("longest")?.unwrap_or(min);
            Spacing::Between { min, max }
        };
        let packets = words.after("packets")?;
        let bytes = words.after("bytes")?;
        words.end()?;
        Ok(Slot { spacing, packets, bytes })
    }
}

words_serde!(Slot);

#[cfg(test)]
mod tests {
    use super::super::tests::{evenly, link, refused, run};
    use super::*;

    #[test]
    fn packets_leave_in_bursts_of_what_a_slot_takes() {
        let words = "slot = '10ms packets 4'";
        let outcome = run(&mut link(words, 1), evenly(1000, Duration::from_millis(1)));
        let mut bursts: Vec<(Instant, usize)> = Vec::new();
        for departure in &outcome.departures {
            match bursts.last_mut() {
                Some((at, count)) if *at == departure.at => *count += 1,
                _ => bursts.push((departure.at, 1)),
            }
        }
        assert!(
            bursts.windows(2).all(|pair| pair[1].0.since(pair[0].0) == Duration::from_millis(10))
        );
        // Ten come between two slots, four leave: all slots but the last are full.
        assert!(
            bursts[..bursts.len() - 1].iter().all(|(_, count)| *count == 4),
            "{:?}",
            &bursts[..5]
        );
    }

    #[test]
    fn bytes_end_a_slot_and_order_is_kept() {
        let outcome =
            run(&mut link("slot = '1ms 5ms bytes 3000'", 4), evenly(500, Duration::from_millis(1)));
        assert!(
            outcome
                .departures
                .windows(2)
                .all(|pair| pair[0].item < pair[1].item && pair[0].at <= pair[1].at)
        );
        let together = outcome.departures.windows(3).any(|three| three[0].at == three[2].at);
        assert!(!together, "more than two full packets in a slot of 3000 bytes");
    }

    #[test]
    fn slots_that_mean_nothing_are_refused() {
        assert!(refused("slot = '0ms'").contains("holds nothing back"));
        assert!(refused("slot = '5ms 1ms'").contains("longer than its longest"));
        assert!(refused("slot = '5ms bytes 0'").contains("lets nothing through"));
        assert!(refused("slot = 'distribution normal 5ms 9ms'").contains("must not be larger"));
    }
}
