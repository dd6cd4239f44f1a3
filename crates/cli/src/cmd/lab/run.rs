//! `fullpipe lab run`: runs scenarios and shows their rows.

use super::cache::of_runs;
use super::dry_run::DryRun;
use super::output::{Lines, Output};
use super::{engine, in_sandbox};
use crate::cmd::report;
use crate::failure::{Failure, Kind, kind_of};
use crate::progress::Progress;
use crate::sentence::{Sentence, either};
use crate::terminal::{answer_layout, print, print_json, remark};
use clap::Args;
use fullpipe_flow::schema::RunRow;
use fullpipe_kernel::host::clock;
use fullpipe_kernel::run::sandbox::Inside;
use fullpipe_lab::{
    Engine, Event, GuestLimits, LabError, Options, Shard, Sweep, claim_results_folder,
    load_with_files, plan, runs_of,
};
use fullpipe_model::scenario::Scenario;
use fullpipe_model::units::{Bytes, Duration, Instant};
use fullpipe_report::runs::rows;
use serde::Serialize;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

/// Run scenarios and show the speed of each transfer, what limited it, and the theoretical bound.
///
/// Works as root and, where user namespaces are allowed, as an ordinary user. Everything it makes
/// is in its own namespaces and disappears with it, however it ends.
#[derive(Args)]
#[command(after_help = "\
Examples:
  fullpipe lab run quick
  fullpipe lab run articles/a1-rtt --json
  fullpipe lab run articles/b2 articles/b4 --output results/ --keep-captures
  fullpipe lab run articles/b2 --html b2.html
  fullpipe lab run my.toml --repeat 5
  fullpipe lab run articles --engine virtual
  fullpipe lab run sweep.toml --engine virtual --jobs 4 --output results/ --parquet rows.parquet
  fullpipe lab run sweep.toml --engine virtual --jobs 4 --output results/ --resume
  fullpipe lab run sweep.toml --engine virtual --shard 3/16 --output shards/3
  fullpipe lab run sweep.toml --engine virtual --dry-run

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
  kernel = [\"6.1\", \"6.12\"]

A failed run becomes a row with an `error` and without figures; the others go on, and the exit code is 1.")]
pub struct Run {
    /// Scenario files, presets (see `fullpipe lab list`), or a folder of presets such as
    /// `articles`.
    #[arg(value_name = "FILE|PRESET", required = true)]
    scenarios: Vec<String>,
    /// Print JSON: {"rows": [..]}.
    #[arg(long, group = "format")]
    json: bool,
    /// Print JSON lines: each row as soon as it and all before it are done.
    #[arg(long, group = "format")]
    jsonl: bool,
    /// Print CSV as --jsonl does, with the scenario's values beside each row.
    #[arg(long, group = "format")]
    csv: bool,
    /// Write the rows to the Parquet file FILE, with the columns of --csv; it appears when all runs
    /// are done.
    #[arg(long, value_name = "FILE")]
    parquet: Option<PathBuf>,
    /// Folder for results, new or empty [default: fullpipe-results/TIME].
    #[arg(short, long = "output", alias = "out", value_name = "DIR")]
    out: Option<PathBuf>,
    /// Continue the interrupted sweep of the same scenarios in --output: finished runs are not
    /// repeated, failed ones are.
    #[arg(long, requires = "out")]
    resume: bool,
    /// Run one of N similar shards of the sweep: 3/16 is the third of sixteen. `fullpipe lab merge`
    /// puts their results together.
    #[arg(long, value_name = "I/N")]
    shard: Option<Shard>,
    /// Run nothing; list the runs, each with the digest of what its result depends on.
    #[arg(long, conflicts_with_all = ["jsonl", "csv", "parquet", "out", "html"])]
    dry_run: bool,
    /// Guests at once, if there is enough memory [default: one for each CPU]; runs in real time
    /// always run one at a time.
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
    /// Run everything, even what the cache has.
    #[arg(long)]
    no_cache: bool,
    /// Run each row N times, each time with another seed.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeat: Option<u32>,
    /// Also keep the captures at both ends (pcap with nanoseconds).
    #[arg(long)]
    keep_captures: bool,
    /// Also write a report with graphs: one HTML file; keeps the captures, as --keep-captures does.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Memory of a guest, such as 8GiB [default: 2 GiB plus eight times what its path holds].
    #[arg(long, value_name = "SIZE")]
    guest_memory: Option<Bytes>,
    /// Kill a guest that has made no progress for this long, in real time.
    #[arg(long, value_name = "TIME", default_value_t = GuestLimits::STALLED_AFTER)]
    guest_stall: Duration,
    #[command(flatten)]
    engine: engine::Choice,
}

#[derive(Serialize)]
struct Rows<'a> {
    rows: &'a [RunRow],
}

impl Run {
    pub fn run(self) -> Result<u8, Failure> {
        let (mut scenarios, files) = load_with_files(&self.scenarios, &[], self.repeat)?;
        let engine = self.engine.settle(&mut scenarios)?;
        let runs = plan(&scenarios, self.repeat);
        let keep_captures = self.keep_captures || self.html.is_some();
        if self.dry_run {
            let dry_run = DryRun { runs, shard: self.shard, engine, keep_captures, files };
            return dry_run.show(self.json);
        }
        if engine == Engine::Real && self.jobs.is_some_and(|jobs| jobs.get() > 1) {
            remark(either(
                "fullpipe: --jobs is ignored in real time: runs would disturb each other, so they run one at a time",
                "fullpipe: 实时运行时忽略 --jobs：各次运行会互相干扰，因此一次一个",
            ));
        }
        // Linux sizes the buffers of connections by its memory, so another size gives another
        // result.
        let from_cache = !self.no_cache && self.guest_memory.is_none();
        let cache = if from_cache { of_runs(&engine) } else { None };
        let mut options = Options {
            out: self.out.clone(),
            resume: self.resume,
            shard: self.shard,
            keep_captures,
            engine,
            limits: GuestLimits { memory: self.guest_memory, stalled_after: self.guest_stall },
            jobs: self.jobs,
            cache,
        };
        in_sandbox(|inside| {
            let out = options.out.take().map_or_else(default_folder, Ok)?;
            options.out = Some(out.clone());
            let sweep = self.sweep(inside, &runs, &options)?;
            let rows = &sweep.rows;
            if self.json {
                print_json(&Rows { rows })?;
            } else if self.lines() == Lines::None {
                print(&rows::render(rows, answer_layout()))?;
                let cached = rows.iter().filter(|row| row.cached).count();
                if cached > 0 {
                    let all = rows.len();
                    remark(&either(
                        format!(
                            "\nFrom the cache: {cached} of {all} rows (--no-cache runs them again)"
                        ),
                        format!("\n来自缓存：{all} 行中的 {cached} 行（--no-cache 重新运行）"),
                    ));
                }
                remark(&format!("\n{}{}", either("Results: ", "结果："), out.display()));
            }
            if let Some(file) = &self.html {
                report::write(&mut report::results::page(std::slice::from_ref(&out))?, file)?;
            }
            Ok(tell_failures(&sweep, &out))
        })
    }

    /// What to print as rows come.
    fn lines(&self) -> Lines {
        match (self.jsonl, self.csv) {
            (true, _) => Lines::Json,
            (_, true) => Lines::Csv,
            _ => Lines::None,
        }
    }

    /// Runs everything and passes rows on as they come. After an error it says which results exist.
    fn sweep(
        &self,
        inside: &Inside,
        runs: &[fullpipe_lab::Run],
        options: &Options,
    ) -> Result<Sweep, Failure> {
        let mut output = Output::new(runs, self.shard, self.lines(), self.parquet.as_deref())?;
        let total = runs_of(runs, self.shard).count();
        // A single run that fails is the failure of the command, and is reported as such; that of a
        // shard is a row among those of the others.
        let is_single = runs.len() == 1 && self.shard.is_none();
        let mut done = 0;
        let mut written = Ok(());
        let mut look = |event: Event<'_>| match event {
            Event::Finished { .. } => done += 1,
            Event::Row(row) if row.is_failed() && is_single => {}
            Event::Row(row) if written.is_ok() => {
                if let Some(error) = &row.error {
                    remark(&format!("fullpipe: {}: {error}", row.name));
                }
                written = output.row(row);
                if written.is_err() {
                    // The reader is gone or the disk is full, so the running runs need not finish.
                    inside.interrupt().set();
                }
            }
            _ => {}
        };
        let sweep = observed(inside, runs, options, &mut look);
        written?;
        if let (Err(_), Some(out), 1..) = (&sweep, &options.out, done) {
            let out = out.display();
            remark(&either(
                format!(
                    "fullpipe: {done} of {total} runs are done and in {out}; to go on: the same command with --output {out} --resume"
                ),
                format!(
                    "fullpipe: {total} 次运行已完成 {done} 次，在 {out}；继续：同一命令加 --output {out} --resume"
                ),
            ));
        }
        let mut sweep = sweep?;
        if is_single && let Some(failed) = sweep.failures.pop() {
            return Err(failed.error.into());
        }
        output.finish()?;
        Ok(sweep)
    }
}

/// Says how many runs failed and what to do about it; returns the exit code. If no run succeeded
/// and all failed for the same reason, such as a missing tool, it is the code of that reason.
fn tell_failures(sweep: &Sweep, out: &Path) -> u8 {
    let (failed, total) = (sweep.failures.len(), sweep.rows.len());
    if failed == 0 {
        return 0;
    }
    let out = out.display();
    remark(&either(
        format!(
            "fullpipe: {failed} of {total} runs failed, the others are in {out}; to try again: the same command with --output {out} \
             --resume"
        ),
        format!(
            "fullpipe: {total} 次运行有 {failed} 次失败，其余在 {out}；重试：同一命令加 --output {out} --resume"
        ),
    ));
    let mut kinds = sweep.failures.iter().map(|failed| kind_of(&failed.error));
    let first = kinds.next().unwrap_or(Kind::Run);
    let is_common = failed == total && kinds.all(|kind| kind == first);
    Failure::code(if is_common { first } else { Kind::Run })
}

/// A new folder `fullpipe-results/2026-11-20T23-19-05Z`, or with `-2` appended if that exists. The
/// name has no colons, because some file systems and shells do not accept them.
pub fn default_folder() -> Result<PathBuf, Failure> {
    let now = std::time::UNIX_EPOCH
        + std::time::Duration::from((clock::now() + clock::realtime_offset()).since(Instant::ZERO));
    let stamp = humantime::format_rfc3339_seconds(now).to_string().replace(':', "-");
    Ok(claim_results_folder(Path::new("fullpipe-results"), &stamp).map_err(LabError::from)?)
}

/// Executes runs with a progress bar.
pub fn run_all(
    inside: &Inside,
    runs: &[fullpipe_lab::Run],
    options: &Options,
) -> Result<Sweep, Failure> {
    observed(inside, runs, options, &mut |_| {})
}

/// Executes one run of `scenario` with a progress bar.
pub fn run_one(inside: &Inside, scenario: &Scenario, options: &Options) -> Result<RunRow, Failure> {
    let runs = plan(std::slice::from_ref(scenario), Some(1));
    let mut sweep = run_all(inside, &runs, options)?;
    match (sweep.failures.pop(), sweep.rows.pop()) {
        (None, Some(row)) => Ok(row),
        (Some(failed), _) => Err(failed.error.into()),
        (None, None) => {
            let name = &scenario.name;
            let what = format!("run {name}: it gave no row");
            Err(Failure::new(
                Kind::Run,
                Sentence::new(what, format!("运行 {name}：没有得到结果行")),
            ))
        }
    }
}

fn observed(
    inside: &Inside,
    runs: &[fullpipe_lab::Run],
    options: &Options,
    look: &mut dyn FnMut(Event<'_>),
) -> Result<Sweep, Failure> {
    let mut progress = Progress::new(runs, options.shard);
    let sweep = fullpipe_lab::run(inside, runs, options, &mut |event| {
        progress.show(event);
        progress.with_bar_hidden(|| look(event));
    });
    progress.finish();
    Ok(sweep?)
}
