//! Durations and instants.

use super::number::{self, Number, ParseError};

/// A span of time in whole nanoseconds: a delay, a round-trip time, an interval.
///
/// Parses `146ms`, `50us`, `1.5s`, `2m` or `2min`, `1h`; a number without a unit is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Duration(u64);

const UNITS: [(u64, &str); 4] = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us"), (1, "ns")];

impl Duration {
    /// No time.
    pub const ZERO: Duration = Duration(0);
    /// The longest span, 584 years.
    pub const MAX: Duration = Duration(u64::MAX);

    /// `nanos` nanoseconds.
    pub const fn from_nanos(nanos: u64) -> Self {
        Duration(nanos)
    }

    /// `micros` microseconds; saturates.
    pub const fn from_micros(micros: u64) -> Self {
        Duration(micros.saturating_mul(1_000))
    }

    /// `millis` milliseconds; saturates.
    pub const fn from_millis(millis: u64) -> Self {
        Duration(millis.saturating_mul(1_000_000))
    }

    /// `secs` seconds; saturates.
    pub const fn from_secs(secs: u64) -> Self {
        Duration(secs.saturating_mul(1_000_000_000))
    }

    /// Rounds to nanoseconds; negative and NaN become zero.
    pub fn from_secs_f64(secs: f64) -> Self {
        Duration((secs * 1e9).round() as u64)
    }

    /// Whole nanoseconds.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Whole microseconds, for columns `.._us`.
    pub const fn as_micros(self) -> u64 {
        self.0 / 1_000
    }

    /// Seconds as a float.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Milliseconds as a float.
    pub fn as_millis_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// The sum, or [`Duration::MAX`].
    pub const fn saturating_add(self, other: Duration) -> Duration {
        Duration(self.0.saturating_add(other.0))
    }

    /// The difference, or zero.
    pub const fn saturating_sub(self, other: Duration) -> Duration {
        Duration(self.0.saturating_sub(other.0))
    }

    /// The absolute difference.
    pub const fn abs_diff(self, other: Duration) -> Duration {
        Duration(self.0.abs_diff(other.0))
    }

    /// `self` times `factor`; saturates.
    pub const fn saturating_mul(self, factor: u64) -> Duration {
        Duration(self.0.saturating_mul(factor))
    }

    /// A text that [`str::parse`] reads back as the same span.
    pub fn to_exact(self) -> String {
        number::exact(self.0, &UNITS)
    }
}

impl std::fmt::Display for Duration {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        number::show(f, self.0, &UNITS)
    }
}

impl std::str::FromStr for Duration {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        const QUANTITY: &str = "time";
        const EXAMPLE: &str = "146ms, 50us or 1.5s";
        let number = Number::split(QUANTITY, text, EXAMPLE)?;
        let scale: u128 = match number.unit {
            "ns" => 1,
            "us" | "µs" | "μs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" | "min" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            unit => {
                let problem = if unit.is_empty() {
                    "no unit".into()
                } else {
                    format!("unknown unit '{unit}'")
                };
                return Err(ParseError::Unit {
                    quantity: QUANTITY,
                    text: text.into(),
                    problem,
                    example: EXAMPLE,
                });
            }
        };
        number.scaled(scale).map(Duration).ok_or_else(|| ParseError::Range {
            quantity: QUANTITY,
            text: text.into(),
            min: "0 s",
            max: "584 years",
        })
    }
}

impl From<Duration> for std::time::Duration {
    fn from(duration: Duration) -> Self {
        std::time::Duration::from_nanos(duration.0)
    }
}

impl From<std::time::Duration> for Duration {
    fn from(duration: std::time::Duration) -> Self {
        Duration(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl std::ops::Add for Duration {
    type Output = Duration;
    fn add(self, other: Duration) -> Duration {
        Duration(self.0 + other.0)
    }
}

impl std::ops::Sub for Duration {
    type Output = Duration;
    fn sub(self, other: Duration) -> Duration {
        Duration(self.0 - other.0)
    }
}

impl std::iter::Sum for Duration {
    fn sum<I: Iterator<Item = Duration>>(iter: I) -> Duration {
        Duration(iter.map(Duration::as_nanos).sum())
    }
}

super::text_serde!(Duration);

/// A point in time: nanoseconds since an epoch that the caller chooses (boot, 1970, the start of a
/// test).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Instant(u64);

impl Instant {
    /// The caller's epoch.
    pub const ZERO: Instant = Instant(0);

    /// `nanos` nanoseconds after the epoch.
    pub const fn from_nanos(nanos: u64) -> Self {
        Instant(nanos)
    }

    /// Nanoseconds since the epoch.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The time since `earlier`; zero if `earlier` is later (the clocks of captures step back).
    pub const fn since(self, earlier: Instant) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }

    /// `span` before this instant, at least the epoch.
    pub const fn saturating_sub(self, span: Duration) -> Instant {
        Instant(self.0.saturating_sub(span.0))
    }
}

impl std::ops::Add<Duration> for Instant {
    type Output = Instant;
    /// Saturates at the last representable instant.
    fn add(self, span: Duration) -> Instant {
        Instant(self.0.saturating_add(span.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_units_and_refuses_bare_numbers() {
        assert_eq!("146ms".parse(), Ok(Duration::from_millis(146)));
        assert_eq!("0.5ms".parse(), Ok(Duration::from_micros(500)));
        assert_eq!("2min".parse(), Ok(Duration::from_secs(120)));
        assert_eq!("2m".parse(), Ok(Duration::from_secs(120)));
        assert!("50".parse::<Duration>().unwrap_err().to_string().contains("no unit"));
        assert!("-1ms".parse::<Duration>().unwrap_err().to_string().contains("no number"));
        assert_eq!(Duration::from_micros(50_120).to_string(), "50.12 ms");
    }

    #[test]
    fn a_clock_that_steps_back_gives_no_negative_time() {
        assert_eq!(Instant::from_nanos(5).since(Instant::from_nanos(9)), Duration::ZERO);
    }

    proptest! {
        #[test]
        fn exact_text_reads_back(nanos: u64) {
            prop_assert_eq!(Duration::from_nanos(nanos).to_exact().parse(), Ok(Duration::from_nanos(nanos)));
        }
    }
}
