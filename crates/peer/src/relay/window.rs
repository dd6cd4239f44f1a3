//! How much a stream may send: credit out of one budget of memory.
//!
//! What a stream was granted and its reader has not yet taken is memory that the peer may fill at
//! any time. Of that every stream has [`WINDOW_LEAST`] of its own, so that streams with slow
//! readers, however many, do not stop the others. The sum of what streams have beyond it stays
//! within the [`Budget`]. So the bound is the budget and `WINDOW_LEAST` for each stream.
//!
//! A window starts at up to [`WINDOW_FIRST`] out of one half of the budget, so that idle streams
//! leave the other half to busy ones; and growth leaves enough for the next stream to start. It
//! doubles while the reader takes everything at once and half of the window was used up within two
//! round trips: then the window, and not the reader, is what limits the stream. (The rule of QUIC
//! implementations' automatic tuning; in Linux it is `tcp_rcv_space_adjust`.)

use fullpipe_model::units::{Duration, Instant};

/// What a stream gets at least: four chunks.
pub(crate) const WINDOW_LEAST: u64 = 64 * 1024;

/// What a stream gets at first where the budget allows: 300 ms at 450 Mbit/s. With 4 MiB, article
/// E's path with 40 carriers was no quicker than with 10: the window, and not the carriers, was its
/// limit.
const WINDOW_FIRST: u64 = 16 * 1024 * 1024;

/// Bytes that streams may hold together.
#[derive(Debug)]
pub(crate) struct Budget {
    total: u64,
    granted: u64,
}

impl Budget {
    /// A budget of `total` bytes, of which nothing is granted.
    pub fn new(total: u64) -> Self {
        Budget { total, granted: 0 }
    }

    fn free(&self) -> u64 {
        self.total.saturating_sub(self.granted)
    }

    /// What a stream may grow by. An eighth of the budget and the half that is not for new streams
    /// stay free: what a stream was granted cannot be taken back, and until it is closed, a round
    /// trip after its end, the next one lives of that eighth.
    fn free_to_grow(&self) -> u64 {
        self.free().saturating_sub(self.total / 2 + self.total / 8)
    }

    /// A stream that held one amount holds another.
    fn change(&mut self, from: u64, to: u64) {
        self.granted -= from.saturating_sub(WINDOW_LEAST);
        self.granted += to.saturating_sub(WINDOW_LEAST);
    }

    /// Bytes that are granted now, beyond what each stream has of its own.
    pub fn granted(&self) -> u64 {
        self.granted
    }
}

/// What one stream was granted. It must be [`Window::close`]d, or the budget stays short.
#[derive(Debug)]
pub(crate) struct Window {
    size: u64,
    consumed: u64,
    limit: u64,
    updated: Option<Instant>,
    is_ended: bool,
}

impl Window {
    /// A new stream's window.
    pub fn open(budget: &mut Budget) -> Self {
        let for_new = budget.free().saturating_sub(budget.total / 2);
        let size = WINDOW_LEAST + (for_new / 2).min(WINDOW_FIRST);
        budget.change(0, size);
        Window { size, consumed: 0, limit: size, updated: None, is_ended: false }
    }

    /// The first offset that is not granted.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// The reader took `amount`. Returns the new limit where it is time to tell the peer. `rtt` is
    /// the round trip as known; `keeps_up` says that the reader left nothing.
    pub fn consume(
        &mut self,
        now: Instant,
        amount: u64,
        rtt: Option<Duration>,
        keeps_up: bool,
        budget: &mut Budget,
    ) -> Option<u64> {
        let before = self.limit - self.consumed;
        self.consumed += amount;
        let held = self.limit - self.consumed;
        budget.change(before, held);
        if self.is_ended || held > self.size / 2 {
            return None;
        }
        let is_quick = rtt.is_some_and(|rtt| {
            self.updated.is_none_or(|before| now.since(before) < rtt.saturating_mul(2))
        });
        if is_quick && keeps_up {
            let affordable = held + budget.free_to_grow();
            self.size = self.size.max((self.size * 2).min(affordable));
        }
        self.updated = Some(now);
        let least = WINDOW_LEAST.saturating_sub(held);
        let more = (self.size - held).min(least + budget.free());
        budget.change(held, held + more);
        self.limit += more;
        (more > 0).then_some(self.limit)
    }

    /// The stream ends at `length`: nothing comes beyond it, and that part of the grant goes back
    /// to the budget. Otherwise a stream that begins while this one is being closed would find
    /// the budget used up, and crawl.
    pub fn end_at(&mut self, length: u64, budget: &mut Budget) {
        if length > self.limit {
            // The peer announced its end early, and still needs credit up to there.
            return;
        }
        let limit = length.max(self.consumed);
        budget.change(self.limit - self.consumed, limit - self.consumed);
        self.limit = limit;
        self.is_ended = true;
    }

    /// Gives back what the stream still has.
    pub fn close(&mut self, budget: &mut Budget) {
        budget.change(self.limit - self.consumed, 0);
        self.consumed = self.limit;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const RTT: Duration = Duration::from_millis(100);

    #[test]
    fn an_ended_stream_leaves_the_next_one_the_whole_first_window() {
        const TOTAL: u64 = 128 << 20;
        let mut budget = Budget::new(TOTAL);
        let mut first = Window::open(&mut budget);
        let whole = first.limit();
        // A quick reader's window grows over most of the budget.
        let mut now = Instant::ZERO;
        for _ in 0..20 {
            now = now + Duration::from_millis(50);
            let half = (first.limit - first.consumed).div_ceil(2);
            first.consume(now, half, Some(RTT), true, &mut budget);
        }
        assert!(first.limit() - first.consumed > 2 * whole, "it grew");
        // One that begins before the first one's end is known has an eighth of the budget to share.
        let mut early = Window::open(&mut budget);
        assert!(early.limit() >= TOTAL / 16, "{}", early.limit());
        early.close(&mut budget);

        let length = first.consumed + 100_000;
        first.end_at(length, &mut budget);
        assert_eq!(first.limit(), length);
        assert_eq!(budget.granted(), 100_000 - WINDOW_LEAST);
        assert!(Window::open(&mut budget).limit() > whole - 100_000);
        assert_eq!(first.consume(now, 100_000, Some(RTT), true, &mut budget), None);
    }

    proptest! {
        /// Readers that take any amounts at any time, streams that come, end and go.
        #[test]
        fn the_budget_and_the_least_of_each_stream_bound_what_is_granted(
            total in 0u64..200_000_000,
            turns in prop::collection::vec((0usize..20, 0u64..10_000_000, any::<bool>()), 1..200),
        ) {
            let mut budget = Budget::new(total);
            let mut windows: Vec<Window> = Vec::new();
            for (turn, (which, amount, keeps_up)) in turns.into_iter().enumerate() {
                let now = Instant::ZERO + Duration::from_millis(turn as u64 * 10);
                if which >= windows.len() {
                    windows.push(Window::open(&mut budget));
                } else if amount == 0 {
                    windows.swap_remove(which).close(&mut budget);
                } else if amount.is_multiple_of(7) {
                    let window = &mut windows[which];
                    window.end_at(window.consumed + amount, &mut budget);
                } else {
                    let window = &mut windows[which];
                    let taken = amount.min(window.limit - window.consumed);
                    window.consume(now, taken, Some(RTT), keeps_up, &mut budget);
                    let rest = window.limit - window.consumed;
                    prop_assert!(window.is_ended || rest >= WINDOW_LEAST / 2);
                }
                prop_assert!(budget.granted <= total);
                let held = windows.iter().map(|window| window.limit - window.consumed);
                let sum: u64 = held.map(|held| held.saturating_sub(WINDOW_LEAST)).sum();
                prop_assert_eq!(sum, budget.granted);
            }
        }
    }

    #[test]
    fn the_window_grows_for_a_quick_reader_only() {
        for (keeps_up, every_ms, grows) in [(true, 50, true), (false, 50, false)] {
            let mut budget = Budget::new(64 << 20);
            let mut window = Window::open(&mut budget);
            let first = window.size;
            for turn in 0..10 {
                let now = Instant::ZERO + Duration::from_millis(turn * every_ms);
                let half = window.size.div_ceil(2);
                window.consume(now, half, Some(RTT), keeps_up, &mut budget);
            }
            assert_eq!(window.size > first, grows, "{keeps_up} {every_ms}");
        }
        let mut budget = Budget::new(64 << 20);
        let mut window = Window::open(&mut budget);
        let mut sizes = Vec::new();
        for turn in 0..10 {
            let now = Instant::ZERO + Duration::from_millis(turn * 500);
            let half = window.size.div_ceil(2);
            window.consume(now, half, Some(RTT), true, &mut budget);
            sizes.push(window.size);
        }
        assert_eq!(sizes[0], sizes[9], "the first time is quick, the others are not: {sizes:?}");
    }
}
