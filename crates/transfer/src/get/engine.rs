//! The connections of a download, while the body arrives: makes them, ends them, and replaces those
//! that fail.

use super::connect::Carrier;
use super::ranges::Worker;
use super::worker::{Failure, Next, Ready, Shared, Sink, work};
use super::{Connections, Diagnosis, GetError, GetEvent, GetNotice, Kept, Step};
use crate::clock;
use crate::count::{Controller, Most};
use fullpipe_model::units::{Bytes, Duration, Instant};
use std::collections::BTreeMap;
use std::rc::Rc;
use tokio::task::{AbortHandle, JoinHandle, JoinSet};

/// How often progress is told and the number of connections considered.
const TICK: Duration = Duration::from_millis(100);
/// How often the record of a partial file is written: what a power cut costs at most.
const CHECKPOINT: Duration = Duration::from_secs(2);
/// The wait before the first new try; it doubles.
const BACKOFF: Duration = Duration::from_millis(500);
/// So much has to arrive between two failures for the second to count as the first.
const HEADWAY: u64 = 1 << 20;

/// The wait before try number `failures`, from one.
pub(super) fn backoff(failures: u32) -> Duration {
    BACKOFF.saturating_mul(1 << failures.saturating_sub(1).min(6))
}

/// Why a download ends before the file is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Interruption {
    /// The caller's [`crate::Stop`].
    Stopped,
    /// This much time was allowed.
    OutOfTime(Duration),
}

impl Interruption {
    pub(super) fn error(self, url: &str, received: Bytes) -> GetError {
        let url = url.to_string();
        match self {
            Interruption::Stopped => GetError::Stopped { url, received, kept: Kept::Unsaid },
            Interruption::OutOfTime(limit) => {
                GetError::OutOfTime { url, received, limit, kept: Kept::Unsaid }
            }
        }
    }
}

/// How the connections fared.
pub(super) struct Fared {
    pub(super) connections: usize,
    pub(super) steps: Vec<Step>,
    pub(super) retries: u32,
}

/// The connections of a download. [`Engine::run`] drives them to the end.
pub(super) struct Engine {
    shared: Rc<Shared>,
    workers: JoinSet<(Worker, Result<(), Failure>)>,
    aborts: BTreeMap<Worker, AbortHandle>,
    next: Worker,
    controller: Controller,
    fixed: Option<usize>,
    failures: u32,
    /// How often everything was fetched again.
    restarts: u32,
    fetched_then: u64,
    writing: Option<JoinHandle<()>>,
    written: Instant,
    fared: Fared,
}

impl Engine {
    /// For an answer whose body follows. `in_parts`: whether several connections may share the
    /// file.
    pub(super) fn new(
        shared: Rc<Shared>,
        carrier: Carrier,
        body: hyper::body::Incoming,
        in_parts: bool,
    ) -> Engine {
        let now = clock::now();
        let rtt = carrier.rtt;
        let (most, fixed) = match shared.config.options.connections {
            _ if !in_parts => (Most { any: 1, windows: 1 }, None),
            Connections::Fixed(count) => (Most { any: 1, windows: 1 }, Some(usize::from(count))),
            Connections::Auto { most, windows } => {
                (Most { any: most.into(), windows: windows.into() }, None)
            }
        };
        let mut engine = Engine {
            shared,
            workers: JoinSet::new(),
            aborts: BTreeMap::new(),
            next: 0,
            controller: Controller::new(most, rtt, now),
            fixed,
            failures: 0,
            restarts: 0,
            fetched_then: 0,
            writing: None,
            written: now,
            fared: Fared { connections: 0, steps: Vec::new(), retries: 0 },
        };
        let took = matches!(engine.shared.plan.borrow_mut().ask(0), Ok(Some(_)));
        if took {
            engine.spawn(Some(Ready { carrier, body }), Duration::ZERO);
        }
        engine
    }

    /// Runs until the file is complete, or fails, or `interrupted` says why it should end.
    pub(super) async fn run(
        mut self,
        diagnosis: &Diagnosis,
        interrupted: impl Future<Output = Interruption>,
        tell: &mut dyn FnMut(GetEvent),
    ) -> Result<Fared, GetError> {
        let result = self.drive(diagnosis, interrupted, tell).await;
        self.workers.shutdown().await;
        if let Some(writing) = self.writing.take() {
            // It tells nothing; the last record, written at the end, says why it fails.
            let _ = writing.await;
        }
        self.tell(tell);
        self.fared.steps = self.controller.steps().to_vec();
        result.map(|()| self.fared)
    }

    async fn drive(
        &mut self,
        diagnosis: &Diagnosis,
        interrupted: impl Future<Output = Interruption>,
        tell: &mut dyn FnMut(GetEvent),
    ) -> Result<(), GetError> {
        let mut interrupted = std::pin::pin!(interrupted);
        let mut ticks = tokio::time::interval(TICK.into());
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
        while !self.shared.plan.borrow().is_complete() {
            tokio::select! {
                biased;
                why = &mut interrupted => {
                    return Err(why.error(self.shared.url.as_str(), self.shared.done()));
                }
                Some(ended) = self.workers.join_next(), if !self.workers.is_empty() => {
                    // An aborted one gave its piece back when it was aborted.
                    if let Ok((worker, result)) = ended {
                        self.ended(worker, result).await?;
                    }
                }
                _ = ticks.tick() => self.tick(diagnosis),
            }
            self.tell(tell);
        }
        Ok(())
    }

    fn tell(&self, tell: &mut dyn FnMut(GetEvent)) {
        for event in self.shared.events.borrow_mut().drain(..) {
            tell(event);
        }
    }

    fn target(&self) -> usize {
        self.fixed.unwrap_or_else(|| self.controller.target())
    }

    fn spawn(&mut self, ready: Option<Ready>, delay: Duration) {
        let (shared, worker) = (Rc::clone(&self.shared), self.next);
        self.next += 1;
        let task = async move { (worker, work(&shared, worker, ready, delay).await) };
        self.aborts.insert(worker, self.workers.spawn_local(task));
        self.fared.connections = self.fared.connections.max(self.aborts.len());
    }

    fn tick(&mut self, diagnosis: &Diagnosis) {
        let now = clock::now();
        let fetched = Bytes::new(self.shared.plan.borrow().fetched());
        self.controller.push(now, fetched, self.aborts.len(), diagnosis.get());
        while self.aborts.len() > self.target() {
            let Some((worker, abort)) = self.aborts.pop_last() else { break };
            abort.abort();
            self.shared.plan.borrow_mut().release(worker);
        }
        // One a tick: a server sees no volley, and a piece is taken before the next one is.
        let running = self.aborts.len();
        if running < self.target() && self.shared.plan.borrow().has_work(running) {
            self.spawn(None, Duration::ZERO);
        }
        let (done, length) =
            (self.shared.done(), self.shared.plan.borrow().length().map(Bytes::new));
        let connections = self.aborts.len();
        self.shared.events.borrow_mut().push(GetEvent::Progress { done, length, connections });
        if now.since(self.written) >= CHECKPOINT {
            self.checkpoint(now);
        }
    }

    /// Writes the record on another thread, because a sync may take long.
    fn checkpoint(&mut self, now: Instant) {
        if self.writing.as_ref().is_some_and(|writing| !writing.is_finished()) {
            return;
        }
        let Sink::Part(part) = &self.shared.sink else { return };
        let record = self.shared.plan.borrow().record(self.shared.url.as_str());
        let (Ok(recorder), Ok(record)) = (part.recorder(), record) else { return };
        self.written = now;
        self.writing = Some(tokio::task::spawn_blocking(move || {
            // The last record, written at the end, tells why it cannot be written.
            let _ = recorder.write(&record);
        }));
    }

    /// A connection ended by itself.
    async fn ended(&mut self, worker: Worker, result: Result<(), Failure>) -> Result<(), GetError> {
        self.aborts.remove(&worker);
        self.shared.plan.borrow_mut().release(worker);
        let failure = match result {
            Ok(()) => return Ok(()),
            Err(failure) => failure,
        };
        let fetched = self.shared.plan.borrow().fetched();
        if fetched >= self.fetched_then + HEADWAY {
            self.failures = 0;
        }
        self.fetched_then = fetched;
        let running = self.aborts.len();
        let (error, why) = match failure {
            Failure::Get(error) => (Some(error), ""),
            Failure::NoRanges(why) => (None, why),
        };
        let hopeless = error.as_ref().is_some_and(GetError::is_final);
        let broken = matches!(error, Some(GetError::Short { .. }));
        match (Next::after(error.is_none(), hopeless, broken, running), error) {
            (Next::Fewer, error) => {
                self.controller.refused(clock::now(), running);
                self.fixed = self.fixed.map(|fixed| fixed.min(running));
                self.notice(GetNotice::Refused { number: running + 1, error, why });
                Ok(())
            }
            (Next::Again, Some(error)) => self.retry(error),
            (Next::Fail, Some(error)) => Err(error),
            (_, _) => self.begin_anew(why).await,
        }
    }

    fn notice(&self, notice: GetNotice) {
        self.shared.events.borrow_mut().push(GetEvent::Notice(notice));
    }

    fn retry(&mut self, error: GetError) -> Result<(), GetError> {
        let options = &self.shared.config.options;
        if !error.is_transient(options) || self.failures >= options.retries {
            return Err(error);
        }
        self.failures += 1;
        self.fared.retries += 1;
        let delay = backoff(self.failures);
        self.notice(GetNotice::Again { error, delay });
        self.spawn(None, delay);
        Ok(())
    }

    /// The only connection broke, and no part can be asked for: from the first byte again, of
    /// whatever version the server has by then.
    async fn begin_anew(&mut self, why: &'static str) -> Result<(), GetError> {
        let cause = format!("the server cannot continue in the middle of the file ({why})");
        let error = self.shared.short(cause);
        let Sink::Part(part) = &self.shared.sink else { return Err(error) };
        // Headway counts failures anew, but a server that always breaks would send for ever.
        if self.restarts >= self.shared.config.options.retries {
            return Err(error);
        }
        self.restarts += 1;
        if let Some(writing) = self.writing.take() {
            // A record of the bytes so far must not come after they are gone.
            let _ = writing.await;
        }
        part.clear()?;
        self.shared.plan.borrow_mut().begin_anew();
        self.fetched_then = 0;
        self.failures += 1;
        self.fared.retries += 1;
        let delay = backoff(self.restarts);
        self.notice(GetNotice::Anew { error, delay });
        self.spawn(None, delay);
        Ok(())
    }
}
