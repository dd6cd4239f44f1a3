//! Looks at all sockets, keeps samples of some, and writes parts.

mod part;

use super::choice::{Candidate, choose, sum};
use super::{HistoryError, HistoryRing, RingTrouble};
use crate::watch::{Namespaces, SocketKey, Watch};
use fullpipe_kernel::{Refused, host::clock};
use fullpipe_model::units::{Bytes, Duration, Instant};
use part::{Machine, OpenPart};

/// The time between two samples of a connection that is kept, and the least between two looks at
/// all.
const STEP: Duration = Duration::from_secs(1);
/// A step may come so much early.
const EARLY: Duration = Duration::from_millis(100);
/// The part of a core that looks at all sockets may take: where they are so many that it would be
/// more, looks are rarer.
const LOOKS: f64 = 0.004;
/// The same of finding out whose the sockets are.
const OWNERS: f64 = 0.001;
/// The most time between two looks at all, whatever one costs.
const LOOK_MOST: Duration = Duration::from_secs(30);
/// The time between two readings of the machine's counters.
const HOST_STEP: Duration = Duration::from_secs(10);
/// The time between two searches for network namespaces.
const NAMESPACES_STEP: Duration = Duration::from_secs(15);
/// What a sample takes in a part, compressed, at most: so many fit into a part of a ring's eighth.
const SAMPLE_SIZE: u64 = 250;
/// How many samples a part has at least and at most: some 3 MB of memory.
const SAMPLES: (u64, u64) = (100, 4500);
/// A ring has room for so many full parts at least.
const PARTS_LEAST: u64 = 8;

/// How to record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistoryOptions {
    /// Which network namespaces.
    pub namespaces: Namespaces,
    /// How many connections are kept of each look at most.
    pub most: usize,
    /// How long a part is at most: what a kill loses.
    pub part: Duration,
}

impl Default for HistoryOptions {
    fn default() -> HistoryOptions {
        HistoryOptions { namespaces: Namespaces::All, most: 64, part: Duration::from_secs(60) }
    }
}

/// What a recorder has done so far, for whoever shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HistoryProgress {
    /// Connections at the last look.
    pub connections: usize,
    /// Of them, those of which samples are kept.
    pub kept: usize,
    /// The time between the last two looks at all.
    pub looks_each: Duration,
}

/// Records the sockets of this host.
///
/// **Order of calls.** [`HistoryRecorder::begin`]; then, each time after waiting for
/// [`HistoryRecorder::idle`], [`HistoryRecorder::step`]; at the end [`HistoryRecorder::finish`].
pub struct HistoryRecorder {
    watch: Watch,
    machine: Machine,
    ring: HistoryRing,
    options: HistoryOptions,
    samples_most: u64,
    part: OpenPart,
    followed: Vec<SocketKey>,
    due: Instant,
    looks_due: Instant,
    namespaces_due: Instant,
    hosts_due: Instant,
    looked: Option<Instant>,
    progress: HistoryProgress,
}

impl HistoryRecorder {
    /// Begins to record into `ring`, which may take `size` bytes.
    ///
    /// # Errors
    /// This kernel has no `sock_diag`.
    pub fn begin(
        ring: HistoryRing,
        size: Bytes,
        options: HistoryOptions,
    ) -> Result<HistoryRecorder, HistoryError> {
        let mut watch = Watch::open(options.namespaces)?;
        watch.spare(OWNERS);
        let now = clock::now();
        let (least, most) = SAMPLES;
        let samples_most = (size.get() / PARTS_LEAST / SAMPLE_SIZE).clamp(least, most);
        Ok(HistoryRecorder {
            watch,
            machine: Machine::read(),
            ring,
            options,
            samples_most,
            part: OpenPart::begin(now),
            followed: Vec::new(),
            due: now,
            looks_due: now,
            namespaces_due: now + NAMESPACES_STEP,
            hosts_due: now,
            looked: None,
            progress: HistoryProgress::default(),
        })
    }

    /// How long nothing is due.
    pub fn idle(&self) -> Duration {
        self.due.since(clock::now())
    }

    /// What was done so far.
    pub fn progress(&self) -> HistoryProgress {
        self.progress
    }

    /// The parts that are written.
    pub fn ring(&self) -> &HistoryRing {
        &self.ring
    }

    /// Does what is due; what went wrong with a part, if one was written.
    ///
    /// # Errors
    /// The kernel refuses to list its sockets.
    pub fn step(&mut self) -> Result<Option<RingTrouble>, HistoryError> {
        let now = clock::now();
        // Late, it skips to the next point of the grid rather than sample twice in a row.
        while self.due <= now {
            self.due = self.due + STEP;
        }
        if now >= self.namespaces_due && self.options.namespaces == Namespaces::All {
            self.watch.find_namespaces()?;
            self.namespaces_due = now + NAMESPACES_STEP;
        }
        if now >= self.hosts_due {
            self.part.note_host(&self.watch, &self.machine);
            self.hosts_due = now + HOST_STEP;
        }
        if now >= self.looks_due {
            self.look(now)?;
        }
        self.sample()?;
        let is_long = now.since(self.part.start()) >= self.options.part;
        Ok(if is_long || self.part.samples() >= self.samples_most { self.end_part() } else { None })
    }

    /// Looks at all sockets, and chooses those that are kept until the next look.
    fn look(&mut self, now: Instant) -> Result<(), Refused> {
        let start = clock::thread_cpu();
        self.watch.look()?;
        let at = clock::now();
        let busy = self.watch.busy();
        let candidates: Vec<Candidate> = busy.iter().map(|one| Candidate::of(one)).collect();
        let chosen = choose(&candidates, self.options.most);
        // The first look says only which sockets there are.
        let length = self.looked.replace(at).map_or(Duration::ZERO, |last| at.since(last));
        let mut note = sum(&busy, &chosen, at, length);
        note.connections = self.watch.connections() as u64;
        for socket in busy.iter().filter(|one| chosen.contains(&one.key)) {
            // The sample before is what the newest counters are compared with.
            let is_new = !self.followed.contains(&socket.key);
            self.part.know(socket, &self.watch, is_new);
        }
        self.part.note_look(note);
        self.followed = chosen.into_iter().collect();
        self.followed.sort_unstable();
        let cost = clock::thread_cpu().saturating_sub(start);
        // The first look alone tells nothing, so the second one does not wait.
        let spared = if length == Duration::ZERO { 0.0 } else { cost.as_secs_f64() / LOOKS };
        let rest = Duration::from_secs_f64(spared).min(LOOK_MOST).max(STEP);
        // A step that comes a hair early would be a whole one late.
        self.looks_due = now + rest.saturating_sub(EARLY);
        self.progress = HistoryProgress {
            connections: self.watch.connections(),
            kept: self.followed.len(),
            looks_each: length,
        };
        Ok(())
    }

    /// Takes a sample of each connection that is kept.
    fn sample(&mut self) -> Result<(), Refused> {
        for key in &self.followed {
            let Some((local, remote)) = self.part.ends(*key) else { continue };
            let Some(diag) = self.watch.diag(*key) else { continue };
            if let Some(sample) = diag.sample(local, remote)? {
                self.part.add(*key, sample);
            }
        }
        Ok(())
    }

    /// Writes the part, and begins another one with the connections that are kept by now.
    fn end_part(&mut self) -> Option<RingTrouble> {
        self.part.note_host(&self.watch, &self.machine);
        let next = self.part.next(&self.followed, clock::now());
        let part = std::mem::replace(&mut self.part, next);
        let trouble = part.write(&mut self.watch, &mut self.ring);
        self.part.note_host(&self.watch, &self.machine);
        self.hosts_due = clock::now() + HOST_STEP;
        trouble
    }

    /// Writes what there is, and ends; the parts, and what went wrong, if anything did.
    pub fn finish(mut self) -> (HistoryRing, Option<RingTrouble>) {
        if self.part.is_empty() {
            return (self.ring, None);
        }
        // A last look tells of the time since the one before; without it the rest still counts.
        let _ = self.look(clock::now());
        let trouble = self.end_part();
        (self.ring, trouble)
    }
}
