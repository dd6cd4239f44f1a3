//! The parts of a group of captures: files of rows that get their names when the group is done.
//!
//! They are written in `_tmp`, and get their names in `day=YYYY-MM-DD` when all of them are
//! complete and on disk.

use crate::day_tables::{DayTable, TableError};
use crate::manifest::RowsPart;
use std::fs::{self, File};
use std::path::Path;

/// The folder of incomplete parts.
pub const TEMPORARY: &str = "_tmp";
/// What the name of a day's folder begins with, as Hive, DuckDB, Spark and pyarrow read it.
pub const DAY: &str = "day=";

/// Gives the files of a group their names in the folder of rows `folder`. `group` distinguishes
/// them from those of all other groups.
///
/// # Errors
/// A file cannot be written or renamed. Those that have their names already do not count without a
/// line in the manifest.
pub fn publish(
    folder: &Path,
    group: &str,
    tables: Vec<DayTable>,
) -> Result<Vec<RowsPart>, TableError> {
    // No file has its name before all are on disk.
    let sizes = tables.iter().map(DayTable::sync).collect::<Result<Vec<_>, _>>()?;
    let mut parts = Vec::new();
    for (table, bytes) in tables.into_iter().zip(sizes) {
        let path = format!("{DAY}{}/part-{group}-{}.parquet", table.date(), table.number());
        let target = folder.join(&path);
        let wrong = TableError::at(&target);
        let day = target.parent().unwrap_or(folder);
        if !day.is_dir() {
            fs::create_dir_all(day).map_err(&wrong)?;
            sync(folder).map_err(&wrong)?;
        }
        let rows = table.rows();
        table.rename(&target).map_err(&wrong)?;
        sync(day).map_err(&wrong)?;
        parts.push(RowsPart { path, rows, bytes });
    }
    Ok(parts)
}

/// Makes the names in a folder outlive the machine.
fn sync(folder: &Path) -> std::io::Result<()> {
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::day_tables::DayTables;
    use fullpipe_columnar::Layout;
    use fullpipe_flow::schema::{CAPTURE_PROBLEMS, CaptureProblem};
    use fullpipe_model::units::Instant;

    const DAY_NANOS: u64 = 86_400_000_000_000;

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
    fn parts_have_their_names_at_the_end_and_nothing_is_left_of_those_that_are_dropped() {
        let place = tempfile::tempdir().unwrap();
        let temporary = place.path().join(TEMPORARY);
        fs::create_dir(&temporary).unwrap();
        let layout = Layout::of(CAPTURE_PROBLEMS);
        let problem = CaptureProblem { file: "a.pcap", problem: "cut", rows: 3 };
        let cells = || Layout::cells(CAPTURE_PROBLEMS, &problem);
        let fill = |group: &str| {
            let mut tables = DayTables::new(temporary.clone(), group.into(), layout.clone());
            // More days than are open at a time, and the first of them again.
            for day in [0, 1, 0, 2, 3, 4, 5, 0] {
                tables.row(Instant::from_nanos(day * DAY_NANOS), cells()).unwrap();
            }
            tables
        };
        drop(fill("dropped"));
        drop(fill("complete, and dropped").finish().unwrap());
        assert!(rows_in(place.path()).is_empty());
        let parts = publish(place.path(), "kept", fill("kept").finish().unwrap()).unwrap();
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
