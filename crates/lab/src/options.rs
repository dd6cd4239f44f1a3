//! How runs are made.

use crate::cache::Cache;
use crate::engine::Engine;
use crate::guest::Limits;
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// How to run scenarios.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Where to keep results; `None`: nothing is kept but what is returned.
    pub out: Option<PathBuf>,
    /// Go on with what an interrupted sweep of the same scenarios has left in `out`.
    pub resume: bool,
    /// Keep both edges' captures among the results.
    pub keep_captures: bool,
    /// What carries the runs.
    pub engine: Engine,
    /// What bounds a guest.
    pub limits: Limits,
    /// Guests at once, where memory allows; `None`: one for each CPU. Runs in real time are made
    /// one at a time.
    pub jobs: Option<NonZeroUsize>,
    /// Where runs that were done before are looked up, and new ones kept.
    pub cache: Option<Cache>,
}
