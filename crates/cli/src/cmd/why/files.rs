//! The files that `why` writes beside its answer: samples (--record), and a row for each connection
//! (--parquet). Both are begun before anything is watched, and get their names when they are
//! complete.

use crate::cmd::stored::Stored;
use crate::failure::{Failure, Kind};
use fullpipe_columnar::Layout;
use fullpipe_flow::schema::{LIVE_CONNECTIONS, LiveRow};
use fullpipe_host::Followed;
use fullpipe_kernel::folder::Pending;
use fullpipe_model::units::Instant;
use std::io::Write;
use std::path::Path;

/// The files that were asked for.
pub struct Files<'a> {
    record: Option<Record<'a>>,
    rows: Option<Stored>,
}

impl<'a> Files<'a> {
    /// Begins them.
    ///
    /// # Errors
    /// One cannot be written.
    pub fn begin(record: Option<&'a Path>, rows: Option<&Path>) -> Result<Files<'a>, Failure> {
        let layout = Layout::of(LIVE_CONNECTIONS);
        Ok(Files {
            record: record.map(Record::begin).transpose()?,
            rows: rows.map(|file| Stored::new(file, &layout)).transpose()?,
        })
    }

    /// Adds what a look that ended at `looked`, since 1970, saw.
    ///
    /// # Errors
    /// One cannot be written any more.
    pub fn add(&mut self, followed: &[Followed], looked: Instant) -> Result<(), Failure> {
        if let Some(record) = &mut self.record {
            record.add(followed)?;
        }
        if let Some(rows) = &mut self.rows {
            for one in followed {
                let row = LiveRow { looked, connection: &one.connection };
                rows.row(Layout::cells(LIVE_CONNECTIONS, &row))?;
            }
        }
        Ok(())
    }

    /// Gives them their names.
    ///
    /// # Errors
    /// One cannot be completed.
    pub fn finish(self) -> Result<(), Failure> {
        self.record.map(Record::finish).transpose()?;
        self.rows.map(Stored::finish).transpose()?;
        Ok(())
    }
}

/// The file of --record.
struct Record<'a> {
    path: &'a Path,
    file: Pending,
}

impl<'a> Record<'a> {
    fn begin(path: &'a Path) -> Result<Record<'a>, Failure> {
        let file = Pending::at(path).map_err(|error| refused(path, &error))?;
        Ok(Record { path, file })
    }

    /// Adds the samples of both ends of each connection, as far as they are on this host, and what
    /// it knew beside them.
    fn add(&mut self, followed: &[Followed]) -> Result<(), Failure> {
        for one in followed {
            for sample in one.samples.iter().chain(&one.other) {
                self.line(serde_json::to_string(sample).map_err(std::io::Error::from)?)?;
            }
            self.line(one.note.to_string())?;
        }
        Ok(())
    }

    fn line(&mut self, mut line: String) -> Result<(), Failure> {
        line.push('\n');
        self.file.write_all(line.as_bytes()).map_err(|error| refused(self.path, &error))
    }

    fn finish(self) -> Result<(), Failure> {
        self.file.commit().map_err(|error| refused(self.path, &error))
    }
}

fn refused(path: &Path, error: &std::io::Error) -> Failure {
    let why = format!("write samples: {}: {error}", path.display());
    Failure::new(Kind::Input, why + "; name a file in a folder that you may write to")
}
