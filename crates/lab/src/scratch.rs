//! Folders for what a run needs while it goes on.

use std::path::PathBuf;

/// A folder that is gone when this value is.
#[derive(Debug)]
pub(crate) struct Scratch(pub(crate) PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed here stands in the journal, and the supervisor tries again.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
