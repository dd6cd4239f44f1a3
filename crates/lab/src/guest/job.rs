//! What host and guest tell each other: files in one directory.
//!
//! The host writes [`Job`] before the guest boots and reads [`Answer`] after it is off; in between
//! it looks at [`progress`]. Every file is replaced whole and synced, so neither side reads half of
//! one: what a guest has written is the host's only when it leaves the guest's page cache.

use crate::Event;
use fullpipe_flow::schema::RunRow;
use fullpipe_kernel::file::folder::write_whole;
use fullpipe_model::scenario::Scenario;
use fullpipe_model::units::{Bytes, Duration};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

const JOB: &str = "job.json";
const ANSWER: &str = "answer.json";
const PROGRESS: &str = "progress";
const RESULTS: &str = "out";

/// What a guest is to run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// The scenario, its seed already that of the repetition.
    pub scenario: Scenario,
    /// Number of the repetition, from 1.
    pub repetition: u32,
    /// Keep the captures at both edges.
    pub keep_captures: bool,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// The row.
    Row(Box<RunRow>),
    /// Why there is none.
    Failed(String),
}

/// Why host and guest did not understand each other.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    /// A file of the directory.
    #[error("{operation} {path}: {cause}; free some space in TMPDIR", path = path.display())]
    File {
        /// What was tried.
        operation: &'static str,
        /// With what.
        path: PathBuf,
        /// The system's answer.
        cause: io::Error,
    },
    /// The guest went off without a word.
    #[error("read the guest's answer: there is none")]
    NoAnswer,
}

impl Job {
    /// Puts it into `folder`, where the guest will look for it.
    pub fn write(&self, folder: &Path) -> Result<(), JobError> {
        write(&folder.join(JOB), self)
    }

    /// The job of `folder`.
    pub fn read(folder: &Path) -> Result<Job, JobError> {
        read(&folder.join(JOB))
    }
}

impl Answer {
    /// Puts it into `folder`, where the host will look for it.
    pub fn write(&self, folder: &Path) -> Result<(), JobError> {
        write(&folder.join(ANSWER), self)
    }

    /// The answer in `folder`; [`JobError::NoAnswer`] where the guest ended without one.
    pub fn read(folder: &Path) -> Result<Answer, JobError> {
        let path = folder.join(ANSWER);
        if path.exists() { read(&path) } else { Err(JobError::NoAnswer) }
    }
}

/// Where the guest's results go.
pub fn results(folder: &Path) -> PathBuf {
    folder.join(RESULTS)
}

/// The files of the guest's one run among its results.
pub(crate) fn first_run(folder: &Path) -> Result<PathBuf, JobError> {
    let results = results(folder);
    let first = first_folder(&results);
    first.map_err(|cause| JobError::File { operation: "read", path: results, cause })
}

fn first_folder(folder: &Path) -> io::Result<PathBuf> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            return Ok(path);
        }
    }
    Err(io::ErrorKind::NotFound.into())
}

/// Tells the host how far the run is. Virtual time stands still meanwhile.
pub(crate) fn tell_progress(folder: &Path, event: Event<'_>) {
    if let Event::Progress { elapsed, body, .. } = event {
        // Nobody misses a progress bar enough to lose a run for it.
        let _ = write_whole(
            &folder.join(PROGRESS),
            format!("{} {}", elapsed.as_nanos(), body.get()).as_bytes(),
        );
    }
}

/// How far the guest said that it is: since the start of the run, and body bytes.
pub fn progress(folder: &Path) -> Option<(Duration, Bytes)> {
    let text = fs::read_to_string(folder.join(PROGRESS)).ok()?;
    let (elapsed, body) = text.split_once(' ')?;
    Some((Duration::from_nanos(elapsed.parse().ok()?), Bytes::new(body.parse().ok()?)))
}

fn read<T: DeserializeOwned>(path: &Path) -> Result<T, JobError> {
    let bytes = fs::read(path).and_then(|bytes| Ok(serde_json::from_slice(&bytes)?));
    bytes.map_err(|cause| JobError::File { operation: "read", path: path.into(), cause })
}

fn write(path: &Path, value: &impl Serialize) -> Result<(), JobError> {
    let written = serde_json::to_vec(value)
        .map_err(io::Error::from)
        .and_then(|bytes| write_whole(path, &bytes));
    written.map_err(|cause| JobError::File { operation: "write", path: path.into(), cause })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preset;

    #[test]
    fn every_preset_crosses_over_unchanged() {
        for preset in preset::PRESETS {
            for scenario in preset::load(preset.name).unwrap() {
                let job = Job { scenario, repetition: 3, keep_captures: true };
                let text = serde_json::to_string(&job).unwrap();
                assert_eq!(serde_json::from_str::<Job>(&text).unwrap(), job);
            }
        }
    }

    #[test]
    fn foreign_progress_is_no_progress() {
        let folder =
            std::env::temp_dir().join(format!("fullpipe-test-progress-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        assert_eq!(progress(&folder), None);
        for text in ["", "1", "1 ", "a b", "-1 2"] {
            fs::write(folder.join(PROGRESS), text).unwrap();
            assert_eq!(progress(&folder), None, "{text:?}");
        }
        let elapsed = Duration::from_millis(1500);
        tell_progress(&folder, Event::Progress { index: 0, elapsed, body: Bytes::new(7) });
        assert_eq!(progress(&folder), Some((elapsed, Bytes::new(7))));
        fs::remove_dir_all(&folder).unwrap();
    }
}
