//! Progress of the runs.

use fullpipe_flow::schema::RunRow;
use fullpipe_model::scenario::Scenario;
use fullpipe_model::units::{Bytes, Duration};

/// An event. Runs are numbered from 0, in the scenarios' order; several may be active at once.
#[derive(Debug, Clone, Copy)]
pub enum Event<'a> {
    /// A run starts.
    Started {
        /// Its number.
        index: usize,
        /// Its scenario.
        scenario: &'a Scenario,
    },
    /// A run makes progress.
    Progress {
        /// Its number.
        index: usize,
        /// Time since its start.
        elapsed: Duration,
        /// Body bytes so far, if the client reports them.
        body: Bytes,
    },
    /// A run has ended, successfully or not: now, or earlier (it was resumed, or is from the
    /// cache).
    Finished {
        /// Its number.
        index: usize,
    },
    /// The next row. Rows come in the scenarios' order, whichever run ended first.
    Row(&'a RunRow),
}
