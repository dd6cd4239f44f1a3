//! How many descriptors this process may have (`RLIMIT_NOFILE`, getrlimit(2)).
//!
//! The soft limit is low by tradition (1024, because of `select`); the hard limit is what the
//! machine grants. A process that holds a socket for each connection of others raises the soft
//! limit, and restores it for the programs that it starts.

use std::io;

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// The two limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DescriptorLimit {
    soft: u64,
    hard: u64,
}

impl DescriptorLimit {
    /// The limits of this process. If the kernel does not report them, the traditional soft limit.
    pub fn own() -> DescriptorLimit {
        const TRADITIONAL: u64 = 1024;
        let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap_or((TRADITIONAL, TRADITIONAL));
        DescriptorLimit { soft, hard }
    }

    /// Raises the soft limit of this process to the hard limit and returns how many descriptors it
    /// may have now.
    pub fn raise(self) -> u64 {
        match setrlimit(Resource::RLIMIT_NOFILE, self.hard, self.hard) {
            Ok(()) => self.hard,
            Err(_) => self.soft,
        }
    }

    /// Sets these limits for this process. It allocates nothing, so it may be called between fork
    /// and exec.
    pub(crate) fn restore(self) -> io::Result<()> {
        Ok(setrlimit(Resource::RLIMIT_NOFILE, self.soft, self.hard)?)
    }
}
