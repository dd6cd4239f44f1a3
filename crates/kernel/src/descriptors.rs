//! How many descriptors this process may have (`RLIMIT_NOFILE`, getrlimit(2)).
//!
//! The soft limit is low by tradition (1024, for the sake of `select`); the hard one is what the
//! machine grants. Whoever holds a socket for each connection of others raises the soft one, and
//! gives it back to the programs that it starts.

use std::io;

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// The two limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DescriptorLimit {
    soft: u64,
    hard: u64,
}

impl DescriptorLimit {
    /// This process's. What the kernel would not tell counts as the traditional limit.
    pub fn own() -> DescriptorLimit {
        const TRADITIONAL: u64 = 1024;
        let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap_or((TRADITIONAL, TRADITIONAL));
        DescriptorLimit { soft, hard }
    }

    /// Raises the soft limit of this process to the hard one; the descriptors that it may have from
    /// now on.
    pub fn raise(self) -> u64 {
        match setrlimit(Resource::RLIMIT_NOFILE, self.hard, self.hard) {
            Ok(()) => self.hard,
            Err(_) => self.soft,
        }
    }

    /// Makes these the limits of this process. It allocates nothing, and may be called between fork
    /// and exec.
    pub(crate) fn restore(self) -> io::Result<()> {
        Ok(setrlimit(Resource::RLIMIT_NOFILE, self.soft, self.hard)?)
    }
}
