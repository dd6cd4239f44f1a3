//! A key of a scenario that is set from outside the file; it overrides the file, its cases and its
//! matrix.

use super::table::{merge, nested};
use std::fmt;
use std::str::FromStr;

/// `link.loss=1%`: a key of a scenario file, and its new value.
///
/// The value is TOML if it can be parsed (`transfer.size="1MB"`, `link.seed=7`), else it is text
/// (`link.rtt=50ms`). A key with dots in one of its parts is quoted as in TOML:
/// `hosts.server.sysctl."net.ipv4.tcp_wmem"=4096 16384 4194304`.
///
/// ```
/// use fullpipe_model::scenario::Override;
/// let over: Override = "link.rtt=50ms".parse().unwrap();
/// assert_eq!(over.to_string(), "link.rtt=50ms");
/// assert!("link.rtt".parse::<Override>().is_err());
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Override {
    text: String,
    table: toml::Table,
}

/// Why a text is not a setting.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("setting '{text}': {problem}; write KEY=VALUE, for example link.rtt=50ms")]
pub struct OverrideError {
    text: String,
    problem: String,
}

impl FromStr for Override {
    type Err = OverrideError;

    fn from_str(text: &str) -> Result<Override, OverrideError> {
        let (key, value) = text.split_once('=').ok_or_else(|| wrong(text, "there is no '='"))?;
        let (key, value) = (key.trim(), value.trim());
        // Key and value become part of a line of TOML, which must remain one line.
        if key.is_empty() || text.chars().any(char::is_control) {
            return Err(wrong(text, "there is no key, or more than a line"));
        }
        if ["name", "include", "matrix", "cases", "also"].contains(&key) {
            return Err(wrong(
                text,
                "it decides which rows there are, and those are to be the same",
            ));
        }
        let plain = toml::from_str::<toml::Table>(&format!("value = {value}"));
        let plain = plain.ok().and_then(|mut table| table.remove("value"));
        let value = plain.unwrap_or_else(|| toml::Value::String(value.into()));
        let table = nested(key, &value).map_err(|error| wrong(text, &error.to_string()))?;
        Ok(Override { text: text.into(), table })
    }
}

fn wrong(text: &str, problem: &str) -> OverrideError {
    OverrideError { text: text.into(), problem: problem.into() }
}

impl fmt::Display for Override {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Override {
    /// The key as nested tables.
    pub(super) fn table(&self) -> &toml::Table {
        &self.table
    }

    /// Applies it to a row's table.
    pub(super) fn apply(&self, row: &mut toml::Table) {
        merge(row, self.table.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::super::{File, Scenario, ScenarioError};
    use super::*;
    use proptest::prelude::*;

    const TEXT: &str = "[link]\nrtt = \"10ms\"\nrate = \"1gbit\"\n[matrix]\n\"link.rtt\" = [\"1ms\", \"2ms\"]\n\"link.seed\" = [1, 2]\n";

    fn with(settings: &[&str]) -> Result<Vec<Scenario>, ScenarioError> {
        let over: Vec<Override> = settings.iter().map(|setting| setting.parse().unwrap()).collect();
        File::parse(TEXT)?.scenarios_with("test", &over, &mut |_| Err("no files".into()))
    }

    #[test]
    fn it_stands_above_file_and_matrix_and_leaves_the_names() {
        let (plain, set) = (with(&[]).unwrap(), with(&["link.rtt=50ms", "link.seed=7"]).unwrap());
        let names = |rows: &[Scenario]| rows.iter().map(|row| row.name.clone()).collect::<Vec<_>>();
        assert_eq!(names(&plain), names(&set));
        assert!(
            set.iter().all(|row| row.path.rtt() == "50ms".parse().unwrap() && row.path.seed == 7)
        );
        assert_eq!(plain[0].path.rtt(), "1ms".parse().unwrap());
        let sysctl =
            with(&["hosts.server.sysctl.\"net.ipv4.tcp_wmem\"=4096 16384 4194304"]).unwrap();
        assert_eq!(sysctl[0].hosts.server.sysctl["net.ipv4.tcp_wmem"].0, "4096 16384 4194304");
        assert_eq!(with(&["kernel=\"6.1\""]).unwrap()[0].kernel.as_deref(), Some("6.1"));
    }

    #[test]
    fn a_wrong_one_is_an_error_where_it_is_noticed() {
        for text in ["", "=", "=1", "link.rtt", "matrix=1", "a\nb=1", "[link=1", "link rtt=1"] {
            assert!(text.parse::<Override>().is_err(), "{text:?}");
        }
        let error = with(&["link.rat=1gbit"]).unwrap_err().to_string();
        assert!(error.contains("rat"), "{error}");
        assert!(with(&["link.rtt=50"]).is_err());
    }

    proptest! {
        #[test]
        fn any_text_is_a_setting_or_an_error(text in "\\PC{0,40}") {
            if let Ok(over) = text.parse::<Override>() {
                let _ = File::parse(TEXT).unwrap().scenarios_with("test", &[over], &mut |_| Err("none".into()));
            }
        }
    }
}
