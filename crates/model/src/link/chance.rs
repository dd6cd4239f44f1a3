//! How often something happens to a packet: `1%`, or `1% 25%` with netem's correlation to the
//! previous packet.

use super::grammar::{Reader, WordsError, words_serde};
use crate::units::Probability;

/// A probability with the correlation of its draws, for `duplicate` and `corrupt`.
///
/// Text: `PROBABILITY [CORRELATION]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Chance {
    /// Probability for each packet.
    pub probability: Probability,
    /// How much a packet's draw depends on the previous packet's, as netem correlates them.
    pub correlation: Probability,
}

impl Chance {
    /// Never.
    pub const NEVER: Chance =
        Chance { probability: Probability::ZERO, correlation: Probability::ZERO };

    /// Whether it can never happen.
    pub fn is_never(&self) -> bool {
        self.probability == Probability::ZERO
    }

    pub(super) fn read(words: &mut Reader<'_>) -> Result<Self, WordsError> {
        let probability = words.value("probability")?;
        let correlation = words.optional("correlation")?.unwrap_or_default();
        Ok(Chance { probability, correlation })
    }
}

impl From<Probability> for Chance {
    fn from(probability: Probability) -> Self {
        Chance { probability, correlation: Probability::ZERO }
    }
}

impl std::fmt::Display for Chance {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.probability)?;
        if self.correlation > Probability::ZERO {
            write!(f, " {}", self.correlation)
        } else {
            Ok(())
        }
    }
}

impl std::str::FromStr for Chance {
    type Err = WordsError;

    fn from_str(text: &str) -> Result<Self, WordsError> {
        let mut words = Reader::new("probability", "1% or 1% 25% (with correlation)", text);
        let chance = Chance::read(&mut words)?;
        words.end()?;
        Ok(chance)
    }
}

words_serde!(Chance);

#[cfg(test)]
mod tests {
    use super::super::tests::{binomial, evenly, link, run};
    use crate::units::Duration;

    const COUNT: usize = 100_000;

    #[test]
    fn duplicates_and_flipped_bits_are_as_many_as_asked() {
        for seed in 1..=5 {
            for (percent, probability) in [("0.1%", 0.001), ("1%", 0.01), ("30%", 0.3)] {
                let words =
                    format!("delay = '1ms'\nduplicate = '{percent}'\ncorrupt = '{percent}'");
                let outcome =
                    run(&mut link(&words, seed), evenly(COUNT, Duration::from_micros(10)));
                let copies = outcome.departures.iter().filter(|departure| departure.copy).count();
                let corrupted = outcome
                    .departures
                    .iter()
                    .filter(|departure| departure.corrupt.is_some())
                    .count();
                assert!(
                    binomial(copies, COUNT, probability),
                    "{copies} copies at {percent}, seed {seed}"
                );
                assert!(
                    binomial(corrupted, COUNT, probability),
                    "{corrupted} corrupted at {percent}, seed {seed}"
                );
                assert_eq!(outcome.departures.len(), COUNT + copies);
                assert_eq!(outcome.counters.duplicated_packets as usize, copies);
                assert_eq!(outcome.counters.corrupted_packets as usize, corrupted);
            }
        }
    }

    #[test]
    fn every_bit_of_a_packet_is_flipped_as_often_as_another() {
        let outcome =
            run(&mut link("corrupt = '100%'", 3), evenly(COUNT, Duration::from_micros(10)));
        let mut quarters = [0usize; 4];
        let mut bits = [0usize; 8];
        for bit in outcome.departures.iter().filter_map(|departure| departure.corrupt) {
            assert!(bit.byte < 1500 && bit.bit < 8);
            quarters[bit.byte as usize / 375] += 1;
            bits[usize::from(bit.bit)] += 1;
        }
        assert!(quarters.iter().all(|seen| binomial(*seen, COUNT, 0.25)), "{quarters:?}");
        assert!(bits.iter().all(|seen| binomial(*seen, COUNT, 0.125)), "{bits:?}");
    }

    #[test]
    fn a_packet_that_is_lost_and_duplicated_passes_once() {
        let outcome = run(
            &mut link("loss = '100%'\nduplicate = '100%'", 1),
            evenly(10, Duration::from_micros(10)),
        );
        assert_eq!((outcome.refused.len(), outcome.departures.len()), (10, 10));
        assert!(outcome.departures.iter().all(|departure| departure.copy));
    }
}
