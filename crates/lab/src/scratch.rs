//! Temporary folders of a run.

use std::path::PathBuf;

/// A folder that is removed when this value is dropped.
#[derive(Debug)]
pub(crate) struct Scratch(pub(crate) PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        // If it cannot be removed here, the journal names it and the supervisor tries again.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
