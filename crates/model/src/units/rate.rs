//! Rates of data.

use super::number::{self, Number, ParseError};
use super::{Bytes, Duration};

/// A rate in bits per second: of a link, of a transfer.
///
/// Parses tc's bit units in any case (`1gbit`, `1000Mbit`, `2.5Gbit/s`) and byte units with a
/// capital B (`125MB/s`, `16MiB/s`). `bps` forms are refused: `mbps` means megabytes in tc and
/// megabits everywhere else. Displays bits; the alternate form `{:#}` displays bytes per second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Rate(u64);

const BITS: [(u64, &str); 5] = [
    (1_000_000_000_000, "Tbit/s"),
    (1_000_000_000, "Gbit/s"),
    (1_000_000, "Mbit/s"),
    (1_000, "kbit/s"),
    (1, "bit/s"),
];
const BYTES: [(u64, &str); 4] =
    [(1_000_000_000, "GB/s"), (1_000_000, "MB/s"), (1_000, "kB/s"), (1, "B/s")];

impl Bytes {
    /// Mean rate at which this amount passes in `time`; `None` if `time` is zero or the rate does
    /// not fit.
    pub fn per(self, time: Duration) -> Option<Rate> {
        let bits = u128::from(self.get()) * 8 * 1_000_000_000;
        let nanos = u128::from(time.as_nanos());
        (nanos > 0).then(|| u64::try_from(bits / nanos).ok().map(Rate::from_bits_per_sec))?
    }
}

impl Rate {
    /// No movement.
    pub const ZERO: Rate = Rate(0);

    /// `bits` per second.
    pub const fn from_bits_per_sec(bits: u64) -> Self {
        Rate(bits)
    }

    /// `bytes` each second; `None` beyond `u64` bits.
    pub fn from_bytes_per_sec(bytes: Bytes) -> Option<Self> {
        bytes.get().checked_mul(8).map(Rate)
    }

    /// Rounds to whole bits per second; negative and NaN become zero.
    pub fn from_bits_per_sec_f64(bits: f64) -> Self {
        Rate(bits.round() as u64)
    }

    /// Both together; saturates.
    #[must_use]
    pub const fn saturating_add(self, other: Rate) -> Rate {
        Rate(self.0.saturating_add(other.0))
    }

    /// Bits per second, for arithmetic and for columns `.._bps`.
    pub const fn bits_per_sec(self) -> u64 {
        self.0
    }

    /// Whole bytes per second.
    pub const fn bytes_per_sec(self) -> Bytes {
        Bytes::new(self.0 / 8)
    }

    /// The rate as a float of bits per second, for laws with factors.
    pub fn as_f64(self) -> f64 {
        self.0 as f64
    }

    /// The amount that passes at this rate in `time`, in whole bytes; saturates.
    pub fn over(self, time: Duration) -> Bytes {
        // The usual product fits u64, where a division is ten times faster.
        if let Some(product) = self.0.checked_mul(time.as_nanos()) {
            return Bytes::new(product / 8_000_000_000);
        }
        let bits = u128::from(self.0) * u128::from(time.as_nanos()) / 1_000_000_000;
        Bytes::new(u64::try_from(bits / 8).unwrap_or(u64::MAX))
    }

    /// The time that `amount` takes at this rate, rounded to a nanosecond; `None` at rate zero or
    /// beyond 584 years.
    pub fn time_for(self, amount: Bytes) -> Option<Duration> {
        if self.0 == 0 {
            return None;
        }
        let nanos = (u128::from(amount.get()) * 8_000_000_000 + u128::from(self.0 / 2))
            / u128::from(self.0);
        u64::try_from(nanos).ok().map(Duration::from_nanos)
    }

    /// `self / whole` as a fraction; zero if `whole` is zero.
    pub fn fraction_of(self, whole: Rate) -> f64 {
        if whole.0 == 0 { 0.0 } else { self.0 as f64 / whole.0 as f64 }
    }

    /// A text that [`str::parse`] reads back as the same rate.
    pub fn to_exact(self) -> String {
        const TC: [(u64, &str); 5] = [
            (1_000_000_000_000, "tbit"),
            (1_000_000_000, "gbit"),
            (1_000_000, "mbit"),
            (1_000, "kbit"),
            (1, "bit"),
        ];
        number::exact(self.0, &TC)
    }
}

impl std::fmt::Display for Rate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if f.alternate() {
            number::show(f, self.0 / 8, &BYTES)
        } else {
            number::show(f, self.0, &BITS)
        }
    }
}

impl std::str::FromStr for Rate {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        const QUANTITY: &str = "rate";
        const EXAMPLE: &str = "1gbit (bits) or 125MB/s (bytes)";
        let number = Number::split(QUANTITY, text, EXAMPLE)?;
        let scale = scale_of(number.unit).map_err(|problem| ParseError::Unit {
            quantity: QUANTITY,
            text: text.into(),
            problem,
            example: EXAMPLE,
        })?;
        number.scaled(scale).map(Rate).ok_or_else(|| ParseError::Range {
            quantity: QUANTITY,
            text: text.into(),
            min: "0 bit/s",
            max: "18 Ebit/s",
        })
    }
}

/// Bits per second in one `unit`, or what is wrong with it.
fn scale_of(unit: &str) -> Result<u128, String> {
    if let Some(bytes) = unit.strip_suffix("B/s") {
        return match bytes {
            "" => Ok(8),
            "k" | "K" => Ok(8_000),
            "M" => Ok(8_000_000),
            "G" => Ok(8_000_000_000),
            "T" => Ok(8_000_000_000_000),
            "Ki" | "ki" => Ok(8 << 10),
            "Mi" => Ok(8 << 20),
            "Gi" => Ok(8 << 30),
            _ => Err(format!("unknown unit '{unit}'")),
        };
    }
    let lower = unit.to_ascii_lowercase();
    let bits = lower.strip_suffix("bit/s").or_else(|| lower.strip_suffix("bit"));
    match (bits, lower.as_str()) {
        (Some(""), _) => Ok(1),
        (Some("k"), _) => Ok(1_000),
        (Some("m"), _) => Ok(1_000_000),
        (Some("g"), _) => Ok(1_000_000_000),
        (Some("t"), _) => Ok(1_000_000_000_000),
        (Some("ki"), _) => Ok(1 << 10),
        (Some("mi"), _) => Ok(1 << 20),
        (Some("gi"), _) => Ok(1 << 30),
        (_, "") => Err("no unit".into()),
        (_, s) if s.ends_with("bps") => {
            Err(format!("'{unit}' is bits to most people and bytes to tc; write mbit or MB/s"))
        }
        (_, s) if s.ends_with('b') || s.ends_with("b/s") => Err(format!(
            "'{unit}' does not say bit or byte; write gbit, mbit, kbit or GB/s, MB/s, kB/s"
        )),
        _ => Err(format!("unknown unit '{unit}'")),
    }
}

super::text_serde!(Rate);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn bits_and_bytes_meet() {
        let gbit = Rate::from_bits_per_sec(1_000_000_000);
        for text in ["1gbit", "1000mbit", "1Gbit/s", "125MB/s", "1000000 kbit", "0.125GB/s"] {
            assert_eq!(text.parse(), Ok(gbit), "{text}");
        }
        assert_eq!(gbit.to_string(), "1 Gbit/s");
        assert_eq!(format!("{gbit:#}"), "125 MB/s");
    }

    #[test]
    fn unclear_rates_are_refused_with_the_reason() {
        for (text, says) in [
            ("1gb", "does not say bit or byte"),
            ("1Gb/s", "does not say bit or byte"),
            ("100mbps", "bytes to tc"),
            ("100", "no unit"),
            ("-5mbit", "no number"),
            ("1MB", "does not say bit or byte"),
            ("99999999999tbit", "out of range"),
        ] {
            let error = text.parse::<Rate>().unwrap_err().to_string();
            assert!(error.contains(says), "{text}: {error}");
        }
    }

    #[test]
    fn time_and_amount_are_inverse() {
        let rate: Rate = "1gbit".parse().unwrap();
        let time = rate.time_for(Bytes::new(1500)).unwrap();
        assert_eq!(time, Duration::from_nanos(12_000));
        assert_eq!(rate.over(time), Bytes::new(1500));
        assert_eq!(Rate::ZERO.time_for(Bytes::new(1)), None);
    }

    proptest! {
        #[test]
        fn exact_text_reads_back(bits: u64) {
            prop_assert_eq!(Rate::from_bits_per_sec(bits).to_exact().parse(), Ok(Rate::from_bits_per_sec(bits)));
        }

        #[test]
        fn any_text_is_read_or_refused(text in "\\PC*") {
            let _ = text.parse::<Rate>();
        }
    }
}
