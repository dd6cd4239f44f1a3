//! The fuzz targets: the same inputs for the same commit in CI, new ones in a hunt.
//!
//! CI replays the committed corpus and then changes it at random, with a fixed seed and a fixed
//! number of runs, so a commit that passed passes again. [`Hunt`] looks for what nobody has seen:
//! a new seed for each target and for the property tests.

use crate::build::{cargo, target_folder};
use anyhow::{Context, ensure};
use clap::Args;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How many inputs each target gets in CI, its corpus among them: some seconds for most.
const RUNS_IN_CI: u64 = 30_000;
/// Targets whose inputs take long each, with as many as take some seconds: a download is a pair of
/// sockets and a server, a path many packets in virtual time; what was anonymised is
/// searched, and keys are derived for each input.
const SLOW_TARGETS: [(&str, u64); 4] =
    [("anonymize", 10_000), ("frames", 10_000), ("get_answer", 5_000), ("packet_path", 400)];
/// A target that takes longer for its runs is cut off here, so that it cannot stop CI. None should:
/// what a cut-off run has seen depends on the machine.
const MAX_TIME_IN_CI: Duration = Duration::from_secs(60);

/// Options of `cargo xtask hunt`.
#[derive(Args)]
pub struct Hunt {
    /// How long each fuzz target runs.
    #[arg(long, value_name = "N", default_value_t = 30)]
    minutes: u64,
    /// Only the targets whose name begins with this: `segment`, for example.
    #[arg(long, value_name = "NAME", default_value = "")]
    only: String,
    /// The seed; without it, one from the clock, which is printed.
    #[arg(long, value_name = "SEED")]
    seed: Option<u32>,
}

/// What a target runs.
#[derive(Clone, Copy)]
enum Amount {
    /// [`RUNS_IN_CI`], or what [`SLOW_TARGETS`] has.
    Ci,
    Time(Duration),
}

impl Hunt {
    /// Runs the fuzz targets and then the property tests with a seed that nobody has tried.
    pub fn run(&self) -> anyhow::Result<()> {
        let seed = self.seed.unwrap_or_else(seed_from_clock);
        eprintln!("hunt: seed {seed}; `--seed {seed}` repeats it");
        let targets = targets()?.context("cargo fuzz is missing")?;
        let chosen: Vec<&str> = targets
            .iter()
            .map(String::as_str)
            .filter(|target| target.starts_with(&self.only))
            .collect();
        ensure!(!chosen.is_empty(), "no such target: there are {}", targets.join(", "));
        run_all(&chosen, Amount::Time(Duration::from_secs(self.minutes * 60)), seed)?;
        let seed = seed.to_string();
        let environment = [("PROPTEST_RNG_SEED", seed.as_str()), ("PROPTEST_CASES", "2000")];
        cargo(&["test", "--workspace", "--exclude", "fullpipe-cli", "--lib"], &environment)
    }
}

/// Seconds since 1970: another seed for each hunt.
#[allow(clippy::disallowed_methods, reason = "a chore may ask the clock")]
fn seed_from_clock() -> u32 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_secs() as u32
}

/// Runs every target of `fuzz/` on its corpus and on the same inputs each time.
pub fn replay() -> anyhow::Result<()> {
    let Some(targets) = targets()? else {
        let advice = "cargo fuzz is missing: install it with `cargo install cargo-fuzz --locked`";
        ensure!(std::env::var_os("FULLPIPE_NO_SKIP").is_none(), "{advice}");
        eprintln!("SKIPPED: fuzz targets: {advice}");
        return Ok(());
    };
    let targets: Vec<&str> = targets.iter().map(String::as_str).collect();
    run_all(&targets, Amount::Ci, 1)
}

/// The names of all targets; `None` where `cargo fuzz` is not installed.
fn targets() -> anyhow::Result<Option<Vec<String>>> {
    let listed =
        Command::new(env!("CARGO")).args(["fuzz", "list"]).output().context("start cargo fuzz")?;
    if !listed.status.success() {
        return Ok(None);
    }
    let names: Vec<String> =
        String::from_utf8_lossy(&listed.stdout).split_whitespace().map(str::to_owned).collect();
    ensure!(!names.is_empty(), "cargo fuzz lists no targets");
    Ok(Some(names))
}

/// Runs the targets, as many at a time as there are cores; every failure is shown before the first
/// is returned.
fn run_all(targets: &[&str], amount: Amount, seed: u32) -> anyhow::Result<()> {
    let cores = thread::available_parallelism().map_or(1, |cores| cores.get());
    // The first target goes alone: it builds what all need.
    let (first, others) = targets.split_at(1);
    let mut failed = Vec::new();
    if !run_and_show(first[0], amount, seed)? {
        failed.push(first[0]);
    }
    let waiting = Mutex::new(others.iter().copied());
    let failures: Vec<anyhow::Result<Vec<&str>>> = thread::scope(|scope| {
        let workers: Vec<_> = (0..cores)
            .map(|_| scope.spawn(|| run_those_that_wait(&waiting, amount, seed)))
            .collect();
        workers
            .into_iter()
            .map(|worker| worker.join().expect("a thread that starts a command does not panic"))
            .collect()
    });
    for failures in failures {
        failed.extend(failures?);
    }
    ensure!(failed.is_empty(), "fuzz targets failed: {}", failed.join(", "));
    Ok(())
}

/// Runs one target after the other until none waits; returns those that failed.
fn run_those_that_wait<'a>(
    waiting: &Mutex<impl Iterator<Item = &'a str>>,
    amount: Amount,
    seed: u32,
) -> anyhow::Result<Vec<&'a str>> {
    let mut failed = Vec::new();
    loop {
        // The lock is held for this line only.
        let next = waiting.lock().unwrap_or_else(PoisonError::into_inner).next();
        let Some(target) = next else { return Ok(failed) };
        if !run_and_show(target, amount, seed)? {
            failed.push(target);
        }
    }
}

/// Runs one target and shows how it ended; whether it found nothing.
fn run_and_show(target: &str, amount: Amount, seed: u32) -> anyhow::Result<bool> {
    let output = run_one(target, amount, seed)?;
    let text = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<&str> = text.lines().collect();
    let shown = if output.status.success() { 1 } else { 80 };
    eprintln!("{target}: {}", lines[lines.len().saturating_sub(shown)..].join("\n"));
    Ok(output.status.success())
}

/// Runs one target. New inputs go to a folder of the build, which CI empties first, so that what
/// an earlier run found changes nothing; the committed corpus is only read.
fn run_one(target: &str, amount: Amount, seed: u32) -> anyhow::Result<Output> {
    let found = folder_for(target, amount)?;
    let found = found.to_str().context("the build's folder is not UTF-8")?;
    let corpus = format!("fuzz/corpus/{target}");
    let mut arguments = vec!["fuzz", "run", "--sanitizer", "none", target, found];
    if Path::new(&corpus).is_dir() {
        arguments.push(&corpus);
    }
    let seed = format!("-seed={seed}");
    let artifacts = format!("-artifact_prefix={found}/../{target}-");
    arguments.extend(["--", &seed, &artifacts, "-rss_limit_mb=2048", "-timeout=10"]);
    let (runs, time) = match amount {
        Amount::Ci => (format!("-runs={}", runs_in_ci(target)), MAX_TIME_IN_CI),
        Amount::Time(time) => ("-runs=-1".to_owned(), time),
    };
    let time = format!("-max_total_time={}", time.as_secs());
    arguments.extend([runs.as_str(), time.as_str()]);
    // RUSTC_BOOTSTRAP lets stable take cargo-fuzz's flags: no nightly toolchain is needed, at the
    // price of the address sanitizer, which the pure crates, free of unsafe code, have little use
    // for.
    Command::new(env!("CARGO"))
        .args(&arguments)
        .env("RUSTC_BOOTSTRAP", "1")
        .output()
        .with_context(|| format!("start cargo {}", arguments.join(" ")))
}

fn runs_in_ci(target: &str) -> u64 {
    SLOW_TARGETS.iter().find(|(name, _)| *name == target).map_or(RUNS_IN_CI, |(_, runs)| *runs)
}

/// The folder for a target's new inputs.
fn folder_for(target: &str, amount: Amount) -> anyhow::Result<PathBuf> {
    let kind = match amount {
        Amount::Ci => "fuzz-ci",
        Amount::Time(_) => "fuzz",
    };
    let folder = std::path::absolute(target_folder().join(kind).join(target))?;
    if let Amount::Ci = amount {
        let _ = std::fs::remove_dir_all(&folder);
    }
    std::fs::create_dir_all(&folder).with_context(|| format!("make {}", folder.display()))?;
    Ok(folder)
}
