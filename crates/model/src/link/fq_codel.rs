//! FQ-CoDel (RFC 8290): a CoDel queue for each flow, served in turn.
//!
//! Flows are hashed into queues. A queue that gets its first packet is new, and new queues are
//! served once before the old ones, so a flow that sends little never waits behind one that fills
//! the link. Each queue sends a quantum of bytes in its turn.

use super::codel::{CodelQueue, Waiting};
use super::discipline::FqCodel;
use crate::units::{Bytes, Instant};
use std::collections::VecDeque;

/// The most that a packet is charged: more than any packet has, and few enough quanta for its flow
/// to be served again.
const CHARGE_MAX: u64 = 1 << 20;

/// The queue of one flow, or of several whose hashes collide.
#[derive(Debug)]
struct Flow<T> {
    queue: CodelQueue<T>,
    /// Bytes that it may still send in its turn; negative after a packet that was larger.
    credit: i64,
    listed: bool,
}

/// All queues.
#[derive(Debug)]
pub(super) struct FqQueue<T> {
    flows: Vec<Flow<T>>,
    new: VecDeque<u32>,
    old: VecDeque<u32>,
    bytes: Bytes,
    packets: usize,
}

impl<T> FqQueue<T> {
    pub fn new(config: &FqCodel) -> Self {
        FqQueue {
            flows: (0..config.flows.get())
                .map(|_| Flow { queue: CodelQueue::default(), credit: 0, listed: false })
                .collect(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            bytes: Bytes::ZERO,
            packets: 0,
        }
    }

    pub fn push(&mut self, config: &FqCodel, waiting: Waiting<T>) {
        let index = waiting.packet.flow % self.flows.len() as u32;
        self.bytes = self.bytes.saturating_add(waiting.packet.size);
        self.packets += 1;
        let flow = &mut self.flows[index as usize];
        flow.queue.push(waiting);
        if !flow.listed {
            (flow.listed, flow.credit) = (true, quantum(config));
            self.new.push_back(index);
        }
    }

    pub fn bytes(&self) -> Bytes {
        self.bytes
    }

    pub fn len(&self) -> usize {
        self.packets
    }

    /// Takes the head of the queue with the most bytes, as RFC 8290, section 4.1 requires when
    /// there is no room.
    pub fn drop_from_fattest(&mut self) -> Option<Waiting<T>> {
        let fattest = self.flows.iter_mut().max_by_key(|flow| flow.queue.bytes())?;
        let waiting = fattest.queue.pop()?;
        self.forget(&waiting);
        Some(waiting)
    }

    /// The packet to send at `now`; packets dropped before it are added to `dropped`.
    pub fn dequeue(
        &mut self,
        config: &FqCodel,
        now: Instant,
        dropped: &mut Vec<Waiting<T>>,
    ) -> Option<Waiting<T>> {
        loop {
            let is_new = !self.new.is_empty();
            let list = if is_new { &mut self.new } else { &mut self.old };
            let index = *list.front()?;
            let flow = &mut self.flows[index as usize];
            if flow.credit <= 0 {
                flow.credit = flow.credit.saturating_add(quantum(config));
                list.pop_front();
                self.old.push_back(index);
                continue;
            }
            let before = dropped.len();
            let waiting = flow.queue.dequeue(&config.codel, now, dropped);
            if let Some(waiting) = &waiting {
                flow.credit -= waiting.packet.size.get().min(CHARGE_MAX) as i64;
            }
            let gone = dropped[before..].iter().chain(&waiting).map(|waiting| waiting.packet.size);
            let (count, bytes) = gone
                .fold((0, Bytes::ZERO), |(count, sum), size| (count + 1, sum.saturating_add(size)));
            self.packets -= count;
            self.bytes = self.bytes.saturating_sub(bytes);
            if waiting.is_some() {
                return waiting;
            }
            let list = if is_new { &mut self.new } else { &mut self.old };
            list.pop_front();
            // An empty new queue becomes old for one turn; otherwise a flow could stay new forever
            // by sending little at a time.
            if is_new && !self.old.is_empty() {
                self.old.push_back(index);
            } else {
                self.flows[index as usize].listed = false;
            }
        }
    }

    /// All waiting packets, one flow after another.
    pub fn drain(&mut self) -> Vec<Waiting<T>> {
        let mut all: Vec<Waiting<T>> = Vec::with_capacity(self.packets);
        for flow in &mut self.flows {
            all.extend(std::iter::from_fn(|| flow.queue.pop()));
            flow.listed = false;
        }
        self.new.clear();
        self.old.clear();
        (self.bytes, self.packets) = (Bytes::ZERO, 0);
        all
    }

    fn forget(&mut self, waiting: &Waiting<T>) {
        self.bytes = self.bytes.saturating_sub(waiting.packet.size);
        self.packets -= 1;
    }
}

fn quantum(config: &FqCodel) -> i64 {
    i64::try_from(config.quantum.get()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{link, run};
    use super::super::{Link, Packet};
    use super::*;
    use crate::units::Duration;

    /// Packets of three flows: one that fills the link three times over, one that fills it once
    /// with small packets, and one that sends a packet now and then.
    fn arrivals() -> Vec<(Instant, Packet)> {
        let mut packets = Vec::new();
        for (flow, gap_us, size) in [(1u32, 400u64, 1500u64), (2, 400, 500), (3, 50_000, 200)] {
            for number in 0..4_000_000 / gap_us {
                let packet = Packet { flow, ..Bytes::new(size).into() };
                packets.push((
                    Instant::ZERO + Duration::from_micros(number * gap_us + u64::from(flow)),
                    packet,
                ));
            }
        }
        packets.sort_by_key(|(at, _)| *at);
        packets
    }

    #[test]
    fn flows_share_the_link_and_a_thin_one_never_waits() {
        let packets = arrivals();
        let mut link: Link<usize> =
            link("rate = '10mbit'\nqueue = '500packets'\ndiscipline = 'fq_codel'", 1);
        let outcome = run(&mut link, packets.clone());
        let mut bytes = [0u64; 4];
        let mut thin = Vec::new();
        let end = Instant::ZERO + Duration::from_secs(4);
        for departure in outcome.departures.iter().filter(|departure| departure.at < end) {
            let packet = packets[departure.item].1;
            bytes[packet.flow as usize] += packet.size.get();
            if packet.flow == 3 {
                thin.push(departure.queued);
            }
        }
        let share = bytes[1] as f64 / bytes[2] as f64;
        assert!(
            (0.9..1.1).contains(&share),
            "large packets' flow has {share} of the small packets' flow"
        );
        assert_eq!(thin.len(), 80, "no packet of the thin flow is dropped");
        // It waits for the packet in service and for those of new flows at most.
        assert!(thin.iter().all(|queued| *queued < Duration::from_millis(4)), "{thin:?}");
        assert!(
            outcome.counters.queue_dropped_packets + outcome.counters.discipline_dropped_packets
                > 0
        );
    }

    #[test]
    fn order_within_a_flow_is_kept() {
        let packets = arrivals();
        let mut link: Link<usize> =
            link("rate = '10mbit'\nqueue = '500packets'\ndiscipline = 'fq_codel'", 1);
        let outcome = run(&mut link, packets.clone());
        for flow in 1..=3 {
            let items = outcome
                .departures
                .iter()
                .map(|one| one.item)
                .filter(|item| packets[*item].1.flow == flow);
            assert!(items.collect::<Vec<_>>().is_sorted(), "flow {flow}");
        }
    }
}
