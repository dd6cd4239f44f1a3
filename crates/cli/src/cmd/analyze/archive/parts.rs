//! The parts of a group of captures: Parquet files, one or more for each day.
//!
//! A part is written as a file in `_tmp`, and gets its name in `day=YYYY-MM-DD` when all parts of
//! the group are complete and on disk: [`Parts::finish`]. Until then, dropping the parts removes
//! them. Memory is bounded: at most [`OPEN_DAYS`] parts are being written, and a row of a further
//! day ends the one that was written least recently.

use super::manifest::Part;
use fullpipe_columnar::{Layout, ParquetTable};
use fullpipe_flow::schema::Cell;
use fullpipe_model::units::Instant;
use std::fs::{self, File};
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The folder of incomplete parts.
pub const TEMPORARY: &str = "_tmp";
/// What the name of a day's folder begins with, as Hive, DuckDB, Spark and pyarrow read it.
pub const DAY: &str = "day=";
/// The most parts of a group that are written at a time. A capture has its connections in the
/// order of their ends, so around midnight two days alternate; a few more cost little memory.
const OPEN_DAYS: usize = 4;

/// Why a part cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("{}: {cause}", path.display())]
pub struct PartError {
    path: PathBuf,
    cause: Box<dyn std::error::Error + Send + Sync>,
}

impl PartError {
    fn at<E: Into<Box<dyn std::error::Error + Send + Sync>>>(path: &Path) -> impl Fn(E) -> Self {
        move |cause| PartError { path: path.into(), cause: cause.into() }
    }
}

/// The rows of a group of captures under construction.
pub struct Parts<'a> {
    folder: &'a Path,
    layout: &'a Layout,
    /// Distinguishes the parts of this group from those of all others.
    group: &'a str,
    /// Parts that are being written, that of the latest row last.
    open: Vec<Open>,
    complete: Vec<Complete>,
    begun: usize,
}

struct Open {
    day: u64,
    temporary: Temporary,
    table: ParquetTable<BufWriter<File>>,
    rows: u64,
    name: String,
}

struct Complete {
    temporary: Temporary,
    part: Part,
}

impl<'a> Parts<'a> {
    /// No rows yet, for the folder of rows `folder`.
    pub fn new(folder: &'a Path, layout: &'a Layout, group: &'a str) -> Self {
        Parts { folder, layout, group, open: Vec::new(), complete: Vec::new(), begun: 0 }
    }

    /// Adds a row of the day of `at` (UTC).
    ///
    /// # Errors
    /// A part cannot be written.
    pub fn row<'r>(
        &mut self,
        at: Instant,
        cells: impl IntoIterator<Item = Cell<'r>>,
    ) -> Result<(), PartError> {
        const DAY_NANOS: u64 = 86_400_000_000_000;
        let day = at.as_nanos() / DAY_NANOS;
        if self.open.last().is_none_or(|last| last.day != day) {
            self.turn_to(day)?;
        }
        let Some(open) = self.open.last_mut() else { return Ok(()) };
        open.rows += 1;
        open.table.row(cells).map_err(PartError::at(&open.temporary.0))
    }

    /// Makes the part of `day` the last of the open ones.
    fn turn_to(&mut self, day: u64) -> Result<(), PartError> {
        if let Some(at) = self.open.iter().position(|open| open.day == day) {
            let open = self.open.remove(at);
            self.open.push(open);
            return Ok(());
        }
        if self.open.len() == OPEN_DAYS {
            let oldest = self.open.remove(0).finish()?;
            self.complete.push(oldest);
        }
        let name = format!("{DAY}{}/part-{}-{}.parquet", date(day), self.group, self.begun);
        let temporary = format!("{}-{}", self.group, self.begun);
        let temporary = Temporary(self.folder.join(TEMPORARY).join(temporary));
        self.begun += 1;
        let file = File::create_new(&temporary.0).map_err(PartError::at(&temporary.0))?;
        let table = ParquetTable::new(BufWriter::new(file), self.layout)
            .map_err(PartError::at(&temporary.0))?;
        self.open.push(Open { day, temporary, table, rows: 0, name });
        Ok(())
    }

    /// Completes all parts, and gives them their names.
    ///
    /// # Errors
    /// A part cannot be written. Those that have their names already do not count without a line
    /// in the manifest.
    pub fn finish(mut self) -> Result<Vec<Part>, PartError> {
        for open in std::mem::take(&mut self.open) {
            self.complete.push(open.finish()?);
        }
        let mut parts = Vec::new();
        for Complete { temporary, part } in std::mem::take(&mut self.complete) {
            let target = self.folder.join(&part.path);
            let wrong = PartError::at(&target);
            let day = target.parent().unwrap_or(self.folder);
            if !day.is_dir() {
                fs::create_dir_all(day).map_err(&wrong)?;
                sync(self.folder).map_err(&wrong)?;
            }
            temporary.rename(&target).map_err(&wrong)?;
            sync(day).map_err(&wrong)?;
            parts.push(part);
        }
        Ok(parts)
    }
}

impl Open {
    /// Writes the end of the file, and waits until it is on disk.
    fn finish(self) -> Result<Complete, PartError> {
        let Open { temporary, table, rows, name, .. } = self;
        table.finish().map_err(PartError::at(&temporary.0))?;
        let size = || {
            let file = File::open(&temporary.0)?;
            file.sync_all()?;
            Ok::<_, std::io::Error>(file.metadata()?.len())
        };
        let bytes = size().map_err(PartError::at(&temporary.0))?;
        Ok(Complete { temporary, part: Part { path: name, rows, bytes } })
    }
}

/// Makes the names in a folder outlive the machine.
fn sync(folder: &Path) -> std::io::Result<()> {
    File::open(folder)?.sync_all()
}

/// A file that is removed unless it is renamed.
struct Temporary(PathBuf);

impl Temporary {
    fn rename(mut self, target: &Path) -> std::io::Result<()> {
        fs::rename(&self.0, target)?;
        self.0.clear();
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.0.as_os_str().is_empty() {
            // What cannot be removed is swept up by the next run.
            let _ = fs::remove_file(&self.0);
        }
    }
}

/// The day `number` days after 1 January 1970, as `YYYY-MM-DD`.
fn date(number: u64) -> String {
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(number * 86_400);
    humantime::format_rfc3339_seconds(time).to_string()[..10].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullpipe_flow::schema::{CAPTURE_PROBLEMS, CaptureProblem};

    const DAY: u64 = 86_400_000_000_000;

    fn rows_in(place: &Path) -> Vec<String> {
        let mut found = Vec::new();
        for folder in fs::read_dir(place).unwrap().map(|entry| entry.unwrap().path()) {
            let files = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
            found.extend(files.map(|path| path.strip_prefix(place).unwrap().display().to_string()));
        }
        found.sort();
        found
    }

    #[test]
    fn days_are_days_of_utc() {
        assert_eq!(date(0), "1970-01-01");
        assert_eq!(date(20_512), "2026-02-28");
        assert_eq!(date(20_513), "2026-03-01");
        // The last day of 64 bits of nanoseconds.
        assert_eq!(date(u64::MAX / DAY), "2554-07-21");
    }

    #[test]
    fn parts_have_their_names_at_the_end_and_nothing_is_left_of_those_that_are_dropped() {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir(place.path().join(TEMPORARY)).unwrap();
        let layout = Layout::of(CAPTURE_PROBLEMS);
        let problem = CaptureProblem { file: "a.pcap", problem: "cut", rows: 3 };
        let cells = || Layout::cells(CAPTURE_PROBLEMS, &problem);
        let fill = |group| {
            let mut parts = Parts::new(place.path(), &layout, group);
            // More days than are open at a time, and the first of them again.
            for day in [0, 1, 0, 2, 3, 4, 5, 0] {
                parts.row(Instant::from_nanos(day * DAY), cells()).unwrap();
            }
            parts
        };
        drop(fill("dropped"));
        assert!(rows_in(place.path()).is_empty());
        let parts = fill("kept").finish().unwrap();
        let rows: Vec<_> = parts.iter().map(|part| (&part.path[4..14], part.rows)).collect();
        let days = ["1970-01-02", "1970-01-01", "1970-01-03", "1970-01-04"];
        assert_eq!(rows[..3], [(days[0], 1), (days[1], 2), (days[2], 1)]);
        assert_eq!(parts.iter().map(|part| part.rows).sum::<u64>(), 8);
        let mut names: Vec<_> = parts.iter().map(|part| part.path.clone()).collect();
        names.sort();
        assert_eq!(rows_in(place.path()), names);
        for part in &parts {
            assert_eq!(fs::metadata(place.path().join(&part.path)).unwrap().len(), part.bytes);
        }
    }
}
