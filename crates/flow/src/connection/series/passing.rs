//! How the bytes of a direction pass: at which rate, and in which bursts and flights.

use super::{Data, Series};
use crate::limit::{Clocked, Features, Pause};
use fullpipe_model::units::{Duration, Instant};

/// Events that pass before trains are timed. A request and its answer have fewer.
const UNTIMED: u8 = 6;
/// Bytes that pass so many times as fast as they would if they were spread evenly over the round
/// trip are of a burst.
const IN_A_BURST: f32 = 3.0;

/// Connections that share a path take turns: each sends what its window holds at once. So many
/// intervals of silence are a turn of the others.
const TURN: u64 = 4;
/// About so many segments tell which part of what is sent repairs something.
const REPAIRED_OF: f64 = 512.0;

/// What passed on the path between two segments of a connection, beside it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Beside {
    pub bytes: u64,
    /// For how long nothing passed, at a moment of that time on average: all of it where nothing
    /// passed beside it.
    pub gap: Duration,
    /// Which part of the time the longest silence took, about.
    pub silent: f64,
}

impl Series {
    /// What passed beside this connection since the data before. Where it was silent for longer
    /// than such connections take turns, the others had the path to themselves, unless it waited
    /// for a timer.
    pub(super) fn carried_beside(&mut self, at: Instant, data: Data) -> Beside {
        let before = std::mem::replace(&mut self.carried, data.carried);
        let gap = at.since(self.sent_at);
        let bytes = data.carried.bytes.saturating_sub(before.bytes);
        let bytes = self.part_that_passes(bytes.saturating_sub(data.length.into()));
        let turn = self.interval.max(self.lag).saturating_mul(TURN);
        let was_their_turn = gap > turn && !data.is_repeated && !data.follows_gap;
        if before.bytes == 0 || bytes == 0 || was_their_turn {
            return Beside { bytes: 0, gap, silent: 1.0 };
        }
        let squares = data.carried.gaps.wrapping_sub(before.gaps) as f64;
        let whole = gap.as_secs_f64() * 1e6;
        let gap = gap.min(Duration::from_secs_f64(squares / whole.max(1.0) * 1e-6));
        Beside { bytes, gap, silent: (squares.sqrt() / whole.max(1.0)).min(1.0) }
    }

    /// Of so many bytes of others, those that the path does not drop. At the sender all are seen,
    /// and the path drops of them what it drops of this connection's.
    fn part_that_passes(&self, bytes: u64) -> u64 {
        let repaired = self.trains.as_ref().map_or(0.0, |trains| trains.repaired);
        if self.lag > Duration::ZERO { bytes } else { (bytes as f64 * (1.0 - repaired)) as u64 }
    }

    /// Notes that data passed, for the part of it that repairs something.
    pub(super) fn note_repaired(&mut self, data: Data) {
        if let Some(trains) = &mut self.trains {
            trains.ends_short &= !data.is_repeated;
            let part = (f64::from(data.segments) / REPAIRED_OF).min(1.0);
            trains.repaired += part * (f64::from(u8::from(data.is_repeated)) - trains.repaired);
        }
    }

    /// Notes what passed beside this connection between the data before and the one `at`, evenly
    /// over the intervals of that time. Beyond the sender, this connection's data may have waited
    /// behind it, so its sender is not known to have been idle meanwhile.
    pub(super) fn note_beside(&mut self, at: Instant, beside: &Beside) {
        if beside.bytes == 0 {
            return;
        }
        let since = self.sent_at;
        let gap = at.since(since).as_secs_f64().max(1e-9);
        let busy = if self.lag > Duration::ZERO { 1.0 - beside.silent } else { 0.0 };
        let mut rest = beside.bytes;
        for (one, overlap) in self.intervals_since(since, at) {
            let overlap = overlap.as_secs_f64();
            one.idle = one.idle.saturating_sub((busy * overlap * 1e9) as u64);
            let part = (beside.bytes as f64 * overlap / gap) as u64;
            one.beside += part.min(rest);
            rest = rest.saturating_sub(part);
        }
        self.current.beside += rest;
    }

    /// The intervals from `since` to now, the latest first, and how much of that time is in each.
    pub(super) fn intervals_since(
        &mut self,
        since: Instant,
        now: Instant,
    ) -> impl Iterator<Item = (&mut Features, Duration)> {
        let current = std::iter::once((&mut self.current, now));
        let earlier = self.closed.iter_mut().rev().map(|one| {
            let end = one.start + one.length;
            (one, end)
        });
        current.chain(earlier.take_while(move |(_, end)| *end > since)).map(move |(one, end)| {
            let time = end.since(one.start.max(since));
            (one, time)
        })
    }

    /// Notes that bytes passed: at the sender by an ACK, elsewhere by their segment. `new` of them
    /// were not reported before.
    pub(super) fn passed(&mut self, at: Instant, bytes: u64, new: u64) {
        self.current.train_events += 1;
        if self.untimed < UNTIMED {
            self.untimed += 1;
            return;
        }
        let even = self.even_time(new);
        let trains = self.trains.get_or_insert_default();
        if let Some((last, even)) = trains.last().zip(even) {
            let gap = at.since(last).as_secs_f64() as f32;
            if gap * IN_A_BURST <= even {
                self.current.burst = self.current.burst.saturating_add(new as u32);
                self.current.burst_time += gap;
            }
        }
        if let Some(rate) = trains.passed(at, bytes, self.lag > Duration::ZERO) {
            self.current.train_max = self.current.train_max.max(rate as f32);
        }
    }

    /// Notes that new data follows a pause, if the sender had sent all that it had before.
    pub(super) fn note_pause(&mut self, at: Instant) {
        let Some(trains) = self.trains.as_mut().filter(|trains| trains.ends_short) else { return };
        let first = self.closed.first().unwrap_or(&self.current).start;
        let [begin, end] = [self.sent_at, at].map(|at| at.since(first).as_secs_f64());
        trains.blocks.add(self.next, Pause { begin, end }, self.prompted, self.least.get());
    }

    /// For how long a clock woke the writer.
    pub fn clocked(&self) -> Clocked {
        let blocks = self.trains.as_deref().map(|trains| trains.blocks.clone());
        blocks.map(|blocks| blocks.finish(self.least.get())).unwrap_or_default()
    }

    /// The seconds that `bytes` would take if what was in flight before they passed did so evenly
    /// over a round trip; `None` where nothing passed.
    fn even_time(&self, bytes: u64) -> Option<f32> {
        if bytes == 0 {
            return None;
        }
        let part = bytes as f32 / (bytes as f32 + self.in_flight() as f32);
        Some(self.least.get()?.as_secs_f64() as f32 * part)
    }

    /// Notes that bytes of a flight passed, at the sender by their ACK, `gap` after those before.
    /// They may begin a flight where the sender knows that the one before arrived. They do if they
    /// come later than a busy path lets segments follow each other.
    pub(super) fn pace(&mut self, gap: Duration, may_begin: bool) {
        let paced = self.spacing.pace(gap.as_secs_f64() as f32, may_begin);
        self.current.flights = self.current.flights.saturating_add(paced.flights);
        self.current.passing += paced.passing;
    }
}
