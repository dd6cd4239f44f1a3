//! Rows of the lab together with their scenarios, for CSV and Parquet.
//!
//! The columns are those of [`RUNS`], then the scenario's quantities ([`SCENARIOS`]), then its
//! texts under the names of its JSON: `hosts.server.sysctl.net.ipv4.tcp_wmem`,
//! `path.to_client.loss`. There is a column for each text that one of the sweep's scenarios has; it
//! is absent for scenarios without it.

use fullpipe_flow::schema::RunRow;
use fullpipe_flow::schema::{Cell, Column, RUNS, Record, SCENARIOS, csv_header};
use fullpipe_model::scenario::Scenario;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// The parts of a scenario's JSON whose texts become columns.
const WORDS: [&str; 4] = ["hosts", "path", "transfer.server", "transfer.client"];
/// Except these, which are quantities.
const NO_WORDS: [&str; 2] = ["path.seed", "path.mtu"];

/// The columns of a sweep.
#[derive(Debug, Clone, PartialEq)]
pub struct Columns {
    words: Vec<String>,
}

impl Columns {
    /// The columns for rows of `scenarios`.
    pub fn of<'a>(scenarios: impl IntoIterator<Item = &'a Scenario>) -> Columns {
        let words: BTreeSet<String> =
            scenarios.into_iter().flat_map(|scenario| words(scenario).into_keys()).collect();
        Columns { words: words.into_iter().collect() }
    }

    /// The columns after those of [`RUNS`] and [`SCENARIOS`]: all are texts.
    pub fn words(&self) -> &[String] {
        &self.words
    }

    /// The header line of CSV, with its line break.
    pub fn csv_header(&self) -> String {
        let fixed = csv_header(RUNS).trim_end().to_owned() + "," + csv_header(SCENARIOS).trim_end();
        self.words.iter().fold(fixed, |line, word| line + "," + word) + "\n"
    }

    /// A row as a line of CSV, with its line break.
    pub fn csv_line(&self, row: &RunRow, scenario: &Scenario) -> String {
        let mut line = String::new();
        for (number, cell) in self.cells(row, scenario).iter().enumerate() {
            if number > 0 {
                line.push(',');
            }
            cell.push_csv(&mut line);
        }
        line + "\n"
    }

    /// A row's cells, one for each column.
    pub fn cells<'r>(&self, row: &'r RunRow, scenario: &'r Scenario) -> Vec<Cell<'r>> {
        let mut cells: Vec<Cell<'r>> =
            row.cells().map(Cell::joined).chain(in_rows(SCENARIOS, scenario)).collect();
        let mut words = words(scenario);
        cells.extend(self.words.iter().map(|name| Cell::Text(words.remove(name).map(Into::into))));
        cells
    }
}

fn in_rows<'r, K: Record>(
    columns: &'static [Column<K>],
    row: &'r K::Row<'r>,
) -> impl Iterator<Item = Cell<'r>> {
    columns
        .iter()
        .filter(|column| column.place.is_in_rows())
        .map(move |column| (column.get)(row).joined())
}

/// A value as text; a list becomes its parts.
fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(parts) if parts.iter().all(Value::is_string) => {
            parts.iter().map(text).collect::<Vec<_>>().join("; ")
        }
        other => other.to_string(),
    }
}

fn object(value: &impl serde::Serialize) -> Map<String, Value> {
    match serde_json::to_value(value) {
        Ok(Value::Object(object)) => object,
        _ => Map::new(),
    }
}

/// The texts of a scenario by their path in JSON.
fn words(scenario: &Scenario) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    leaves("", &Value::Object(object(scenario)), &mut found);
    found.retain(|name, _| is_of_the_words(name) && !NO_WORDS.contains(&name.as_str()));
    found
}

/// Whether it is one of [`WORDS`] or within one.
fn is_of_the_words(name: &str) -> bool {
    WORDS.iter().any(|top| {
        name.strip_prefix(top).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    })
}

fn leaves(place: &str, value: &Value, found: &mut BTreeMap<String, String>) {
    match value {
        Value::Object(parts) => {
            for (name, part) in parts {
                let place = if place.is_empty() { name.clone() } else { format!("{place}.{name}") };
                leaves(&place, part, found);
            }
        }
        Value::Null => {}
        leaf => drop(found.insert(place.into(), text(leaf))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullpipe_model::scenario::File;

    const TEXT: &str = "\
[hosts.server]
congestion_control = \"reno\"
sysctl = { \"net.ipv4.tcp_wmem\" = \"4096 16384 65536\" }
[link]
rtt = \"50ms\"
rate = \"1gbit\"
seed = 7
[transfer]
size = \"1MB\"
[matrix]
\"link.loss\" = [\"0%\", \"1%\"]
";

    #[test]
    fn a_failed_run_has_every_column_its_figures_empty() {
        let scenarios = File::parse(TEXT).unwrap().scenarios("test").unwrap();
        let columns = Columns::of(&scenarios);
        let row = RunRow { name: "a".into(), error: Some("no room".into()), ..RunRow::default() };
        let (header, cells) = (columns.csv_header(), columns.cells(&row, &scenarios[0]));
        let names: Vec<&str> = header.trim_end().split(',').collect();
        let cell = |name: &str| &cells[names.iter().position(|column| *column == name).unwrap()];
        assert_eq!((cell("name"), cell("error")), (&Cell::text("a"), &Cell::text("no room")));
        assert_eq!(
            (cell("goodput_bps"), cell("quiet")),
            (&Cell::Number(None), &Cell::Boolean(None))
        );
        assert_eq!(cell("limited_by"), &Cell::Text(None));
    }
}
