//! `fullpipe lab run --dry-run`: which runs there would be, and what their results depend on.

use crate::failure::Failure;
use crate::sentence::either;
use crate::terminal::{answer_layout, print, print_json, remark};
use fullpipe_lab::{
    Engine, Kernel, Run, Shard, choose_kernel, keys, runs_of, unsuited_to_virtual_time,
};
use fullpipe_report::{Column, Table};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// What would run.
pub struct DryRun {
    /// The runs of the whole sweep.
    pub runs: Vec<Run>,
    /// Those that would run here; `None`: all.
    pub shard: Option<Shard>,
    pub engine: Engine,
    pub keep_captures: bool,
    /// The files that the scenarios were read from.
    pub files: BTreeSet<PathBuf>,
}

#[derive(Serialize)]
struct DryRunDocument<'a> {
    /// Of the whole sweep.
    total: usize,
    runs: Vec<Planned>,
    kernels: Vec<UsedKernel<'a>>,
    files: &'a BTreeSet<PathBuf>,
}

#[derive(Serialize)]
struct Planned {
    name: String,
    repetition: u32,
    key: String,
}

#[derive(Serialize)]
struct UsedKernel<'a> {
    release: &'a str,
    key: &'a str,
    path: &'a Path,
}

impl DryRun {
    /// Prints it, as JSON or as a table.
    pub fn show(&self, json: bool) -> Result<u8, Failure> {
        let keys = keys(&self.runs, &self.engine, self.keep_captures)?;
        let runs = runs_of(&self.runs, self.shard).map(|(place, run)| Planned {
            name: run.scenario.name.clone(),
            repetition: run.repetition,
            key: keys[place].to_string(),
        });
        let runs: Vec<Planned> = runs.collect();
        if json {
            let kernels = self.kernels()?;
            print_json(&DryRunDocument {
                total: self.runs.len(),
                runs,
                kernels,
                files: &self.files,
            })?;
            return Ok(0);
        }
        let mut table = Table::new([
            Column::text(either("run", "运行")),
            Column::count("#"),
            Column::text(either("depends on", "依赖")),
        ]);
        for run in &runs {
            // As much of a digest as a person compares.
            table.row([run.name.clone(), run.repetition.to_string(), run.key[..12].into()]);
        }
        print(&table.render(answer_layout()))?;
        remark(&match self.shard {
            Some(shard) => {
                let (ours, all) = (runs.len(), self.runs.len());
                either(
                    format!("\nShard {shard}: {ours} of {all} runs"),
                    format!("\n分片 {shard}：{all} 次运行中的 {ours} 次"),
                )
            }
            None => {
                let all = runs.len();
                either(format!("\n{all} runs"), format!("\n{all} 次运行"))
            }
        });
        Ok(0)
    }

    /// The kernels that the runs of the whole sweep boot.
    fn kernels(&self) -> Result<Vec<UsedKernel<'_>>, Failure> {
        let Engine::Virtual(kernels) = &self.engine else { return Ok(Vec::new()) };
        let mut used: BTreeMap<&str, &Kernel> = BTreeMap::new();
        for Run { scenario, .. } in &self.runs {
            if unsuited_to_virtual_time(scenario).is_none() {
                let kernel = choose_kernel(kernels, scenario)?;
                used.insert(&kernel.key, kernel);
            }
        }
        let used = used.into_values();
        let told = used.map(|Kernel { key, release, path, .. }| UsedKernel { release, key, path });
        Ok(told.collect())
    }
}
