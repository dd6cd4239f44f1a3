//! Cases times matrix: the number of rows by arithmetic alone, and each row on demand.

use super::error::ScenarioError;
use super::file::File;
use super::over::Override;
use super::table::{merge, nested};
use std::collections::BTreeMap;

/// The most runs of one command: rows times repetitions, over everything that is included. More is
/// a mistake in a matrix.
pub const RUNS_MAX: u64 = 10_000;
/// The most repetitions of a row.
pub const REPEAT_MAX: u32 = 1000;
/// The total size of the tables of all rows of a file, as text: many rows of a large table would
/// fill the memory.
const TEXT_MAX: u64 = 32 << 20;

impl File {
    /// The number of runs of its own rows (without those of [`File::include`]), computed without
    /// making any. `repeat` overrides the file, and so does `over`. [`u64::MAX`] if it does not
    /// fit.
    ///
    /// # Errors
    /// A matrix key without values.
    pub fn runs(&self, over: &[Override], repeat: Option<u32>) -> Result<u64, ScenarioError> {
        if !self.include.is_empty() {
            return Ok(0);
        }
        self.rows()?;
        let repeat = repeat.or_else(|| over.iter().rev().find_map(|over| repeat_of(over.table())));
        let own = self.repeat.unwrap_or(1);
        let of_matrix = self
            .matrix
            .get("repeat")
            .map(|values| values.iter().filter_map(repeats).map(u64::from).sum());
        let others = self
            .matrix
            .iter()
            .filter(|(key, _)| *key != "repeat")
            .map(|(_, values)| values.len() as u64);
        let others = product(others);
        let cases: u64 = match of_matrix {
            Some(_) => self.bases(),
            None => self
                .bases_of_file()
                .chain(self.changed().map(|case| repeat_of(case).unwrap_or(own)))
                .map(u64::from)
                .sum(),
        };
        Ok(match (repeat, of_matrix) {
            (Some(repeat), _) => self.rows()?.saturating_mul(repeat.into()),
            (None, Some(of_matrix)) => others.saturating_mul(cases).saturating_mul(of_matrix),
            (None, None) => others.saturating_mul(cases),
        })
    }

    /// The number of its rows.
    pub(super) fn rows(&self) -> Result<u64, ScenarioError> {
        if let Some((key, _)) = self.matrix.iter().find(|(_, values)| values.is_empty()) {
            return Err(ScenarioError::EmptyAxis(key.clone()));
        }
        Ok(self
            .bases()
            .saturating_mul(product(self.matrix.values().map(|values| values.len() as u64))))
    }

    /// Rows before multiplication by the matrix.
    fn bases(&self) -> u64 {
        self.bases_of_file().chain(self.changed().map(|_| 1)).count() as u64
    }

    /// The repetitions of the file's own row, if it has one.
    fn bases_of_file(&self) -> impl Iterator<Item = u32> {
        self.cases.is_empty().then_some(self.repeat.unwrap_or(1)).into_iter()
    }

    /// The rows that change something.
    fn changed(&self) -> impl Iterator<Item = &toml::Table> {
        self.cases.iter().chain(&self.also)
    }
}

fn product(factors: impl Iterator<Item = u64>) -> u64 {
    factors.fold(1, u64::saturating_mul)
}

/// The `repeat` in a table.
fn repeat_of(table: &toml::Table) -> Option<u32> {
    table.get("repeat").and_then(repeats)
}

fn repeats(value: &toml::Value) -> Option<u32> {
    match value {
        toml::Value::Integer(number) => u32::try_from(*number).ok(),
        toml::Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}

/// The rows of a file as tables, each made on demand.
pub(super) struct Combinations<'a> {
    file: &'a File,
    name: &'a str,
    rows: u64,
}

impl<'a> Combinations<'a> {
    /// The rows of `file`.
    ///
    /// # Errors
    /// More rows than [`RUNS_MAX`], or too much text in them.
    pub fn new(file: &'a File, name: &'a str) -> Result<Self, ScenarioError> {
        let rows = file.rows()?;
        if rows > RUNS_MAX {
            return Err(ScenarioError::TooManyRuns { runs: rows, most: RUNS_MAX });
        }
        let largest = file.changed().map(|case| case.to_string().len()).max().unwrap_or(0);
        let text = rows.saturating_mul((file.table.to_string().len() + largest) as u64);
        if rows > 1 && text > TEXT_MAX {
            return Err(ScenarioError::TooMuchText { rows, text });
        }
        Ok(Combinations { file, name, rows })
    }

    /// Name and table of each row, in order: the last key of the matrix changes fastest.
    pub fn iter(&self) -> impl Iterator<Item = Result<(String, toml::Table), ScenarioError>> {
        (0..self.rows).map(|index| self.row(index))
    }

    fn row(&self, index: u64) -> Result<(String, toml::Table), ScenarioError> {
        let axes: BTreeMap<&String, &Vec<toml::Value>> = self.file.matrix.iter().collect();
        let mut rest = index;
        let mut values = Vec::with_capacity(axes.len());
        for (key, list) in axes.iter().rev() {
            values.push((*key, &list[(rest % list.len() as u64) as usize]));
            rest /= list.len() as u64;
        }
        let (mut name, mut table) = self.base(rest as usize)?;
        for (key, value) in values.into_iter().rev() {
            merge(&mut table, nested(key, value)?);
            name = format!("{name}/{}", part_of_name(key, value));
        }
        Ok((name, table))
    }

    /// The file's own row, or one that changes something in it.
    fn base(&self, index: usize) -> Result<(String, toml::Table), ScenarioError> {
        let own = usize::from(self.file.cases.is_empty());
        let Some(number) = (index + 1).checked_sub(own).filter(|number| *number > 0) else {
            return Ok((self.name.to_string(), self.file.table.clone()));
        };
        let mut case = self.file.changed().nth(number - 1).cloned().unwrap_or_default();
        let case_name = match case.remove("name") {
            Some(toml::Value::String(case_name)) => case_name,
            None => number.to_string(),
            Some(other) => return Err(ScenarioError::Name(other.to_string())),
        };
        let mut table = self.file.table.clone();
        merge(&mut table, case);
        Ok((format!("{}/{case_name}", self.name), table))
    }
}

/// `rtt=10ms`: the last part of the key, and the value without characters that a name cannot have.
fn part_of_name(key: &str, value: &toml::Value) -> String {
    let shown = value.as_str().map_or_else(|| value.to_string(), str::to_string);
    let short = key.rsplit(['.', '"', '\'']).find(|part| !part.is_empty()).unwrap_or(key);
    let shown: String =
        shown.chars().map(|c| if c.is_whitespace() || c == '%' { '-' } else { c }).collect();
    format!("{short}={}", shown.trim_end_matches('-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(text: &str, repeat: Option<u32>) -> u64 {
        File::parse(text).unwrap().runs(&[], repeat).unwrap()
    }

    #[test]
    fn runs_are_counted_as_they_are_made() {
        for text in [
            "",
            "repeat = 7",
            "[matrix]\n\"link.rtt\" = [\"1ms\", \"2ms\"]\n\"link.seed\" = [1, 2, 3]",
            "repeat = 5\n[matrix]\nrepeat = [2, \"3\"]\n\"link.seed\" = [1, 2]",
            "repeat = 4\n[[cases]]\nname = \"a\"\n[[cases]]\nname = \"b\"\nrepeat = 9\n[matrix]\n\"link.seed\" = [1, 2]",
            "repeat = 4\n[[also]]\nname = \"a\"\nrepeat = \"2\"",
        ] {
            let made = File::parse(text).unwrap().scenarios("test").unwrap();
            assert_eq!(
                runs(text, None),
                made.iter().map(|row| u64::from(row.repeat)).sum::<u64>(),
                "{text}"
            );
            assert_eq!(runs(text, Some(3)), made.len() as u64 * 3, "{text}");
        }
        let over: Override = "repeat=6".parse().unwrap();
        assert_eq!(File::parse("repeat = 2").unwrap().runs(&[over], None), Ok(6));
    }

    #[test]
    fn more_rows_than_can_be_run_are_refused_before_one_is_made() {
        let axis = |key: &str| format!("\"{key}\" = {:?}\n", (0..1000).collect::<Vec<u32>>());
        let keys = [
            "link.seed",
            "transfer.size",
            "transfer.read_rate",
            "link.mtu",
            "transfer.port",
            "hosts.server.nice",
        ];
        let text = format!("[matrix]\n{}", keys.map(axis).concat());
        let file = File::parse(&text).unwrap();
        assert_eq!(file.runs(&[], None), Ok(10u64.pow(18)));
        assert_eq!(
            file.scenarios("test"),
            Err(ScenarioError::TooManyRuns { runs: 10u64.pow(18), most: RUNS_MAX })
        );
        let many =
            format!("description = \"{}\"\n[matrix]\n{}", "x".repeat(100_000), axis("link.seed"));
        let refused = File::parse(&many).unwrap().scenarios("test");
        assert!(matches!(refused, Err(ScenarioError::TooMuchText { rows: 1000, .. })));
    }
}
