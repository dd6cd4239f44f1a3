//! Merging of TOML tables.

use super::error::ScenarioError;

/// `a."b.c".d = value` as nested tables: TOML's own grammar reads the key.
pub(super) fn nested(key: &str, value: &toml::Value) -> Result<toml::Table, ScenarioError> {
    let text = format!("{key} = {value}");
    toml::from_str(&text).map_err(|error| ScenarioError::Row {
        row: format!("[matrix] \"{key}\""),
        problem: error.message().to_string(),
    })
}

/// Merges `over` into `table`, recursively; `over` wins.
pub(super) fn merge(table: &mut toml::Table, over: toml::Table) {
    for (key, value) in over {
        match (table.get_mut(&key), value) {
            (Some(toml::Value::Table(below)), toml::Value::Table(above)) => merge(below, above),
            (_, value) => {
                table.insert(key, value);
            }
        }
    }
}
