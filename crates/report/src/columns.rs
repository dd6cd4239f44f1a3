//! Rows of the lab as a typed table, for CSV and Parquet: every column of [`Row`], and what was asked for beside it.
//!
//! The columns of a row are those of its JSON, its name and repetition first; its list of limits is a column a limit
//! (`limit_send_buffer`, the share), its notes are one text. Then come the scenario's quantities as numbers with their unit
//! in their name (`seed`, `size_bytes`, `write_rate_bps`), and its words as texts under the names that its JSON has:
//! `hosts.server.sysctl.net.ipv4.tcp_wmem`, `path.to_client.loss`. Of the words only those are columns that one of the
//! sweep's scenarios has. True and false are 1 and 0; a text that is not there is empty.

use crate::analysis::{Cell, Kind};
use fullpipe_flow::limit::Limit;
use fullpipe_flow::row::Row;
use fullpipe_model::scenario::Scenario;
use fullpipe_model::units::{Bytes, Rate};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// What says which row it is.
const FIRST: [&str; 2] = ["name", "repetition"];
/// Columns of [`Row`] that are texts.
const TEXTS: [&str; 15] = [
    "link_engine",
    "name",
    "engine",
    "kernel",
    "congestion_control",
    "law_term",
    "limited_by",
    "limit_cause",
    "finding",
    "limited_by_sockets",
    "limit_cause_sockets",
    "notes",
    "reference_note",
    "reference_cause",
    "error",
];
/// Columns of [`Row`] that are fractions.
const FRACTIONS: [&str; 3] = ["limit_share", "limit_share_sockets", "reference_ratio"];

/// A quantity of a scenario: its column, and where it is.
type Quantity = (&'static str, fn(&Scenario) -> Option<u64>);

const QUANTITIES: &[Quantity] = &[
    ("seed", |scenario| Some(scenario.path.seed)),
    ("mtu_bytes", |scenario| Some(scenario.path.mtu.get())),
    ("size_bytes", |scenario| Some(scenario.transfer.size.get())),
    ("duration_max_us", |scenario| Some(scenario.transfer.duration.as_micros())),
    ("read_rate_bps", |scenario| scenario.transfer.read_rate.map(Rate::bits_per_sec)),
    ("write_rate_bps", |scenario| scenario.transfer.write_rate.map(Rate::bits_per_sec)),
    ("receive_buffer_bytes", |scenario| scenario.transfer.receive_buffer.map(Bytes::get)),
    ("send_buffer_bytes", |scenario| scenario.transfer.send_buffer.map(Bytes::get)),
    ("sample_interval_us", |scenario| Some(scenario.sample_interval.as_micros())),
    ("snaplen_bytes", |scenario| Some(scenario.capture.snaplen.get())),
];

/// Words of a scenario that are columns, by where they are in its JSON.
const WORDS: [&str; 4] = ["hosts", "path", "transfer.server", "transfer.client"];
/// Not these: they are quantities.
const NO_WORDS: [&str; 2] = ["path.seed", "path.mtu"];

/// The columns of a sweep.
#[derive(Debug, Clone, PartialEq)]
pub struct Columns {
    row: Vec<(String, Kind)>,
    words: Vec<String>,
}

impl Columns {
    /// Those of rows that come from `scenarios`.
    pub fn of<'a>(scenarios: impl IntoIterator<Item = &'a Scenario>) -> Columns {
        let words: BTreeSet<String> = scenarios.into_iter().flat_map(|scenario| words(scenario).into_keys()).collect();
        let row = object(&Row::default()).into_iter().filter(|(name, _)| name != "limits").map(|(name, _)| {
            let kind = match name.as_str() {
                name if TEXTS.contains(&name) => Kind::Text,
                name if FRACTIONS.contains(&name) => Kind::Fraction,
                _ => Kind::Number,
            };
            (name, kind)
        });
        let mut row: Vec<_> = row.collect();
        // What says which row it is comes first; the sort leaves the others in their order.
        row.sort_by_key(|(name, _)| FIRST.iter().position(|first| first == name).unwrap_or(FIRST.len()));
        Columns { row, words: words.into_iter().collect() }
    }

    /// Their names and kinds, in order.
    pub fn kinds(&self) -> Vec<(String, Kind)> {
        let limits = Limit::ALL.into_iter().map(|limit| (limit_column(limit), Kind::Fraction));
        let quantities = QUANTITIES.iter().map(|(name, _)| (name.to_string(), Kind::Number));
        let words = self.words.iter().map(|name| (name.clone(), Kind::Text));
        self.row.iter().cloned().chain(limits).chain(quantities).chain(words).collect()
    }

    /// A row's cells, one for each column.
    pub fn cells(&self, row: &Row, scenario: &Scenario) -> Vec<Cell> {
        let values = object(row);
        let mut words = words(scenario);
        let of_row = self.row.iter().map(|(name, kind)| cell(values.get(name), *kind));
        let limits = Limit::ALL.into_iter().map(|limit| {
            let share = row.limits.iter().find(|candidate| candidate.limit == limit).map(|candidate| candidate.share);
            Cell::Fraction(share)
        });
        let quantities = QUANTITIES.iter().map(|(_, of)| Cell::Number(of(scenario)));
        let of_words = self.words.iter().map(|name| Cell::Text(words.remove(name).unwrap_or_default()));
        of_row.chain(limits).chain(quantities).chain(of_words).collect()
    }
}

fn limit_column(limit: Limit) -> String {
    let cause = limit.cause().map_or(String::new(), |cause| format!("_{cause}"));
    format!("limit_{}{cause}", limit.name())
}

fn cell(value: Option<&Value>, kind: Kind) -> Cell {
    match kind {
        Kind::Text => Cell::Text(value.map_or(String::new(), text)),
        Kind::Fraction => Cell::Fraction(value.and_then(Value::as_f64)),
        _ => Cell::Number(value.and_then(|value| value.as_u64().or_else(|| value.as_bool().map(u64::from)))),
    }
}

/// A value in words: a list is its parts.
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

/// The words of a scenario by their place.
fn words(scenario: &Scenario) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    leaves("", &Value::Object(object(scenario)), &mut found);
    let wanted = |name: &str| {
        WORDS.iter().any(|top| name.strip_prefix(top).is_some_and(|rest| rest.is_empty() || rest.starts_with('.')))
    };
    found.retain(|name, _| wanted(name) && !NO_WORDS.contains(&name.as_str()));
    found
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

    fn table() -> (Columns, Vec<Scenario>) {
        let scenarios = File::parse(TEXT).unwrap().scenarios(TEXT, "test").unwrap();
        (Columns::of(&scenarios), scenarios)
    }

    #[test]
    fn every_column_of_a_row_is_there_and_of_its_kind() {
        let (columns, scenarios) = table();
        let kinds = columns.kinds();
        let names: BTreeSet<&String> = kinds.iter().map(|(name, _)| name).collect();
        assert_eq!(names.len(), kinds.len(), "no name twice");
        // A row whose every value is there: none of them may be lost.
        let mut full = object(&Row::default());
        for (name, value) in full.iter_mut().filter(|(name, _)| *name != "limits" && *name != "error") {
            let kind = kinds.iter().find(|(column, _)| column == name).unwrap_or_else(|| panic!("{name} is missing")).1;
            *value = match (kind, value.is_boolean()) {
                (_, true) => true.into(),
                (Kind::Text, _) if name == "notes" => vec!["a", "b"].into(),
                (Kind::Text, _) if name == "engine" => "virtual".into(),
                (Kind::Text, _) if name == "link_engine" => "netem".into(),
                (Kind::Text, _) if name == "law_term" => "send_buffer".into(),
                (Kind::Text, _) if name.starts_with("limited_by") => "congestion_window".into(),
                (Kind::Text, _) if name.starts_with("limit_cause") => "loss".into(),
                (Kind::Text, _) => "text".into(),
                (Kind::Fraction, _) => 0.25.into(),
                _ => 3.into(),
            };
        }
        let row: Row = serde_json::from_value(Value::Object(full)).unwrap();
        let cells = columns.cells(&row, &scenarios[0]);
        assert_eq!(
            cells.iter().map(Cell::kind).collect::<Vec<_>>(),
            kinds.iter().map(|(_, kind)| *kind).collect::<Vec<_>>()
        );
        let of_row = kinds.iter().zip(&cells).take(columns.row.len());
        for ((name, _), cell) in of_row.filter(|((name, _), _)| name != "error") {
            assert!(!cell.to_string().is_empty(), "{name} is lost");
        }
        let cell = |name: &str| cells[kinds.iter().position(|(column, _)| column == name).unwrap()].clone();
        assert_eq!((cell("notes"), cell("quiet")), (Cell::Text("a; b".into()), Cell::Number(Some(1))));
    }

    #[test]
    fn a_failed_run_has_every_column_its_figures_empty() {
        let (columns, scenarios) = table();
        let row = Row { name: "a".into(), error: Some("no room, \"none\"".into()), ..Row::default() };
        let kinds = columns.kinds();
        let cells = columns.cells(&row, &scenarios[0]);
        let cell = |name: &str| cells[kinds.iter().position(|(column, _)| column == name).unwrap()].clone();
        assert_eq!(cells.len(), kinds.len());
        assert_eq!((cell("goodput_bps"), cell("limit_share")), (Cell::Number(None), Cell::Fraction(None)));
        assert_eq!((cell("complete"), cell("limited_by")), (Cell::Number(None), Cell::Text(String::new())));
        assert_eq!(cell("error"), Cell::Text("no room, \"none\"".into()));
        assert_eq!(cell("size_bytes"), Cell::Number(Some(1_000_000)));
    }

    #[test]
    fn what_was_asked_for_stands_beside_the_row() {
        let (columns, scenarios) = table();
        let kinds = columns.kinds();
        let cells: Vec<_> = scenarios.iter().map(|scenario| columns.cells(&Row::default(), scenario)).collect();
        let cell =
            |row: usize, name: &str| cells[row][kinds.iter().position(|(column, _)| column == name).unwrap()].clone();
        assert_eq!(cell(0, "seed"), Cell::Number(Some(7)));
        assert_eq!(cell(0, "size_bytes"), Cell::Number(Some(1_000_000)));
        assert_eq!(cell(0, "write_rate_bps"), Cell::Number(None));
        assert_eq!(cell(0, "hosts.server.congestion_control"), Cell::Text("reno".into()));
        assert_eq!(cell(0, "hosts.server.sysctl.net.ipv4.tcp_wmem"), Cell::Text("4096 16384 65536".into()));
        assert_ne!(cell(0, "path.to_client.loss"), cell(1, "path.to_client.loss"));
        assert!(!kinds.iter().any(|(name, _)| name == "hosts.client.congestion_control"), "no scenario has it");
    }
}
