//! The plan of a results directory, so that an interrupted sweep can be resumed.
//!
//! `sweep.json` names every run with the [`Key`](crate::sweep::Key) of what it depends on. A
//! directory is resumed only for exactly the same runs, so rows of two experiments, or of two
//! builds of the program, never mix unnoticed. A shard names the runs of the whole sweep too, and
//! the results of shards are put together only where these are the same ([`super::merge`]).

use super::error::{ManifestError, ResultsError};
use super::files::write_json;
use super::run_folder::{folder_name, row};
use crate::sweep::Shard;
use fullpipe_flow::schema::RunRow;
use fullpipe_kernel::file::folder::Folder;
use serde::{Deserialize, Serialize};
use std::io;

const MANIFEST: &str = "sweep.json";
/// The least number of digits of a run's number.
const DIGITS: usize = 3;

/// The planned runs of a whole sweep, in order, and which of them are made here.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Manifest {
    /// The shard that is made here; `None`: all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<Shard>,
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
        Manifest::in_folder(folder)
            .map_err(|cause| ManifestError::Unreadable { path: folder.path().into(), cause })
    }

    /// The same, with the cause alone as error.
    pub(super) fn in_folder(folder: &Folder) -> io::Result<Manifest> {
        Ok(serde_json::from_slice(&folder.read(MANIFEST)?)?)
    }

    /// Writes it to a results directory.
    pub(crate) fn write(&self, folder: &Folder) -> Result<(), ResultsError> {
        write_json(folder, MANIFEST, self)
    }

    /// The same runs, all of them made here.
    pub(super) fn whole(&self) -> Manifest {
        Manifest { shard: None, ..self.clone() }
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

    /// Whether the run at `place` is made here.
    pub(crate) fn has(&self, place: usize) -> bool {
        self.shard.is_none_or(|shard| shard.has(place))
    }

    /// How many runs are made here.
    pub(crate) fn len(&self) -> usize {
        (0..self.runs.len()).filter(|&place| self.has(place)).count()
    }

    /// The first difference from `there`, as text.
    pub(super) fn difference(&self, there: &Manifest) -> Option<String> {
        if self.shard != there.shard {
            return Some(format!("{} is there, not {}", part(there.shard), part(self.shard)));
        }
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
    pub(crate) fn finished(&self, folder: &Folder) -> Result<Vec<Option<RunRow>>, ResultsError> {
        let runs = self.runs.iter().enumerate();
        runs.map(|(index, run)| self.finished_row(folder, index, run)).collect()
    }

    /// The row of `run`, which is at `index`, if it is made here and finished.
    fn finished_row(
        &self,
        folder: &Folder,
        index: usize,
        run: &Planned,
    ) -> Result<Option<RunRow>, ResultsError> {
        if !self.has(index) {
            return Ok(None);
        }
        let name = folder_name(index, &run.name, self.digits());
        match folder.folder(&name) {
            Ok(run) => row(&run),
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(cause) => Err(ResultsError::file("read results", &folder.path().join(name), cause)),
        }
    }

    /// Digits of a run's number in its folder's name.
    pub(crate) fn digits(&self) -> usize {
        self.runs.len().to_string().len().max(DIGITS)
    }
}

/// What part of a sweep it is.
fn part(shard: Option<Shard>) -> String {
    shard.map_or_else(|| "the whole sweep".into(), |shard| format!("shard {shard}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planned(name: &str, repetition: u32, key: &str) -> Planned {
        Planned { name: name.into(), repetition, key: key.into() }
    }

    #[test]
    fn the_first_difference_is_said() {
        let here = Manifest { shard: None, runs: vec![planned("a", 1, "1"), planned("b", 1, "2")] };
        assert_eq!(here.difference(&here.clone()), None);
        let shorter = Manifest { shard: None, runs: here.runs[..1].to_vec() };
        assert_eq!(here.difference(&shorter).unwrap(), "1 runs were asked for there, 2 are here");
        let renamed =
            Manifest { shard: None, runs: vec![planned("a", 1, "1"), planned("c", 1, "2")] };
        assert_eq!(here.difference(&renamed).unwrap(), "run 2 is c there and b here");
        let changed =
            Manifest { shard: None, runs: vec![planned("a", 1, "9"), planned("b", 1, "2")] };
        assert_eq!(here.difference(&changed).unwrap(), "run 1, a, was another one there");
        let shard = Manifest { shard: "2/3".parse().ok(), ..here.clone() };
        assert_eq!(here.difference(&shard).unwrap(), "shard 2/3 is there, not the whole sweep");
        assert_eq!((shard.len(), shard.has(0), shard.has(1)), (1, false, true));
    }
}
