//! One link of a direction, the memory of its packets, and what is about to leave it.
//!
//! Each link has its own memory, so that a slow one does not keep the memory of the fast ones
//! occupied. Frames are read into the memory of the default link; those for a rule are copied
//! ([`Lane::copy`]).
//!
//! The model says when each segment departs; the driver needs to know when to act. Segments of one
//! frame that depart within the coalescing time of each other are delivered together when the last
//! of them is due: [`Lane::due`] computes that from the model's planned departures. It affects only
//! the time. What is delivered together is decided by what has actually departed, one departure
//! after another ([`Lane::take`], [`Lane::put_back`]).

use super::memory::Memory;
use super::ring::{Origin, Ring};
use super::super_packet::Layout;
use super::truth::{Entry, Identity, Log};
use fullpipe_model::link::{Config, Counters, Departure, Dropped, Event, Fate, Link, Packet, log};
use fullpipe_model::units::{Bytes, Duration, Instant};

/// A segment on the link: its frame and its index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// Serial number of the frame in the packet memory.
    pub frame: u64,
    /// Number of the segment within it.
    pub index: u16,
    /// Bytes that were waiting when it arrived, if a log needs it; at most 4 GiB.
    pub backlog: u32,
}

/// A link and its next departure.
#[derive(Debug)]
pub struct Lane {
    link: Link<Segment>,
    memory: Memory,
    coalesce: Duration,
    /// The next planned delivery, valid until the link's next departure changes.
    plan: Option<LanePlan>,
    /// An event that has happened but does not belong to the previous delivery.
    ahead: Option<Event<Segment>>,
}

#[derive(Debug, Clone, Copy)]
struct LanePlan {
    /// When the first segment departs.
    first: Instant,
    /// When the last of the segments to deliver together departs.
    due: Instant,
}

impl Lane {
    /// A lane over `link` with `ring` for its packets.
    pub fn new(link: Link<Segment>, ring: Ring, coalesce: Duration) -> Self {
        Lane { link, memory: Memory::new(ring), coalesce, plan: None, ahead: None }
    }

    /// The link.
    pub fn link(&self) -> &Link<Segment> {
        &self.link
    }

    /// Segments of a frame that depart within this time are handed over together.
    pub fn coalesce(&self) -> Duration {
        self.coalesce
    }

    /// The memory of its packets.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// The memory of its packets, mutable.
    pub fn memory_mut(&mut self) -> &mut Memory {
        &mut self.memory
    }

    /// Changes the path from `now` on, see [`Link::set`], with more memory if needed.
    pub fn set(
        &mut self,
        config: &Config,
        rtt: Duration,
        coalesce: Duration,
        ring: Option<Ring>,
        now: Instant,
    ) {
        self.link.set(config, rtt, now);
        self.coalesce = coalesce;
        self.plan = None;
        if let Some(ring) = ring {
            self.memory.grow(ring);
        }
    }

    /// Copies `frame` into this lane's memory as if it had been read there; returns whether there
    /// was room.
    pub fn copy(&mut self, frame: &[u8]) -> bool {
        let Some(space) = self.memory.space() else { return false };
        space[..frame.len()].copy_from_slice(frame);
        true
    }

    /// Handles the arrival of the segments of a frame of `len` bytes in this lane's memory, each
    /// described by `packet`. `told` gets their fates, if given.
    pub fn arrived(
        &mut self,
        len: usize,
        layout: Layout,
        origin: Origin,
        packet: impl Fn(u16) -> Packet,
        mut told: Option<impl FnMut(u16, &Fate)>,
    ) {
        let (frame, now) = (self.memory.next_serial(), origin.arrival);
        let mut references = 0;
        for index in 0..layout.count() {
            let backlog = told
                .as_ref()
                .map_or(0, |_| self.link.backlog(now).get().min(u32::MAX.into()) as u32);
            let fate = self.link.push(Segment { frame, index, backlog }, packet(index), now);
            // Each admitted segment or duplicate comes out of `take` once.
            references += fate.admitted();
            if let Some(told) = &mut told {
                told(index, &fate);
            }
        }
        if references > 0 {
            self.memory.keep(len, layout, origin, references);
        }
    }

    /// Writes to `log` what happened to a segment whose frame is in this lane's memory.
    pub fn tell(
        &self,
        log: &mut Log,
        segment: Segment,
        copy: bool,
        queued: Duration,
        fate: log::Fate,
    ) {
        let Segment { frame, index, backlog } = segment;
        let found = self.memory.get(frame).zip(self.memory.origin(frame));
        let Some(((frame, layout), origin)) = found else { return };
        let entry =
            Entry { origin, index, copy, backlog: Bytes::new(backlog.into()), queued, fate };
        log.record(&entry, &Identity::of(frame, &layout), &layout);
    }

    /// When to deliver next; `None` while nothing is on the link.
    pub fn due(&mut self) -> Option<Instant> {
        match &self.ahead {
            Some(Event::Departure(departure)) => return Some(departure.at),
            Some(Event::Drop(dropped)) => return Some(dropped.at),
            None => {}
        }
        let first = self.link.poll_at()?;
        match self.plan {
            Some(plan) if plan.first == first => Some(plan.due),
            _ => {
                let plan = LanePlan { first, due: self.worth_waiting_for(first) };
                self.plan = Some(plan);
                Some(plan.due)
            }
        }
    }

    /// When the last segment departs that continues the run of the one that departs `first`.
    fn worth_waiting_for(&self, first: Instant) -> Instant {
        let mut due = first;
        let mut last: Option<Segment> = None;
        for (segment, at) in self.link.planned() {
            let follows = last
                .is_none_or(|last| segment.frame == last.frame && segment.index == last.index + 1);
            if !follows || at.since(first) > self.coalesce {
                break;
            }
            (due, last) = (at, Some(*segment));
        }
        due
    }

    /// The next event up to `now`: a segment departed, or was dropped after it had been admitted.
    pub fn take(&mut self, now: Instant) -> Option<Event<Segment>> {
        self.ahead.take().or_else(|| self.link.poll(now))
    }

    /// Returns an event from [`Lane::take`]; it belongs to the next delivery.
    pub fn put_back(&mut self, event: Event<Segment>) {
        self.ahead = Some(event);
    }

    /// The link's counters, without a departure that was put back: it has not been handed over.
    pub fn counters(&self) -> Counters {
        let mut counters = self.link.counters();
        match &self.ahead {
            Some(Event::Departure(Departure { item, mark, corrupt, .. })) => {
                let layout = self.memory.get(item.frame).map(|(_, layout)| layout);
                let size = layout.map_or(0, |layout| layout.ip_len(item.index) as u64);
                counters.departed_packets -= 1;
                counters.departed_bytes = counters.departed_bytes.saturating_sub(size);
                counters.marked_packets -= u64::from(*mark);
                counters.corrupted_packets -= u64::from(corrupt.is_some());
            }
            Some(Event::Drop(_)) | None => {}
        }
        counters
    }

    /// The next packet that was dropped after it had been admitted, and that nobody was told of.
    pub fn take_dropped(&mut self) -> Option<Dropped<Segment>> {
        match self.ahead.take() {
            Some(Event::Drop(dropped)) => Some(dropped),
            departure => {
                self.ahead = departure;
                self.link.take_dropped()
            }
        }
    }

    /// Packets on the link, one whose departure was put back among them.
    pub fn inside(&self) -> usize {
        self.link.len() + usize::from(matches!(self.ahead, Some(Event::Departure(_))))
    }

    /// Whether nothing is on the link.
    pub fn is_empty(&self) -> bool {
        self.ahead.is_none() && self.link.poll_at().is_none()
    }
}
