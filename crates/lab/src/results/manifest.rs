//! The plan of a results directory, so that an interrupted sweep can be resumed.
//!
//! `sweep.json` names every run with the [`Key`](crate::sweep::Key) of what it depends on. A
//! directory is resumed only for exactly the same runs, so rows of two experiments, or of two
//! builds of the program, never mix unnoticed.

use super::error::{ManifestError, ResultsError};
use super::files::write_json;
use super::run_folder::{folder_name, row};
use fullpipe_flow::row::Row;
use fullpipe_kernel::folder::Folder;
use serde::{Deserialize, Serialize};

const MANIFEST: &str = "sweep.json";
/// The least number of digits of a run's number.
const DIGITS: usize = 3;

/// The planned runs of a sweep, in order.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Manifest {
    /// The runs.
    pub runs: Vec<Planned>,
}

/// A planned run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Planned {
    /// The scenario's name.
    pub name: String,
    /// Number of the repetition, from 1.
    pub repetition: u32,
    /// Digest of what it depends on.
    pub key: String,
}

impl Manifest {
    /// Reads the manifest of a results directory.
    pub(crate) fn read(folder: &Folder) -> Result<Manifest, ManifestError> {
        let bytes = folder.read(MANIFEST).and_then(|bytes| Ok(serde_json::from_slice(&bytes)?));
        bytes.map_err(|cause| ManifestError::Unreadable { path: folder.path().into(), cause })
    }

    /// Writes it to a results directory.
    pub(crate) fn write(&self, folder: &Folder) -> Result<(), ResultsError> {
        write_json(folder, MANIFEST, self)
    }

    /// Refuses a directory whose runs are not these.
    pub(crate) fn check_same(&self, folder: &Folder) -> Result<(), ManifestError> {
        match self.difference(&Manifest::read(folder)?) {
            Some(difference) => {
                Err(ManifestError::Other { path: folder.path().into(), difference })
            }
            None => Ok(()),
        }
    }

    /// The first difference from `there`, as text.
    fn difference(&self, there: &Manifest) -> Option<String> {
        if there.runs.len() != self.runs.len() {
            return Some(format!(
                "{} runs were asked for there, {} are here",
                there.runs.len(),
                self.runs.len()
            ));
        }
        let (number, (old, new)) =
            there.runs.iter().zip(&self.runs).enumerate().find(|(_, (old, new))| old != new)?;
        let number = number + 1;
        Some(if (&old.name, old.repetition) == (&new.name, new.repetition) {
            format!("run {number}, {}, was another one there", new.name)
        } else {
            format!("run {number} is {} there and {} here", old.name, new.name)
        })
    }

    /// The rows of the finished runs in `folder`, each at its position.
    pub(crate) fn finished(&self, folder: &Folder) -> Result<Vec<Option<Row>>, ResultsError> {
        let place = |(index, run): (usize, &Planned)| {
            let name = folder_name(index, &run.name, self.digits());
            match folder.folder(&name) {
                Ok(run) => row(&run),
                Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => Ok(None),
                Err(cause) => {
                    Err(ResultsError::file("read results", &folder.path().join(name), cause))
                }
            }
        };
        self.runs.iter().enumerate().map(place).collect()
    }

    /// Digits of a run's number in its folder's name.
    pub(crate) fn digits(&self) -> usize {
        self.runs.len().to_string().len().max(DIGITS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planned(name: &str, repetition: u32, key: &str) -> Planned {
        Planned { name: name.into(), repetition, key: key.into() }
    }

    #[test]
    fn the_first_difference_is_said() {
        let here = Manifest { runs: vec![planned("a", 1, "1"), planned("b", 1, "2")] };
        assert_eq!(here.difference(&here.clone()), None);
        let shorter = Manifest { runs: here.runs[..1].to_vec() };
        assert_eq!(here.difference(&shorter).unwrap(), "1 runs were asked for there, 2 are here");
        let renamed = Manifest { runs: vec![planned("a", 1, "1"), planned("c", 1, "2")] };
        assert_eq!(here.difference(&renamed).unwrap(), "run 2 is c there and b here");
        let changed = Manifest { runs: vec![planned("a", 1, "9"), planned("b", 1, "2")] };
        assert_eq!(here.difference(&changed).unwrap(), "run 1, a, was another one there");
    }
}
