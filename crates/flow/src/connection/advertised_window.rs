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
    /// The shift with which the first window that counts repeats the SYN's, where that is not the
    /// agreed one; zero for none.
    real_shift: u8,
    /// The window of the SYN; zero where none was captured.
    syn: u16,
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

    /// Whether the last window leaves an end that has nothing in flight too little to send: less
    /// than a full segment, and less than half of the largest window so far, for which it waits
    /// (RFC 9293 section 3.8.6.2.1). On loopback a segment has 64 kB.
    pub fn holds_back(&self, full: u64) -> bool {
        let (_, most) = self.range;
        self.last.is_some_and(|last| last == 0 || u64::from(last) < full.min(u64::from(most) / 2))
    }

    /// Notes the window of a SYN.
    pub fn note_syn(&mut self, field: u16) {
        self.syn = field;
    }

    /// Compares the field of the first window after the SYN with the window of the SYN, which has
    /// no scale. Windows only grow there: where one is the SYN's divided by a larger scale than the
    /// `agreed` one, the end uses that scale, and its SYN was changed on the way.
    pub fn compare(&mut self, field: u16, agreed: u8) {
        const PRECISE: u32 = 64;
        let (syn, field) = (u32::from(self.syn), u32::from(field));
        if self.is_known() || field < PRECISE {
            return;
        }
        self.real_shift = (agreed + 2..=14)
            .find(|shift| (field << shift).abs_diff(syn) < 1 << shift)
            .unwrap_or(0);
    }

    /// Whether a window was noted that counts.
    pub fn is_known(&self) -> bool {
        self.times > 0 || self.before.is_some()
    }

    fn end_run(&mut self) {
        let Some(last) = self.last.filter(|_| self.times > 0) else { return };
        self.before.get_or_insert_default().add_times(last.into(), self.times);
        self.times = 0;
    }

    pub fn facts(mut self, scale: Option<u8>, scale_inferred: Option<u8>) -> WindowFacts {
        let range = Some(self.range).filter(|_| self.is_known());
        // The median is over packets, so the last run has to be included.
        self.end_run();
        let median = self.before.and_then(|seen| seen.quantile(0.5));
        WindowFacts {
            scale,
            scale_inferred: scale_inferred.or((self.real_shift > 0).then_some(self.real_shift)),
            min: range.map(|(least, _)| window(least.into())),
            p50: median.map(window),
            max: range.map(|(_, most)| window(most.into())),
            last: self.last.map(|last| window(last.into())),
        }
    }
}

fn window(bytes: u64) -> Window {
    Window::new(Bytes::new(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compared(syn: u16, first: u16, agreed: u8) -> Option<u8> {
        let mut window = AdvertisedWindow::default();
        window.note_syn(syn);
        window.compare(first, agreed);
        window.note(u32::from(first) << agreed, true);
        window.facts(Some(agreed), None).scale_inferred
    }

    #[test]
    fn a_syns_window_divided_by_another_scale_shows_that_the_option_was_changed() {
        assert_eq!(compared(64_240, 502, 0), Some(7), "Linux, and no scale any more");
        assert_eq!(compared(65_535, 2048, 0), Some(5));
        assert_eq!(compared(64_240, 502, 3), Some(7), "a smaller scale");
    }

    #[test]
    fn near_miss_windows_that_mean_what_their_syn_said() {
        assert_eq!(compared(64_240, 502, 7), None, "the agreed scale");
        assert_eq!(compared(65_535, 65_535, 0), None, "no scale");
        assert_eq!(compared(64_240, 32_120, 0), None, "half is no scale that anybody uses");
        assert_eq!(compared(8192, 1026, 8), None, "it grew");
        assert_eq!(compared(64_240, 500, 0), None, "near, and not it");
        assert_eq!(compared(64_240, 31, 0), None, "too few digits to tell");
    }
}
