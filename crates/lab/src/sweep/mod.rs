//! Many runs: which there are, which are done, and the order in which their rows are reported.
//!
//! A sweep is a list of [`Run`]s, made before anything starts: every scenario with its repetitions,
//! each with its own seed. Some are already done (in an earlier sweep into the same directory, or
//! in the cache). Those in virtual time run side by side, because guests do not disturb each other
//! (`guests`). Those in real time follow one at a time, because two at once would disturb each
//! other (`here`). Whichever ends first, rows are reported and written in the scenarios' order.
//!
//! A run that fails becomes a row that says so, and the others go on; only an error that would
//! affect all of them ends the sweep.
//!
//! A run is done when its folder of results has its final name ([`crate::results`]). So an
//! interrupted sweep, even after the machine went down, can be resumed by looking at the folders
//! ([`Manifest`]), and nothing of an incomplete run is used.

mod collector;
mod guests;
mod here;
mod key;
mod shard;

pub use key::{Key, Keys};
pub use shard::{Shard, ShardError};

use crate::results::{Environment, Manifest, Planned, Results};
use crate::{Engine, Event, LabError, Options, guest, row};
use collector::Collector;
use fullpipe_flow::schema::RunRow;
use fullpipe_kernel::run::sandbox::Inside;
use fullpipe_model::scenario::Scenario;
use here::Here;

/// One run of a sweep.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// The scenario, with the seed of this repetition.
    pub scenario: Scenario,
    /// Number of the repetition, from 1.
    pub repetition: u32,
}

/// The outcome of a sweep.
#[derive(Debug)]
pub struct Sweep {
    /// A row for each run of the shard, in order; the row of a failed run says why
    /// ([`RunRow::error`]).
    pub rows: Vec<RunRow>,
    /// The runs that failed, in order.
    pub failures: Vec<FailedRun>,
}

/// A run that failed.
#[derive(Debug)]
pub struct FailedRun {
    /// Its number, from 0.
    pub index: usize,
    /// The cause.
    pub error: LabError,
}

/// Every run of `scenarios`, in order, each repeated as it says, or `repeat` times.
pub fn plan(scenarios: &[Scenario], repeat: Option<u32>) -> Vec<Run> {
    let runs = scenarios.iter().flat_map(|scenario| {
        (1..=repeat.unwrap_or(scenario.repeat)).map(move |repetition| {
            let mut scenario = scenario.clone();
            // Each repetition has another seed; the first has the scenario's own.
            scenario.path.seed = scenario.path.seed.wrapping_add(u64::from(repetition - 1));
            Run { scenario, repetition }
        })
    });
    runs.collect()
}

/// Those of a sweep's `runs` that belong to `shard`, each with its place.
pub fn runs_of(runs: &[Run], shard: Option<Shard>) -> impl Iterator<Item = (usize, &Run)> {
    let placed = runs.iter().enumerate();
    placed.filter(move |(place, _)| shard.is_none_or(|shard| shard.has(*place)))
}

/// For each of `runs` the digest of everything that its result depends on in virtual time; in real
/// time it only says what is asked for.
///
/// # Errors
/// This program or a kernel cannot be read.
pub fn keys(runs: &[Run], engine: &Engine, keep_captures: bool) -> Result<Vec<Key>, LabError> {
    let keys = read_keys(engine, keep_captures)?;
    Ok(runs.iter().map(|run| keys.of(run)).collect())
}

fn read_keys(engine: &Engine, keep_captures: bool) -> Result<Keys, LabError> {
    Keys::new(engine, keep_captures).map_err(|cause| LabError::Prepare {
        operation: "read program and kernels for the runs' keys",
        cause,
    })
}

/// Executes `runs` (from [`plan`]), or those of them that belong to the shard that is asked for,
/// and returns a row for each, in order. A failed run does not stop the others: its row says why,
/// and it has no folder of results, so a resumed sweep repeats it.
///
/// # Errors
/// An interrupt, or an error that would affect every run, such as results that cannot be written.
/// Nothing starts after it, and the results of finished runs are kept.
pub fn run(
    inside: &Inside,
    runs: &[Run],
    options: &Options,
    observer: &mut dyn FnMut(Event<'_>),
) -> Result<Sweep, LabError> {
    let environment = Environment::read(inside.privilege());
    let keys = read_keys(&options.engine, options.keep_captures)?;
    let (results, done) = open(runs, &keys, &environment, options)?;
    let mut collector = Collector::new(runs.len(), options.shard, results, observer);
    for (index, row) in done.into_iter().enumerate() {
        if let Some(row) = row {
            collector.keep(index, row)?;
        }
    }
    let result = all(inside, &environment, runs, &keys, options, &mut collector);
    if let Some(cache) = &options.cache {
        cache.trim();
    }
    let sweep = collector.finish();
    result?;
    sweep
}

/// Executes everything that is not done yet: guests first, then one run after another in real time.
fn all(
    inside: &Inside,
    environment: &Environment,
    runs: &[Run],
    keys: &Keys,
    options: &Options,
    collector: &mut Collector<'_>,
) -> Result<(), LabError> {
    let (guests, here): (Vec<usize>, Vec<usize>) = (0..runs.len())
        .filter(|&index| collector.lacks(index))
        .partition(|index| in_guest(&options.engine, &runs[*index].scenario));
    if let Engine::Virtual(kernels) = &options.engine {
        guests::Guests { inside, kernels, runs, keys, options }.run(&guests, collector)?;
    }
    let worker = Here { inside, environment, engine: &options.engine };
    for index in here {
        let run = &runs[index];
        if let Err(error) = worker.run(index, run, options.keep_captures, collector) {
            collector.fail(
                index,
                row::of_failure(
                    &run.scenario,
                    run.repetition,
                    worker.clock(),
                    &environment.host.kernel,
                ),
                error,
            )?;
        }
    }
    Ok(())
}

/// Whether `scenario` runs in a guest that this process starts.
fn in_guest(engine: &Engine, scenario: &Scenario) -> bool {
    matches!(engine, Engine::Virtual(_)) && guest::unsuited_to_virtual_time(scenario).is_none()
}

/// The manifest of a results directory for `runs`.
fn manifest(runs: &[Run], shard: Option<Shard>, keys: &Keys) -> Manifest {
    let runs = runs.iter().map(|run| Planned {
        name: run.scenario.name.clone(),
        repetition: run.repetition,
        key: keys.of(run).to_string(),
    });
    Manifest { shard, runs: runs.collect() }
}

/// Opens the results directory; also returns the rows that are already in it.
fn open(
    runs: &[Run],
    keys: &Keys,
    environment: &Environment,
    options: &Options,
) -> Result<(Option<Results>, Vec<Option<RunRow>>), LabError> {
    let Some(folder) = options.out.as_deref() else { return Ok((None, Vec::new())) };
    let manifest = manifest(runs, options.shard, keys);
    if options.resume {
        let (results, done) = Results::resume(folder, environment, &manifest)?;
        return Ok((Some(results), done));
    }
    Ok((Some(Results::create(folder, environment, &manifest)?), Vec::new()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preset;

    #[test]
    fn each_repetition_is_a_run_with_a_seed_of_its_own() {
        let mut scenarios = preset::load("quick").unwrap();
        scenarios[0].repeat = 2;
        let runs = plan(&scenarios, None);
        let told: Vec<_> =
            runs.iter().map(|run| (run.repetition, run.scenario.path.seed)).collect();
        assert_eq!(told, [(1, 1), (2, 2), (1, 1), (1, 1)]);
        assert_eq!(plan(&scenarios, Some(3)).len(), 3 * scenarios.len());
    }
}
