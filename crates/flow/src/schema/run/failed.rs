//! How rows are written: all columns of a successful run, and of a failed run only the columns that
//! are true.
//!
//! The goodput of a failed run is not zero but unknown. So JSON leaves its figures out, and CSV and
//! Parquet, whose columns are the same for all rows, leave them empty.

use super::{Cell, Place, R, RUNS, RunRow};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

/// Columns that a failed run has too. Its figures are unknown, and so absent.
const OF_FAILED: [&str; 10] = [
    "schema",
    "name",
    "repetition",
    "engine",
    "link_engine",
    "kernel",
    "rtt_nominal_us",
    "rate_nominal_bps",
    "notes",
    "error",
];

impl RunRow {
    /// Whether the run failed: then the row has no figures.
    pub fn is_failed(&self) -> bool {
        self.error.is_some()
    }

    /// The cells of rows in CSV, Parquet and Arrow, in the order of [`RUNS`].
    pub fn cells(&self) -> impl Iterator<Item = Cell<'_>> {
        RUNS.iter().filter(|column| column.place.is_in_rows()).map(|column| {
            if self.has(column) { (column.get)(self) } else { Cell::absent(column.kind) }
        })
    }

    fn has(&self, column: &R) -> bool {
        !self.is_failed() || OF_FAILED.contains(&column.name)
    }
}

impl Serialize for RunRow {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let mut object = s.serialize_map(None)?;
        for column in RUNS.iter().filter(|column| column.place != Place::Rows && self.has(column)) {
            object.serialize_entry(column.name, &(column.get)(self))?;
        }
        object.end()
    }
}

#[cfg(test)]
mod tests {
    use super::super::Clock;
    use super::*;
    use fullpipe_model::units::Rate;

    #[test]
    fn a_failed_run_has_no_figures_and_is_read_as_it_was_written() {
        let row = RunRow {
            name: "a".into(),
            repetition: 2,
            engine: Clock::Virtual,
            rate_nominal: Some(Rate::from_bits_per_sec(1000)),
            error: Some("no room".into()),
            ..RunRow::default()
        };
        let value = serde_json::to_value(&row).unwrap();
        for absent in ["goodput_bps", "limited_by", "limits", "retransmission", "quiet"] {
            assert_eq!(value.get(absent), None, "{absent}");
        }
        assert_eq!(value["error"], "no room");
        assert_eq!(serde_json::from_value::<RunRow>(value).unwrap(), row);
    }
}
