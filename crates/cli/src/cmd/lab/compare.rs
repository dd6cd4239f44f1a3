//! `fullpipe lab compare`: two results side by side, and whether the second one is worse.

use super::cache::of_runs;
use super::engine::{Choice, Name};
use super::in_sandbox;
use super::run::{default_folder, run_all};
use crate::failure::{Failure, Kind};
use crate::sentence::{Sentence, either};
use crate::terminal::{answer_layout, print, print_json, remark};
use clap::Args;
use fullpipe_flow::schema::RunRow;
use fullpipe_lab::{Engine, FailedRun, Options, load_scenarios, plan};
use fullpipe_model::scenario::{Override, Scenario};
use fullpipe_report::runs::compare::{Bound, ComparedRows, Comparison, Extent, rows};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

/// Compare two results: which rows changed, by how much, and whether by more than noise.
///
/// A and B are folders of results, or files with rows that `lab run` printed with --json or
/// --jsonl. Or give scenarios and what to vary (two kernels, or a setting), and both sides run
/// first. Rows with the same name are compared. In virtual time every difference is real; in real
/// time the spread of the repetitions decides (Welch's t-test, 95 %).
#[derive(Args)]
#[command(after_help = "\
Examples:
  fullpipe lab compare before/ after/
  fullpipe lab compare before.jsonl after.jsonl --fail-on goodput:-2% --fail-on rtt_p99:+5ms
  fullpipe lab compare quick --kernel 6.1 6.12
  fullpipe lab compare quick --with hosts.server.congestion_control=bbr --engine virtual

Exit codes: 0 success; 1 a row got worse by more than a --fail-on bound, or a run failed; 4 results cannot be read or have no row in \
common.")]
pub struct Compare {
    /// Two results; with --kernel or --with scenario files or presets.
    #[arg(value_name = "RESULTS|SCENARIO", required = true)]
    sources: Vec<String>,
    /// Run the scenarios in virtual time under both of these kernels (releases, or the beginning of
    /// one) and compare.
    #[arg(long, value_names = ["A", "B"], num_args = 2, conflicts_with_all = ["with", "engine"])]
    kernel: Option<Vec<String>>,
    /// Run the scenarios as they are and with this key of a scenario file set, and compare; can be
    /// repeated.
    #[arg(long, value_name = "KEY=VALUE")]
    with: Vec<Override>,
    /// Whose clock the runs of --with use.
    #[arg(long, value_name = "ENGINE", value_enum, requires = "with")]
    engine: Option<Name>,
    /// Run each row N times, each time with another seed; use 3 or more in real time.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeat: Option<u32>,
    /// Guests at once, if there is enough memory [default: one for each CPU].
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
    /// Run everything, even what the cache has.
    #[arg(long)]
    no_cache: bool,
    /// Folder for the results of the runs, new or empty [default: fullpipe-results/TIME].
    #[arg(short, long = "output", alias = "out", value_name = "DIR")]
    out: Option<PathBuf>,
    /// Exit with 1 if a figure of any row got worse by more than this: goodput:-2%, rtt_p99:+5ms,
    /// retransmission:+10. Without a sign, the change counts in the direction that is worse. Can be
    /// repeated, or given with commas.
    #[arg(long, value_name = "FIGURE:CHANGE", value_delimiter = ',', allow_hyphen_values = true)]
    fail_on: Vec<Bound>,
    /// Show N changes: goodput first, then the largest.
    #[arg(long, value_name = "N", default_value_t = 40)]
    top: usize,
    /// Also show differences that noise explains.
    #[arg(long)]
    noise: bool,
    /// Also show how late the emulator was, which depends on the machine, not on the transfer.
    #[arg(long)]
    lateness: bool,
    /// Print JSON: {"a": .., "b": .., "changes": [..], "only_in_a": [..], "exceeded": [..], ..},
    /// with every change.
    #[arg(long)]
    json: bool,
}

/// One side of a comparison that has to run first.
struct Side {
    label: String,
    scenarios: Vec<Scenario>,
    engine: Engine,
}

impl Compare {
    pub fn run(self) -> Result<u8, Failure> {
        if self.kernel.is_some() || !self.with.is_empty() {
            let sides = self.sides()?;
            return in_sandbox(|inside| {
                let out = self.out.clone().map_or_else(default_folder, Ok)?;
                let mut rows = Vec::new();
                let mut failed = false;
                for (side, name) in sides.iter().zip(["a", "b"]) {
                    let options = Options {
                        out: Some(out.join(name)),
                        engine: side.engine.clone(),
                        jobs: self.jobs,
                        cache: if self.no_cache { None } else { of_runs(&side.engine) },
                        ..Options::default()
                    };
                    let sweep = run_all(inside, &plan(&side.scenarios, self.repeat), &options)?;
                    for FailedRun { error, .. } in &sweep.failures {
                        failed = true;
                        let told = Sentence::from(error).of(&side.label);
                        remark(&format!("fullpipe: {}", told.here()));
                    }
                    rows.push(sweep.rows);
                }
                remark(&format!("{}{}", either("Results: ", "结果："), out.display()));
                let code = self.show(
                    ComparedRows { source: &sides[0].label, rows: &rows[0] },
                    ComparedRows { source: &sides[1].label, rows: &rows[1] },
                )?;
                Ok(code.max(u8::from(failed)))
            });
        }
        let [a, b] = &self.sources[..] else {
            let given = self.sources.len();
            return Err(Failure::new(
                Kind::Usage,
                Sentence::new(
                    format!(
                        "compare results: got {given}, need two; or vary scenarios with --kernel or --with"
                    ),
                    format!(
                        "比较结果：给出了 {given} 个，需要两个；或用 --kernel 或 --with 改变场景"
                    ),
                ),
            ));
        };
        let (rows_a, rows_b) = (read(Path::new(a))?, read(Path::new(b))?);
        self.show(
            ComparedRows { source: a, rows: &rows_a },
            ComparedRows { source: b, rows: &rows_b },
        )
    }

    /// What to run for A and for B.
    fn sides(&self) -> Result<[Side; 2], Failure> {
        if let Some([a, b]) = self.kernel.as_deref() {
            return Ok([self.under(a)?, self.under(b)?]);
        }
        let choice = Choice::new(self.engine.unwrap_or(Name::Real), None);
        let settings: Vec<String> = self.with.iter().map(ToString::to_string).collect();
        Ok([
            self.side(self.sources.join(" "), &[], &choice)?,
            self.side(format!("with {}", settings.join(" ")), &self.with, &choice)?,
        ])
    }

    /// The scenarios as they are, under a guest kernel.
    fn under(&self, release: &str) -> Result<Side, Failure> {
        let choice = Choice::new(Name::Virtual, Some(release.into()));
        self.side(format!("kernel {release}"), &[], &choice)
    }

    /// The scenarios with some of their keys set.
    fn side(&self, label: String, over: &[Override], choice: &Choice) -> Result<Side, Failure> {
        let mut scenarios = load_scenarios(&self.sources, over, self.repeat)?;
        let engine = choice.settle(&mut scenarios)?;
        Ok(Side { label, scenarios, engine })
    }

    fn show(&self, a: ComparedRows<'_>, b: ComparedRows<'_>) -> Result<u8, Failure> {
        let comparison = Comparison::new(a, b, &self.fail_on);
        if comparison.compared() == 0 {
            let (a, b) = (a.source, b.source);
            if comparison.failed() > 0 {
                return Err(Failure::new(
                    Kind::Run,
                    Sentence::new(
                        format!(
                            "compare {a} and {b}: no row succeeded on both sides; their `error` says why they failed"
                        ),
                        format!("比较 {a} 与 {b}：没有一行在两边都成功；其 `error` 说明失败的原因"),
                    ),
                ));
            }
            return Err(Failure::new(
                Kind::Input,
                Sentence::new(
                    format!(
                        "compare {a} and {b}: they have no row name in common; only rows with the same name are compared"
                    ),
                    format!("比较 {a} 与 {b}：没有同名的行；只比较同名的行"),
                ),
            ));
        }
        if self.json {
            print_json(&comparison)?;
        } else {
            print(&comparison.render(
                Extent { top: self.top, noise: self.noise, lateness: self.lateness },
                answer_layout(),
            ))?;
        }
        Ok(u8::from(comparison.is_worse()))
    }
}

/// Reads the rows of a folder of results, of one run's folder, or of a file.
fn read(path: &Path) -> Result<Vec<RunRow>, Failure> {
    let file = if path.is_dir() {
        let all = path.join("rows.jsonl");
        if all.exists() { all } else { path.join("row.json") }
    } else {
        path.into()
    };
    let bytes = std::fs::read(&file).map_err(|cause| cause.to_string());
    let read = bytes.and_then(|bytes| rows(&bytes).map_err(|cause| cause.to_string()));
    read.map_err(|cause| {
        let path = path.display();
        let told = Sentence::new(
            format!(
                "read results {path}: {cause}; give a folder of results, or what `lab run --json` or --jsonl printed"
            ),
            format!("读取结果 {path}：{cause}；请给出结果文件夹，或 `lab run --json` 或 --jsonl 的输出"),
        );
        Failure::new(Kind::Input, told)
    })
}
