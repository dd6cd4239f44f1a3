//! A progress bar on standard error, drawn only if that is a terminal.

use crate::sentence::either;
use fullpipe_lab::{Event, Run, Shard, runs_of};
use fullpipe_model::units::{Bytes, Duration};
use fullpipe_report::table::escape;
use indicatif::{ProgressBar, ProgressStyle};
use std::collections::BTreeMap;

/// Fixed cost of a run, in milliseconds: boot and analysis.
const FIXED: u64 = 2_000;
/// How many bytes cost as much as one millisecond of a transfer that does nothing.
const BYTES_PER_UNIT: u64 = 25_000;

/// The progress of a sweep, in which several runs may be active. The bar counts expected work, by
/// the data that runs should transfer, because the last row of a sweep may cost a hundred times the
/// first and the estimated time should be right.
pub struct Progress {
    bar: ProgressBar,
    runs: Vec<Expected>,
    /// How many of them are to be done.
    total: usize,
    going: BTreeMap<usize, u64>,
    done: usize,
    work: u64,
}

/// The expected work of a run.
struct Expected {
    length: Duration,
    work: u64,
}

impl Expected {
    fn of(run: &Run) -> Expected {
        let scenario = &run.scenario;
        let rate = scenario.path.to_client.rate;
        let mut length = scenario.transfer.duration;
        if let Some(time) = rate.and_then(|rate| rate.time_for(scenario.transfer.size)) {
            // A file may be complete before the duration ends, but not before the link can have
            // carried it.
            length = length.min(time.saturating_mul(2));
        }
        let bytes = rate.map_or(Bytes::ZERO, |rate| rate.over(length)).min(scenario.transfer.size);
        let work = FIXED + length.as_micros() / 1_000 + bytes.get() / BYTES_PER_UNIT;
        Expected { length, work }
    }

    /// How much of the work is done at `elapsed`.
    fn at(&self, elapsed: Duration) -> u64 {
        let share = elapsed.as_secs_f64() / self.length.as_secs_f64().max(0.001);
        (share.min(1.0) * self.work as f64) as u64
    }
}

impl Progress {
    /// A bar for those of `runs` that belong to `shard`, none of which has begun.
    pub fn new(runs: &[Run], shard: Option<Shard>) -> Self {
        let ours: Vec<u64> = runs_of(runs, shard).map(|(_, run)| Expected::of(run).work).collect();
        let (bar, total) = (ProgressBar::new(ours.iter().sum()), ours.len());
        let runs: Vec<Expected> = runs.iter().map(Expected::of).collect();
        let left = if total > 1 { either(", {eta} left", "，剩余 {eta}") } else { "" };
        let style =
            format!("{{prefix:>7}} {{msg:24!}} {{wide_bar}} {{percent:>3}} % {{elapsed:>4}}{left}");
        let style =
            ProgressStyle::with_template(&style).unwrap_or_else(|_| ProgressStyle::default_bar());
        bar.set_style(style.progress_chars("=> "));
        Progress { bar, runs, total, going: BTreeMap::new(), done: 0, work: 0 }
    }

    /// Shows an event.
    pub fn show(&mut self, event: Event<'_>) {
        match event {
            Event::Started { index, scenario } => {
                self.going.insert(index, 0);
                self.bar.set_message(escape::in_line(&scenario.name).into_owned());
            }
            Event::Progress { index, elapsed, .. } => {
                let work = self.runs.get(index).map_or(0, |run| run.at(elapsed));
                self.going.insert(index, work);
            }
            Event::Finished { index } => {
                self.going.remove(&index);
                self.done += 1;
                self.work += self.runs.get(index).map_or(0, |run| run.work);
            }
            Event::Row(_) => return,
        }
        self.bar.set_prefix(format!("{}/{}", self.done, self.total));
        self.bar.set_position(self.work + self.going.values().sum::<u64>());
    }

    /// Does work that may print, with the bar hidden.
    pub fn with_bar_hidden(&self, work: impl FnOnce()) {
        self.bar.suspend(work);
    }

    /// Removes the bar.
    pub fn finish(self) {
        self.bar.finish_and_clear();
    }
}
