//! A progress bar on standard error, drawn only where that is a terminal.

use fullpipe_lab::{Event, Run};
use fullpipe_model::units::{Bytes, Duration};
use fullpipe_report::escape;
use indicatif::{ProgressBar, ProgressStyle};
use std::collections::BTreeMap;

/// What a run costs however little it transfers: boot, analysis.
const FIXED: u64 = 2_000;
/// Bytes that cost as much as a millisecond of a transfer that does nothing.
const BYTES_PER_UNIT: u64 = 25_000;

/// The runs of a sweep, of which several may go on at once. The bar counts work, by what runs are
/// expected to transfer: a sweep's last row may be a hundred times its first, and the time left is
/// to be right.
pub struct Progress {
    bar: ProgressBar,
    runs: Vec<Expected>,
    going: BTreeMap<usize, u64>,
    done: usize,
    work: u64,
}

/// What a run is expected to be.
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
            // A file may end before its time is over; not before the link can have carried it.
            length = length.min(time.saturating_mul(2));
        }
        let bytes = rate.map_or(Bytes::ZERO, |rate| rate.over(length)).min(scenario.transfer.size);
        let work = FIXED + length.as_micros() / 1_000 + bytes.get() / BYTES_PER_UNIT;
        Expected { length, work }
    }

    /// How much of its work is done at `elapsed`.
    fn at(&self, elapsed: Duration) -> u64 {
        let share = elapsed.as_secs_f64() / self.length.as_secs_f64().max(0.001);
        (share.min(1.0) * self.work as f64) as u64
    }
}

impl Progress {
    /// A bar for `runs`, none of them begun.
    pub fn new(runs: &[Run]) -> Self {
        let runs: Vec<Expected> = runs.iter().map(Expected::of).collect();
        let left = if runs.len() > 1 { ", {eta} left" } else { "" };
        let style =
            format!("{{prefix:>7}} {{msg:24!}} {{wide_bar}} {{percent:>3}} % {{elapsed:>4}}{left}");
        let style =
            ProgressStyle::with_template(&style).unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = ProgressBar::new(runs.iter().map(|run| run.work).sum());
        bar.set_style(style.progress_chars("=> "));
        Progress { bar, runs, going: BTreeMap::new(), done: 0, work: 0 }
    }

    /// Shows what is going on.
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
        self.bar.set_prefix(format!("{}/{}", self.done, self.runs.len()));
        self.bar.set_position(self.work + self.going.values().sum::<u64>());
    }

    /// Does what may print, without the bar in its way.
    pub fn aside(&self, work: impl FnOnce()) {
        self.bar.suspend(work);
    }

    /// Takes the bar away.
    pub fn finish(self) {
        self.bar.finish_and_clear();
    }
}
