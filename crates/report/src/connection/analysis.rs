//! The analysis of a capture: every connection with what limited it, as JSON, as rows, as a table,
//! and all details of one.

mod depth;
mod remarks;
mod table;

pub use depth::depth;
pub use remarks::remarks;
pub use table::{head, table};

use fullpipe_flow::connection::{Connection, Place, Warning};
use fullpipe_flow::diagnosis::{DiagnosedConnection, Rank, note_others};
use fullpipe_flow::schema::Version;
use fullpipe_flow::{Analysis, Counts};
use serde::Serialize;
use std::collections::BTreeMap;

/// The connections that a report keeps of a capture with more than twice as many. They take some 2
/// KB each, and a scan of ports has millions.
const KEPT: usize = 1 << 14;

/// An analysed capture. Serialises as the JSON of `fullpipe analyze`.
#[derive(Debug, Serialize)]
pub struct Report {
    /// The version of the names in it.
    pub schema: Version,
    /// The given name of the capture.
    pub file: String,
    /// Counts of its packets.
    #[serde(flatten)]
    pub counts: Counts,
    /// Why the capture was not read to its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// Connections that are not in it, because there were too many: those that lost least time.
    #[serde(rename = "connections_left_out", skip_serializing_if = "is_zero")]
    pub left_out: u64,
    /// Connections, by first packet or worst first.
    pub connections: Vec<DiagnosedConnection>,
    /// What is counted of all connections.
    #[serde(skip)]
    tally: Tally,
    /// The number of a connection that is kept in any case.
    #[serde(skip)]
    pinned: Option<u64>,
    /// The last of those that were kept when some were left out.
    #[serde(skip)]
    bar: Option<Order>,
}

/// A connection's place among the others, the first being kept longest: the pinned one, then those
/// that lost most, then those with the lower number.
type Order = (bool, Rank, u64);

/// What is counted of all connections of a capture.
#[derive(Debug, Default)]
struct Tally {
    connections: u64,
    places: BTreeMap<&'static str, u64>,
    warnings: BTreeMap<&'static str, u64>,
}

impl Tally {
    fn note(&mut self, connection: &Connection) {
        self.connections += 1;
        *self.places.entry(connection.vantage.place.words()).or_default() += 1;
        for warning in &connection.warnings {
            *self.warnings.entry(warning.words()).or_default() += 1;
        }
    }
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Report {
    /// The report on `file`.
    pub fn new(file: impl Into<String>, analysis: Analysis) -> Self {
        let mut report = Report {
            schema: Version::default(),
            file: file.into(),
            counts: analysis.counts,
            problem: None,
            left_out: 0,
            connections: Vec::new(),
            tally: Tally::default(),
            pinned: None,
            bar: None,
        };
        let connections = analysis.connections.into_iter();
        connections.map(DiagnosedConnection::with_findings).for_each(|one| report.add(one));
        report
    }

    /// Keeps the connection with this number, however many lost more.
    #[must_use]
    pub fn pinned(self, id: Option<u64>) -> Self {
        Report { pinned: id, ..self }
    }

    /// Whether a connection was asked for.
    pub fn is_pinned(&self) -> bool {
        self.pinned.is_some()
    }

    /// Adds a connection; of very many, those that lost least are only counted.
    pub fn add(&mut self, explained: DiagnosedConnection) {
        self.tally.note(&explained.connection);
        if self.bar.is_some_and(|bar| self.rank(&explained) > bar) {
            self.left_out += 1;
            return;
        }
        self.connections.push(explained);
        if self.connections.len() >= 2 * KEPT {
            self.shorten();
        }
    }

    /// Ends a capture: sorts its connections by first packet, and compares them with each other.
    pub fn finish(&mut self) {
        if self.left_out > 0 {
            self.shorten();
        }
        self.connections.sort_by_cached_key(|explained| explained.connection.id);
        note_others(&mut self.connections);
    }

    /// How many connections the capture has.
    pub fn total(&self) -> u64 {
        self.tally.connections
    }

    fn rank(&self, explained: &DiagnosedConnection) -> Order {
        let id = explained.connection.id;
        (self.pinned != Some(id), explained.rank(), id)
    }

    /// Leaves out all but [`KEPT`].
    fn shorten(&mut self) {
        let mut connections = std::mem::take(&mut self.connections);
        connections.sort_by_cached_key(|explained| self.rank(explained));
        self.left_out += connections.len().saturating_sub(KEPT) as u64;
        connections.truncate(KEPT);
        self.bar = connections.last().map(|last| self.rank(last));
        self.connections = connections;
    }

    /// How many connections were captured at this place.
    fn at(&self, place: Place) -> u64 {
        self.tally.places.get(place.words()).copied().unwrap_or_default()
    }

    /// How many connections have this warning.
    fn with(&self, warning: Warning) -> u64 {
        self.tally.warnings.get(warning.words()).copied().unwrap_or_default()
    }
}

#[cfg(test)]
pub(super) mod tests;
