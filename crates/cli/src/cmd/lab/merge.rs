//! `fullpipe lab merge`: the results of shards as one.

use crate::failure::{Failure, Kind};
use crate::sentence::either;
use crate::terminal::{print, print_json};
use clap::Args;
use fullpipe_lab::{LabError, MergeError, Merged, merge_shards};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Put the results of all shards of a sweep together, as if one machine had run it.
///
/// Rows are in the sweep's order, and the files of each run are copied. All shards must be there,
/// each once and finished, from the same scenarios and options and, in virtual time, from the same
/// build of fullpipe and the same kernels. Otherwise nothing is written.
#[derive(Args)]
#[command(after_help = "\
Examples:
  fullpipe lab run sweep.toml --engine virtual --shard 1/2 --output shards/1
  fullpipe lab run sweep.toml --engine virtual --shard 2/2 --output shards/2
  fullpipe lab merge shards/* --output results/

Exit codes: 0 the results are complete; 1 a file cannot be written; 2 wrong usage; 4 the shards are not those of one whole \
sweep.")]
pub struct Merge {
    /// Folders that `fullpipe lab run --shard` has written, in any order.
    #[arg(value_name = "SHARD", required = true)]
    shards: Vec<PathBuf>,
    /// Folder for the results, new or empty.
    #[arg(short, long = "output", alias = "out", value_name = "DIR")]
    out: PathBuf,
    /// Print JSON: {"out": .., "shards": .., "rows": .., "failed": ..}.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Told<'a> {
    out: &'a Path,
    #[serde(flatten)]
    merged: Merged,
}

impl Merge {
    pub fn run(self) -> Result<u8, Failure> {
        let merged = merge_shards(&self.shards, &self.out)?;
        if self.json {
            print_json(&Told { out: &self.out, merged })?;
            return Ok(0);
        }
        let Merged { shards, rows, failed } = merged;
        let out = self.out.display();
        let failed = match failed {
            0 => String::new(),
            1 => either("; 1 run failed", "；1 次运行失败").into(),
            more => either(format!("; {more} runs failed"), format!("；{more} 次运行失败")),
        };
        print(&either(
            format!("{rows} rows of {shards} shards are in {out}{failed}\n"),
            format!("{shards} 个分片的 {rows} 行在 {out}{failed}\n"),
        ))?;
        Ok(0)
    }
}

impl From<MergeError> for Failure {
    fn from(error: MergeError) -> Self {
        match error {
            MergeError::Results(error) => LabError::from(error).into(),
            error => Failure::new(Kind::Input, &error),
        }
    }
}
