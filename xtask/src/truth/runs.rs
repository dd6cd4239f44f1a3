//! Runs of scenarios, kept on disk.

use super::Truth;
use anyhow::Context;
use fullpipe_flow::limit::Limit;
use fullpipe_model::scenario::{Cause, File, Generated, Scenario, generate};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// A complete run.
#[derive(Debug)]
pub struct TruthRun {
    pub name: String,
    pub cause: Cause,
    /// In a sequence, the cause that limits for the smaller part of the time.
    pub also: Option<Cause>,
    /// What a verdict may name first: causes, and their limits.
    pub causes: Vec<Cause>,
    pub right: Vec<Limit>,
    /// How much faster the transfer is, as a fraction, with each cause lifted alone, as far as that
    /// was run.
    pub gains: Vec<(Cause, f64)>,
    pub scenario: Scenario,
    /// The folder of its captures, samples and row.
    pub folder: PathBuf,
    pub row: serde_json::Value,
}

/// The runs of a set, by outcome.
#[derive(Debug, Default)]
pub struct FoundRuns {
    /// Runs in which the intended cause binds.
    pub done: Vec<TruthRun>,
    /// Names of the runs in which, according to the row's plain numbers, something else binds.
    pub unbound: Vec<String>,
    /// Names of the runs that failed, with the reason.
    pub failed: Vec<(String, String)>,
}

/// A scenario that should have a run.
#[derive(Debug)]
pub struct Wanted {
    pub name: String,
    pub cause: Cause,
    pub also: Option<Cause>,
    pub text: String,
    /// Whether it is a counterfactual, whose captures nobody reads.
    pub is_relaxed: bool,
}

impl Wanted {
    fn folder_name(&self) -> &str {
        self.name.rsplit('/').next().unwrap_or(&self.name)
    }
}

/// A cause limits a transfer if the transfer is faster by at least this fraction with the cause
/// relaxed.
const GAIN_MIN: f64 = 0.1;
/// Goodput above this fraction of what the link carries is limited by the link, whatever was
/// intended.
const FULL: f64 = 0.95;
/// The payload's fraction of what the link carries in packets of 1500 bytes; smaller ones have
/// less.
pub const PAYLOAD: f64 = 0.965;
/// A link that carries less than this fraction of its rate is not the limit.
const EMPTY: f64 = 0.6;

/// Runs what is missing, and returns the whole set.
pub fn all(options: &Truth) -> anyhow::Result<FoundRuns> {
    let set = options.runs.join(format!("seed-{}", options.seed));
    let mut wanted: Vec<Wanted> = Vec::new();
    for index in options.numbers() {
        let Generated { name, cause, also, text, relaxed } = generate(options.seed, index);
        if options.only.is_some_and(|only| only != cause) {
            continue;
        }
        if options.counterfactual {
            let name = format!("{name}.relaxed");
            wanted.push(Wanted { name, cause, also, text: relaxed, is_relaxed: true });
        }
        wanted.push(Wanted { name, cause, also, text, is_relaxed: false });
    }
    let mut failed = Vec::new();
    if !options.no_run {
        failed = run_missing(options, &set, &wanted)?;
    }
    let mut found = FoundRuns { failed, ..FoundRuns::default() };
    let mut relaxed = None;
    for one in wanted {
        let place = place(&set, &one);
        if !is_of(&place, &one, options) {
            continue;
        }
        let is_relaxed = one.is_relaxed;
        let mut run = read(one, &place)?;
        if is_relaxed {
            relaxed = Some(run);
            continue;
        }
        // The counterfactual of a run, if it has one, comes right before it.
        let relaxed = relaxed.take().filter(|other| other.name.starts_with(&run.name));
        run.gains.extend(relaxed.map(|relaxed| (run.cause, gain(&run, &relaxed))));
        let binds = run.gains.first().map_or_else(|| binds(&run), |(_, gain)| *gain >= GAIN_MIN);
        if binds { found.done.push(run) } else { found.unbound.push(run.name) }
    }
    Ok(found)
}

/// A variant of a scenario of the set, with something changed.
#[derive(Debug)]
pub struct Other {
    pub name: String,
    pub cause: Cause,
    pub text: String,
}

/// Runs what is missing of `others`, without captures, and returns the runs that did not fail.
pub fn others(options: &Truth, others: Vec<Other>) -> anyhow::Result<Vec<TruthRun>> {
    let set = options.runs.join(format!("seed-{}", options.seed));
    let wanted = others.into_iter().map(|Other { name, cause, text }| Wanted {
        name,
        cause,
        also: None,
        text,
        is_relaxed: true,
    });
    let wanted: Vec<Wanted> = wanted.collect();
    if !options.no_run {
        for (name, why) in run_missing(options, &set, &wanted)? {
            eprintln!("truth: {name} failed: {why}");
        }
    }
    let there = wanted.into_iter().filter(|one| is_of(&place(&set, one), one, options));
    there
        .map(|one| {
            let place = place(&set, &one);
            read(one, &place)
        })
        .collect()
}

/// The text of a run's scenario.
pub fn scenario_of(run: &TruthRun) -> anyhow::Result<String> {
    let place = run.folder.ancestors().nth(2).context("find the folder of a run")?;
    let file = place.join("scenario.toml");
    std::fs::read_to_string(&file).with_context(|| format!("read {}", file.display()))
}

/// How much faster the transfer is without its cause, as a fraction.
fn gain(run: &TruthRun, relaxed: &TruthRun) -> f64 {
    // In slow start there is no steady time.
    let column = if run.cause == Cause::SlowStart { "goodput_bps" } else { "steady_goodput_bps" };
    let [before, after] = [run, relaxed].map(|run| run.row[column].as_f64().unwrap_or_default());
    if before > 0.0 { after / before - 1.0 } else { 0.0 }
}

/// The folder of a run.
pub fn place(set: &Path, one: &Wanted) -> PathBuf {
    set.join(one.folder_name())
}

/// The key of a run. If it differs, the run is not of this scenario any more.
fn key(one: &Wanted, options: &Truth) -> String {
    let kernel = options.kernel.iter().map(|kernel| format!("# kernel {kernel}\n"));
    let truth = options.truth.then(|| "# truth\n".to_owned());
    std::iter::once(one.text.clone()).chain(kernel).chain(truth).collect()
}

/// Whether a folder has the run of this scenario.
pub fn is_of(place: &Path, one: &Wanted, options: &Truth) -> bool {
    std::fs::read_to_string(place.join("scenario.toml")).is_ok_and(|text| text == key(one, options))
}

/// Runs what is missing, several at once. Returns the names of those that failed, with the reason.
pub fn run_missing(
    options: &Truth,
    set: &Path,
    wanted: &[Wanted],
) -> anyhow::Result<Vec<(String, String)>> {
    let missing: Vec<_> =
        wanted.iter().filter(|one| !is_of(&place(set, one), one, options)).collect();
    let next = AtomicUsize::new(0);
    let worker = || {
        let mut failed = Vec::new();
        while let Some(one) = missing.get(next.fetch_add(1, Ordering::Relaxed)) {
            eprintln!("truth: {}", one.name);
            if let Err(error) = run_one(options, &place(set, one), one) {
                failed.push((one.name.clone(), format!("{error:#}")));
            }
        }
        failed
    };
    let workers = options.jobs.clamp(1, 64);
    Ok(std::thread::scope(|scope| {
        let threads: Vec<_> = (0..workers).map(|_| scope.spawn(worker)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap_or_default()).collect()
    }))
}

/// Runs one scenario. Its folder gets its final name when the run is complete.
fn run_one(options: &Truth, place: &Path, one: &Wanted) -> anyhow::Result<()> {
    let part = set_aside(place);
    for old in [place, &part] {
        if old.exists() {
            std::fs::remove_dir_all(old).with_context(|| format!("remove {}", old.display()))?;
        }
    }
    std::fs::create_dir_all(&part).with_context(|| format!("create {}", part.display()))?;
    let file = part.join(format!("{}.toml", one.folder_name()));
    std::fs::write(&file, &one.text).with_context(|| format!("write {}", file.display()))?;
    let mut command = Command::new(&options.program);
    command.args(["lab", "run", "--engine", "virtual", "--jsonl", "--jobs", "1"]);
    command.args((!one.is_relaxed).then_some("--keep-captures"));
    command.args(options.kernel.iter().flat_map(|kernel| ["--kernel", kernel]));
    command.args(options.truth.then_some("--truth"));
    command.arg("--out").arg(part.join("results")).arg(&file);
    let said = part.join("said.txt");
    let log = std::fs::File::create(&said).with_context(|| format!("create {}", said.display()))?;
    command.stdout(Stdio::null()).stderr(log);
    let child = command.spawn().with_context(|| format!("start {}", options.program.display()))?;
    let status = wait(child, Duration::from_secs(options.patience))?;
    let said = std::fs::read_to_string(&said).unwrap_or_default();
    anyhow::ensure!(status.success(), "{}", said.lines().last().unwrap_or("it said nothing"));
    std::fs::write(part.join("scenario.toml"), key(one, options)).context("write scenario.toml")?;
    std::fs::rename(&part, place).with_context(|| format!("rename {}", part.display()))
}

/// Waits for a run, and ends it if it takes longer than `patience`.
fn wait(mut child: Child, patience: Duration) -> anyhow::Result<ExitStatus> {
    /// The polling interval: a run takes seconds.
    const LOOK: Duration = Duration::from_millis(50);
    let mut waited = Duration::ZERO;
    while waited < patience {
        if let Some(status) = child.try_wait().context("wait for a run")? {
            return Ok(status);
        }
        std::thread::sleep(LOOK);
        waited += LOOK;
    }
    child.kill().context("end a run")?;
    child.wait().context("wait for a run")?;
    anyhow::bail!("not done after {} s", patience.as_secs())
}

/// The folder of a run that is not complete yet.
fn set_aside(place: &Path) -> PathBuf {
    let mut name = place.as_os_str().to_owned();
    name.push(".part");
    PathBuf::from(name)
}

/// Reads a run from its folder.
pub fn read(one: Wanted, place: &Path) -> anyhow::Result<TruthRun> {
    let results = place.join("results");
    let entries =
        std::fs::read_dir(&results).with_context(|| format!("read {}", results.display()))?;
    let folders = entries.flatten().map(|entry| entry.path());
    let folder = folders.into_iter().find(|path| path.join("row.json").exists());
    let folder = folder.with_context(|| format!("{} has no run", results.display()))?;
    let row = std::fs::read(folder.join("row.json")).context("read row.json")?;
    let row = serde_json::from_slice(&row).context("read row.json")?;
    let rows = File::parse(&one.text).and_then(|file| file.scenarios(&one.name));
    let scenario = rows.ok().and_then(|rows| rows.into_iter().next());
    let scenario = scenario.with_context(|| format!("{} has no scenario", one.name))?;
    let (causes, right) = (vec![one.cause], vec![right(one.cause)]);
    let Wanted { name, cause, also, .. } = one;
    let gains = Vec::new();
    Ok(TruthRun { name, cause, also, causes, right, gains, scenario, folder, row })
}

/// Whether the row's plain numbers are compatible with the intended cause as the limit.
fn binds(run: &TruthRun) -> bool {
    let number = |key: &str| run.row[key].as_f64();
    let (Some(goodput), Some(rate)) = (number("steady_goodput_bps"), number("rate_nominal_bps"))
    else {
        return true;
    };
    let part = goodput / (rate * PAYLOAD);
    match run.cause {
        _ if run.also.is_some() => true,
        Cause::Link => part > EMPTY || run.row["notes"].to_string().contains("changes"),
        Cause::Policer | Cause::SlowStart => true,
        _ => part < FULL,
    }
}

/// The right limit for a cause.
pub fn right(cause: Cause) -> Limit {
    let (name, cause) = cause.limit();
    Limit::from_names(name, cause).unwrap_or(Limit::Unknown)
}
