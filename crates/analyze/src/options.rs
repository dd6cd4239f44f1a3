//! How to analyse a capture.

use fullpipe_flow::Config;
use std::num::NonZeroUsize;

/// How to analyse a capture.
#[derive(Debug, Clone)]
pub struct Options {
    /// What to analyse, whose definitions to use, and whether to record the points of graphs
    /// ([`Config::trace`]).
    pub config: Config,
    /// Threads that read and analyse, each its part of the connections; one by default. With more
    /// than one, the caller's thread only collects results. The result does not depend on their
    /// number unless a limit of [`Config`] is reached: each thread has an equal part of
    /// [`Config::max_open`], and the other limits for itself.
    pub threads: NonZeroUsize,
}

impl Default for Options {
    fn default() -> Self {
        Options { config: Config::default(), threads: NonZeroUsize::MIN }
    }
}

impl From<Config> for Options {
    fn from(config: Config) -> Self {
        Options { config, ..Options::default() }
    }
}
