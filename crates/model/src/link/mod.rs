//! One direction of an emulated path: netem's impairments, a queue and a rate. It gets the time as
//! an argument and has no clock.
//!
//! # How to think about it
//!
//! ```text
//!        duplicate?  loss?   corrupt?       queue, discipline     serialisation at `rate`     propagation   slot
//! push ──► [ 2 ] ──► [ 0 ] ──► [ bit ] ──► [ drop, mark ] ──► [ one after another ] ──► [ delay, jitter ] ──► poll
//!                                                                                       [ reorder: none ]
//! ```
//!
//! A packet of `n` bytes that finds the queue empty leaves it `8 n / rate` later and departs from
//! the link a `delay` after that. Other packets wait for their turn. Loss is drawn before the
//! queue, as in netem, so a lost packet takes no room in the queue and no transmission time. Sizes
//! are those of IP packets, so rates are layer-3 rates.
//!
//! # Order of calls
//!
//! `now` never decreases over the calls of one [`Link`]. Call [`Link::push`] when a packet arrives,
//! and [`Link::poll`] until `None` when time has reached [`Link::poll_at`]. A packet is polled at
//! its departure or later: the difference between `now` and [`Departure::at`] is the lateness of
//! the driver, which should measure and report it. A push or a [`Link::set`] may bring
//! [`Link::poll_at`] forward, so call it again after each.
//!
//! # Randomness
//!
//! The same seed and the same arrivals give the same fate to every packet: the random source is
//! [`rand_pcg`], whose stream is fixed by its specification. Each impairment has its own stream and
//! draws once for each arriving packet, whatever happens to the packet. So adding or changing one
//! impairment does not change which packets another one affects.
//!
//! The link does not know packets' contents, addresses or super-packets: the driver splits those
//! and pushes each segment.

mod chance;
mod changes;
mod codel;
mod config;
mod delay;
mod discipline;
mod distribution;
mod fq_codel;
mod grammar;
mod impairments;
mod limit;
pub mod log;
mod loss;
mod overhead;
mod packet;
mod queue;
mod random;
mod rate;
mod red;
mod reorder;
pub mod rule;
mod schedule;
mod slot;
mod trace;
mod transmitter;
mod waiting;
mod wire;
mod words;

pub use chance::Chance;
pub use changes::{Changes, Handover, Step, Steps};
pub use config::{Config, ConfigError};
pub use delay::Delay;
pub use discipline::{Codel, Discipline, FqCodel, Red};
pub use distribution::{Distribution, Table, TableError};
pub use grammar::WordsError;
pub use limit::QueueLimit;
pub use loss::{Loss, LossModel};
pub use overhead::{Overhead, RateWords};
pub use packet::{Bit, Counters, Departure, DropCause, Dropped, Ecn, Event, Fate, Packet};
pub use queue::Capacity;
pub use reorder::Reorder;
pub use slot::{Slot, Spacing};
pub use trace::{Trace, TraceError};
pub use words::Words;
pub(crate) use words::with_words;

use crate::units::{Bytes, Duration, Instant, Rate};
use codel::Waiting;
use impairments::{Draw, Impairments};
use schedule::Schedule;
use slot::Gate;
use std::collections::VecDeque;
use std::sync::Arc;
use transmitter::{Service, Transmitter};
use waiting::{Promised, Queue, QueueState};
use wire::{Departures, Marks, WireEntry};

/// One direction of a path that carries packets identified by `T` (an index, a buffer). `T` is
/// cloned if a packet is duplicated.
#[derive(Debug)]
pub struct Link<T> {
    config: Config,
    seed: u64,
    /// Time 0 of changes.
    start: Option<Instant>,
    schedule: Option<Arc<Schedule>>,
    capacity: Capacity,
    impairments: Impairments,
    queue: Queue<T>,
    /// Since when the queue holds something.
    held_since: Instant,
    transmitter: Transmitter,
    promised: Promised,
    wire: Departures<T>,
    gate: Option<Gate>,
    /// Packets that were admitted and then dropped, not yet reported.
    dropped: VecDeque<Dropped<T>>,
    now: Instant,
    counters: Counters,
}

impl<T: Clone> Link<T> {
    /// A direction with this configuration. `rtt` is the round-trip time of the whole path; a queue
    /// in BDP needs it.
    pub fn new(config: &Config, rtt: Duration, seed: u64) -> Self {
        let capacity = config.capacity(rtt);
        let schedule = Schedule::new(config, seed).map(Arc::new);
        Link {
            config: config.clone(),
            seed,
            start: None,
            capacity,
            impairments: Impairments::new(config, seed),
            queue: Queue::new(config, rtt, seed),
            held_since: Instant::ZERO,
            transmitter: Transmitter::new(config, schedule.as_ref(), Instant::ZERO),
            promised: Promised::default(),
            wire: Departures::with_capacity(config.packets_in_flight(capacity)),
            gate: config.slot.as_ref().map(|slot| Gate::new(slot, seed)),
            schedule,
            dropped: VecDeque::new(),
            now: Instant::ZERO,
            counters: Counters::default(),
        }
    }

    /// Sets the time 0 of [`Config::changes`]; without it the first packet does.
    pub fn starting_at(mut self, start: Instant) -> Self {
        self.start = Some(start);
        self
    }

    /// Changes the path at `now` to `config` on a path of `rtt`. Packets on the wire are not
    /// affected. The queue keeps its packets, even if its new room is smaller; they get the new
    /// rate and delay. `now` is the new time 0 of [`Config::changes`]. Random streams continue,
    /// except those of a discipline and of slots.
    pub fn set(&mut self, config: &Config, rtt: Duration, now: Instant) {
        self.advance(now);
        let planned = self.wire.take_unserialised(self.now);
        let held = self.queue.drain();
        // The packet in service has already sent a part of itself.
        let first = planned
            .first()
            .map(|first| self.transmitter.unsent(first.size, first.serialised_at, self.now));
        self.start = Some(self.now);
        self.schedule = Schedule::new(config, self.seed).map(Arc::new);
        self.capacity = config.capacity(rtt);
        self.impairments.set(config);
        self.queue = Queue::new(config, rtt, self.seed);
        self.transmitter = Transmitter::new(config, self.schedule.as_ref(), self.now);
        self.promised.clear();
        self.gate = config.slot.as_ref().map(|slot| Gate::new(slot, self.seed));
        self.config = config.clone();
        for (index, entry) in planned.into_iter().enumerate() {
            let left = first.filter(|_| index == 0).unwrap_or(entry.size);
            self.plan(entry.item, entry.size, left, entry.arrived, self.now, entry.marks);
        }
        for waiting in held {
            if self.queue.holds() {
                self.hold(waiting, Capacity::Unlimited);
            } else {
                let size = waiting.packet.size;
                self.plan(waiting.item, size, size, waiting.arrived, self.now, waiting.marks);
            }
        }
        self.serve();
    }

    /// A packet arrives; returns what happens to it and to its duplicate, if it has one.
    pub fn push(&mut self, item: T, packet: Packet, now: Instant) -> Fate {
        self.advance(now);
        self.start.get_or_insert(self.now);
        self.counters.arrived_packets += 1;
        let backlog = self.waiting_bytes();
        let draw = self.impairments.draw(packet.size);
        let copy = draw.duplicated.then(|| item.clone());
        let marked = draw.lost && self.impairments.loss_marks() && packet.ecn.is_capable();
        let original = if draw.lost && !marked {
            self.counters.lost_packets += 1;
            Err(DropCause::Loss)
        } else {
            self.admit(item, packet, draw, backlog, Marks { mark: marked, ..Marks::default() })
        };
        let copy = copy.map(|item| {
            self.counters.duplicated_packets += 1;
            let (draw, backlog) = (self.impairments.draw_copy(), self.waiting_bytes());
            self.admit(item, packet, draw, backlog, Marks { copy: true, ..Marks::default() })
        });
        Fate { backlog, original, copy }
    }

    /// Puts a packet into the queue, or returns why not.
    fn admit(
        &mut self,
        item: T,
        packet: Packet,
        draw: Draw,
        backlog: Bytes,
        marks: Marks,
    ) -> Result<(), DropCause> {
        let Draw { random, corrupt, overtakes, .. } = draw;
        let mut marks = Marks { random, corrupt, overtakes, ..marks };
        if self.queue.holds() {
            if let Some(refused) =
                self.hold(Waiting { item, packet, arrived: self.now, marks }, self.capacity)
            {
                // FQ-CoDel may drop another packet, which was already reported as admitted.
                if matches!(self.queue, Queue::Codel { .. }) {
                    self.counters.queue_dropped_packets += 1;
                    return Err(DropCause::QueueFull);
                }
                self.tell_drop(refused, self.now, DropCause::QueueFull);
            }
            self.count_backlog(backlog, packet.size);
            self.serve();
            return Ok(());
        }
        let found = QueueState {
            backlog,
            packets: self.promised.packets(),
            idle_since: self.promised.last_end(),
            now: self.now,
        };
        match self.queue.arrives(&packet, self.capacity, found) {
            Ok(marked) => marks.mark |= marked,
            Err(cause) => {
                match cause {
                    DropCause::QueueFull => self.counters.queue_dropped_packets += 1,
                    DropCause::Loss | DropCause::Discipline => {
                        self.counters.discipline_dropped_packets += 1
                    }
                }
                return Err(cause);
            }
        }
        self.count_backlog(backlog, packet.size);
        self.plan(item, packet.size, packet.size, self.now, self.now, marks);
        Ok(())
    }

    fn count_backlog(&mut self, backlog: Bytes, size: Bytes) {
        self.counters.queue_max_bytes =
            self.counters.queue_max_bytes.max(backlog.saturating_add(size).get());
    }

    fn hold(&mut self, waiting: Waiting<T>, capacity: Capacity) -> Option<Waiting<T>> {
        if self.queue.len() == 0 {
            self.held_since = self.now;
        }
        let packets = self.promised.packets();
        let in_service = QueueState {
            backlog: self.promised_bytes(),
            packets,
            idle_since: self.now,
            now: self.now,
        };
        self.queue.hold(waiting, capacity, in_service)
    }

    /// Gives the transmitter a packet with `left` bytes still to send, from `turn` on, and plans
    /// its departure.
    fn plan(
        &mut self,
        item: T,
        size: Bytes,
        left: Bytes,
        arrived: Instant,
        turn: Instant,
        marks: Marks,
    ) {
        let start = self.start.unwrap_or_default();
        let Service { start: served_at, end } =
            self.transmitter.accept(self.config.overhead.on_wire(left), turn, start);
        self.promised.push(end, size);
        // A packet that a policer admits already has its tokens and does not wait for them.
        let polices = self.config.discipline == Discipline::Police;
        let (served_at, end) = if polices { (turn, turn) } else { (served_at, end) };
        let overtakes = self.impairments.overtakes(marks.overtakes);
        self.counters.reordered_packets += u64::from(overtakes);
        let at = if overtakes { end } else { end + self.delay(end, marks.random) };
        let queued = served_at.since(arrived);
        self.wire.insert(WireEntry { item, size, serialised_at: end, at, arrived, queued, marks });
    }

    /// The delay of a packet that enters the wire at `at`.
    fn delay(&self, at: Instant, random: u64) -> Duration {
        let base = match &self.schedule {
            Some(schedule) => schedule.at(at.since(self.start.unwrap_or_default())).delay,
            None => self.config.delay.base,
        };
        if self.config.delay.is_constant() {
            return base;
        }
        let offset = self.config.delay.distribution.offset(random, self.config.delay.jitter);
        Duration::from_nanos(base.as_nanos().saturating_add_signed(offset))
    }

    /// The next event up to `now`: a packet departed, or was dropped after it had been admitted.
    pub fn poll(&mut self, now: Instant) -> Option<Event<T>> {
        self.advance(now);
        if let Some(dropped) = self.dropped.pop_front() {
            return Some(Event::Drop(dropped));
        }
        let ready = self.wire.first()?.at;
        if ready > self.now {
            return None;
        }
        let at = self.gate.as_mut().map_or(ready, |gate| gate.leaves_at(ready));
        if at > self.now {
            return None;
        }
        let WireEntry { item, size, queued, marks, .. } = self.wire.pop_first()?;
        if let Some(gate) = &mut self.gate {
            gate.left(size);
        }
        let Marks { corrupt, mark, copy, .. } = marks;
        let counters = &mut self.counters;
        counters.departed_packets += 1;
        counters.departed_bytes = counters.departed_bytes.saturating_add(size.get());
        counters.marked_packets += u64::from(mark);
        counters.corrupted_packets += u64::from(corrupt.is_some());
        Some(Event::Departure(Departure { item, at, queued, mark, corrupt, copy }))
    }

    /// The next packet that was admitted, then dropped, and not yet reported by [`Link::poll`]:
    /// what a link that ends has counted and told nobody.
    pub fn take_dropped(&mut self) -> Option<Dropped<T>> {
        self.dropped.pop_front()
    }

    /// When to call [`Link::poll`] next; `None` while the link is empty. It may be early: a poll
    /// may return nothing and only advance the state.
    pub fn poll_at(&self) -> Option<Instant> {
        if !self.dropped.is_empty() {
            return Some(self.now);
        }
        let first = self
            .wire
            .first()
            .map(|first| self.gate.as_ref().map_or(first.at, |gate| gate.known(first.at)));
        if self.queue.len() == 0 {
            return first;
        }
        // When the head is served. It cannot depart earlier than that, plus a delay that is the
        // same for all.
        let served = self.transmitter.next_start(self.held_since, self.start.unwrap_or_default());
        let varies = self.schedule.is_some()
            || self.config.reorder.is_some()
            || !self.config.delay.is_constant();
        let departs = if varies { served } else { served + self.config.delay.base };
        Some(first.map_or(departs, |first| first.min(departs)))
    }

    /// The departures that are certain if nothing more arrives, in order; a driver may use them to
    /// deliver several packets at once. They do not include packets whose turn a discipline or a
    /// slot has not yet decided, so this may be empty while [`Link::poll_at`] is not `None`.
    pub fn planned(&self) -> impl Iterator<Item = (&T, Instant)> {
        let slot = self.gate.as_ref().map(|gate| gate.present());
        let decided = self.wire.iter().enumerate().take_while(move |(index, entry)| match slot {
            None => true,
            Some(None) => false,
            Some(Some((opens, packets))) => entry.at <= opens && *index < packets as usize,
        });
        decided.map(move |(_, entry)| {
            let opens = slot.flatten().map(|(opens, _)| opens);
            (&entry.item, opens.map_or(entry.at, |opens| opens.max(entry.at)))
        })
    }

    /// Bytes waiting at `now`, including the unserialised part of the packet in service.
    pub fn backlog(&self, now: Instant) -> Bytes {
        let now = now.max(self.now);
        let promised = self.transmitter.backlog(now).unwrap_or_else(|| self.promised.bytes());
        promised.saturating_add(self.queue.bytes())
    }

    /// Packets on the link, waiting and propagating.
    pub fn len(&self) -> usize {
        self.wire.len() + self.queue.len()
    }

    /// Whether nothing is on the link.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The room of the queue.
    pub fn capacity(&self) -> Capacity {
        self.capacity
    }

    /// What it has carried and dropped so far.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// The configured rate, if any; for a trace, its mean.
    pub fn rate(&self) -> Option<Rate> {
        self.config.mean_rate()
    }

    /// The present configuration.
    pub fn config(&self) -> &Config {
        &self.config
    }

    fn waiting_bytes(&self) -> Bytes {
        self.promised_bytes().saturating_add(self.queue.bytes())
    }

    /// Bytes that the transmitter has not sent: exact to the bit if there is one rate and no
    /// overhead.
    fn promised_bytes(&self) -> Bytes {
        let exact =
            self.transmitter.backlog(self.now).filter(|_| self.config.overhead == Overhead::NONE);
        exact.unwrap_or_else(|| self.promised.bytes())
    }

    /// Advances the time (never back) and the state.
    fn advance(&mut self, now: Instant) {
        self.now = self.now.max(now);
        if self.queue.holds() {
            self.serve();
        }
        self.promised.advance(self.now);
    }

    /// Lets the transmitter take held packets whose turn has come.
    fn serve(&mut self) {
        let mut dropped = Vec::new();
        while self.queue.len() > 0 {
            let turn = self.transmitter.next_start(self.held_since, self.start.unwrap_or_default());
            if turn > self.now {
                break;
            }
            let waiting = self.queue.serve(turn, &mut dropped);
            for refused in dropped.drain(..) {
                self.counters.discipline_dropped_packets += 1;
                self.dropped.push_back(Dropped {
                    at: turn,
                    queued: turn.since(refused.arrived),
                    item: refused.item,
                    cause: DropCause::Discipline,
                    copy: refused.marks.copy,
                });
            }
            if let Some(Waiting { item, packet, arrived, marks }) = waiting {
                self.plan(item, packet.size, packet.size, arrived, turn, marks);
            }
        }
    }

    /// FQ-CoDel overflowed: a packet that had been admitted is dropped.
    fn tell_drop(&mut self, refused: Waiting<T>, at: Instant, cause: DropCause) {
        self.counters.queue_dropped_packets += 1;
        let (queued, copy) = (at.since(refused.arrived), refused.marks.copy);
        self.dropped.push_back(Dropped { item: refused.item, at, queued, cause, copy });
    }
}

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
