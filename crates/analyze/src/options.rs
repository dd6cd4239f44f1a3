//! How to analyse a capture.

use fullpipe_flow::Config;
use std::num::NonZeroUsize;

/// How to analyse a capture.
#[derive(Debug, Clone)]
pub struct Options {
    /// What is analysed, and by whose definitions.
    pub config: Config,
    /// Threads that read and analyse, each its part of the connections; one by default. With more
    /// than one the caller's thread only takes what they made. The result does not depend on their
    /// number, as long as the limits of [`Config`] are not met: each thread has them for itself.
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
