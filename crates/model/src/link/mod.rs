//! One direction of an emulated path: a queue, a rate, a delay and random loss, told the time and never asking for it.
//!
//! # How to think about it
//!
//! ```text
//!            loss?          finite queue        serialisation at `rate`      propagation
//! push ──► [ dropped ] ──► [ tail drop ] ──► [ one packet after another ] ──► [ delay ] ──► poll
//! ```
//!
//! A packet of `n` bytes that finds the queue empty leaves it `8 n / rate` later and departs from the link a `delay`
//! after that. Others wait for their turn. Loss is drawn first, as netem does it, so a lost packet takes no room in the
//! queue and no time of the link. Sizes are those of IP packets: a rate is met at layer 3.
//!
//! # Order of calls
//!
//! `now` never decreases over the calls of one [`Link`]. [`Link::push`] whenever a packet arrives, [`Link::poll`] until
//! `None` whenever time has reached [`Link::poll_at`]. A packet is polled at its departure or later: the difference
//! between `now` and [`Departure::at`] is the lateness of the driver, which it should measure and report.
//!
//! The same seed and the same arrivals give the same fate to every packet: the random source is [`rand_pcg`], whose
//! stream is fixed by its specification.
//!
//! It does not know packets' contents, addresses or super-packets: the driver splits those and pushes each segment.

mod config;
mod queue;
mod rate;

pub use config::{Config, ConfigError, QueueLimit};
pub use queue::Capacity;

use crate::units::{Bytes, Duration, Instant, Probability, Rate};
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use rate::Serialiser;
use std::collections::VecDeque;

/// Why a packet did not pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DropCause {
    /// Drawn by the loss probability.
    Loss,
    /// The queue had no room.
    QueueFull,
}

/// A packet that leaves the link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Departure<T> {
    /// What was pushed.
    pub item: T,
    /// When it leaves, by the model.
    pub at: Instant,
}

/// What a direction has carried and dropped so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct Counters {
    /// Packets pushed.
    pub arrived_packets: u64,
    /// Packets that departed.
    pub departed_packets: u64,
    /// Bytes (of IP packets) that departed.
    pub departed_bytes: u64,
    /// Packets lost at random.
    pub lost_packets: u64,
    /// Packets that found the queue full.
    pub queue_dropped_packets: u64,
    /// The most bytes that ever waited, the packet being serialised included.
    pub queue_max_bytes: u64,
}

#[derive(Debug)]
struct Entry<T> {
    item: T,
    size: Bytes,
    /// When its last bit has been serialised: until then it is in the queue.
    serialised_at: Instant,
}

/// One direction of a path carrying packets named by `T` (an index, a buffer).
#[derive(Debug)]
pub struct Link<T> {
    delay: Duration,
    loss: Probability,
    capacity: Capacity,
    serialiser: Serialiser,
    random: Pcg64Mcg,
    /// In order of departure; the first `propagating` of them have left the queue.
    entries: VecDeque<Entry<T>>,
    propagating: usize,
    now: Instant,
    counters: Counters,
}

impl<T> Link<T> {
    /// A direction as configured. `rtt` is that of the whole path: it gives a queue of "n x BDP" its size.
    pub fn new(config: &Config, rtt: Duration, seed: u64) -> Self {
        let capacity = config.capacity(rtt);
        Link {
            delay: config.delay,
            loss: config.loss,
            capacity,
            serialiser: Serialiser::new(config.rate),
            random: Pcg64Mcg::seed_from_u64(seed),
            entries: VecDeque::with_capacity(config.packets_in_flight(capacity)),
            propagating: 0,
            now: Instant::ZERO,
            counters: Counters::default(),
        }
    }

    /// A packet of `size` bytes arrives. `Err` says why it is dropped.
    pub fn push(&mut self, item: T, size: Bytes, now: Instant) -> Result<(), DropCause> {
        self.advance(now);
        self.counters.arrived_packets += 1;
        // One draw a packet, whatever its fate: changing the queue does not change which packets are lost.
        if self.loss > Probability::ZERO && self.loss.happens(self.random.next_u64()) {
            self.counters.lost_packets += 1;
            return Err(DropCause::Loss);
        }
        let waiting = self.serialiser.backlog(self.now);
        let waiting_packets = (self.entries.len() - self.propagating) as u64;
        if !self.capacity.admits(waiting, waiting_packets, size) {
            self.counters.queue_dropped_packets += 1;
            return Err(DropCause::QueueFull);
        }
        self.counters.queue_max_bytes = self.counters.queue_max_bytes.max(waiting.saturating_add(size).get());
        let serialised_at = self.serialiser.accept(size, self.now);
        self.entries.push_back(Entry { item, size, serialised_at });
        Ok(())
    }

    /// The next packet that has departed by `now`.
    pub fn poll(&mut self, now: Instant) -> Option<Departure<T>> {
        self.advance(now);
        let at = self.poll_at()?;
        if at > self.now {
            return None;
        }
        let entry = self.entries.pop_front()?;
        self.propagating = self.propagating.saturating_sub(1);
        self.counters.departed_packets += 1;
        self.counters.departed_bytes += entry.size.get();
        Some(Departure { item: entry.item, at })
    }

    /// When to call [`Link::poll`] next; `None` while the link is empty.
    pub fn poll_at(&self) -> Option<Instant> {
        self.entries.front().map(|entry| entry.serialised_at + self.delay)
    }

    /// The departures that are planned, in their order: what a driver may look at to deliver several at once.
    pub fn planned(&self) -> impl Iterator<Item = (&T, Instant)> {
        self.entries.iter().map(|entry| (&entry.item, entry.serialised_at + self.delay))
    }

    /// Bytes that wait at `now`, the unserialised part of the packet in service included.
    pub fn backlog(&self, now: Instant) -> Bytes {
        self.serialiser.backlog(now.max(self.now))
    }

    /// Packets on the link, waiting and propagating.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether nothing is on the link.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The room of the queue.
    pub fn capacity(&self) -> Capacity {
        self.capacity
    }

    /// What was carried and dropped so far.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// The configured rate, if any.
    pub fn rate(&self) -> Option<Rate> {
        self.serialiser.rate()
    }

    /// Moves the clock, never back, and with it the border between waiting and propagating packets.
    fn advance(&mut self, now: Instant) {
        self.now = self.now.max(now);
        while self.entries.get(self.propagating).is_some_and(|entry| entry.serialised_at <= self.now) {
            self.propagating += 1;
        }
    }
}

#[cfg(test)]
mod tests;
