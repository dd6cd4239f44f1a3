//! `fullpipe guest`: the first process of the virtual engine's guest kernel. Users do not call it.

use crate::failure::{Failure, Kind};
use clap::Args;
use std::path::PathBuf;

/// Run as the first process of a guest of the virtual engine.
#[derive(Args)]
pub struct Guest {
    /// The host's directory with the job.
    job: PathBuf,
}

impl Guest {
    pub fn run(self) -> Result<u8, Failure> {
        let refused = match fullpipe_lab::run_first_process(&self.job) {
            Ok(never) => match never {},
            Err(refused) => refused,
        };
        Err(Failure::new(Kind::Usage, &refused))
    }
}
