//! What was found in a capture: every connection with what held it, as JSON, as rows, as a table, and one in depth.
//!
//! Connections are ranked by the time that they lost: the time in which neither the path nor the sending application held
//! the transfer, so that a setting, a receiver or congestion control did.

mod depth;
mod row;
mod table;

pub use depth::depth;
pub use row::{Cell, Kind, columns, csv_line, rows};
pub use table::table;

use fullpipe_flow::connection::{Connection, Direction};
use fullpipe_flow::finding::{Finding, KnownPath, findings};
use fullpipe_flow::limit::{Candidate, Interval, Limit};
use fullpipe_flow::{Analysis, Counts};
use fullpipe_model::units::Duration;
use serde::Serialize;

/// A capture, explained. Serialises as the JSON of `fullpipe analyze`.
#[derive(Debug, Serialize)]
pub struct Report {
    /// The capture's name, as it was given.
    pub file: String,
    /// Its packets.
    #[serde(flatten)]
    pub counts: Counts,
    /// Why the capture was not read to its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// Connections, by first packet or worst first.
    pub connections: Vec<Explained>,
}

/// A connection and what held it.
#[derive(Debug, Serialize)]
pub struct Explained {
    /// The facts.
    #[serde(flatten)]
    pub connection: Connection,
    /// What held each direction that carried data, largest share first.
    pub limits: Vec<Directed<Candidate>>,
    /// What that means, the direction that carried more first.
    pub findings: Vec<Directed<Finding>>,
    /// What held it when; only where one connection was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub intervals: Option<Vec<Directed<Interval>>>,
}

/// Something of one direction.
#[derive(Debug, Clone, Serialize)]
pub struct Directed<T> {
    /// Whose data.
    pub direction: Direction,
    /// What of it.
    #[serde(flatten)]
    pub what: T,
}

impl Report {
    /// Explains what was found in `file`.
    pub fn new(file: impl Into<String>, analysis: Analysis) -> Self {
        Report {
            file: file.into(),
            counts: analysis.counts,
            problem: None,
            connections: analysis.connections.into_iter().map(Explained::new).collect(),
        }
    }

    /// Puts together what several analyzers of one capture gave and what an intake `counted`, as
    /// [`Analysis::merge`] does: connections by first packet, numbered anew.
    pub fn merge(file: impl Into<String>, counted: Counts, parts: impl IntoIterator<Item = Report>) -> Self {
        let mut whole = Report { file: file.into(), counts: counted, problem: None, connections: Vec::new() };
        for part in parts {
            whole.counts += part.counts;
            whole.connections.extend(part.connections);
        }
        whole.connections.sort_unstable_by_key(|explained| explained.connection.first_packet);
        (0..).zip(&mut whole.connections).for_each(|(id, explained)| explained.connection.id = id);
        whole
    }

    /// Puts the connections that lost most first, and keeps `top` of them.
    pub fn worst_first(&mut self, top: Option<usize>) {
        self.connections.sort_by_cached_key(|explained| std::cmp::Reverse((explained.lost(), explained.payload())));
        self.connections.truncate(top.unwrap_or(usize::MAX));
    }
}

impl Explained {
    /// Explains a connection.
    pub fn new(connection: Connection) -> Self {
        let directions = match connection.bulk() {
            Direction::ClientToServer => [Direction::ClientToServer, Direction::ServerToClient],
            Direction::ServerToClient => [Direction::ServerToClient, Direction::ClientToServer],
        };
        let (mut limits, mut found) = (Vec::new(), Vec::new());
        for direction in directions {
            let Some(verdict) = &connection.facts(direction).verdict else { continue };
            limits.extend(verdict.shares.iter().map(|share| Directed { direction, what: *share }));
            let all = findings(verdict, KnownPath { rtt: connection.handshake_rtt, goodput_max: None });
            found.extend(all.into_iter().map(|what| Directed { direction, what }));
        }
        Explained { connection, limits, findings: found, intervals: None }
    }

    /// A connection for [`rows`], which have neither limits nor findings in sentences: those are most of the work.
    pub fn for_rows(connection: Connection) -> Self {
        Explained { connection, limits: Vec::new(), findings: Vec::new(), intervals: None }
    }

    /// Adds what held the connection when.
    pub fn with_intervals(mut self) -> Self {
        let mut intervals = Vec::new();
        for direction in [Direction::ClientToServer, Direction::ServerToClient] {
            let Some(verdict) = &self.connection.facts(direction).verdict else { continue };
            intervals.extend(verdict.intervals.iter().map(|what| Directed { direction, what: what.clone() }));
        }
        self.intervals = Some(intervals);
        self
    }

    /// The time that the direction with more data lost to anything but the path and its own application.
    pub fn lost(&self) -> Duration {
        let Some(verdict) = &self.connection.facts(self.connection.bulk()).verdict else { return Duration::ZERO };
        let losing = verdict.shares.iter().filter(|candidate| loses(candidate.limit));
        let share: f64 = losing.map(|candidate| candidate.share).sum();
        Duration::from_secs_f64(verdict.time.as_secs_f64() * share.clamp(0.0, 1.0))
    }

    /// Payload of both directions.
    fn payload(&self) -> u64 {
        self.connection.client_to_server.payload.get() + self.connection.server_to_client.payload.get()
    }
}

/// Whether time under this limit is lost: neither the path's nor the sending application's.
fn loses(limit: Limit) -> bool {
    !matches!(limit, Limit::Link | Limit::SenderApplication | Limit::Unknown)
}

#[cfg(test)]
mod tests;
