//! The columns of everything that is printed or stored: one table for each kind of row.
//!
//! A [`Column`] has a name, the kind of its values, when it is absent, what it means, and a
//! function that takes it from a row. CSV, JSON lines of packets, Parquet, Arrow and the guide's
//! pages are made from these tables, and tests hold the nested JSON to them. The unit is the end of
//! the name: `_us`, `_ns`, `_bytes`, `_bps`.
//!
//! [`JsonSchema`] is the same for programs that read JSON.
//!
//! A name keeps its meaning and its unit: a new meaning gets a new name and the next
//! [`SCHEMA_VERSION`]. A new column, or a new word among a column's values, does not make a new
//! version.
//!
//! * [`RUNS`]: one run of the lab; [`SCENARIOS`]: its scenario's values, beside it.
//! * [`CONNECTIONS`]: one direction of a captured connection.
//! * [`PACKETS`]: a packet with its labels.
//! * [`INTERVALS`], [`FINDINGS`], [`SUB_CAUSES`]: parts of a connection's JSON;
//!   [`WHOLES`]: what they are parts of, before them in rows.
//! * [`LIVE_CONNECTIONS`]: a connection of this host and what limits it, a row of `fullpipe why`.
//! * [`WORKLOADS`]: what took the time of a workload of a host in an hour, a row of a fleet.
//! * [`SAMPLES`]: an observation of a socket.
//! * [`TRUTH_INTERVALS`]: what limited a run, as its kernel knew it.
//! * [`CAPTURE_PROBLEMS`]: a capture of an archive that was not read to its end.

mod cell;
mod connection;
mod finding;
mod json_schema;
mod live;
mod packet;
mod page;
mod part;
mod problem;
mod run;
mod sample;
mod table;
mod truth;
mod workload;

pub use cell::{Cell, Kind};
pub use connection::{CONNECTIONS, ConnectionRow, Connections, connection_rows};
pub use finding::{FINDINGS, Findings, INTERVALS, Intervals, SPANS, SUB_CAUSES, Spans, SubCauses};
pub use json_schema::JsonSchema;
pub use live::{LIVE_CONNECTIONS, LiveConnections, LiveRow};
pub use packet::{PACKETS, PacketRow, Packets};
pub use page::{RENAMED, Renamed, columns_in_short, markdown};
pub use part::{WHOLES, WholeRow, Wholes};
pub use problem::{CAPTURE_PROBLEMS, CaptureProblem, CaptureProblems};
pub use run::{Clock, RUNS, RunRow, Runs, SCENARIOS, Scenarios};
pub use sample::{SAMPLES, Samples};
pub use table::{Column, Object, Place, Record, csv_header, csv_line};
pub use truth::{TRUTH_INTERVALS, TruthIntervals};
pub use workload::{WORKLOADS, WorkloadRow, Workloads};

pub use crate::version::{SCHEMA_VERSION, Version, Versioned};

#[cfg(test)]
mod tests;
