//! A progress bar on standard error, drawn only where that is a terminal.

use fullpipe_lab::Event;
use fullpipe_model::units::{Bytes, Duration};
use indicatif::{ProgressBar, ProgressStyle};

/// Runs of a lab, one after another.
pub struct Progress {
    bar: ProgressBar,
    length: Duration,
}

impl Progress {
    /// A bar that has nothing to show yet.
    pub fn new() -> Self {
        let style = ProgressStyle::with_template("{prefix:>7} {msg:24!} {wide_bar} {percent:>3} % {elapsed:>4}");
        let bar = ProgressBar::new(1000);
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> "));
        Progress { bar, length: Duration::ZERO }
    }

    /// Shows what is going on.
    pub fn show(&mut self, event: Event<'_>) {
        match event {
            Event::Started { index, total, scenario } => {
                self.length = scenario.transfer.duration;
                if let Some(time) = scenario.path.to_client.rate.and_then(|rate| rate.time_for(scenario.transfer.size))
                {
                    // A file may end before its time is over; not before the link can have carried it.
                    self.length = self.length.min(time.saturating_mul(2));
                }
                self.bar.set_prefix(format!("{}/{total}", index + 1));
                self.bar.set_message(scenario.name.clone());
                self.bar.set_position(0);
            }
            Event::Progress { elapsed, body } => self.moved(elapsed, body),
            Event::Finished { .. } => self.bar.set_position(1000),
        }
    }

    fn moved(&self, elapsed: Duration, _body: Bytes) {
        let share = elapsed.as_secs_f64() / self.length.as_secs_f64().max(0.001);
        self.bar.set_position((share.min(1.0) * 1000.0) as u64);
    }

    /// Takes the bar away.
    pub fn finish(self) {
        self.bar.finish_and_clear();
    }
}
