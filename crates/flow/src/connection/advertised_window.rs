//! The receive window of one direction: minimum, median, maximum, last.

use super::WindowFacts;
use super::histogram::Histogram;
use fullpipe_model::units::{Bytes, Window};

/// The window that an end advertised, in bytes. Kept small, since each open connection has two.
#[derive(Debug, Default)]
pub(super) struct AdvertisedWindow {
    pub last: Option<u32>,
    /// Minimum and maximum of the windows that count; that of a SYN does not. Meaningful where one
    /// did.
    range: (u32, u32),
    /// How many counted packets in a row advertised the last window.
    times: u32,
    /// The counted windows before those.
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
        // The median is over packets, so the last run has to be included.
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
