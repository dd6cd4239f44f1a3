//! Runs guests side by side: as many as there are jobs, and as memory allows.
//!
//! Each guest has a thread, which starts it, watches it and takes its answer; this module's single
//! thread makes all decisions and writes all results. An interrupt ends every guest directly,
//! because each of them waits for it too. A run that fails becomes a row that says so. After an
//! error that would affect every run, no other run starts; active runs finish and are kept, because
//! their time is already spent.

use super::Keys;
use super::Run;
use super::collector::Collector;
use crate::guest::Kernel;
use crate::guest::job::Job;
use crate::guest::machine::MachineError;
use crate::guest::{self, Done, GuestError};
use crate::{Event, LabError, Options, row};
use fullpipe_flow::schema::Clock;
use fullpipe_kernel::host;
use fullpipe_kernel::process::sched::{self, Placement};
use fullpipe_kernel::run::sandbox::Inside;
use fullpipe_model::units::{Bytes, Duration};
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::mpsc::{Sender, channel};
use std::thread::{Builder, Scope, available_parallelism};

/// What these runs have in common.
pub(super) struct Guests<'a> {
    pub(super) inside: &'a Inside,
    pub(super) kernels: &'a [Kernel],
    pub(super) runs: &'a [Run],
    pub(super) keys: &'a Keys,
    pub(super) options: &'a Options,
}

/// A report from the thread of the guest for run `.0`.
enum Message {
    Progress(usize, Duration, Bytes),
    Done(usize, Box<Result<Done, GuestError>>),
}

/// Decides which guest may start: at most `jobs` at once, and together no more memory than was
/// available when the sweep began.
#[derive(Debug)]
struct Room {
    jobs: usize,
    memory: Bytes,
    /// The CPUs for guests; empty: not pinned.
    cpus: Vec<usize>,
    taken: BTreeMap<usize, GuestSlot>,
}

/// What an active guest occupies.
#[derive(Debug, Clone, Copy)]
struct GuestSlot {
    memory: Bytes,
    cpu: Option<usize>,
}

impl Room {
    fn has(&self, memory: Bytes) -> bool {
        let taken = self.taken.values().fold(memory, |sum, place| sum.saturating_add(place.memory));
        // A single guest may start whatever its memory, because it rarely uses all of it.
        self.taken.is_empty() || (self.taken.len() < self.jobs && taken <= self.memory)
    }

    /// The CPU with the fewest guests. Each guest gets one CPU, because its two processes, its
    /// kernel and the program in it, take turns. On one CPU a turn is a context switch; on two it
    /// wakes a CPU that has gone to sleep, and a run takes three times as long.
    fn cpu(&self) -> Option<usize> {
        let guests =
            |cpu: usize| self.taken.values().filter(|place| place.cpu == Some(cpu)).count();
        self.cpus.iter().copied().min_by_key(|&cpu| guests(cpu))
    }
}

impl Guests<'_> {
    /// Executes and keeps the runs `waiting`, started in this order.
    pub(super) fn run(
        &self,
        waiting: &[usize],
        collector: &mut Collector<'_>,
    ) -> Result<(), LabError> {
        let jobs = self.options.jobs.or_else(|| available_parallelism().ok());
        let mut room = Room {
            jobs: jobs.map_or(1, NonZeroUsize::get),
            memory: host::memory_available().unwrap_or(Bytes::MAX),
            cpus: Vec::new(),
            taken: BTreeMap::new(),
        };
        let interrupt = self.inside.interrupt();
        let mut waiting = waiting.iter().copied().peekable();
        let mut failure = None;
        let (sender, receiver) = channel();
        std::thread::scope(|scope| {
            loop {
                while let Some(&index) = waiting.peek()
                    && failure.is_none()
                    && !interrupt.is_set()
                {
                    let memory = self.options.limits.memory(&self.runs[index].scenario);
                    if !room.has(memory) {
                        break;
                    }
                    waiting.next();
                    // Anew each time: this thread has moved away from where other sweeps of this
                    // machine, such as other shards, have their guests.
                    room.cpus = sched::cpus_from_here().unwrap_or_default();
                    let cpu = room.cpu();
                    match self.start(scope, index, cpu, &sender, collector) {
                        Ok(true) => drop(room.taken.insert(index, GuestSlot { memory, cpu })),
                        Ok(false) => {}
                        Err(error) => failure = self.fail(index, error, collector).err(),
                    }
                }
                if room.taken.is_empty() {
                    break;
                }
                match receiver.recv() {
                    Ok(Message::Progress(index, elapsed, body)) => {
                        collector.tell(Event::Progress { index, elapsed, body })
                    }
                    Ok(Message::Done(index, result)) => {
                        room.taken.remove(&index);
                        let result = result.map_err(|cause| self.wrong(index, cause));
                        let taken = result.and_then(|done| self.take(index, &done, collector));
                        if let Err(error) =
                            taken.or_else(|error| self.fail(index, error, collector))
                        {
                            failure.get_or_insert(error);
                        }
                    }
                    // `sender` is here, so the channel has a sender.
                    Err(_) => break,
                }
            }
        });
        match (failure, waiting.next()) {
            (Some(error), _) => Err(error),
            (None, Some(next)) => Err(self.wrong(next, MachineError::Interrupted.into())),
            (None, None) => Ok(()),
        }
    }

    /// Starts run `index` in its own guest on `cpu`, or takes it from the cache; returns whether a
    /// guest is active.
    fn start<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        index: usize,
        cpu: Option<usize>,
        sender: &Sender<Message>,
        collector: &mut Collector<'_>,
    ) -> Result<bool, LabError> {
        let run = &self.runs[index];
        collector.tell(Event::Started { index, scenario: &run.scenario });
        if self.find_done(index, collector)? {
            return Ok(false);
        }
        let kernel = guest::choose_kernel(self.kernels, &run.scenario)
            .map_err(|cause| self.wrong(index, cause))?;
        let job = Job {
            scenario: run.scenario.clone(),
            repetition: run.repetition,
            keep_captures: self.options.keep_captures,
        };
        let sender = sender.clone();
        let thread = Builder::new().name(format!("guest-{index}"));
        let started = thread.spawn_scoped(scope, move || {
            if let Some(cpu) = cpu {
                // The guest's processes inherit it. If it is refused, they are only slower.
                let _ = Placement { cpus: vec![cpu], nice: None }.apply();
            }
            // The receiver is gone only when the sweep is over.
            let mut progress =
                |elapsed, body| drop(sender.send(Message::Progress(index, elapsed, body)));
            let result = guest::run(self.inside, kernel, &self.options.limits, &job, &mut progress);
            drop(sender.send(Message::Done(index, Box::new(result))));
        });
        started
            .map_err(|cause| LabError::Prepare { operation: "start thread for a guest", cause })?;
        Ok(true)
    }

    fn find_done(&self, index: usize, collector: &mut Collector<'_>) -> Result<bool, LabError> {
        let (Some(cache), Some(key)) =
            (&self.options.cache, self.keys.repeatable(&self.runs[index]))
        else {
            return Ok(false);
        };
        let Some(entry) = cache.find(&key) else { return Ok(false) };
        if let Some(results) = &mut collector.results {
            results.adopt(index, &entry.files.by_descriptor(), true, &entry.row)?;
        }
        collector.keep(index, entry.row)?;
        Ok(true)
    }

    /// Keeps the results of run `index`.
    fn take(
        &self,
        index: usize,
        done: &Done,
        collector: &mut Collector<'_>,
    ) -> Result<(), LabError> {
        let files = done.files().map_err(|cause| self.wrong(index, cause.into()))?;
        if let (Some(cache), Some(key)) =
            (&self.options.cache, self.keys.repeatable(&self.runs[index]))
        {
            cache.insert(&key, &files, &done.row);
        }
        if let Some(results) = &mut collector.results {
            results.adopt(index, &files, false, &done.row)?;
        }
        collector.keep(index, done.row.clone())
    }

    /// Records that run `index` failed; returns an error that concerns more than this run.
    fn fail(
        &self,
        index: usize,
        error: LabError,
        collector: &mut Collector<'_>,
    ) -> Result<(), LabError> {
        let Run { scenario, repetition } = &self.runs[index];
        let kernel = guest::choose_kernel(self.kernels, scenario)
            .map_or("", |kernel| kernel.release.as_str());
        collector.fail(index, row::of_failure(scenario, *repetition, Clock::Virtual, kernel), error)
    }

    fn wrong(&self, index: usize, cause: GuestError) -> LabError {
        LabError::Guest { name: self.runs[index].scenario.name.clone(), cause: cause.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_and_jobs_bound_the_guests_and_one_is_always_let_in() {
        let gib = |n: u64| Bytes::new(n << 30);
        let slot = |memory, cpu| GuestSlot { memory, cpu };
        let mut room = Room { jobs: 3, memory: gib(5), cpus: vec![4, 2], taken: BTreeMap::new() };
        assert!(room.has(gib(100)));
        assert_eq!(room.cpu(), Some(4));
        room.taken.insert(0, slot(gib(2), Some(4)));
        assert_eq!(room.cpu(), Some(2));
        assert!(room.has(gib(3)) && !room.has(gib(4)));
        room.taken.insert(1, slot(gib(2), Some(2)));
        assert_eq!(room.cpu(), Some(4));
        assert!(room.has(gib(1)) && !room.has(gib(2)));
        room.taken.insert(2, slot(Bytes::ZERO, Some(4)));
        assert_eq!(room.cpu(), Some(2));
        assert!(!room.has(Bytes::ZERO), "no fourth");
    }
}
