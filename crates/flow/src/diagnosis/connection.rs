//! A captured connection with what held each of its directions.

use super::{Diagnosis, SeenAt, Subject};
use crate::connection::{Connection, Direction};
use crate::finding::{Finding, KnownPath};
use crate::limit::{Candidate, Interval, Verdict};
use fullpipe_model::units::Duration;
use serde::Serialize;
use std::borrow::Cow;

/// A captured connection: its facts, and a diagnosis for each direction that carried data. It
/// serialises as the JSON of `fullpipe analyze`: the facts, then `limits`, `findings` and, where
/// they are asked for, `intervals`.
#[derive(Debug, Clone)]
pub struct DiagnosedConnection {
    /// The facts.
    pub connection: Connection,
    /// By direction: the client's data, then the server's.
    diagnoses: [Option<Diagnosis>; 2],
    /// What the diagnoses mean, where that was worked out already.
    findings: Option<Vec<OfDirection<Finding>>>,
    shows_intervals: bool,
}

/// Something of one direction.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OfDirection<T> {
    /// Whose data.
    pub direction: Direction,
    /// What of it.
    #[serde(flatten)]
    pub what: T,
}

impl DiagnosedConnection {
    /// Puts the facts and the verdicts together: of the client's data, then of the server's, `None`
    /// where there was none.
    pub fn from_capture(connection: Connection, verdicts: [Option<Verdict>; 2]) -> Self {
        let [client, server] = verdicts;
        let diagnoses = [
            client.map(|verdict| diagnosis(&connection, Direction::ClientToServer, verdict)),
            server.map(|verdict| diagnosis(&connection, Direction::ServerToClient, verdict)),
        ];
        DiagnosedConnection { connection, diagnoses, findings: None, shows_intervals: false }
    }

    /// Works the findings out now, on the thread that calls, for whoever serialises them.
    pub fn with_findings(mut self) -> Self {
        self.findings = Some(self.by_direction(Diagnosis::findings));
        self
    }

    /// Gives the connection another number.
    pub fn renumber(&mut self, id: u64) {
        self.connection.id = id;
        for diagnosis in self.diagnoses.iter_mut().flatten() {
            diagnosis.subject.connection = Some(id);
        }
    }

    /// Serialises what held the connection when, too.
    pub fn with_intervals(self) -> Self {
        DiagnosedConnection { shows_intervals: true, ..self }
    }

    /// What held a direction's data; `None` where there was none.
    pub fn diagnosis(&self, direction: Direction) -> Option<&Diagnosis> {
        match direction {
            Direction::ClientToServer => self.diagnoses[0].as_ref(),
            Direction::ServerToClient => self.diagnoses[1].as_ref(),
        }
    }

    /// What held the direction that carried more.
    pub fn bulk(&self) -> Option<&Diagnosis> {
        self.diagnosis(self.connection.bulk())
    }

    /// The shares of every limit, the direction that carried more first.
    pub fn limits(&self) -> Vec<OfDirection<Candidate>> {
        self.by_direction(|diagnosis| diagnosis.verdict.shares.clone())
    }

    /// What that means, the direction that carried more first.
    pub fn findings(&self) -> Cow<'_, [OfDirection<Finding>]> {
        match &self.findings {
            Some(findings) => Cow::Borrowed(findings),
            None => Cow::Owned(self.by_direction(Diagnosis::findings)),
        }
    }

    /// The time that the direction with more data lost to anything but the path and its own
    /// application.
    pub fn lost(&self) -> Duration {
        self.bulk().map_or(Duration::ZERO, Diagnosis::lost)
    }

    /// What held the connection when: the client's data, then the server's.
    fn intervals(&self) -> Vec<OfDirection<&Interval>> {
        let mut all = Vec::new();
        for direction in [Direction::ClientToServer, Direction::ServerToClient] {
            let intervals =
                self.diagnosis(direction).into_iter().flat_map(|one| &one.verdict.intervals);
            all.extend(intervals.map(|what| OfDirection { direction, what }));
        }
        all
    }

    fn by_direction<T>(&self, of: impl Fn(&Diagnosis) -> Vec<T>) -> Vec<OfDirection<T>> {
        let directions = match self.connection.bulk() {
            Direction::ClientToServer => [Direction::ClientToServer, Direction::ServerToClient],
            Direction::ServerToClient => [Direction::ServerToClient, Direction::ClientToServer],
        };
        let mut all = Vec::new();
        for direction in directions {
            let found = self.diagnosis(direction).map(&of).unwrap_or_default();
            all.extend(found.into_iter().map(|what| OfDirection { direction, what }));
        }
        all
    }
}

/// Sorts connections by lost time ([`DiagnosedConnection::lost`]), most first; of equals, the one
/// with more payload comes first.
pub fn worst_first(connections: &mut [DiagnosedConnection]) {
    connections.sort_by_cached_key(|diagnosed| {
        let connection = &diagnosed.connection;
        let payload =
            connection.client_to_server.payload.get() + connection.server_to_client.payload.get();
        std::cmp::Reverse((diagnosed.lost(), payload))
    });
}

fn diagnosis(connection: &Connection, direction: Direction, verdict: Verdict) -> Diagnosis {
    let (sender, receiver) = match direction {
        Direction::ClientToServer => (connection.client, connection.server),
        Direction::ServerToClient => (connection.server, connection.client),
    };
    let subject = Subject {
        connection: Some(connection.id),
        direction: Some(direction),
        sender,
        receiver,
        seen_at: SeenAt::Capture(connection.vantage.place),
    };
    Diagnosis {
        subject,
        verdict,
        path: KnownPath { rtt: connection.handshake_rtt, goodput_max: None },
    }
}

/// What is written of a diagnosed connection, in this order.
#[derive(Serialize)]
struct Written<'a> {
    #[serde(flatten)]
    connection: &'a Connection,
    limits: Vec<OfDirection<Candidate>>,
    findings: Cow<'a, [OfDirection<Finding>]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    intervals: Option<Vec<OfDirection<&'a Interval>>>,
}

impl Serialize for DiagnosedConnection {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        Written {
            connection: &self.connection,
            limits: self.limits(),
            findings: self.findings(),
            intervals: self.shows_intervals.then(|| self.intervals()),
        }
        .serialize(s)
    }
}
