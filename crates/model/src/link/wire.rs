//! Packets that have been served, or whose service is certain, in the order of their departures.

use super::Bit;
use crate::units::{Bytes, Duration, Instant};
use std::collections::{BTreeMap, VecDeque};

/// A packet on its way.
#[derive(Debug)]
pub(super) struct WireEntry<T> {
    pub item: T,
    pub size: Bytes,
    /// When its last bit is serialised; until then it is in the queue.
    pub serialised_at: Instant,
    /// When it departs.
    pub at: Instant,
    pub arrived: Instant,
    /// How long it waits, or waited, for the transmitter.
    pub queued: Duration,
    pub marks: Marks,
}

/// The draws that a packet carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Marks {
    /// Its draw for the delay's distribution.
    pub random: u64,
    pub corrupt: Option<Bit>,
    /// Drawn to skip the delay.
    pub overtakes: bool,
    pub mark: bool,
    pub copy: bool,
}

/// Entries sorted by departure. Those that depart in the order of arrival (all of them, if the
/// delay is constant) are in a queue; only those that overtake are in a sorted map.
#[derive(Debug)]
pub(super) struct Departures<T> {
    in_order: VecDeque<WireEntry<T>>,
    early: BTreeMap<(Instant, u64), WireEntry<T>>,
    /// Distinguishes entries that depart at the same time.
    serial: u64,
}

impl<T> Departures<T> {
    pub fn with_capacity(packets: usize) -> Self {
        Departures { in_order: VecDeque::with_capacity(packets), early: BTreeMap::new(), serial: 0 }
    }

    pub fn insert(&mut self, entry: WireEntry<T>) {
        if self.in_order.back().is_none_or(|last| last.at <= entry.at) {
            self.in_order.push_back(entry);
        } else {
            self.early.insert((entry.at, self.serial), entry);
            self.serial += 1;
        }
    }

    pub fn first(&self) -> Option<&WireEntry<T>> {
        if self.early_is_first() { self.early.values().next() } else { self.in_order.front() }
    }

    pub fn pop_first(&mut self) -> Option<WireEntry<T>> {
        if self.early_is_first() {
            self.early.pop_first().map(|(_, entry)| entry)
        } else {
            self.in_order.pop_front()
        }
    }

    fn early_is_first(&self) -> bool {
        // Of two entries with the same departure, the one in the queue came first.
        let Some(((early, _), _)) = self.early.first_key_value() else { return false };
        self.in_order.front().is_none_or(|front| *early < front.at)
    }

    pub fn iter(&self) -> impl Iterator<Item = &WireEntry<T>> {
        let (mut in_order, mut early) =
            (self.in_order.iter().peekable(), self.early.values().peekable());
        std::iter::from_fn(move || match (in_order.peek(), early.peek()) {
            (Some(next), Some(overtaking)) if overtaking.at < next.at => early.next(),
            (Some(_), _) => in_order.next(),
            (None, _) => early.next(),
        })
    }

    /// Removes what has not been serialised at `now`, in the order of service.
    pub fn take_unserialised(&mut self, now: Instant) -> Vec<WireEntry<T>> {
        let (waiting, gone): (Vec<_>, Vec<_>) = std::mem::take(&mut self.in_order)
            .into_iter()
            .partition(|entry| entry.serialised_at > now);
        self.in_order.extend(gone);
        let early = std::mem::take(&mut self.early);
        let (early_waiting, early_gone): (BTreeMap<_, _>, _) =
            early.into_iter().partition(|(_, entry)| entry.serialised_at > now);
        self.early = early_gone;
        let mut waiting: Vec<_> = waiting.into_iter().chain(early_waiting.into_values()).collect();
        waiting.sort_by_key(|entry| entry.serialised_at);
        waiting
    }

    pub fn len(&self) -> usize {
        self.in_order.len() + self.early.len()
    }
}
