//! Packets of one file in the order of time.
//!
//! A file may have them in another order: several interfaces that are written in turn, a card or a
//! tap that hands up batches, a clock that was set. Where a file has several interfaces, or a time
//! has gone back, packets wait until [`WAIT`] of the capture has passed after them; all others pass
//! through at once, without a copy.

use fullpipe_flow::capture::{LinkType, Packet};
use fullpipe_model::units::{Duration, Instant};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Packets that are late by more than this are not sorted: taps and cards batch for milliseconds.
pub const WAIT: Duration = Duration::from_secs(1);
/// The most bytes and packets that wait: beyond that, the oldest waits no longer.
const BYTES_MAX: usize = 16 << 20;
const PACKETS_MAX: usize = 1 << 16;

/// Puts packets into the order of time. With [`InOrder::push`], then [`InOrder::pop`] until `None`;
/// after the last packet, [`InOrder::end`] before the last [`InOrder::pop`].
#[derive(Debug, Default)]
pub struct InOrder {
    waiting: BinaryHeap<Reverse<Waiting>>,
    bytes: usize,
    pushed: u64,
    newest: Instant,
    /// Whether packets wait.
    waits: bool,
    /// Packets whose time was before that of one before them, and those that came too late to be
    /// sorted.
    pub backwards: u64,
    pub unsorted: u64,
    /// The time of the last packet that was taken.
    taken: Instant,
}

/// A packet that waits.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Waiting {
    at: Instant,
    /// Its place in the file, so that packets of one time keep their order.
    place: u64,
    link_type: LinkType,
    data: Vec<u8>,
    original_length: usize,
}

impl Waiting {
    /// When it was captured.
    pub fn at(&self) -> Instant {
        self.at
    }

    /// The packet.
    pub fn packet(&self) -> Packet<'_> {
        let Waiting { at, link_type, ref data, original_length, .. } = *self;
        Packet { at, link_type, data, original_length }
    }
}

impl InOrder {
    /// From now on packets wait for others.
    pub fn wait(&mut self) {
        self.waits = true;
    }

    /// Whether packets wait for others.
    pub fn waits(&self) -> bool {
        self.waits
    }

    /// Notes a packet that passes without waiting. Returns whether its time went back, so that the
    /// packets after it should wait.
    pub fn passes(&mut self, at: Instant) -> bool {
        let goes_back = at < self.newest;
        self.backwards += u64::from(goes_back);
        self.unsorted += u64::from(goes_back);
        self.newest = self.newest.max(at);
        self.taken = self.taken.max(at);
        goes_back
    }

    /// Adds a packet; returns whether it is the first.
    pub fn push(&mut self, packet: &Packet<'_>) -> bool {
        self.backwards += u64::from(packet.at < self.newest);
        self.newest = self.newest.max(packet.at);
        self.bytes += packet.data.len();
        let waiting = self.keep(packet);
        let is_first = waiting.place == 0;
        self.waiting.push(Reverse(waiting));
        is_first
    }

    /// A copy of a packet.
    pub fn keep(&mut self, packet: &Packet<'_>) -> Waiting {
        let Packet { at, link_type, data, original_length } = *packet;
        let place = self.pushed;
        self.pushed += 1;
        Waiting { at, place, link_type, data: data.to_vec(), original_length }
    }

    /// The next packet that need not wait any longer.
    pub fn pop(&mut self) -> Option<Waiting> {
        let Reverse(first) = self.waiting.peek()?;
        let is_full = self.bytes > BYTES_MAX || self.waiting.len() > PACKETS_MAX;
        let is_due = !self.waits || is_full || self.newest.since(first.at) >= WAIT;
        let Reverse(first) = is_due.then(|| self.waiting.pop()).flatten()?;
        self.bytes -= first.data.len();
        self.unsorted += u64::from(first.at < self.taken);
        self.taken = self.taken.max(first.at);
        Some(first)
    }

    /// No packet follows: none waits any longer.
    pub fn end(&mut self) {
        self.waits = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(millis: u64, data: &[u8]) -> Packet<'_> {
        let at = Instant::ZERO + Duration::from_millis(millis);
        Packet { at, link_type: LinkType::RAW, data, original_length: data.len() }
    }

    fn sorted(times: &[u64]) -> (Vec<(u64, u8)>, InOrder) {
        let mut order = InOrder::default();
        order.wait();
        let mut taken = Vec::new();
        let mut take = |order: &mut InOrder| {
            while let Some(one) = order.pop() {
                taken.push((one.at.since(Instant::ZERO).as_micros() / 1000, one.data[0]));
            }
        };
        for (number, time) in times.iter().enumerate() {
            order.push(&packet(*time, &[number as u8]));
            take(&mut order);
        }
        order.end();
        take(&mut order);
        (taken, order)
    }

    #[test]
    fn packets_come_in_the_order_of_time_and_of_one_time_in_that_of_the_file() {
        let (taken, order) = sorted(&[0, 30, 10, 30, 20]);
        assert_eq!(taken, [(0, 0), (10, 2), (20, 4), (30, 1), (30, 3)]);
        assert_eq!((order.backwards, order.unsorted, order.bytes), (2, 0, 0));
    }

    #[test]
    fn what_is_too_late_is_not_sorted_and_is_counted() {
        let (taken, order) = sorted(&[0, 500, 3000, 400, 3100]);
        assert_eq!(taken, [(0, 0), (500, 1), (400, 3), (3000, 2), (3100, 4)]);
        assert_eq!((order.backwards, order.unsorted), (1, 1));
    }

    #[test]
    fn what_waits_is_bounded() {
        let mut order = InOrder::default();
        order.wait();
        let data = vec![0; 1 << 20];
        for _ in 0..200 {
            order.push(&packet(5, &data));
            while order.pop().is_some() {}
            assert!(order.bytes <= BYTES_MAX);
        }
        for _ in 0..2 * PACKETS_MAX {
            order.push(&packet(5, &[1]));
            while order.pop().is_some() {}
        }
        assert!(order.waiting.len() <= PACKETS_MAX);
    }
}
