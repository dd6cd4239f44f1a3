//! Probabilities: of loss, of duplication.

use super::number::{Number, ParseError};

/// A probability in [0, 1], kept as billionths so that the same text always means the same draws.
///
/// Reads `1%`, `0.1%` and `0.001`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Probability(u32);

const ONE: u32 = 1_000_000_000;

impl Probability {
    /// Never.
    pub const ZERO: Probability = Probability(0);
    /// Always.
    pub const ONE: Probability = Probability(ONE);

    /// `fraction` rounded to billionths; `None` outside of [0, 1].
    pub fn new(fraction: f64) -> Option<Self> {
        (0.0..=1.0).contains(&fraction).then(|| Probability((fraction * f64::from(ONE)).round() as u32))
    }

    /// The fraction.
    pub fn get(self) -> f64 {
        f64::from(self.0) / f64::from(ONE)
    }

    /// Whether an event of this probability happens, given 64 uniformly random bits.
    pub fn happens(self, random: u64) -> bool {
        // (random / 2^64) < self / ONE, in whole numbers: exact for 0 and 1.
        u128::from(random) * u128::from(ONE) < u128::from(self.0) << 64
    }

    /// A text that [`str::parse`] reads back as the same probability.
    pub fn to_exact(self) -> String {
        let percent = format!("{}.{:07}", self.0 / 10_000_000, self.0 % 10_000_000);
        format!("{}%", percent.trim_end_matches('0').trim_end_matches('.'))
    }
}

impl std::fmt::Display for Probability {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&self.to_exact())
    }
}

impl std::str::FromStr for Probability {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        const QUANTITY: &str = "probability";
        const EXAMPLE: &str = "1% or 0.01";
        let number = Number::split(QUANTITY, text, EXAMPLE)?;
        let scale = match number.unit {
            "" => u128::from(ONE),
            "%" => u128::from(ONE / 100),
            unit => {
                let problem = format!("unknown unit '{unit}'");
                return Err(ParseError::Unit { quantity: QUANTITY, text: text.into(), problem, example: EXAMPLE });
            }
        };
        match number.scaled(scale).map(u32::try_from) {
            Some(Ok(billionths)) if billionths <= ONE => Ok(Probability(billionths)),
            _ => Err(ParseError::Range { quantity: QUANTITY, text: text.into(), min: "0%", max: "100%" }),
        }
    }
}

super::text_serde!(Probability);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percent_and_fraction_meet() {
        assert_eq!("1%".parse::<Probability>(), "0.01".parse());
        assert_eq!("0.1%".parse::<Probability>().unwrap().to_string(), "0.1%");
        assert!("101%".parse::<Probability>().unwrap_err().to_string().contains("between 0% and 100%"));
        assert!("1.5".parse::<Probability>().is_err());
    }

    #[test]
    fn zero_never_and_one_always_happens() {
        for random in [0, 1, u64::MAX / 2, u64::MAX] {
            assert!(!Probability::ZERO.happens(random));
            assert!(Probability::ONE.happens(random));
        }
    }
}
