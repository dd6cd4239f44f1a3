//! The distribution of a delay: netem's distributions, and custom tables.
//!
//! A distribution is a table of quantiles in units of 1/8192 of the standard deviation: a draw
//! picks an entry. netem works this way, and iproute2's `.dist` files (`/usr/lib/tc/*.dist`) are
//! such tables as text.

use crate::units::Duration;
use std::sync::{Arc, OnceLock};

/// Entries are multiples of the standard deviation times this.
const SCALE: i128 = 8192;
/// Entries of computed tables; iproute2's have as many.
const TABLE_SIZE: usize = 4096;
const STEP: f64 = 1.0 / TABLE_SIZE as f64;
/// netem accepts no larger table.
const TABLE_MAX: usize = 16_384;

/// The spread of a delay around its mean.
///
/// Text: `uniform`, `normal`, `pareto`, `paretonormal`, `file:PATH` (an iproute2 `.dist` file, read
/// by the caller) or `table:-8192,0,8192`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Distribution {
    /// Uniform within the jitter.
    #[default]
    Uniform,
    /// Gaussian.
    Normal,
    /// Pareto with index 3: rarely much later.
    Pareto,
    /// A quarter normal, three quarters Pareto.
    ParetoNormal,
    /// A custom table.
    Table(Table),
    /// A table in a file that has not been read yet: [`super::Config::resolved`] reads it.
    File(String),
}

/// Quantiles in units of 1/8192 standard deviation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table(Arc<[i16]>);

/// Why a text is not a distribution.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TableError {
    /// Not one of the names.
    #[error(
        "unknown distribution {0}; there are uniform, normal, pareto, paretonormal, file:PATH and table:N,N,.."
    )]
    Name(String),
    /// An entry that is not a 16-bit number.
    #[error(
        "distribution table: entry {index} '{text}' is no whole number between -32768 and 32767"
    )]
    Entry {
        /// Its position, from 1.
        index: usize,
        /// Its text.
        text: String,
    },
    /// No entries, or too many.
    #[error("distribution table: {0} entries; there must be between 1 and {TABLE_MAX}")]
    Size(usize),
}

impl Table {
    /// Reads an iproute2 `.dist` file: whole numbers between white space, `#` to the end of a line
    /// is a comment.
    ///
    /// # Errors
    /// An entry that is no number, no entries, more than netem takes.
    pub fn parse(file: &[u8]) -> Result<Self, TableError> {
        let text = String::from_utf8_lossy(file);
        let entries = text
            .lines()
            .flat_map(|line| line.split('#').next().unwrap_or_default().split_whitespace());
        Table::collect(entries)
    }

    /// `values` as a table.
    ///
    /// # Errors
    /// No entries, more than netem takes.
    pub fn new(values: Vec<i16>) -> Result<Self, TableError> {
        if values.is_empty() || values.len() > TABLE_MAX {
            return Err(TableError::Size(values.len()));
        }
        Ok(Table(values.into()))
    }

    /// The quantiles.
    pub fn values(&self) -> &[i16] {
        &self.0
    }

    fn collect<'a>(entries: impl Iterator<Item = &'a str>) -> Result<Self, TableError> {
        let mut values = Vec::new();
        for (index, text) in entries.take(TABLE_MAX + 1).enumerate() {
            let value = text
                .parse()
                .map_err(|_| TableError::Entry { index: index + 1, text: text.into() })?;
            values.push(value);
        }
        Table::new(values)
    }
}

impl Distribution {
    /// The offset of a draw from the mean, in nanoseconds: `random` is 64 bits, `deviation` the
    /// standard deviation (uniform: half the width).
    ///
    /// The draw is scaled to the table, where netem takes a remainder; a remainder would lose the
    /// correlation of draws.
    pub(super) fn offset(&self, random: u64, deviation: Duration) -> i64 {
        let sigma = i128::from(deviation.as_nanos());
        let Some(table) = self.table() else {
            let width = 2 * u128::from(deviation.as_nanos()) + 1;
            let drawn = (u128::from(random) * width) >> 64;
            return clamped(drawn as i128 - sigma);
        };
        let index = (u128::from(random) * table.len() as u128) >> 64;
        let product = sigma * i128::from(table[index as usize]);
        clamped((product + product.signum() * SCALE / 2) / SCALE)
    }

    /// The quantiles; `None` for the uniform distribution, and for a file that has not been read
    /// (which `checked` refuses).
    pub fn table(&self) -> Option<&[i16]> {
        static NORMAL: OnceLock<Vec<i16>> = OnceLock::new();
        static PARETO: OnceLock<Vec<i16>> = OnceLock::new();
        static PARETO_NORMAL: OnceLock<Vec<i16>> = OnceLock::new();
        match self {
            Distribution::Uniform | Distribution::File(_) => None,
            Distribution::Normal => Some(NORMAL.get_or_init(|| quantiles(normal_quantile))),
            // iproute2 takes the beginning of each step here, not its middle.
            Distribution::Pareto => {
                Some(PARETO.get_or_init(|| quantiles(|p| pareto_quantile(p - STEP / 2.0))))
            }
            Distribution::ParetoNormal => Some(PARETO_NORMAL.get_or_init(|| {
                quantiles(|p| 0.25 * normal_quantile(p) + 0.75 * pareto_quantile(p))
            })),
            Distribution::Table(table) => Some(table.values()),
        }
    }
}

fn clamped(nanos: i128) -> i64 {
    nanos.clamp(i64::MIN.into(), i64::MAX.into()) as i64
}

/// A table of the values that `quantile` gives for evenly spread probabilities.
fn quantiles(quantile: impl Fn(f64) -> f64) -> Vec<i16> {
    let middles = (0..TABLE_SIZE).map(|index| (index as f64 + 0.5) * STEP);
    middles.map(|p| (quantile(p) * 8192.0).round() as i16).collect()
}

/// Pareto with index 3, less its mean, in iproute2's scale of 4/3 (the inverse of the variance).
fn pareto_quantile(p: f64) -> f64 {
    let value = ((1.0 - p).cbrt().recip() - 1.5) * 4.0 / 3.0;
    value.min(f64::from(i16::MAX) / 8192.0)
}

/// The normal quantile, by bisection of the distribution function: 60 halvings are exact to the
/// table's whole numbers.
fn normal_quantile(p: f64) -> f64 {
    let (mut low, mut high) = (-8.0f64, 8.0f64);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if normal_below(middle) < p { low = middle } else { high = middle }
    }
    f64::midpoint(low, high)
}

/// The share of a normal distribution below `x`: the density integrated as its power series
/// (Marsaglia, "Evaluating the normal distribution", 2004).
fn normal_below(x: f64) -> f64 {
    const ROOT_2_PI: f64 = 2.506_628_274_631_000_5;
    let (mut sum, mut term, mut n) = (x, x, 1.0);
    for _ in 0..200 {
        n += 2.0;
        term *= x * x / n;
        sum += term;
    }
    0.5 + sum * (-0.5 * x * x).exp() / ROOT_2_PI
}

impl std::fmt::Display for Distribution {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Distribution::Uniform => f.write_str("uniform"),
            Distribution::Normal => f.write_str("normal"),
            Distribution::Pareto => f.write_str("pareto"),
            Distribution::ParetoNormal => f.write_str("paretonormal"),
            Distribution::File(path) => write!(f, "file:{path}"),
            Distribution::Table(table) => {
                f.write_str("table:")?;
                for (index, value) in table.values().iter().enumerate() {
                    let comma = if index == 0 { "" } else { "," };
                    write!(f, "{comma}{value}")?;
                }
                Ok(())
            }
        }
    }
}

impl std::str::FromStr for Distribution {
    type Err = TableError;

    fn from_str(text: &str) -> Result<Self, TableError> {
        if let Some(path) = text.strip_prefix("file:").filter(|path| !path.is_empty()) {
            return Ok(Distribution::File(path.into()));
        }
        if let Some(entries) = text.strip_prefix("table:") {
            return Table::collect(entries.split(',')).map(Distribution::Table);
        }
        match text {
            "uniform" => Ok(Distribution::Uniform),
            "normal" => Ok(Distribution::Normal),
            "pareto" => Ok(Distribution::Pareto),
            "paretonormal" => Ok(Distribution::ParetoNormal),
            other => Err(TableError::Name(other.into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// iproute2's own tables, where they are installed, are the independent truth.
    #[test]
    #[expect(clippy::print_stderr, reason = "a test that cannot run says so")]
    fn computed_tables_are_those_of_iproute2() {
        let folders = [
            "/usr/lib/x86_64-linux-gnu/tc",
            "/usr/lib/aarch64-linux-gnu/tc",
            "/usr/lib/tc",
            "/usr/share/tc",
        ];
        let Some(folder) = folders.iter().find(|folder| std::path::Path::new(folder).is_dir())
        else {
            // As in CI, which has them.
            let strict = std::env::var_os("FULLPIPE_NO_SKIP").is_some_and(|value| value == "1");
            assert!(
                !strict,
                "not to be skipped here, but there is no folder with iproute2's tables"
            );
            eprintln!(
                "SKIPPED: computed_tables_are_those_of_iproute2: no folder with iproute2's tables"
            );
            return;
        };
        for (distribution, most) in [
            (Distribution::Normal, 64),
            (Distribution::Pareto, 1),
            (Distribution::ParetoNormal, 64),
        ] {
            let file = std::fs::read(format!("{folder}/{distribution}.dist")).unwrap();
            let mut theirs = Table::parse(&file).unwrap().values().to_vec();
            theirs.sort_unstable();
            let ours = distribution.table().unwrap();
            assert_eq!(ours.len(), theirs.len());
            // All but 3 % at each end, where iproute2 estimates the normal distribution from a
            // histogram.
            for index in 128..ours.len() - 128 {
                let difference = ours[index].abs_diff(theirs[index]);
                assert!(
                    difference <= most,
                    "{distribution}[{index}]: {} against {}",
                    ours[index],
                    theirs[index]
                );
            }
        }
    }

    #[test]
    fn a_table_is_read_with_its_comments_or_refused_with_the_place() {
        let table = Table::parse(b"# title\n -8192 0\n 8192 # end\n").unwrap();
        assert_eq!(table.values(), [-8192, 0, 8192]);
        assert_eq!(Table::parse(b"1 2 x"), Err(TableError::Entry { index: 3, text: "x".into() }));
        assert_eq!(Table::parse(b"# nothing"), Err(TableError::Size(0)));
        assert_eq!(
            Table::parse("1 ".repeat(20_000).as_bytes()),
            Err(TableError::Size(TABLE_MAX + 1))
        );
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_table_or_refused(bytes: Vec<u8>) {
            let _ = Table::parse(&bytes);
        }

        #[test]
        fn a_table_reads_back_and_never_overflows(values in prop::collection::vec(any::<i16>(), 1..50), random: u64, nanos: u64) {
            let table = Distribution::Table(Table::new(values).unwrap());
            prop_assert_eq!(table.to_string().parse(), Ok(table.clone()));
            table.offset(random, Duration::from_nanos(nanos));
        }
    }
}
