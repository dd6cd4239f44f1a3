//! Several threads share one source of work: whichever is idle reads on for all.
//!
//! Each thread has a lane, a queue of its own. Each reading adds one batch to every lane, so each
//! lane keeps the source's order. There is no separate reading thread: a thread that is ahead with
//! its own batches reads, so lanes with unequal work still end together, and `count` threads use
//! `count` CPUs.
//!
//! Each thread calls [`Lane::next`] until `None`, and returns finished batches to
//! [`Lane::give_back`]. When all have ended, [`Relay::take_source`] returns the source.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// A thread with this many batches in its queue has enough to do, and does not read.
const ENOUGH: usize = 2;
/// The most batches in a queue. This bounds memory, and what one core wrote is still in a cache
/// when another reads it.
const WAITING: usize = 8;

/// The source of work for all lanes.
pub trait Source {
    /// The result of one reading for one lane.
    type Batch: Default;

    /// Reads on and adds to each lane's batch; false if nothing is left, perhaps with last batches.
    fn read(&mut self, batches: &mut [Self::Batch]) -> bool;
}

/// The lanes, and the source that their threads share.
pub struct Relay<S: Source> {
    state: Mutex<RelayState<S>>,
    changed: Condvar,
    count: usize,
}

struct RelayState<S: Source> {
    /// `None` while a thread reads.
    source: Option<S>,
    has_ended: bool,
    queues: Vec<VecDeque<S::Batch>>,
    /// Batches for reuse.
    spare: Vec<S::Batch>,
}

/// One thread's end.
pub struct Lane<S: Source> {
    relay: Arc<Relay<S>>,
    number: usize,
}

impl<S: Source> Relay<S> {
    /// `count` lanes, fed from `source`.
    pub fn new(source: S, count: usize) -> Self {
        let queues = (0..count).map(|_| VecDeque::new()).collect();
        let state =
            RelayState { source: Some(source), has_ended: false, queues, spare: Vec::new() };
        Relay { state: Mutex::new(state), changed: Condvar::new(), count }
    }

    /// All lanes, one for each thread. An unused lane blocks the others.
    pub fn lanes(self: &Arc<Self>) -> impl Iterator<Item = Lane<S>> {
        (0..self.count).map(|number| Lane { relay: Arc::clone(self), number })
    }

    /// The source, once all lanes have ended; `None` if a thread panicked while reading.
    pub fn take_source(&self) -> Option<S> {
        self.lock().source.take()
    }

    /// Stops reading: the lanes end when they have processed what was read.
    pub fn stop(&self) {
        self.lock().has_ended = true;
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, RelayState<S>> {
        // No code of a source runs under the lock, so the state is intact after a panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: Source> Lane<S> {
    /// The lane's next batch; `None` at the end.
    pub fn next(&mut self) -> Option<S::Batch> {
        let mut state = self.relay.lock();
        loop {
            let own = state.queues[self.number].len();
            let may_read = own < ENOUGH
                && !state.has_ended
                && state.queues.iter().all(|queue| queue.len() < WAITING);
            if let Some(mut source) = state.source.take_if(|_| may_read) {
                let mut batches: Vec<_> =
                    (0..self.relay.count).map(|_| state.spare.pop().unwrap_or_default()).collect();
                drop(state);
                let goes_on = source.read(&mut batches);
                state = self.relay.lock();
                state
                    .queues
                    .iter_mut()
                    .zip(batches)
                    .for_each(|(queue, batch)| queue.push_back(batch));
                state.source = Some(source);
                state.has_ended |= !goes_on;
                self.relay.changed.notify_all();
            } else if let Some(batch) = state.queues[self.number].pop_front() {
                if own == WAITING {
                    self.relay.changed.notify_all();
                }
                return Some(batch);
            } else if state.has_ended {
                return None;
            } else {
                state = self.relay.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }

    /// Returns a finished, empty batch for reuse.
    pub fn give_back(&mut self, batch: S::Batch) {
        self.relay.lock().spare.push(batch);
    }
}

impl<S: Source> Drop for Lane<S> {
    fn drop(&mut self) {
        // Others must not wait for a thread that panicked while reading or with a full queue; the
        // join reports the panic.
        if std::thread::panicking() {
            self.relay.stop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers below `end`, each to one lane.
    struct Numbers {
        next: u64,
        end: u64,
        panics_at: u64,
    }

    impl Source for Numbers {
        type Batch = Vec<u64>;

        fn read(&mut self, batches: &mut [Vec<u64>]) -> bool {
            assert!(self.next != self.panics_at, "as asked");
            for number in self.next..(self.next + 100).min(self.end) {
                // Lanes of very unequal work.
                let lane = usize::from(number % 10 == 0) % batches.len();
                batches[lane].push(number);
            }
            self.next += 100;
            self.next < self.end
        }
    }

    fn taken(source: Numbers, count: usize) -> (Vec<Option<Vec<u64>>>, Option<Numbers>) {
        let relay = Arc::new(Relay::new(source, count));
        let taken = std::thread::scope(|scope| {
            let threads: Vec<_> = relay
                .lanes()
                .map(|mut lane| {
                    scope.spawn(move || {
                        let mut all = Vec::new();
                        while let Some(mut batch) = lane.next() {
                            all.append(&mut batch);
                            lane.give_back(batch);
                        }
                        all
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().ok()).collect()
        });
        (taken, relay.take_source())
    }

    #[test]
    fn every_lane_gets_what_is_its_own_in_order() {
        for count in [1, 2, 4] {
            let (taken, source) =
                taken(Numbers { next: 0, end: 12_345, panics_at: u64::MAX }, count);
            let mut all = Vec::new();
            for lane in taken {
                let lane = lane.expect("no thread panics");
                assert!(lane.is_sorted());
                all.extend(lane);
            }
            all.sort_unstable();
            assert_eq!(all, (0..12_345).collect::<Vec<_>>(), "{count} lanes");
            assert_eq!(source.map(|source| source.next), Some(12_400));
        }
    }

    #[test]
    fn a_panic_in_one_thread_ends_the_others() {
        let (taken, source) = taken(Numbers { next: 0, end: 1 << 40, panics_at: 5000 }, 3);
        assert_eq!(taken.iter().filter(|lane| lane.is_none()).count(), 1);
        assert!(source.is_none());
    }
}
