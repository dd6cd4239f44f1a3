//! The progress of an archive, on standard error if that is a terminal.

use super::groups::text_of;
use super::list::Sources;
use super::manifest::Done;
use indicatif::{ProgressBar, ProgressStyle};
use std::fs::File;
use std::io::{Read, Result};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// How many captures, how many bytes, how fast, and how long it will take. The latter needs a list
/// that can be read twice.
pub struct Progress {
    bar: ProgressBar,
    captures: AtomicU64,
}

impl Progress {
    /// A bar for what `sources` name and `done` does not have; hidden where nobody would see it.
    pub fn new(sources: &Sources, results: &Path, done: &Done) -> Self {
        let bar = ProgressBar::no_length();
        let mut template = "{prefix} {bytes:>10} {bytes_per_sec} {elapsed:>4}";
        if !bar.is_hidden() && sources.are_lasting() {
            bar.set_length(left(sources, results, done));
            template =
                "{prefix} {wide_bar} {bytes:>10} of {total_bytes} {bytes_per_sec} {eta:>4} left";
        }
        let style =
            ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        bar.set_style(style.progress_chars("=> "));
        Progress { bar, captures: AtomicU64::new(0) }
    }

    /// A function that opens captures, whose reads move the bar.
    pub fn opener(
        &self,
    ) -> impl Fn(&Path) -> Result<Box<dyn Read + Send>> + Send + Sync + 'static + use<> {
        let bar = self.bar.clone();
        move |path| {
            let file = File::open(path)?;
            Ok(if bar.is_hidden() { Box::new(file) } else { Box::new(bar.wrap_read(file)) })
        }
    }

    /// A capture is done.
    pub fn count(&self) {
        let captures = self.captures.fetch_add(1, Ordering::Relaxed) + 1;
        self.bar.set_prefix(format!("{captures} captures"));
    }

    /// Does work that may print, with the bar hidden.
    pub fn with_bar_hidden(&self, work: impl FnOnce()) {
        self.bar.suspend(work);
    }

    /// Removes the bar.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// Bytes that are left to read. What cannot be listed is told later.
fn left(sources: &Sources, results: &Path, done: &Done) -> u64 {
    let list = sources.list().into_iter().flat_map(|list| list.without(results));
    let found = list.filter_map(|item| item.ok()?.ok());
    found
        .filter(|found| !done.captures.contains_key(&text_of(&found.path)))
        .map(|found| found.bytes)
        .sum()
}
