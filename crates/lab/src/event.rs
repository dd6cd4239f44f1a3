//! What is going on while runs are made.

use fullpipe_flow::row::Row;
use fullpipe_model::scenario::Scenario;
use fullpipe_model::units::{Bytes, Duration};

/// What is going on. Runs are numbered from 0, in the scenarios' order; several may go on at once.
#[derive(Debug, Clone, Copy)]
pub enum Event<'a> {
    /// A run starts.
    Started {
        /// Its number.
        index: usize,
        /// What is run.
        scenario: &'a Scenario,
    },
    /// A run goes on.
    Progress {
        /// Its number.
        index: usize,
        /// Since its start.
        elapsed: Duration,
        /// Body bytes so far, where the client tells.
        body: Bytes,
    },
    /// A run has ended, done or failed: just now, or before (it is resumed, or from the cache).
    Finished {
        /// Its number.
        index: usize,
    },
    /// The next row: these come in the scenarios' order, whichever run ended first.
    Row(&'a Row),
}
