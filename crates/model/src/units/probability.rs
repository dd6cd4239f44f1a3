//! Probabilities, for example of loss.

use super::number::{Number, ParseError};

/// A probability in [0, 1], stored in billionths so that the same text always gives the same draws.
///
/// Parses `1%`, `0.1%` and `0.001`. A number of 1 or more without a unit is refused: `1` means one
/// in a hundred to users of tc(8), and certainty to others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Probability(u32);

const ONE: u32 = 1_000_000_000;

impl Probability {
    /// Never.
    pub const ZERO: Probability = Probability(0);
    /// Always.
    pub const ONE: Probability = Probability(ONE);

    /// `fraction` rounded to billionths; `None` outside [0, 1].
    pub fn new(fraction: f64) -> Option<Self> {
        (0.0..=1.0)
            .contains(&fraction)
            .then(|| Probability((fraction * f64::from(ONE)).round() as u32))
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
            "" if number
                .scaled(u128::from(ONE))
                .is_none_or(|billionths| billionths >= u64::from(ONE)) =>
            {
                return Err(without_unit(text, &number));
            }
            "" => u128::from(ONE),
            "%" => u128::from(ONE / 100),
            unit => {
                let problem = format!("unknown unit '{unit}'");
                return Err(ParseError::Unit {
                    quantity: QUANTITY,
                    text: text.into(),
                    problem,
                    example: EXAMPLE,
                });
            }
        };
        match number.scaled(scale).map(u32::try_from) {
            Some(Ok(billionths)) if billionths <= ONE => Ok(Probability(billionths)),
            _ => Err(ParseError::Range {
                quantity: QUANTITY,
                text: text.into(),
                min: "0%",
                max: "100%",
            }),
        }
    }
}

/// An error with both ways to write what a number of 1 or more may mean.
fn without_unit(text: &str, number: &Number<'_>) -> ParseError {
    let percent =
        number.scaled(u128::from(ONE / 100)).and_then(|billionths| u32::try_from(billionths).ok());
    let meant =
        percent.filter(|&billionths| billionths <= ONE).map_or(ONE / 100, |billionths| billionths);
    let percent = Probability(meant).to_exact();
    let fraction = Probability(meant).get();
    let problem =
        format!("without a unit it could be percent or a fraction: write {percent} or {fraction}");
    ParseError::Unit {
        quantity: "probability",
        text: text.into(),
        problem,
        example: "100% for always",
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
        assert!(
            "101%".parse::<Probability>().unwrap_err().to_string().contains("between 0% and 100%")
        );
    }

    #[test]
    fn a_number_from_one_on_without_a_unit_is_refused_with_both_ways_to_write_it() {
        let problem = |text: &str| text.parse::<Probability>().unwrap_err().to_string();
        for (text, both) in [
            ("1", "write 1% or 0.01;"),
            ("1.0", "write 1% or 0.01;"),
            ("1.5", "write 1.5% or 0.015;"),
            ("25", "write 25% or 0.25;"),
            ("101", "write 1% or 0.01;"),
        ] {
            assert!(problem(text).contains(both), "{text}: {}", problem(text));
        }
        assert_eq!("0".parse(), Ok(Probability::ZERO));
        assert_eq!("0.01".parse::<Probability>().unwrap().to_string(), "1%");
        assert_eq!("100%".parse(), Ok(Probability::ONE));
    }

    #[test]
    fn zero_never_and_one_always_happens() {
        for random in [0, 1, u64::MAX / 2, u64::MAX] {
            assert!(!Probability::ZERO.happens(random));
            assert!(Probability::ONE.happens(random));
        }
    }
}
