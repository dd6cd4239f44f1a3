//! Decimal numbers with a unit, parsed exactly (no floating point) and displayed with at most four
//! significant digits.

/// Why a text is not the expected quantity.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// No number, or no digit where it should begin.
    #[error("{quantity} '{text}': no number; write for example {example}")]
    NoNumber {
        /// The quantity.
        quantity: &'static str,
        /// The given text.
        text: String,
        /// A correct example.
        example: &'static str,
    },
    /// A number with a missing, unknown or ambiguous unit.
    #[error("{quantity} '{text}': {problem}; write for example {example}")]
    Unit {
        /// The quantity.
        quantity: &'static str,
        /// The given text.
        text: String,
        /// What is wrong with the unit.
        problem: String,
        /// A correct example.
        example: &'static str,
    },
    /// Out of the quantity's range.
    #[error("{quantity} '{text}': out of range, must be between {min} and {max}")]
    Range {
        /// The quantity.
        quantity: &'static str,
        /// The given text.
        text: String,
        /// Smallest value, as text.
        min: &'static str,
        /// Largest value, as text.
        max: &'static str,
    },
}

/// A text split into its digits and its unit.
pub(super) struct Number<'a> {
    mantissa: u128,
    decimals: u32,
    /// The trimmed text after the digits.
    pub unit: &'a str,
}

impl<'a> Number<'a> {
    /// Splits `text`; the number must not be negative and has at most 20 digits before and 9 after
    /// the point.
    pub fn split(
        quantity: &'static str,
        text: &'a str,
        example: &'static str,
    ) -> Result<Self, ParseError> {
        let trimmed = text.trim();
        let end = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(trimmed.len());
        let (digits, unit) = trimmed.split_at(end);
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let fraction = fraction.trim_end_matches('0');
        let whole = whole.trim_start_matches('0');
        if !digits.contains(|c: char| c.is_ascii_digit()) || fraction.contains('.') {
            return Err(ParseError::NoNumber { quantity, text: text.into(), example });
        }
        if whole.len() > 20 || fraction.len() > 9 {
            return Err(ParseError::Unit {
                quantity,
                text: text.into(),
                problem: "more digits than can be kept exactly (20 before the point, 9 after)"
                    .into(),
                example,
            });
        }
        let mantissa = format!("0{whole}{fraction}").parse().expect("at most 30 digits fit u128");
        Ok(Number { mantissa, decimals: fraction.len() as u32, unit: unit.trim() })
    }

    /// The number times `scale`, rounded to the nearest integer; `None` if it exceeds `u64`.
    pub fn scaled(&self, scale: u128) -> Option<u64> {
        let denominator = 10u128.pow(self.decimals);
        let product = self.mantissa.checked_mul(scale)?;
        u64::try_from((product + denominator / 2) / denominator).ok()
    }
}

/// `value` in the largest of `units` (factor, name; descending) that it reaches, with up to four
/// significant digits.
pub(super) fn show(
    f: &mut std::fmt::Formatter<'_>,
    value: u64,
    units: &[(u64, &str)],
) -> std::fmt::Result {
    let (factor, name) = units
        .iter()
        .copied()
        .find(|(factor, _)| value >= *factor)
        .unwrap_or(units[units.len() - 1]);
    let scaled = value as f64 / factor as f64;
    let decimals = match scaled {
        s if factor == 1 || s >= 1000.0 => 0,
        s if s >= 100.0 => 1,
        s if s >= 10.0 => 2,
        _ => 3,
    };
    let text = format!("{scaled:.decimals$}");
    let text =
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    f.pad(&format!("{text} {name}"))
}

/// `value` in the largest of `units` that divides it, so that the text parses back to the same
/// value.
pub(super) fn exact(value: u64, units: &[(u64, &str)]) -> String {
    let (factor, name) = units
        .iter()
        .copied()
        .find(|(factor, _)| value != 0 && value.is_multiple_of(*factor))
        .unwrap_or(units[units.len() - 1]);
    format!("{}{name}", value / factor)
}
