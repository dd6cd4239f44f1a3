//! The files that `why` writes beside its answer: samples (--record), and a row for each connection
//! (--parquet). Both are begun before anything is watched, and get their names when they are
//! complete.

use crate::cmd::samples::SampleFile;
use crate::cmd::stored::Stored;
use crate::failure::Failure;
use fullpipe_columnar::Layout;
use fullpipe_flow::schema::{LIVE_CONNECTIONS, LiveRow};
use fullpipe_host::Followed;
use fullpipe_model::units::Instant;
use std::path::Path;

/// The files that were asked for.
pub struct Files {
    record: Option<SampleFile>,
    rows: Option<Stored>,
}

impl Files {
    /// Begins them.
    ///
    /// # Errors
    /// One cannot be written.
    pub fn begin(record: Option<&Path>, rows: Option<&Path>) -> Result<Files, Failure> {
        let layout = Layout::of(LIVE_CONNECTIONS);
        Ok(Files {
            record: record.map(SampleFile::begin).transpose()?,
            rows: rows.map(|file| Stored::new(file, &layout)).transpose()?,
        })
    }

    /// Adds what a look that ended at `looked`, since 1970, saw.
    ///
    /// # Errors
    /// One cannot be written any more.
    pub fn add(&mut self, followed: &[Followed], looked: Instant) -> Result<(), Failure> {
        if let Some(record) = &mut self.record {
            // Both ends of each connection, as far as they are on this host.
            for one in followed {
                one.samples.iter().chain(&one.other).try_for_each(|one| record.add(one))?;
                record.note(&one.note)?;
            }
        }
        if let Some(rows) = &mut self.rows {
            for one in followed {
                let row = LiveRow { looked, connection: &one.connection };
                rows.row(Layout::cells(LIVE_CONNECTIONS, &row))?;
            }
        }
        Ok(())
    }

    /// Adds what there is, and gives them their names.
    ///
    /// # Errors
    /// One cannot be completed.
    pub fn add_all(mut self, followed: &[Followed], looked: Instant) -> Result<(), Failure> {
        self.add(followed, looked)?;
        self.finish()
    }

    /// Gives them their names.
    ///
    /// # Errors
    /// One cannot be completed.
    pub fn finish(self) -> Result<(), Failure> {
        self.record.map(SampleFile::finish).transpose()?;
        self.rows.map(Stored::finish).transpose()?;
        Ok(())
    }
}
