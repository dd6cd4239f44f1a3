//! A scenario becomes two hosts, a link between them, a transfer over it, captures, socket samples, and results.
//!
//! The only room that combines the shells. [`run`] is the door; it must be called inside
//! [`fullpipe_kernel::sandbox`], whose end takes everything with it that a run has made.
//!
//! * [`preset`]: the scenarios that come with the program.
//! * [`hosts`], [`link`], [`program`], [`sampler`], [`hog`]: what a run is made of.
//! * [`experiment`]: one run, in order.
//! * [`edge`]: from the link's streams to the capture at a host's edge.
//! * [`tell`]: from an outcome to its row.
//! * [`tuning`]: a plan for a scenario, and the scenario with the plan.
//! * [`results`]: the directory that keeps it all.
//! * [`guest`]: the same in virtual time, inside a kernel of our own.
#![forbid(unsafe_code)]

pub mod edge;
pub mod experiment;
pub mod guest;
pub mod hog;
pub mod hosts;
pub mod link;
pub mod preset;
pub mod program;
pub mod results;
pub mod sampler;
pub mod tell;
pub mod tuning;

use experiment::{ExperimentError, Outcome};
use fullpipe_flow::row::Row;
use fullpipe_kernel::journal::JournalError;
use fullpipe_kernel::sandbox::Inside;
use fullpipe_model::scenario::Scenario;
use fullpipe_model::units::{Bytes, Duration};
use guest::GuestError;
use guest::job::Job;
use guest::kernel::Kernel;
use results::{Environment, Results, ResultsError};
use std::path::{Path, PathBuf};

/// What carries a run, and by whose clock.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Engine {
    /// This machine's kernel, in real time.
    #[default]
    Real,
    /// A guest for each run, in virtual time: [`guest`]. These are the kernels to choose from.
    Virtual(Vec<Kernel>),
    /// This process is in such a guest.
    Guest,
}

impl Engine {
    /// Its name in rows.
    pub fn name(&self) -> &'static str {
        match self {
            Engine::Real => "real",
            Engine::Virtual(_) | Engine::Guest => "virtual",
        }
    }
}

/// How to run scenarios.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Where to keep results; `None`: nothing is kept but what is returned.
    pub out: Option<PathBuf>,
    /// Run each row this often, in place of what the scenario says.
    pub repeat: Option<u32>,
    /// Keep both edges' captures among the results.
    pub keep_captures: bool,
    /// What carries the runs.
    pub engine: Engine,
}

/// What is going on, for a progress bar.
#[derive(Debug, Clone, Copy)]
pub enum Event<'a> {
    /// A run starts.
    Started {
        /// Its number, from 0.
        index: usize,
        /// How many there are.
        total: usize,
        /// What is run.
        scenario: &'a Scenario,
    },
    /// A run goes on.
    Progress {
        /// Since its start.
        elapsed: Duration,
        /// Body bytes so far, where the client tells.
        body: Bytes,
    },
    /// The transfer is over and its captures are being analysed.
    Finished {
        /// What it showed.
        row: &'a Row,
    },
}

/// Why the lab stopped.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// A run failed.
    #[error("{name}: {cause}")]
    Run {
        /// Which.
        name: String,
        /// Why.
        cause: ExperimentError,
    },
    /// A run in a guest failed.
    #[error("{name}: {cause}")]
    Guest {
        /// Which.
        name: String,
        /// Why.
        cause: Box<GuestError>,
    },
    /// Results could not be kept.
    #[error(transparent)]
    Results(#[from] ResultsError),
    /// The journal refused what had to be noted in it.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

impl LabError {
    /// Whether the user ended it.
    pub fn is_interrupt(&self) -> bool {
        match self {
            LabError::Run { cause, .. } => matches!(cause, ExperimentError::Interrupted),
            LabError::Guest { cause, .. } => cause.is_interrupt(),
            LabError::Results(_) | LabError::Journal(_) => false,
        }
    }
}

/// Runs every scenario as often as it says, in order, and returns a row for each run with its outcome's samples dropped.
///
/// # Errors
/// The first run that fails; results of those before it are kept.
pub fn run(
    inside: &Inside,
    scenarios: &[Scenario],
    options: &Options,
    observer: &mut dyn FnMut(Event<'_>),
) -> Result<Vec<Row>, LabError> {
    let environment = Environment::read(inside.privilege());
    let mut results = options.out.as_deref().map(|folder| Results::create(folder, &environment)).transpose()?;
    let runs: Vec<(&Scenario, u32)> = scenarios
        .iter()
        .flat_map(|scenario| (1..=options.repeat.unwrap_or(scenario.repeat)).map(move |number| (scenario, number)))
        .collect();
    let mut rows = Vec::with_capacity(runs.len());
    for (index, (scenario, repetition)) in runs.iter().enumerate() {
        let mut scenario = (*scenario).clone();
        // Another repetition, another draw; the first is the scenario's own seed.
        scenario.path.seed = scenario.path.seed.wrapping_add(u64::from(repetition - 1));
        observer(Event::Started { index, total: runs.len(), scenario: &scenario });
        let row = match &options.engine {
            Engine::Virtual(kernels) if guest::unsuited(&scenario).is_none() => {
                let job = Job { scenario, repetition: *repetition, keep_captures: options.keep_captures };
                in_guest(inside, kernels, &job, results.as_mut(), observer)?
            }
            engine => {
                let mut here = Here { inside, environment: &environment, engine, results: results.as_mut() };
                here.run(&scenario, *repetition, options.keep_captures, observer)?
            }
        };
        observer(Event::Finished { row: &row });
        rows.push(row);
    }
    Ok(rows)
}

/// Takes away what a failed run has of its results folder: there is no half of a result, and where the disk is full, its
/// room is what is missing.
fn discard(part: Option<&Path>) {
    if let Some(part) = part {
        // The run's own error is the one to tell; what stays keeps its temporary name.
        let _ = std::fs::remove_dir_all(part);
    }
}

/// One run in a guest.
fn in_guest(
    inside: &Inside,
    kernels: &[Kernel],
    job: &Job,
    results: Option<&mut Results>,
    observer: &mut dyn FnMut(Event<'_>),
) -> Result<Row, LabError> {
    guest::choose(kernels, &job.scenario)
        .and_then(|kernel| guest::run(inside, kernel, job, results, observer))
        .map_err(|cause| LabError::Guest { name: job.scenario.name.clone(), cause: cause.into() })
}

/// Runs under the kernel that this process is on.
struct Here<'a> {
    inside: &'a Inside,
    environment: &'a Environment,
    engine: &'a Engine,
    results: Option<&'a mut Results>,
}

impl Here<'_> {
    fn run(
        &mut self,
        scenario: &Scenario,
        repetition: u32,
        keep_captures: bool,
        observer: &mut dyn FnMut(Event<'_>),
    ) -> Result<Row, LabError> {
        let kernel = &self.environment.host.kernel;
        let wrong = |cause| LabError::Guest { name: scenario.name.clone(), cause: Box::new(cause) };
        if let Some(asked) = scenario.kernel.as_deref().filter(|asked| !guest::kernel::is_release(kernel, asked)) {
            return Err(wrong(GuestError::OtherKernel { asked: asked.into(), running: kernel.clone() }));
        }
        let part = self.results.as_mut().map(|results| results.begin(&scenario.name)).transpose()?;
        let keep = part.as_deref().filter(|_| keep_captures);
        let outcome = self.once(scenario, keep, observer).inspect_err(|_| discard(part.as_deref()))?;
        let mut row = tell::row(scenario, repetition, kernel, &outcome);
        match (self.engine, guest::unsuited(scenario)) {
            (Engine::Guest, _) => row.engine = Engine::Guest.name().into(),
            (Engine::Virtual(_), Some(why)) => row.notes.push(format!("run in real time: {why}")),
            _ => {}
        }
        if let (Some(results), Some(part)) = (&mut self.results, &part) {
            results.complete(part, scenario, &outcome, &row).inspect_err(|_| discard(Some(part)))?;
        }
        Ok(row)
    }

    /// In a scratch folder that is gone afterwards, however it ends.
    fn once(
        &self,
        scenario: &Scenario,
        keep: Option<&Path>,
        observer: &mut dyn FnMut(Event<'_>),
    ) -> Result<Outcome, LabError> {
        let scratch = Scratch(self.inside.journal().scratch_directory("run")?);
        let mut progress = |elapsed, body| observer(Event::Progress { elapsed, body });
        let virtual_time = *self.engine == Engine::Guest;
        experiment::run(scenario, &scratch.0, keep, virtual_time, &self.inside.interrupt(), &mut progress)
            .map_err(|cause| LabError::Run { name: scenario.name.clone(), cause })
    }
}

struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed here stands in the journal, and the supervisor tries again.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
