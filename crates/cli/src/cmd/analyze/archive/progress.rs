//! The progress of an archive, on standard error if that is a terminal.

use crate::sentence::either;
use fullpipe_archive::CaptureOpener;
use indicatif::{ProgressBar, ProgressStyle};
use std::fs::File;
use std::sync::atomic::{AtomicU64, Ordering};

/// How many captures, how many bytes, how fast, and how long it will take. The latter needs a list
/// that can be read twice.
pub struct ArchiveProgress {
    bar: ProgressBar,
    captures: AtomicU64,
}

impl ArchiveProgress {
    /// A bar; hidden where nobody would see it. `bytes_left` says how much is to be read, if that
    /// can be known; it is asked only where somebody sees it.
    pub fn new(bytes_left: impl FnOnce() -> Option<u64>) -> Self {
        let bar = ProgressBar::no_length();
        let mut template = "{prefix} {bytes:>10} {bytes_per_sec} {elapsed:>4}";
        let is_seen = !bar.is_hidden();
        if let Some(left) = is_seen.then(bytes_left).flatten() {
            bar.set_length(left);
            template = either(
                "{prefix} {wide_bar} {bytes:>10} of {total_bytes} {bytes_per_sec} {eta:>4} left",
                "{prefix} {wide_bar} {bytes:>10} / {total_bytes} {bytes_per_sec} 剩余 {eta:>4}",
            );
        }
        let style =
            ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        bar.set_style(style.progress_chars("=> "));
        ArchiveProgress { bar, captures: AtomicU64::new(0) }
    }

    /// A function that opens captures, whose reads move the bar.
    pub fn opener(&self) -> CaptureOpener {
        let bar = self.bar.clone();
        Box::new(move |path| {
            let file = File::open(path)?;
            Ok(if bar.is_hidden() { Box::new(file) } else { Box::new(bar.wrap_read(file)) })
        })
    }

    /// A capture is done.
    pub fn count(&self) {
        let captures = self.captures.fetch_add(1, Ordering::Relaxed) + 1;
        self.bar.set_prefix(either(format!("{captures} captures"), format!("{captures} 个抓包")));
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
