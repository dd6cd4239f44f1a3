//! `fullpipe lab cache`: results of runs in virtual time that need not run again.

use crate::failure::{Failure, Kind};
use crate::sentence::{Sentence, either};
use crate::terminal::{answer_layout, print, print_json, remark};
use clap::{Args, Subcommand};
use fullpipe_flow::schema::RunRow;
use fullpipe_lab::Engine;
use fullpipe_model::units::Bytes;
use fullpipe_report::{
    Column, Table,
    table::{escape, figure},
};
use serde::Serialize;
use std::path::PathBuf;

/// List or remove cached runs in virtual time.
///
/// Such a run depends only on its scenario with its seed, the guest kernel and this program, so the
/// same three give the same bytes and need not run twice. Runs in real time, and those with nginx,
/// Python, curl or iperf3, are never cached.
#[derive(Subcommand)]
pub enum Cache {
    List(List),
    Clean(Clean),
}

/// The cache of runs in virtual time; `None` if it does not belong to this user alone.
pub fn of_runs(engine: &Engine) -> Option<fullpipe_lab::Cache> {
    if !matches!(engine, Engine::Virtual(_)) {
        return None;
    }
    let cache = fullpipe_lab::Cache::of_user();
    cache.unwrap_or_else(|error| {
        let why = Sentence::from(&error);
        remark(&either(
            format!("fullpipe: the cache is not used: {}", why.english()),
            format!("fullpipe: 不使用缓存：{}", why.chinese()),
        ));
        None
    })
}

impl Cache {
    pub fn run(self) -> Result<u8, Failure> {
        let cache =
            fullpipe_lab::Cache::of_user().map_err(|error| Failure::new(Kind::Missing, &error))?;
        let cache = cache.ok_or_else(|| {
            let what = "find cache: set HOME or XDG_CACHE_HOME";
            let told = Sentence::new(what, "查找缓存：请设置 HOME 或 XDG_CACHE_HOME");
            Failure::new(Kind::Missing, told)
        })?;
        match self {
            Cache::List(list) => list.run(&cache),
            Cache::Clean(clean) => clean.run(&cache),
        }
    }
}

/// List the cached runs, most recently used first.
#[derive(Args)]
#[command(after_help = "\
Examples:
  fullpipe lab cache list
  fullpipe lab cache list --json | jq '.runs[].row.name'")]
pub struct List {
    /// Print JSON: {"folder": .., "limit_bytes": .., "bytes": .., "runs": [..]}.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Listed {
    folder: PathBuf,
    limit_bytes: u64,
    bytes: u64,
    runs: Vec<ListedRun>,
}

#[derive(Serialize)]
struct ListedRun {
    key: String,
    used: String,
    bytes: u64,
    row: RunRow,
}

impl List {
    fn run(self, cache: &fullpipe_lab::Cache) -> Result<u8, Failure> {
        let kept = cache.list();
        let total = kept.iter().map(|run| run.size).fold(Bytes::ZERO, Bytes::saturating_add);
        let used =
            |run: &fullpipe_lab::CachedRun| humantime::format_rfc3339_seconds(run.used).to_string();
        if self.json {
            let runs = kept.into_iter().map(|run| ListedRun {
                key: run.key.to_string(),
                used: used(&run),
                bytes: run.size.get(),
                row: run.row,
            });
            print_json(&Listed {
                folder: cache.folder().into(),
                limit_bytes: cache.limit().get(),
                bytes: total.get(),
                runs: runs.collect(),
            })?;
            return Ok(0);
        }
        let mut table = Table::new([
            Column::text(either("run", "运行")),
            Column::count("#"),
            Column::text(either("kernel", "内核")).leaves(2),
            Column::figure("goodput", "Mbit/s"),
            Column::figure(either("size", "大小"), "MB").leaves(1),
            Column::text(either("used", "上次使用")).leaves(3),
        ]);
        for run in &kept {
            let goodput = figure::mbit_per_s(run.row.goodput);
            let number = run.row.repetition.to_string();
            let row = [
                run.row.name.clone(),
                number,
                run.row.kernel.clone(),
                goodput,
                figure::megabytes(run.size),
                used(run),
            ];
            table.row(row);
        }
        if !table.is_empty() {
            print(&format!("{}\n", table.render(answer_layout())))?;
        }
        let (count, limit) = (kept.len(), cache.limit());
        let runs = if count == 1 { "run" } else { "runs" };
        let folder = cache.folder().display().to_string();
        let folder = escape::in_line(&folder);
        print(&either(
            format!("{count} {runs}, {total} of {limit} in {folder}\n"),
            format!("{count} 次运行，共 {total}（上限 {limit}），在 {folder}\n"),
        ))?;
        Ok(0)
    }
}

/// Remove cached runs, least recently used first.
#[derive(Args)]
#[command(after_help = "\
Examples:
  fullpipe lab cache clean
  fullpipe lab cache clean --keep 500MB")]
pub struct Clean {
    /// Keep this much of the most recently used runs [default: nothing].
    #[arg(long, value_name = "SIZE", default_value = "0B", hide_default_value = true)]
    keep: Bytes,
    /// Print JSON: {"removed": .., "bytes": ..}.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Removed {
    removed: usize,
    bytes: u64,
}

impl Clean {
    fn run(self, cache: &fullpipe_lab::Cache) -> Result<u8, Failure> {
        let (removed, bytes) = cache.clean(self.keep).map_err(|cause| {
            let folder = cache.folder().display();
            let told = Sentence::new(
                format!("clean cache {folder}: {cause}; remove the folder by hand"),
                format!("清理缓存 {folder}：{cause}；请手动删除该文件夹"),
            );
            Failure::new(Kind::Run, told)
        })?;
        if self.json {
            print_json(&Removed { removed, bytes: bytes.get() })?;
        } else {
            let runs = if removed == 1 { "run" } else { "runs" };
            print(&either(
                format!("Removed {removed} {runs}, {bytes}.\n"),
                format!("已删除 {removed} 次运行，{bytes}。\n"),
            ))?;
        }
        Ok(0)
    }
}
