//! How much a carrier's kernel may hold that it has not sent (`TCP_NOTSENT_LOWAT`).
//!
//! What a carrier holds, another one cannot carry, and a user's stream waits for it. So a carrier
//! holds what it carries in [`COVERS`], in which this thread comes back to it. On article E's path
//! (250 Mbit/s, 300 ms) 40 warm carriers carried 14.1 MB/s with 128 KiB each, and 16.7 MB/s with
//! 16 KiB.

use fullpipe_model::units::{Duration, Instant};

/// The time in which whoever fills the carrier comes back to it, on a machine that has other work.
const COVERS: Duration = Duration::from_millis(5);

/// A chunk, so that a carrier has one to send while the next is made.
const LEAST: u32 = 16 << 10;

/// From 200 Mbit/s on, a carrier holds no more: a larger write saves little.
const MOST: u32 = 128 << 10;

/// The carrier's rate is measured over at least this long.
const LOOK: Duration = Duration::from_millis(100);

/// The bound of one carrier, by the rate at which its socket takes what it is given.
#[derive(Debug)]
pub(super) struct Unsent {
    bound: u32,
    taken: u64,
    since: Option<Instant>,
}

impl Unsent {
    /// The bound of a carrier that has carried nothing.
    pub fn new() -> Self {
        Unsent { bound: LEAST, taken: 0, since: None }
    }

    /// The bound now, in bytes.
    pub fn bound(&self) -> u32 {
        self.bound
    }

    /// The socket took `bytes`. Returns the new bound where there is one: bounds are powers of two,
    /// so there are few.
    pub fn take(&mut self, now: Instant, bytes: usize) -> Option<u32> {
        self.taken += bytes as u64;
        let time = now.since(*self.since.get_or_insert(now));
        if time < LOOK {
            return None;
        }
        let covered = self.taken as f64 * COVERS.as_secs_f64() / time.as_secs_f64();
        (self.taken, self.since) = (0, Some(now));
        let bound = (covered as u32).clamp(LEAST, MOST).next_power_of_two();
        let is_new = bound != self.bound;
        self.bound = bound;
        is_new.then_some(bound)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives a carrier `rate` bytes a second for one second, in pieces of a millisecond.
    fn carry(unsent: &mut Unsent, from_millis: u64, rate: usize) {
        for millis in from_millis..from_millis + 1000 {
            unsent.take(Instant::ZERO + Duration::from_millis(millis), rate / 1000);
        }
    }

    #[test]
    fn a_carrier_holds_what_it_carries_until_the_thread_is_back() {
        let mut unsent = Unsent::new();
        for (turn, (rate, bound)) in
            [(0, LEAST), (1_000_000, LEAST), (10_000_000, 64 << 10), (1_000_000_000, MOST)]
                .into_iter()
                .enumerate()
        {
            carry(&mut unsent, 1000 * turn as u64, rate);
            assert_eq!(unsent.bound(), bound, "{rate} bytes a second");
        }
        carry(&mut unsent, 4000, 1_000_000);
        assert_eq!(unsent.bound(), LEAST, "a carrier in trouble holds little again");
    }

    #[test]
    fn a_bound_is_told_once() {
        let mut unsent = Unsent::new();
        let told = (0..1000).filter_map(|millis| {
            unsent.take(Instant::ZERO + Duration::from_millis(millis), 10_000)
        });
        assert_eq!(told.collect::<Vec<_>>(), [64 << 10]);
    }
}
