//! How runs are made.

use crate::cache::Cache;
use crate::engine::Engine;
use crate::guest::GuestLimits;
use crate::sweep::Shard;
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// How to run scenarios.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Where to write results; `None`: only the returned rows are kept.
    pub out: Option<PathBuf>,
    /// Continue the interrupted sweep of the same scenarios in `out`.
    pub resume: bool,
    /// The shard whose runs to execute; `None`: all runs.
    pub shard: Option<Shard>,
    /// Also keep both edges' captures.
    pub keep_captures: bool,
    /// What executes the runs.
    pub engine: Engine,
    /// Bounds of a guest.
    pub limits: GuestLimits,
    /// Guests at once, if there is enough memory; `None`: one for each CPU. Runs in real time
    /// always run one at a time.
    pub jobs: Option<NonZeroUsize>,
    /// The cache of finished runs.
    pub cache: Option<Cache>,
}
