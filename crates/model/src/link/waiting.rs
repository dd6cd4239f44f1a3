//! The packets that wait in front of the transmitter.
//!
//! There are two kinds of disciplines. Drop-tail, the policer, the mark threshold and RED decide
//! when a packet arrives. From then on it is certain when it is served, so it goes to the wire at
//! once, and only the amount that waits is kept here. CoDel and FQ-CoDel decide when a packet would
//! be served, so they hold their packets until then.

use super::codel::{CodelQueue, Waiting};
use super::discipline::{Codel, Discipline, FqCodel};
use super::fq_codel::FqQueue;
use super::red::{RedState, Verdict};
use super::{Capacity, Config, DropCause, Packet};
use crate::units::{Bytes, Duration, Instant};
use std::collections::VecDeque;

/// A queue under its discipline.
#[derive(Debug)]
pub(super) enum Queue<T> {
    DropTail,
    /// What waits is the tokens taken: a bucket admits what a queue of the same size would.
    Police,
    /// Marks packets that would not fit into this.
    Mark(Capacity),
    Red {
        state: RedState,
        ecn: bool,
    },
    Codel {
        config: Codel,
        queue: CodelQueue<T>,
    },
    FqCodel {
        config: FqCodel,
        queue: FqQueue<T>,
    },
}

/// The state that a packet finds when it arrives.
#[derive(Debug, Clone, Copy)]
pub(super) struct QueueState {
    pub backlog: Bytes,
    pub packets: u64,
    /// When the queue became empty, if it is.
    pub idle_since: Instant,
    pub now: Instant,
}

impl<T> Queue<T> {
    pub fn new(config: &Config, rtt: Duration, seed: u64) -> Self {
        let Some(rate) = config.mean_rate() else { return Queue::DropTail };
        match config.discipline {
            Discipline::DropTail => Queue::DropTail,
            Discipline::Police => Queue::Police,
            Discipline::Mark(threshold) => Queue::Mark(config.room(threshold, rtt)),
            Discipline::Codel(config) => Queue::Codel { config, queue: CodelQueue::default() },
            Discipline::FqCodel(config) => Queue::FqCodel { config, queue: FqQueue::new(&config) },
            Discipline::Red(red) => {
                let room = match config.capacity(rtt) {
                    Capacity::Bytes(bytes) => bytes,
                    Capacity::Packets(packets) => Bytes::new(packets.saturating_mul(1000)),
                    Capacity::Unlimited => Bytes::MAX,
                };
                Queue::Red { state: RedState::new(&red, room, rate, seed), ecn: red.ecn }
            }
        }
    }

    /// For disciplines that decide on arrival: whether the packet is marked, or why it is dropped.
    pub fn arrives(
        &mut self,
        packet: &Packet,
        capacity: Capacity,
        found: QueueState,
    ) -> Result<bool, DropCause> {
        let QueueState { backlog, packets, idle_since, now } = found;
        let mark = match self {
            Queue::Police if !capacity.admits(backlog, packets, packet.size) => {
                return Err(DropCause::Discipline);
            }
            Queue::DropTail | Queue::Police | Queue::Codel { .. } | Queue::FqCodel { .. } => false,
            Queue::Mark(threshold) => {
                packet.ecn.is_capable() && !threshold.admits(backlog, packets, packet.size)
            }
            Queue::Red { state, ecn } => match state.arrival(backlog, idle_since, now) {
                Verdict::Pass => false,
                Verdict::Early if *ecn && packet.ecn.is_capable() => true,
                Verdict::Early | Verdict::Forced => return Err(DropCause::Discipline),
            },
        };
        if capacity.admits(backlog, packets, packet.size) {
            Ok(mark)
        } else {
            Err(DropCause::QueueFull)
        }
    }

    /// Whether packets are held until they are served.
    pub fn holds(&self) -> bool {
        matches!(self, Queue::Codel { .. } | Queue::FqCodel { .. })
    }

    /// Holds a packet. Returns the packet that is dropped if there is no room for both, which may
    /// be this one.
    pub fn hold(
        &mut self,
        waiting: Waiting<T>,
        capacity: Capacity,
        in_service: QueueState,
    ) -> Option<Waiting<T>> {
        let size = waiting.packet.size;
        let backlog = in_service.backlog.saturating_add(self.bytes());
        let packets = in_service.packets + self.len() as u64;
        let room = capacity.admits(backlog, packets, size);
        match self {
            Queue::FqCodel { config, queue } => {
                queue.push(config, waiting);
                if room { None } else { queue.drop_from_fattest() }
            }
            Queue::Codel { queue, .. } if room => {
                queue.push(waiting);
                None
            }
            _ => Some(waiting),
        }
    }

    /// The packet to serve at `now`; packets dropped before it are added to `dropped`.
    pub fn serve(&mut self, now: Instant, dropped: &mut Vec<Waiting<T>>) -> Option<Waiting<T>> {
        match self {
            Queue::Codel { config, queue } => queue.dequeue(config, now, dropped),
            Queue::FqCodel { config, queue } => queue.dequeue(config, now, dropped),
            Queue::DropTail | Queue::Police | Queue::Mark(_) | Queue::Red { .. } => None,
        }
    }

    /// Bytes that are held.
    pub fn bytes(&self) -> Bytes {
        match self {
            Queue::Codel { queue, .. } => queue.bytes(),
            Queue::FqCodel { queue, .. } => queue.bytes(),
            Queue::DropTail | Queue::Police | Queue::Mark(_) | Queue::Red { .. } => Bytes::ZERO,
        }
    }

    /// Packets that are held.
    pub fn len(&self) -> usize {
        match self {
            Queue::Codel { queue, .. } => queue.len(),
            Queue::FqCodel { queue, .. } => queue.len(),
            Queue::DropTail | Queue::Police | Queue::Mark(_) | Queue::Red { .. } => 0,
        }
    }

    /// All held packets, in the order of arrival.
    pub fn drain(&mut self) -> Vec<Waiting<T>> {
        match self {
            Queue::Codel { queue, .. } => std::iter::from_fn(|| queue.pop()).collect(),
            Queue::FqCodel { queue, .. } => {
                let mut all = queue.drain();
                all.sort_by_key(|waiting| waiting.arrived);
                all
            }
            Queue::DropTail | Queue::Police | Queue::Mark(_) | Queue::Red { .. } => Vec::new(),
        }
    }
}

/// Packets assigned to the transmitter that it has not sent.
#[derive(Debug, Default)]
pub(super) struct Promised {
    /// When the last bit of each is sent, and its size.
    ends: VecDeque<(Instant, Bytes)>,
    bytes: u64,
    last_end: Instant,
}

impl Promised {
    pub fn push(&mut self, end: Instant, size: Bytes) {
        self.ends.push_back((end, size));
        self.bytes = self.bytes.saturating_add(size.get());
        self.last_end = end;
    }

    /// Forgets what has been sent by `now`.
    pub fn advance(&mut self, now: Instant) {
        while let Some((end, size)) = self.ends.front().copied()
            && end <= now
        {
            self.ends.pop_front();
            self.bytes = self.bytes.saturating_sub(size.get());
        }
    }

    pub fn packets(&self) -> u64 {
        self.ends.len() as u64
    }

    pub fn bytes(&self) -> Bytes {
        Bytes::new(self.bytes)
    }

    /// When the last of them is or was sent completely.
    pub fn last_end(&self) -> Instant {
        self.last_end
    }

    pub fn clear(&mut self) {
        self.ends.clear();
        self.bytes = 0;
    }
}
