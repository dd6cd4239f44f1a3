//! How rows are written: all columns of a successful run, and of a failed run only the columns that
//! are true.
//!
//! The goodput of a failed run is not zero but unknown. So JSON leaves its figures out, and CSV and
//! Parquet, whose columns are the same for all rows, leave them empty.

use super::{Clock, Row};
use crate::version::Version;
use fullpipe_model::scenario::LinkEngine;
use fullpipe_model::units::{Duration, Rate, column};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The columns of a run that failed.
#[derive(Serialize)]
struct Failed<'a> {
    schema: Version,
    name: &'a str,
    repetition: u32,
    engine: Clock,
    link_engine: LinkEngine,
    kernel: &'a str,
    #[serde(rename = "rtt_nominal_us", with = "column::micros")]
    rtt_nominal: Duration,
    #[serde(rename = "rate_nominal_bps", with = "column::rate_optional")]
    rate_nominal: Option<Rate>,
    notes: &'a [String],
    error: &'a str,
}

impl Serialize for Row {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let Some(error) = &self.error else { return Row::serialize(self, s) };
        let failed = Failed {
            schema: self.schema,
            name: &self.name,
            repetition: self.repetition,
            engine: self.engine,
            link_engine: self.link_engine,
            kernel: &self.kernel,
            rtt_nominal: self.rtt_nominal,
            rate_nominal: self.rate_nominal,
            notes: &self.notes,
            error,
        };
        failed.serialize(s)
    }
}

impl<'de> Deserialize<'de> for Row {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Row, D::Error> {
        Row::deserialize(d)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_run_has_no_figures_and_is_read_as_it_was_written() {
        let row = Row {
            name: "a".into(),
            repetition: 2,
            engine: Clock::Virtual,
            rate_nominal: Some(Rate::from_bits_per_sec(1000)),
            error: Some("no room".into()),
            ..Row::default()
        };
        let value = serde_json::to_value(&row).unwrap();
        for absent in ["goodput_bps", "limited_by", "limits", "retransmission", "quiet"] {
            assert_eq!(value.get(absent), None, "{absent}");
        }
        assert_eq!(value["error"], "no room");
        assert_eq!(serde_json::from_value::<Row>(value).unwrap(), row);
    }

    #[test]
    fn every_column_of_a_failed_run_is_one_of_a_run_that_was_done() {
        let done = serde_json::to_value(Row::default()).unwrap();
        let failed =
            serde_json::to_value(Row { error: Some("x".into()), ..Row::default() }).unwrap();
        assert!(failed.as_object().unwrap().keys().all(|column| done.get(column).is_some()));
        assert!(done["error"].is_null());
    }
}
