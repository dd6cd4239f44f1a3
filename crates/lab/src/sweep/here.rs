//! A run under this process's own kernel: in real time, or as the single run of a guest.

use super::Run;
use super::collector::Collector;
use crate::experiment::{self, Outcome};
use crate::guest::{self, GuestError};
use crate::results::{Environment, RunFolder};
use crate::scratch::Scratch;
use crate::{Engine, Event, LabError, row};
use fullpipe_flow::schema::Clock;
use fullpipe_kernel::run::sandbox::Inside;
use fullpipe_model::scenario::Scenario;
use std::path::Path;

/// What these runs have in common.
pub(super) struct Here<'a> {
    pub(super) inside: &'a Inside,
    pub(super) environment: &'a Environment,
    pub(super) engine: &'a Engine,
}

impl Here<'_> {
    /// Executes and keeps run `index`.
    pub(super) fn run(
        &self,
        index: usize,
        run: &Run,
        keep_captures: bool,
        collector: &mut Collector<'_>,
    ) -> Result<(), LabError> {
        let scenario = &run.scenario;
        let kernel = &self.environment.host.kernel;
        self.check(scenario).map_err(|cause| LabError::Guest {
            name: scenario.name.clone(),
            cause: Box::new(cause),
        })?;
        collector.tell(Event::Started { index, scenario });
        let part = collector
            .results
            .as_mut()
            .map(|results| results.begin(index, &scenario.name))
            .transpose()?;
        let keep = part.as_ref().filter(|_| keep_captures).map(RunFolder::path);
        let outcome = match self.once(index, scenario, keep.as_deref(), collector) {
            Ok(outcome) => outcome,
            Err(error) => {
                if let (Some(results), Some(part)) = (&collector.results, &part) {
                    results.discard(part);
                }
                return Err(error);
            }
        };
        let ran = row::Ran { repetition: run.repetition, clock: self.clock(), kernel };
        let mut row = row::of_outcome(scenario, ran, &outcome);
        if let (Engine::Virtual(_), Some(why)) =
            (self.engine, guest::unsuited_to_virtual_time(scenario))
        {
            row.notes.push(format!("run in real time: {why}"));
        }
        if let (Some(results), Some(part)) = (&mut collector.results, &part) {
            let completed = results.complete(part, scenario, &outcome, &row);
            completed.inspect_err(|_| results.discard(part))?;
        }
        collector.keep(index, row)
    }

    /// Refuses a scenario that only a guest can run.
    fn check(&self, scenario: &Scenario) -> Result<(), GuestError> {
        let running = &self.environment.host.kernel;
        if let Some(asked) =
            scenario.kernel.as_deref().filter(|asked| !guest::Kernel::is_release(running, asked))
        {
            return Err(GuestError::OtherKernel { asked: asked.into(), running: running.clone() });
        }
        if scenario.hosts.client.window_agent && *self.engine != Engine::Guest {
            return Err(GuestError::AgentInRealTime);
        }
        Ok(())
    }

    /// The clock of these runs.
    pub(super) fn clock(&self) -> Clock {
        if *self.engine == Engine::Guest { Clock::Virtual } else { Clock::Real }
    }

    /// Executes a run in a scratch folder that is removed afterwards, however the run ends.
    fn once(
        &self,
        index: usize,
        scenario: &Scenario,
        keep: Option<&Path>,
        collector: &mut Collector<'_>,
    ) -> Result<Outcome, LabError> {
        let scratch = Scratch(self.inside.journal().scratch_directory("run")?);
        let virtual_time = *self.engine == Engine::Guest;
        experiment::run(
            scenario,
            &scratch.0,
            keep,
            virtual_time,
            &self.inside.interrupt(),
            &mut |elapsed, body| collector.tell(Event::Progress { index, elapsed, body }),
        )
        .map_err(|cause| LabError::Run { name: scenario.name.clone(), cause })
    }
}
