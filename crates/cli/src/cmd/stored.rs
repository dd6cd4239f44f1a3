//! A file of Parquet that gets its name when it is complete: for `analyze --parquet` and `why
//! --parquet`.

use crate::failure::{Failure, Kind};
use crate::sentence::Sentence;
use fullpipe_columnar::{Layout, ParquetTable};
use fullpipe_flow::schema::Cell;
use fullpipe_kernel::file::folder::Pending;
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

/// A Parquet file with its name, for messages.
pub struct Stored {
    table: ParquetTable<BufWriter<File>>,
    pending: Pending,
    file: PathBuf,
}

impl Stored {
    /// Begins the file. It gets its final name when it is complete.
    pub fn new(file: &Path, layout: &Layout) -> Result<Self, Failure> {
        let pending = Pending::at(file).map_err(|error| not_written(file, error))?;
        let handle = pending.handle().map_err(|error| not_written(file, error))?;
        let table = ParquetTable::new(BufWriter::new(handle), layout)
            .map_err(|error| not_written(file, error))?;
        Ok(Stored { table, pending, file: file.into() })
    }

    /// Adds a row.
    pub fn row<'r>(&mut self, cells: impl IntoIterator<Item = Cell<'r>>) -> Result<(), Failure> {
        self.table.row(cells).map_err(|error| not_written(&self.file, error))
    }

    /// Ends the file.
    pub fn finish(self) -> Result<(), Failure> {
        let Stored { table, pending, file } = self;
        table.finish().map_err(|error| not_written(&file, error))?;
        pending.commit().map_err(|error| not_written(&file, error))
    }
}

fn not_written(file: &Path, error: impl std::fmt::Display) -> Failure {
    let file = file.display();
    let problem = Sentence::new(
        format!(
            "write {file}: {error}; give --parquet a file that can be written, on a disk with free space"
        ),
        format!("写入 {file}：{error}；请给 --parquet 一个可写的文件，且磁盘有空间"),
    );
    Failure::new(Kind::Run, problem)
}
