//! `fullpipe lab`: experiments with real transfers over an emulated path.

mod engine;
mod kernel;

use crate::failure::{Failure, Kind};
use crate::progress::Progress;
use crate::terminal::{layout, print, print_json, remark};
use clap::{Args, Subcommand};
use fullpipe_flow::row::Row;
use fullpipe_kernel::sandbox::{self, Inside};
use fullpipe_kernel::{clock, journal};
use fullpipe_lab::{Options, preset};
use fullpipe_model::scenario::{File, Scenario};
use fullpipe_model::units::Instant;
use fullpipe_report::{Column, Table, rows};
use serde::Serialize;
use std::path::PathBuf;

/// Experiments: real transfers between two real TCP stacks over an emulated path.
#[derive(Subcommand)]
pub enum Lab {
    Run(Run),
    List(List),
    Clean(Clean),
    #[command(subcommand)]
    Kernel(kernel::Kernel),
}

impl Lab {
    pub fn run(self) -> Result<u8, Failure> {
        match self {
            Lab::Run(run) => run.run(),
            Lab::List(list) => list.run(),
            Lab::Clean(clean) => clean.run(),
            Lab::Kernel(kernel) => kernel.run(),
        }
    }
}

/// Run scenarios and show what each transfer reached, what limited it, and the law beside it.
///
/// Works as root and, where user namespaces are allowed, as an ordinary user. Everything it makes is in namespaces of its
/// own and is gone when it ends, however it ends.
#[derive(Args)]
#[command(after_help = "\
Examples:
  fullpipe lab run quick
  fullpipe lab run articles/a1-rtt --json
  fullpipe lab run articles/b2 articles/b4 --out results/ --keep-captures
  fullpipe lab run my.toml --repeat 5
  fullpipe lab run articles --engine virtual

A scenario file, every key optional:
  [hosts.server]
  congestion_control = \"cubic\"
  sysctl = { \"net.ipv4.tcp_wmem\" = \"4096 16384 4194304\" }
  [link]
  rate = \"1gbit\"
  rtt = \"50ms\"
  loss = \"0.1%\"
  queue = \"1bdp\"
  [transfer]
  size = \"100MB\"
  duration = \"10s\"
  [matrix]
  \"link.rtt\" = [\"10ms\", \"50ms\"]
  kernel = [\"6.1\", \"6.12\"]")]
pub struct Run {
    /// Scenario files, presets (see `fullpipe lab list`), or a folder of presets such as `articles`.
    #[arg(value_name = "FILE|PRESET", required = true)]
    scenarios: Vec<String>,
    /// Print JSON: {"rows": [..]}.
    #[arg(long)]
    json: bool,
    /// Folder for results, new or empty [default: fullpipe-results/TIME].
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Run each row this often, each time with another seed.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeat: Option<u32>,
    /// Keep the captures at both ends (pcap with nanoseconds) among the results.
    #[arg(long)]
    keep_captures: bool,
    #[command(flatten)]
    engine: engine::Choice,
}

#[derive(Serialize)]
struct Rows<'a> {
    rows: &'a [Row],
}

impl Run {
    fn run(self) -> Result<u8, Failure> {
        let mut scenarios = Vec::new();
        for name in &self.scenarios {
            scenarios.extend(preset::load(name)?);
        }
        let engine = self.engine.settle(&mut scenarios)?;
        let out = self.out.unwrap_or_else(default_folder);
        let options =
            Options { out: Some(out.clone()), repeat: self.repeat, keep_captures: self.keep_captures, engine };
        let json = self.json;
        in_sandbox(|inside| {
            let rows = run_all(inside, &scenarios, &options)?;
            if json {
                print_json(&Rows { rows: &rows })?;
            } else {
                print(&rows::render(&rows, layout()))?;
                remark(&format!("\nResults: {}", out.display()));
            }
            Ok(0)
        })
    }
}

/// `fullpipe-results/2026-11-20T23-19-05Z`: no colons, which some file systems and shells mind.
fn default_folder() -> PathBuf {
    let now = std::time::UNIX_EPOCH
        + std::time::Duration::from((clock::now() + clock::realtime_offset()).since(Instant::ZERO));
    let stamp = humantime::format_rfc3339_seconds(now).to_string().replace(':', "-");
    PathBuf::from("fullpipe-results").join(stamp)
}

/// Runs `work` inside namespaces that end with it. Its exit code becomes ours.
pub fn in_sandbox(work: impl FnOnce(&Inside) -> Result<u8, Failure>) -> Result<u8, Failure> {
    let exit = sandbox::run(&sandbox::Options::default(), |inside| {
        for action in inside.cleaned().iter().flat_map(|cleaned| &cleaned.actions) {
            remark(&format!("fullpipe: an earlier run was killed: {action}"));
        }
        i32::from(work(inside).unwrap_or_else(|failure| failure.told()))
    })?;
    Ok(u8::try_from(exit.code()).unwrap_or(1))
}

/// Runs scenarios with a progress bar.
pub fn run_all(inside: &Inside, scenarios: &[Scenario], options: &Options) -> Result<Vec<Row>, Failure> {
    let mut progress = Progress::new();
    let rows = fullpipe_lab::run(inside, scenarios, options, &mut |event| progress.show(event));
    progress.finish();
    Ok(rows?)
}

/// Name the scenarios that come with the program.
#[derive(Args)]
#[command(after_help = "\
Examples:
  fullpipe lab list
  fullpipe lab list --json | jq -r '.[].name'")]
pub struct List {
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Listed {
    name: &'static str,
    description: String,
    rows: usize,
}

impl List {
    fn run(self) -> Result<u8, Failure> {
        let mut listed = Vec::new();
        for preset in preset::PRESETS {
            let file = File::parse(preset.text).map_err(|error| Failure::new(Kind::Input, error))?;
            let rows = preset::load(preset.name)?.len();
            listed.push(Listed { name: preset.name, description: file.description, rows });
        }
        if self.json {
            print_json(&listed)?;
            return Ok(0);
        }
        let mut table = Table::new([Column::text("preset"), Column::count("rows"), Column::text("what it shows")]);
        for preset in listed {
            table.row([preset.name.into(), preset.rows.to_string(), preset.description]);
        }
        print(&table.render(layout()))?;
        Ok(0)
    }
}

/// Clean up after runs that were killed.
///
/// The next run does the same by itself. Namespaces, devices and sysctls need no cleaning: the kernel ends them with the
/// processes that held them.
#[derive(Args)]
#[command(after_help = "\
Examples:
  fullpipe lab clean")]
pub struct Clean {
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

impl Clean {
    fn run(self) -> Result<u8, Failure> {
        let cleaned = journal::clean_stale().map_err(|error| Failure::new(Kind::Run, error))?;
        let runs: Vec<_> = cleaned
            .iter()
            .map(|run| CleanedRun {
                journal: run.journal.display().to_string(),
                complete: run.complete(),
                actions: run.actions.iter().map(ToString::to_string).collect(),
            })
            .collect();
        if self.json {
            print_json(&runs)?;
        } else if runs.is_empty() {
            print("Nothing to clean.\n")?;
        } else {
            for run in &runs {
                print(&format!("{}:\n", run.journal))?;
                for action in &run.actions {
                    print(&format!("  {action}\n"))?;
                }
            }
        }
        // Something is still there: the journal stays, and the caller should know.
        Ok(u8::from(runs.iter().any(|run| !run.complete)))
    }
}

#[derive(Serialize)]
struct CleanedRun {
    journal: String,
    complete: bool,
    actions: Vec<String>,
}
