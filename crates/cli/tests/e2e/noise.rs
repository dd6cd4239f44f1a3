//! Whether the machine was quiet while a trial ran.
//!
//! Trials in real time assert what a link did in milliseconds. On a shared machine a disk or a
//! neighbour sometimes takes the machine away for longer than that. The rows of `lab run` say when
//! they were not quiet, and the kernel counts the rest. A trial that fails in such a time runs once
//! more, and says so in its output. One that fails on a quiet machine has failed, and so has a run
//! in which more than [`AGAIN_MAX`] trials needed a second try.

use crate::program::Row;
use fullpipe_kernel::host::clock;
use fullpipe_model::units::Instant;
use std::cell::RefCell;
use std::fs::read_to_string;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

/// All processes waited for a disk at once for so long, or for memory.
const STALL_MAX: Duration = Duration::from_millis(300);
/// The share of all cores' time that the machine below took away.
const STEAL_MAX: f64 = 0.02;
/// The share of the time in which somebody waited for a processor that trials beside it used.
const CROWDED_MAX: f64 = 0.05;
/// `/proc/stat` counts in hundredths of a second on every Linux (`USER_HZ`).
const TICK: Duration = Duration::from_millis(10);

/// Trials of one run that may be tried again: with more of them, the retry hides something.
const AGAIN_MAX: usize = 5;
static AGAIN: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// Why rows of the present trial were not quiet: each trial has a thread of its own.
    static ROWS: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// Keeps in mind that a row of this trial was not quiet.
pub fn look_at(row: &Row) {
    if !row.quiet() {
        let notes = row.notes().into_iter().map(str::to_owned);
        ROWS.with_borrow_mut(|rows| rows.extend(notes));
    }
}

/// Whether more trials were tried again than a run may have; says so.
pub fn is_too_noisy() -> bool {
    let again = AGAIN.load(Ordering::Relaxed);
    let is_too_noisy = again > AGAIN_MAX;
    if is_too_noisy {
        eprintln!("{again} trials were tried again; a run may have {AGAIN_MAX} of them");
    }
    is_too_noisy
}

/// Runs a trial; once more, and alone, if it fails while the machine is not quiet. One that runs
/// beside others may have been kept from a processor by them.
pub fn run(name: &str, trial: fn(), is_beside_others: bool) {
    // Held by the trials that run; whoever runs again waits until it is the only one.
    static RUNNING: RwLock<()> = RwLock::new(());
    ROWS.with_borrow_mut(Vec::clear);
    let running = RUNNING.read().unwrap_or_else(PoisonError::into_inner);
    let before = Machine::now();
    let Err(failure) = catch_unwind(AssertUnwindSafe(trial)) else { return };
    drop(running);
    let (mut why, after) = (ROWS.take(), Machine::now());
    why.extend(before.noise_until(&after));
    why.extend(before.crowded_until(&after).filter(|_| is_beside_others));
    if why.is_empty() {
        resume_unwind(failure);
    }
    AGAIN.fetch_add(1, Ordering::Relaxed);
    eprintln!("AGAIN: {name}: the machine was not quiet: {}", why.join("; "));
    let _alone = RUNNING.write().unwrap_or_else(PoisonError::into_inner);
    trial();
}

/// What the kernel has counted since it started.
struct Machine {
    at: Instant,
    /// Time in which nobody could go on for want of a disk, and for want of memory.
    stalls: [(&'static str, Duration); 2],
    /// Time in which somebody waited for a processor; `None` where the kernel does not count it.
    crowded: Option<Duration>,
    stolen: Duration,
    cores: usize,
}

impl Machine {
    fn now() -> Machine {
        let stat = read_to_string("/proc/stat").unwrap_or_default();
        let first = stat.lines().next().unwrap_or_default();
        let ticks: u32 =
            first.split_whitespace().nth(8).and_then(|it| it.parse().ok()).unwrap_or(0);
        Machine {
            at: clock::now(),
            stalls: ["io", "memory"].map(|what| (what, stall(what, "full").unwrap_or_default())),
            crowded: stall("cpu", "some"),
            stolen: TICK * ticks,
            cores: stat.lines().filter(|line| line.starts_with("cpu")).count().saturating_sub(1),
        }
    }

    /// Why the time from `self` to `end` was not quiet.
    fn noise_until(&self, end: &Machine) -> Vec<String> {
        let stalls =
            self.stalls.iter().zip(end.stalls).filter_map(|((what, before), (_, after))| {
                let stalled = after.saturating_sub(*before);
                (stalled > STALL_MAX).then(|| format!("everything waited {stalled:?} for {what}"))
            });
        let stolen = end.stolen.saturating_sub(self.stolen);
        let seconds = end.at.since(self.at).as_secs_f64() * end.cores.max(1) as f64;
        let taken = (stolen.as_secs_f64() > seconds * STEAL_MAX)
            .then(|| format!("the machine below took {stolen:?} of {seconds:.1} s"));
        stalls.chain(taken).collect()
    }

    /// Why neighbours may have kept a trial from a processor until `end`: they did, or nobody
    /// counts it.
    fn crowded_until(&self, end: &Machine) -> Option<String> {
        let (Some(before), Some(after)) = (self.crowded, end.crowded) else {
            return Some("it ran beside others".to_owned());
        };
        let (waited, time) = (after.saturating_sub(before), end.at.since(self.at));
        (waited.as_secs_f64() > time.as_secs_f64() * CROWDED_MAX)
            .then(|| format!("somebody waited for a processor for {waited:.1?}"))
    }
}

/// `total=` of the kernel's pressure stall information in the line that begins so; `None` where the
/// kernel has none.
fn stall(resource: &str, line: &str) -> Option<Duration> {
    let text = read_to_string(format!("/proc/pressure/{resource}")).ok()?;
    let line = text.lines().find(|text| text.starts_with(line))?;
    Some(Duration::from_micros(line.rsplit_once("total=")?.1.parse().ok()?))
}
