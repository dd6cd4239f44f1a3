//! A file of samples, one a line, as `--record` of `why` and `window` writes it and `analyze` and
//! `report` read it. It gets its name when it is complete.

use crate::failure::{Failure, Kind};
use crate::sentence::Sentence;
use fullpipe_flow::diagnosis::live::Note;
use fullpipe_kernel::file::folder::Pending;
use fullpipe_model::observe::Sample;
use std::io::Write;
use std::path::{Path, PathBuf};

/// A recording that is being written.
pub struct SampleFile {
    path: PathBuf,
    file: Pending,
}

impl SampleFile {
    /// Begins it, under another name.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn begin(path: &Path) -> Result<SampleFile, Failure> {
        let file = Pending::at(path).map_err(|error| refused(path, &error))?;
        Ok(SampleFile { path: path.into(), file })
    }

    /// Adds a sample.
    ///
    /// # Errors
    /// It cannot be written any more.
    pub fn add(&mut self, sample: &Sample) -> Result<(), Failure> {
        self.line(serde_json::to_string(sample).map_err(std::io::Error::from)?)
    }

    /// Adds what the host knew of a socket beside its samples.
    ///
    /// # Errors
    /// It cannot be written any more.
    pub fn note(&mut self, note: &Note) -> Result<(), Failure> {
        self.line(note.to_string())
    }

    fn line(&mut self, mut line: String) -> Result<(), Failure> {
        line.push('\n');
        self.file.write_all(line.as_bytes()).map_err(|error| refused(&self.path, &error))
    }

    /// Gives it its name.
    ///
    /// # Errors
    /// It cannot be completed.
    pub fn finish(self) -> Result<(), Failure> {
        self.file.commit().map_err(|error| refused(&self.path, &error))
    }
}

fn refused(path: &Path, error: &std::io::Error) -> Failure {
    let path = path.display();
    let why = Sentence::new(
        format!("write samples: {path}: {error}; name a file in a folder that you may write to"),
        format!("写入采样：{path}：{error}；请给出可写文件夹中的文件"),
    );
    Failure::new(Kind::Input, why)
}
