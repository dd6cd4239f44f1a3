//! Rows of one kind in Parquet files of a local folder, one or more for each day.
//!
//! At most [`OPEN_DAYS`] files are being written: a row of a further day ends the one that was
//! written least recently. Whoever makes the folder removes it, so nothing is tidied up here.

use fullpipe_columnar::{Layout, ParquetTable};
use fullpipe_flow::schema::Cell;
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::PathBuf;

/// As many days as the command line writes at a time: around midnight two alternate.
const OPEN_DAYS: usize = 4;
const DAY_NANOS: u64 = 86_400_000_000_000;

/// The files of one kind of row.
pub struct DayTables {
    folder: PathBuf,
    kind: &'static str,
    layout: Layout,
    /// That of the latest row last.
    open: Vec<(Table, ParquetTable<BufWriter<File>>)>,
    complete: Vec<Table>,
}

/// A file.
pub struct Table {
    /// Days since 1970.
    pub day: u64,
    pub path: PathBuf,
    pub rows: u64,
}

impl DayTables {
    pub fn new(folder: PathBuf, kind: &'static str, layout: Layout) -> Self {
        DayTables { folder, kind, layout, open: Vec::new(), complete: Vec::new() }
    }

    /// Adds a row of the day (UTC) of a time since 1970.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn row<'r>(
        &mut self,
        at_ns: u64,
        cells: impl IntoIterator<Item = Cell<'r>>,
    ) -> io::Result<()> {
        let day = at_ns / DAY_NANOS;
        if self.open.last().is_none_or(|(table, _)| table.day != day) {
            self.turn_to(day)?;
        }
        let Some((table, file)) = self.open.last_mut() else { return Ok(()) };
        table.rows += 1;
        file.row(cells).map_err(|cause| not_written(table, cause))
    }

    /// Makes the file of `day` the last of the open ones.
    fn turn_to(&mut self, day: u64) -> io::Result<()> {
        if let Some(at) = self.open.iter().position(|(table, _)| table.day == day) {
            let open = self.open.remove(at);
            self.open.push(open);
            return Ok(());
        }
        let begun = self.complete.len() + self.open.len();
        if self.open.len() == OPEN_DAYS {
            let (table, file) = self.open.remove(0);
            file.finish().map_err(|cause| not_written(&table, cause))?;
            self.complete.push(table);
        }
        let path = self.folder.join(format!("{}-{begun}", self.kind));
        let table = Table { day, path, rows: 0 };
        let out = File::create_new(&table.path).map_err(|cause| not_written(&table, cause))?;
        let file = ParquetTable::new(BufWriter::new(out), &self.layout)
            .map_err(|cause| not_written(&table, cause))?;
        self.open.push((table, file));
        Ok(())
    }

    /// Ends all files.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn finish(mut self) -> io::Result<Vec<Table>> {
        for (table, file) in self.open {
            file.finish().map_err(|cause| not_written(&table, cause))?;
            self.complete.push(table);
        }
        Ok(self.complete)
    }
}

fn not_written(table: &Table, cause: impl std::fmt::Display) -> io::Error {
    let path = table.path.display();
    io::Error::other(format!("write rows to {path}: {cause}; give $TMPDIR a disk with free space"))
}
