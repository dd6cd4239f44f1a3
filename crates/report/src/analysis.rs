//! The analysis of a capture: every connection with what limited it, as JSON, as rows, as a table,
//! and all details of one.

mod depth;
mod table;

pub use depth::depth;
pub use table::table;

use fullpipe_flow::connection::Direction;
use fullpipe_flow::diagnosis::DiagnosedConnection;
use fullpipe_flow::schema::Version;
use fullpipe_flow::{Analysis, Counts};
use serde::Serialize;

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
    /// Connections, by first packet or worst first.
    pub connections: Vec<DiagnosedConnection>,
}

impl Report {
    /// The report on `file`.
    pub fn new(file: impl Into<String>, analysis: Analysis) -> Self {
        Report {
            schema: Version::default(),
            file: file.into(),
            counts: analysis.counts,
            problem: None,
            connections: analysis
                .connections
                .into_iter()
                .map(DiagnosedConnection::with_findings)
                .collect(),
        }
    }

    /// Adds a connection. If there are already `most`, only its packets are counted, as untracked.
    pub fn add(&mut self, explained: DiagnosedConnection, most: usize) {
        if self.connections.len() < most {
            self.connections.push(explained);
        } else {
            let connection = &explained.connection;
            let packets = |direction| connection.facts(direction).packets;
            self.counts.untracked +=
                packets(Direction::ClientToServer) + packets(Direction::ServerToClient);
        }
    }
}

#[cfg(test)]
mod tests;
