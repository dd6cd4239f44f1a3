//! The worst of any number of connections, in bounded memory.

use super::shown::ShownConnection;
use fullpipe_flow::diagnosis::{DiagnosedConnection, note_others, worst_first};

/// Connections that a report lists.
const LISTED: usize = 1_000;
/// Of them, those that it draws.
const DRAWN: usize = 60;

/// Keeps the connections that lost most time, and the graphs of the first of them.
#[derive(Debug, Default)]
pub struct Shortlist {
    kept: Vec<DiagnosedConnection>,
    total: u64,
}

impl Shortlist {
    /// Adds connections as they finish.
    pub fn add(&mut self, connections: impl IntoIterator<Item = DiagnosedConnection>) {
        for connection in connections {
            self.total += 1;
            self.kept.push(connection);
            // Sorting at twice the number makes it rare.
            if self.kept.len() >= 2 * LISTED {
                self.shorten();
            }
        }
        if self.kept.iter().filter(|kept| kept.trace().is_some()).count() >= 2 * DRAWN {
            self.shorten();
        }
    }

    /// How many were added.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The worst connections, as of the input with the number `source`.
    pub fn finish(mut self, source: usize) -> Vec<ShownConnection> {
        note_others(&mut self.kept);
        self.shorten();
        self.kept.into_iter().map(|connection| ShownConnection::new(source, connection)).collect()
    }

    fn shorten(&mut self) {
        worst_first(&mut self.kept);
        self.kept.truncate(LISTED);
        let kept = std::mem::take(&mut self.kept).into_iter().enumerate();
        self.kept =
            kept.map(|(at, kept)| if at < DRAWN { kept } else { kept.without_trace() }).collect();
    }
}
