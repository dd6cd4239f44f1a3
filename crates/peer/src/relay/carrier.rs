//! What a session knows about one carrier.
//!
//! A carrier is an ordered, reliable connection, so one number acknowledges everything before it:
//! how many frames arrived. The frames that are not yet acknowledged stand in a queue; when the
//! carrier dies, they go again on the others. The time from handing a frame to the carrier to its
//! acknowledgement is the carrier's round trip, with everything that waits in its buffers.

use super::frame::{Frame, StreamId};
use super::violation::Violation;
use fullpipe_model::units::{Bytes, Duration, Instant};
use std::collections::VecDeque;

/// A carrier's number within its session, at this end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CarrierId(pub u32);

/// What a frame carried.
#[derive(Debug, Clone)]
pub(crate) enum Item {
    /// A chunk, which its stream still has.
    Chunk { stream: StreamId, offset: u64, length: u64 },
    /// Another frame.
    Control(Frame),
}

/// A frame that is not yet acknowledged.
#[derive(Debug)]
pub(crate) struct Sent {
    pub item: Item,
    pub at: Instant,
}

/// One carrier.
#[derive(Debug)]
pub(crate) struct Carrier {
    queue: VecDeque<Sent>,
    /// How many at the front of `queue` went again on another carrier.
    gone_again: usize,
    sent: u64,
    acknowledged: u64,
    received: u64,
    ack_sent: u64,
    rtt: Option<Duration>,
    in_flight: u64,
    delivered: u64,
    /// When the queue last moved or was empty.
    progress: Instant,
    last_sent: Option<Instant>,
}

/// A carrier's state, for the status and for tests.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CarrierState {
    /// The carrier.
    pub carrier: CarrierId,
    /// The smoothed time from taking a frame to its acknowledgement.
    pub round_trip: Option<Duration>,
    /// Payload on its way: taken and not acknowledged.
    pub in_flight: Bytes,
    /// Payload that the peer acknowledged on this carrier, copies included.
    pub delivered: Bytes,
    /// For how long the oldest frame has waited for its acknowledgement.
    pub oldest: Duration,
}

impl Carrier {
    pub fn new(now: Instant) -> Self {
        Carrier {
            queue: VecDeque::new(),
            gone_again: 0,
            sent: 0,
            acknowledged: 0,
            received: 0,
            ack_sent: 0,
            rtt: None,
            in_flight: 0,
            delivered: 0,
            progress: now,
            last_sent: None,
        }
    }

    /// A frame that asks for an acknowledgement was handed to the carrier.
    pub fn send(&mut self, now: Instant, item: Item) {
        if self.queue.is_empty() {
            self.progress = now;
        }
        if let Item::Chunk { length, .. } = item {
            self.in_flight += length;
        }
        self.sent += 1;
        self.last_sent = Some(now);
        self.queue.push_back(Sent { item, at: now });
    }

    /// The peer has `frames` of them. Returns those that were not known to have arrived.
    pub fn acknowledge(&mut self, now: Instant, frames: u64) -> Result<Vec<Item>, Violation> {
        if frames > self.sent {
            return Err(Violation::Ack { acknowledged: frames, sent: self.sent });
        }
        let count = frames.saturating_sub(self.acknowledged) as usize;
        if count == 0 {
            return Ok(Vec::new());
        }
        self.acknowledged = frames;
        self.gone_again = self.gone_again.saturating_sub(count);
        self.progress = now;
        if let Some(newest) = self.queue.get(count - 1) {
            let sample = now.since(newest.at).as_nanos();
            // RFC 6298, section 2: the smoothed round trip moves by an eighth.
            let before = self.rtt.map_or(sample, Duration::as_nanos);
            self.rtt = Some(Duration::from_nanos(before - before / 8 + sample / 8));
        }
        let items: Vec<Item> = self.queue.drain(..count).map(|sent| sent.item).collect();
        for item in &items {
            if let Item::Chunk { length, .. } = item {
                self.in_flight -= length;
                self.delivered += length;
            }
        }
        Ok(items)
    }

    /// A frame that asks for an acknowledgement arrived.
    pub fn receive(&mut self) {
        self.received += 1;
    }

    /// The acknowledgement that is due.
    pub fn take_ack(&mut self) -> Option<u64> {
        let is_due = self.received > self.ack_sent;
        self.ack_sent = self.received;
        is_due.then_some(self.received)
    }

    pub fn rtt(&self) -> Option<Duration> {
        self.rtt
    }

    /// For how long the oldest frame has waited.
    pub fn oldest(&self, now: Instant) -> Duration {
        self.queue.front().map_or(Duration::ZERO, |sent| now.since(sent.at))
    }

    /// For how long nothing was acknowledged although something should be.
    pub fn silence(&self, now: Instant) -> Duration {
        if self.queue.is_empty() { Duration::ZERO } else { now.since(self.progress) }
    }

    /// For how long nothing was sent on a carrier that owes nothing; a new one was always idle.
    pub fn idle(&self, now: Instant) -> Duration {
        let since = self.last_sent.map_or(Duration::MAX, |last| now.since(last));
        if self.queue.is_empty() { since } else { Duration::ZERO }
    }

    /// The oldest frame that has not gone again.
    pub fn first_not_again(&self) -> Option<&Sent> {
        self.queue.get(self.gone_again)
    }

    /// That frame went again, or need not.
    pub fn mark_again(&mut self) {
        self.gone_again = (self.gone_again + 1).min(self.queue.len());
    }

    /// Everything that is not acknowledged, for a carrier that died.
    pub fn into_items(self) -> impl Iterator<Item = Item> {
        self.queue.into_iter().map(|sent| sent.item)
    }

    pub fn state(&self, carrier: CarrierId, now: Instant) -> CarrierState {
        CarrierState {
            carrier,
            round_trip: self.rtt,
            in_flight: Bytes::new(self.in_flight),
            delivered: Bytes::new(self.delivered),
            oldest: self.oldest(now),
        }
    }
}
