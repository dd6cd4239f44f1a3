//! Many runs: which there are, which are done, in which order their rows are told.
//!
//! A sweep is a list of [`Run`]s, made before anything starts: every scenario as often as it is
//! repeated, each with its own seed. Some are done already (an earlier sweep into the same
//! directory, or the cache); those in virtual time go side by side, as guests do not disturb each
//! other (`guests`); those in real time follow, one at a time, as two at once would measure each
//! other (`here`). Whatever ends first, rows are told and kept in the scenarios' order.
//!
//! A run that fails is a row that says so, and the others go on; only what would meet all of them
//! ends the sweep.
//!
//! A run is done when its folder of results has its name ([`crate::results`]). So a sweep that was
//! interrupted, or whose machine went down, is gone on with by looking ([`Manifest`]), and nothing
//! of a half-done run is used.

mod collector;
mod guests;
mod here;
mod key;

pub use key::{Key, Keys};

use crate::results::{Environment, Manifest, Planned, Results};
use crate::{Engine, Event, LabError, Options, guest, row};
use collector::Collector;
use fullpipe_flow::row::Row;
use fullpipe_kernel::sandbox::Inside;
use fullpipe_model::scenario::Scenario;
use here::Here;

/// One run of a sweep.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// What is run, with the seed of this repetition.
    pub scenario: Scenario,
    /// Number of the repetition, from 1.
    pub repetition: u32,
}

/// What became of a sweep.
#[derive(Debug)]
pub struct Sweep {
    /// A row for each run, in order; that of a run which failed says why ([`Row::error`]).
    pub rows: Vec<Row>,
    /// The runs that failed, in order.
    pub failures: Vec<FailedRun>,
}

/// A run that failed.
#[derive(Debug)]
pub struct FailedRun {
    /// Its number, from 0.
    pub index: usize,
    /// Why.
    pub error: LabError,
}

/// Every run of `scenarios`, in order: each as often as it says, or `repeat` times.
pub fn plan(scenarios: &[Scenario], repeat: Option<u32>) -> Vec<Run> {
    let runs = scenarios.iter().flat_map(|scenario| {
        (1..=repeat.unwrap_or(scenario.repeat)).map(move |repetition| {
            let mut scenario = scenario.clone();
            // Another repetition, another draw; the first is the scenario's own seed.
            scenario.path.seed = scenario.path.seed.wrapping_add(u64::from(repetition - 1));
            Run { scenario, repetition }
        })
    });
    runs.collect()
}

/// Does `runs` (of [`plan`]) and returns a row for each, in order. A run that fails does not stop
/// the others: its row says why, and it has no folder of results, so that a resumed sweep tries it
/// again.
///
/// # Errors
/// An interrupt, or what would meet every run, such as results that cannot be written. Nothing is
/// started after it, and the results of the runs that are done are collector.
pub fn run(
    inside: &Inside,
    runs: &[Run],
    options: &Options,
    observer: &mut dyn FnMut(Event<'_>),
) -> Result<Sweep, LabError> {
    let environment = Environment::read(inside.privilege());
    let keys = Keys::new(&options.engine, options.keep_captures).map_err(|cause| {
        LabError::Prepare { operation: "read program and kernels for the runs' keys", cause }
    })?;
    let (results, done) = open(runs, &keys, &environment, options)?;
    let mut collector = Collector::new(runs.len(), results, observer);
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

/// Whatever is not done yet: guests first, then one run after another in real time.
fn all(
    inside: &Inside,
    environment: &Environment,
    runs: &[Run],
    keys: &Keys,
    options: &Options,
    collector: &mut Collector<'_>,
) -> Result<(), LabError> {
    let (guests, here): (Vec<usize>, Vec<usize>) = (0..runs.len())
        .filter(|index| !collector.has(*index))
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
    matches!(engine, Engine::Virtual(_)) && guest::unsuited(scenario).is_none()
}

/// What a results directory of `runs` is asked to hold.
fn manifest(runs: &[Run], keys: &Keys) -> Manifest {
    let planned = |run: &Run| Planned {
        name: run.scenario.name.clone(),
        repetition: run.repetition,
        key: keys.of(run).to_string(),
    };
    Manifest { runs: runs.iter().map(planned).collect() }
}

/// The results directory, and the rows that are in it already.
fn open(
    runs: &[Run],
    keys: &Keys,
    environment: &Environment,
    options: &Options,
) -> Result<(Option<Results>, Vec<Option<Row>>), LabError> {
    let Some(folder) = options.out.as_deref() else { return Ok((None, Vec::new())) };
    let manifest = manifest(runs, keys);
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
