//! The receive window of one direction: least, median, greatest, last.

use super::WindowFacts;
use super::histogram::Histogram;
use fullpipe_model::units::{Bytes, Window};

/// The window that an end advertised, in bytes. Small, as there are two for each open connection.
#[derive(Debug, Default)]
pub(super) struct AdvertisedWindow {
    pub last: Option<u32>,
    /// Least and greatest of those that count: SYN's does not. Meaningful where one was seen.
    range: (u32, u32),
    /// How many packets in a row had the last one, and count.
    times: u32,
    /// Those before.
    before: Option<Box<Histogram>>,
}

impl AdvertisedWindow {
    pub fn note(&mut self, window: u32, counts: bool) {
        if self.last != Some(window) || !counts {
            self.end_run();
        }
        self.last = Some(window);
        if counts {
            let (least, most) = if self.is_known() { self.range } else { (window, window) };
            self.range = (least.min(window), most.max(window));
            self.times = self.times.saturating_add(1);
        }
    }

    fn is_known(&self) -> bool {
        self.times > 0 || self.before.is_some()
    }

    fn end_run(&mut self) {
        let Some(last) = self.last.filter(|_| self.times > 0) else { return };
        self.before.get_or_insert_default().add_times(last.into(), self.times);
        self.times = 0;
    }

    pub fn facts(mut self, scale: Option<u8>, scale_inferred: Option<u8>) -> WindowFacts {
        let window = |bytes: u32| Window::new(Bytes::new(bytes.into()));
        let range = Some(self.range).filter(|_| self.is_known());
        // Half of the packets had at most the median.
        self.end_run();
        let median = self.before.and_then(|seen| seen.quantile(0.5));
        WindowFacts {
            scale,
            scale_inferred,
            min: range.map(|(least, _)| window(least)),
            p50: median.map(|bytes| Window::new(Bytes::new(bytes))),
            max: range.map(|(_, most)| window(most)),
            last: self.last.map(window),
        }
    }
}
