//! Rows of one kind in Parquet files of a folder, one or more for each day.
//!
//! At most [`OPEN_DAYS`] files are being written: a row of a further day ends the one that was
//! written least recently, so memory is bounded. Files whose [`DayTable`] is dropped are removed.

use fullpipe_columnar::{Layout, ParquetTable};
use fullpipe_flow::schema::Cell;
use fullpipe_model::units::Instant;
use std::error::Error;
use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The most files that are written at a time. A capture has its connections in the order of their
/// ends, so around midnight two days alternate; a few more cost little memory.
const OPEN_DAYS: usize = 4;
const DAY_NANOS: u64 = 86_400_000_000_000;

/// Why rows cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("{}: {cause}", path.display())]
pub struct TableError {
    path: PathBuf,
    cause: Box<dyn Error + Send + Sync>,
}

impl TableError {
    /// What happened to the file at `path`.
    pub(crate) fn at<E: Into<Box<dyn Error + Send + Sync>>>(path: &Path) -> impl Fn(E) -> Self {
        move |cause| TableError { path: path.into(), cause: cause.into() }
    }
}

/// The files of one kind of row, under construction.
pub struct DayTables {
    folder: PathBuf,
    name: String,
    layout: Layout,
    /// That of the latest row last.
    open: Vec<OpenTable>,
    complete: Vec<DayTable>,
}

struct OpenTable {
    file: DayTable,
    table: ParquetTable<BufWriter<File>>,
}

/// A complete file.
#[derive(Debug)]
pub struct DayTable {
    file: TemporaryFile,
    /// Its day (UTC), in days since 1970.
    day: u64,
    rows: u64,
    /// How many files of the same [`DayTables`] were begun before it.
    number: usize,
}

impl DayTable {
    /// Its rows.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Its day (UTC) as `YYYY-MM-DD`.
    pub fn date(&self) -> String {
        date(self.day)
    }

    /// How many files of the same [`DayTables`] were begun before it.
    pub fn number(&self) -> usize {
        self.number
    }

    /// Keeps the file where it is, and returns its path.
    pub fn keep(mut self) -> PathBuf {
        std::mem::take(&mut self.file.0)
    }

    /// Waits until the file is on disk; returns its size.
    pub(crate) fn sync(&self) -> Result<u64, TableError> {
        synced_size(&self.file.0).map_err(TableError::at(&self.file.0))
    }

    /// Gives the file its final path.
    pub(crate) fn rename(mut self, target: &Path) -> io::Result<()> {
        fs::rename(&self.file.0, target)?;
        self.file.0.clear();
        Ok(())
    }
}

impl DayTables {
    /// No rows yet. Files are made in `folder`, with names that begin with `name`.
    pub fn new(folder: PathBuf, name: String, layout: Layout) -> Self {
        DayTables { folder, name, layout, open: Vec::new(), complete: Vec::new() }
    }

    /// Adds a row of the day (UTC) of `at`.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn row<'r>(
        &mut self,
        at: Instant,
        cells: impl IntoIterator<Item = Cell<'r>>,
    ) -> Result<(), TableError> {
        let day = at.as_nanos() / DAY_NANOS;
        if self.open.last().is_none_or(|last| last.file.day != day) {
            self.turn_to(day)?;
        }
        let Some(open) = self.open.last_mut() else { return Ok(()) };
        open.file.rows += 1;
        open.table.row(cells).map_err(TableError::at(&open.file.file.0))
    }

    /// Makes the file of `day` the last of the open ones.
    fn turn_to(&mut self, day: u64) -> Result<(), TableError> {
        if let Some(at) = self.open.iter().position(|open| open.file.day == day) {
            let open = self.open.remove(at);
            self.open.push(open);
            return Ok(());
        }
        let number = self.complete.len() + self.open.len();
        if self.open.len() == OPEN_DAYS {
            let oldest = self.open.remove(0).finish()?;
            self.complete.push(oldest);
        }
        let path = self.folder.join(format!("{}-{number}", self.name));
        let out = File::create_new(&path).map_err(TableError::at(&path))?;
        let file = DayTable { file: TemporaryFile(path), day, rows: 0, number };
        let table = ParquetTable::new(BufWriter::new(out), &self.layout)
            .map_err(TableError::at(&file.file.0))?;
        self.open.push(OpenTable { file, table });
        Ok(())
    }

    /// Ends all files.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn finish(mut self) -> Result<Vec<DayTable>, TableError> {
        for open in self.open {
            self.complete.push(open.finish()?);
        }
        Ok(self.complete)
    }
}

impl OpenTable {
    fn finish(self) -> Result<DayTable, TableError> {
        let OpenTable { file, table } = self;
        table.finish().map_err(TableError::at(&file.file.0))?;
        Ok(file)
    }
}

/// A file that is removed unless it is kept or renamed.
#[derive(Debug)]
struct TemporaryFile(PathBuf);

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        if !self.0.as_os_str().is_empty() {
            // What cannot be removed is swept up by the next run.
            let _ = fs::remove_file(&self.0);
        }
    }
}

/// Waits until a file is on disk; returns its size.
fn synced_size(path: &Path) -> io::Result<u64> {
    let file = File::open(path)?;
    file.sync_all()?;
    Ok(file.metadata()?.len())
}

/// The day `number` days after 1 January 1970, as `YYYY-MM-DD`.
fn date(number: u64) -> String {
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(number * 86_400);
    humantime::format_rfc3339_seconds(time).to_string()[..10].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_days_of_utc() {
        assert_eq!(date(0), "1970-01-01");
        assert_eq!(date(20_512), "2026-02-28");
        assert_eq!(date(20_513), "2026-03-01");
        // The last day of 64 bits of nanoseconds.
        assert_eq!(date(u64::MAX / DAY_NANOS), "2554-07-21");
    }
}
