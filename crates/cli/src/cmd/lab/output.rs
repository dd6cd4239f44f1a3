//! Writes rows as they come: lines of JSON, CSV, a Parquet file.

use crate::failure::{Failure, Kind};
use crate::sentence::Sentence;
use crate::terminal::print;
use fullpipe_columnar::{Layout, ParquetTable};
use fullpipe_flow::schema::RunRow;
use fullpipe_flow::schema::{RUNS, SCENARIOS};
use fullpipe_kernel::file::folder::Pending;
use fullpipe_lab::{Columns, Run, Shard, runs_of};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// What to print of a row as soon as it and all before it are done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lines {
    /// Nothing: rows are shown together at the end.
    None,
    /// A JSON object.
    Json,
    /// A line of CSV, with the names of the columns before the first.
    Csv,
}

/// The rows of a sweep, in order.
pub struct Output<'a> {
    /// Those whose rows are still to come.
    runs: Box<dyn Iterator<Item = &'a Run> + 'a>,
    is_first: bool,
    lines: Lines,
    columns: Columns,
    file: Option<ParquetFile>,
}

impl<'a> Output<'a> {
    /// Writes the rows of those of `runs` that belong to `shard`, with the columns of all, so that
    /// the tables of shards fit together. The `parquet` file appears, complete, with
    /// [`Output::finish`].
    pub fn new(
        runs: &'a [Run],
        shard: Option<Shard>,
        lines: Lines,
        parquet: Option<&Path>,
    ) -> Result<Self, Failure> {
        let columns = Columns::of(runs.iter().map(|run| &run.scenario));
        let file = parquet.map(|path| ParquetFile::create(path, &columns)).transpose()?;
        let runs = Box::new(runs_of(runs, shard).map(|(_, run)| run));
        Ok(Output { runs, is_first: true, lines, columns, file })
    }

    /// Takes the next row.
    pub fn row(&mut self, row: &RunRow) -> Result<(), Failure> {
        let Some(run) = self.runs.next() else { return Ok(()) };
        let is_first = std::mem::take(&mut self.is_first);
        match self.lines {
            Lines::None => {}
            Lines::Json => {
                print(&format!("{}\n", serde_json::to_string(row).map_err(io::Error::from)?))?
            }
            Lines::Csv => {
                if is_first {
                    print(&self.columns.csv_header())?;
                }
                print(&self.columns.csv_line(row, &run.scenario))?;
            }
        }
        if let Some(file) = &mut self.file {
            let cells = self.columns.cells(row, &run.scenario);
            file.table.row(cells).map_err(|cause| wrong(&file.path, cause))?;
        }
        Ok(())
    }

    /// Ends the output after the last row and gives the file its name.
    pub fn finish(self) -> Result<(), Failure> {
        let Some(ParquetFile { table, pending, path }) = self.file else { return Ok(()) };
        table.finish().map_err(|cause| wrong(&path, cause))?;
        pending.commit().map_err(|cause| wrong(&path, cause))
    }
}

struct ParquetFile {
    table: ParquetTable<File>,
    pending: Pending,
    path: PathBuf,
}

impl ParquetFile {
    /// Called before the first run, so that a place that cannot be written is reported now, not in
    /// an hour.
    fn create(path: &Path, columns: &Columns) -> Result<Self, Failure> {
        let pending = Pending::at(path).map_err(|cause| wrong(path, cause))?;
        let layout = Layout::of(RUNS).and(SCENARIOS).and_texts(columns.words().iter().cloned());
        let file = pending.handle().map_err(|cause| wrong(path, cause))?;
        let table = ParquetTable::new(file, &layout).map_err(|cause| wrong(path, cause))?;
        Ok(ParquetFile { table, pending, path: path.into() })
    }
}

fn wrong(path: &Path, cause: impl std::fmt::Display) -> Failure {
    let path = path.display();
    let told = Sentence::new(
        format!("write Parquet file {path}: {cause}; free some space, or choose another place"),
        format!("写入 Parquet 文件 {path}：{cause}；请腾出空间，或换一个位置"),
    );
    Failure::new(Kind::Run, told)
}
