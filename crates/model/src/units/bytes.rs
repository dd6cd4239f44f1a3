//! Amounts of data.

use super::number::{self, Number, ParseError};

/// An amount of data in bytes: a file, a buffer, a queue.
///
/// Parses `4096` (a bare number is bytes, as in sysctls), `6.25MB` (10^6), `16MiB` (2^20), `64kB`,
/// `1GiB`. Displays SI units; the alternate form `{:#}` displays powers of 1024.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Bytes(u64);

const SI: [(u64, &str); 5] =
    [(1_000_000_000_000, "TB"), (1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "kB"), (1, "B")];
const BINARY: [(u64, &str); 5] =
    [(1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "B")];

impl Bytes {
    /// Nothing.
    pub const ZERO: Bytes = Bytes(0);
    /// The largest amount that can be held.
    pub const MAX: Bytes = Bytes(u64::MAX);

    /// `count` bytes.
    pub const fn new(count: u64) -> Self {
        Bytes(count)
    }

    /// The count, for arithmetic and for column `.._bytes`.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The count as a float, for laws with factors.
    pub fn as_f64(self) -> f64 {
        self.0 as f64
    }

    /// Rounds `count` to whole bytes; negative and NaN become zero, too large becomes
    /// [`Bytes::MAX`].
    pub fn from_f64(count: f64) -> Self {
        Bytes(count.round() as u64)
    }

    /// The sum, or [`Bytes::MAX`].
    pub const fn saturating_add(self, other: Bytes) -> Bytes {
        Bytes(self.0.saturating_add(other.0))
    }

    /// The difference, or zero.
    pub const fn saturating_sub(self, other: Bytes) -> Bytes {
        Bytes(self.0.saturating_sub(other.0))
    }

    /// The sum; `None` if it does not fit.
    pub fn checked_add(self, other: Bytes) -> Option<Bytes> {
        self.0.checked_add(other.0).map(Bytes)
    }

    /// `self` times `factor`; `None` if it does not fit.
    pub fn checked_mul(self, factor: u64) -> Option<Bytes> {
        self.0.checked_mul(factor).map(Bytes)
    }

    /// A text that [`str::parse`] reads back as the same amount.
    pub fn to_exact(self) -> String {
        let binary = number::exact(self.0, &BINARY);
        let decimal = number::exact(self.0, &SI);
        if binary.len() < decimal.len() { binary } else { decimal }
    }
}

impl std::fmt::Display for Bytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        number::show(f, self.0, if f.alternate() { &BINARY } else { &SI })
    }
}

impl std::str::FromStr for Bytes {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        const QUANTITY: &str = "size";
        const EXAMPLE: &str = "6.25MB (10^6 bytes) or 16MiB (2^20 bytes)";
        let number = Number::split(QUANTITY, text, EXAMPLE)?;
        let scale: u128 = match number.unit {
            "" | "B" | "byte" | "bytes" => 1,
            "kB" | "KB" => 1_000,
            "MB" => 1_000_000,
            "GB" => 1_000_000_000,
            "TB" => 1_000_000_000_000,
            "KiB" | "kiB" => 1 << 10,
            "MiB" => 1 << 20,
            "GiB" => 1 << 30,
            "TiB" => 1 << 40,
            unit => {
                let problem = match unit.to_ascii_lowercase().as_str() {
                    "k" | "m" | "g" | "t" => format!("'{unit}' may mean powers of 1000 or of 1024"),
                    "kb" | "mb" | "gb" | "tb" | "b" => {
                        format!("'{unit}' may mean bits or bytes (a byte is a capital B)")
                    }
                    lower if lower.contains("bit") => {
                        format!("'{unit}' counts bits, a size is in bytes")
                    }
                    _ => format!("unknown unit '{unit}'"),
                };
                return Err(ParseError::Unit {
                    quantity: QUANTITY,
                    text: text.into(),
                    problem,
                    example: EXAMPLE,
                });
            }
        };
        number.scaled(scale).map(Bytes).ok_or_else(|| ParseError::Range {
            quantity: QUANTITY,
            text: text.into(),
            min: "0 B",
            max: "16 EiB",
        })
    }
}

impl std::ops::Add for Bytes {
    type Output = Bytes;
    fn add(self, other: Bytes) -> Bytes {
        Bytes(self.0 + other.0)
    }
}

impl std::ops::AddAssign for Bytes {
    fn add_assign(&mut self, other: Bytes) {
        self.0 += other.0;
    }
}

impl std::ops::Sub for Bytes {
    type Output = Bytes;
    fn sub(self, other: Bytes) -> Bytes {
        Bytes(self.0 - other.0)
    }
}

impl std::iter::Sum for Bytes {
    fn sum<I: Iterator<Item = Bytes>>(iter: I) -> Bytes {
        Bytes(iter.map(Bytes::get).sum())
    }
}

super::text_serde!(Bytes);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn decimal_and_binary_are_not_the_same() {
        assert_eq!("16MiB".parse(), Ok(Bytes::new(16_777_216)));
        assert_eq!("16MB".parse(), Ok(Bytes::new(16_000_000)));
        assert_eq!("6.25MB".parse(), Ok(Bytes::new(6_250_000)));
        assert_eq!(" 4096 ".parse(), Ok(Bytes::new(4096)));
        assert_eq!("0".parse(), Ok(Bytes::ZERO));
    }

    #[test]
    fn unclear_sizes_are_refused_with_the_reason() {
        for (text, says) in [
            ("1mb", "bits or bytes"),
            ("64k", "1000 or of 1024"),
            ("1gbit", "counts bits"),
            ("MB", "no number"),
            ("-1MB", "no number"),
            ("1.2.3MB", "no number"),
            ("99999999TB", "out of range"),
            ("1 parsec", "unknown unit 'parsec'"),
            ("", "no number"),
        ] {
            let error = text.parse::<Bytes>().unwrap_err().to_string();
            assert!(error.contains(says), "{text}: {error}");
        }
    }

    #[test]
    fn shows_the_unit_it_counts_in() {
        assert_eq!(Bytes::new(6_291_456).to_string(), "6.291 MB");
        assert_eq!(format!("{:#}", Bytes::new(6_291_456)), "6 MiB");
        assert_eq!(Bytes::new(999).to_string(), "999 B");
    }

    proptest! {
        #[test]
        fn exact_text_reads_back(count: u64) {
            prop_assert_eq!(Bytes::new(count).to_exact().parse(), Ok(Bytes::new(count)));
        }

        #[test]
        fn any_text_is_read_or_refused(text in "\\PC*") {
            let _ = text.parse::<Bytes>();
        }
    }
}
