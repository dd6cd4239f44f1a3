//! The agent's life: attached, watched, and let go, around a program or on a group.

use super::agent::Running;
use super::cgroup::Group;
use super::control::{self, Turn};
use super::recording::Recording;
use super::show::Display;
use crate::cmd::program::Started;
use crate::failure::{Failure, Kind};
use crate::sentence::{Sentence, either};
use crate::terminal::remark;
use fullpipe_agent::AgentOptions;
use fullpipe_kernel::Refused;
use fullpipe_kernel::host::clock;
use fullpipe_kernel::run::names::NamedSocket;
use fullpipe_kernel::run::sandbox::Interrupt;
use fullpipe_model::units::{Bytes, Duration, Instant};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Time between two looks at a budget.
const BUDGET_EVERY: Duration = Duration::from_millis(250);

fn run_failed(refused: Refused) -> Failure {
    Failure::new(Kind::Run, Sentence::from(&refused).of("window"))
}

/// What an agent does, and how it is shown.
pub struct Work {
    pub options: AgentOptions,
    /// For the buffers of all connections together.
    pub budget: Option<Bytes>,
    /// Time between two looks that are shown; `None`: the last one only.
    pub interval: Option<Duration>,
    pub display: Display,
    /// Where samples go.
    pub record: Option<PathBuf>,
}

impl Work {
    /// The connections of a group, until a signal or `window stop`.
    pub fn on_group(self, cgroup: &Path) -> Result<u8, Failure> {
        let end = Interrupt::on_signals().map_err(run_failed)?;
        let turn = self.take_turn(cgroup)?;
        let recording = self.recording()?;
        let running = Running::attach(cgroup, self.options, self.budget, None, end.clone())?;
        let running = Arc::new(running);
        let _socket = serve(&running);
        drop(turn);
        let mut looks = Looks::new(&running, &self.display, self.interval, recording);
        while !end.wait(looks.next()?)? {}
        self.display.show(&running.look()?)?;
        running.release()?;
        looks.finish()?;
        Ok(Failure::code(Kind::Interrupted))
    }

    /// A file that cannot be written is told before anything is followed.
    fn recording(&self) -> Result<Option<Recording>, Failure> {
        self.record.as_deref().map(Recording::begin).transpose()
    }

    /// Whoever changes nothing may look on.
    fn take_turn(&self, cgroup: &Path) -> Result<Option<Turn>, Failure> {
        self.options.control.then(|| control::take_turn(cgroup)).transpose()
    }

    /// The connections of a program that is started for it; the exit code is the program's.
    pub fn around(self, words: &[OsString]) -> Result<u8, Failure> {
        let group = Group::new()?;
        let end = Interrupt::on_signals().map_err(run_failed)?;
        let turn = self.take_turn(group.path())?;
        let recording = self.recording()?;
        let shown: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
        let running = Running::attach(
            group.path(),
            self.options,
            self.budget,
            Some(shown.join(" ")),
            end.clone(),
        )?;
        let running = Arc::new(running);
        let program = Started::of(group.start(words)?);
        let _socket = serve(&running);
        drop(turn);
        let mut looks = Looks::new(&running, &self.display, self.interval, recording);
        let code = program.until_it_ends(&end, || looks.next())?;
        self.display.show(&running.look()?)?;
        // The connections of what the program left behind go on.
        if !group.is_empty() {
            running.release()?;
        }
        looks.finish()?;
        Ok(code)
    }
}

/// Without it the agent works, and `window status` and `stop` do not find it.
fn serve(running: &Arc<Running>) -> Option<NamedSocket> {
    let served = control::serve(running);
    served
        .map_err(|failure| {
            let why = failure.message().here();
            remark(&either(
                format!("`fullpipe window status` will not find this: {why}"),
                format!("`fullpipe window status` 找不到它：{why}"),
            ));
        })
        .ok()
}

/// What is done from time to time.
struct Looks<'a> {
    running: &'a Running,
    display: &'a Display,
    interval: Option<Duration>,
    recording: Option<Recording>,
    /// Why there is no recording any more.
    not_recorded: Option<Failure>,
    shows_at: Instant,
    budget_at: Instant,
}

impl<'a> Looks<'a> {
    fn new(
        running: &'a Running,
        display: &'a Display,
        interval: Option<Duration>,
        recording: Option<Recording>,
    ) -> Looks<'a> {
        let (shows_at, budget_at) = (clock::now(), clock::now());
        Looks { running, display, interval, recording, not_recorded: None, shows_at, budget_at }
    }

    /// Does what is due; returns how long nothing is due.
    fn next(&mut self) -> Result<Option<Duration>, Failure> {
        let mut dues = Vec::new();
        if self.running.has_budget() {
            if clock::now() >= self.budget_at {
                self.running.keep_budget()?;
                self.budget_at = clock::now() + BUDGET_EVERY;
            }
            dues.push(self.budget_at.since(clock::now()));
        }
        if let Some(interval) = self.interval {
            if clock::now() >= self.shows_at {
                self.display.show(&self.running.look()?)?;
                self.shows_at = clock::now() + interval;
            }
            dues.push(self.shows_at.since(clock::now()));
        }
        if let Some(recording) = &mut self.recording {
            match recording.step(self.running) {
                Ok(due) => dues.push(due),
                // The connections are followed nevertheless.
                Err(failure) => {
                    self.not_recorded = Some(failure);
                    self.keep_recording()?;
                }
            }
        }
        Ok(dues.into_iter().min())
    }

    /// Completes the recording. A failure before is told now.
    fn finish(mut self) -> Result<(), Failure> {
        self.keep_recording()?;
        self.not_recorded.map_or(Ok(()), Err)
    }

    fn keep_recording(&mut self) -> Result<(), Failure> {
        self.recording.take().map_or(Ok(()), Recording::finish)
    }
}
