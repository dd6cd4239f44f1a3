//! CoDel (RFC 8289): a queue that keeps the waiting time of packets near a target, by dropping at
//! its head.
//!
//! CoDel does not look at the length of the queue but at whether even the luckiest packet of an
//! interval waited too long: a burst passes, a standing queue does not. Drops then follow each
//! other more closely, by the inverse square root of their number, until the senders slow down.

use super::Packet;
use super::discipline::Codel;
use super::wire::Marks;
use crate::units::{Bytes, Duration, Instant};
use std::collections::VecDeque;

/// A waiting packet.
#[derive(Debug)]
pub(super) struct Waiting<T> {
    pub item: T,
    pub packet: Packet,
    pub arrived: Instant,
    pub marks: Marks,
}

/// RFC 8289, section 5.3: the variables of the control law.
#[derive(Debug, Clone, Default)]
struct Control {
    first_above: Option<Instant>,
    drop_next: Instant,
    count: u32,
    last_count: u32,
    dropping: bool,
}

/// One queue under CoDel.
#[derive(Debug)]
pub(super) struct CodelQueue<T> {
    packets: VecDeque<Waiting<T>>,
    bytes: Bytes,
    largest: Bytes,
    control: Control,
}

impl<T> Default for CodelQueue<T> {
    fn default() -> Self {
        CodelQueue {
            packets: VecDeque::new(),
            bytes: Bytes::ZERO,
            largest: Bytes::ZERO,
            control: Control::default(),
        }
    }
}

impl<T> CodelQueue<T> {
    pub fn push(&mut self, waiting: Waiting<T>) {
        self.bytes = self.bytes.saturating_add(waiting.packet.size);
        self.largest = self.largest.max(waiting.packet.size);
        self.packets.push_back(waiting);
    }

    pub fn bytes(&self) -> Bytes {
        self.bytes
    }

    pub fn len(&self) -> usize {
        self.packets.len()
    }

    /// Takes the head, regardless of the control law.
    pub fn pop(&mut self) -> Option<Waiting<T>> {
        let waiting = self.packets.pop_front()?;
        self.bytes = self.bytes.saturating_sub(waiting.packet.size);
        Some(waiting)
    }

    /// The packet to send at `now`; packets dropped before it are added to `dropped`.
    pub fn dequeue(
        &mut self,
        codel: &Codel,
        now: Instant,
        dropped: &mut Vec<Waiting<T>>,
    ) -> Option<Waiting<T>> {
        let mut next = self.dodequeue(codel, now);
        if self.control.dropping {
            if !next.as_ref().is_some_and(|(_, above)| *above) {
                self.control.dropping = false;
            }
            while self.control.dropping && now >= self.control.drop_next {
                let Some((waiting, _)) = next else { break };
                self.control.count = self.control.count.saturating_add(1);
                next = match mark_or(codel.ecn, waiting) {
                    Ok(marked) => {
                        self.control.drop_next = self.control_law(codel, self.control.drop_next);
                        return Some(self.past_threshold(codel, marked, now));
                    }
                    Err(waiting) => {
                        dropped.push(waiting);
                        self.dodequeue(codel, now)
                    }
                };
                if next.as_ref().is_some_and(|(_, above)| *above) {
                    self.control.drop_next = self.control_law(codel, self.control.drop_next);
                } else {
                    self.control.dropping = false;
                }
            }
        } else if let Some((waiting, true)) = next {
            next = match mark_or(codel.ecn, waiting) {
                Ok(marked) => Some((marked, true)),
                Err(waiting) => {
                    dropped.push(waiting);
                    self.dodequeue(codel, now)
                }
            };
            self.start_dropping(codel, now);
        }
        next.map(|(waiting, _)| self.past_threshold(codel, waiting, now))
    }

    /// RFC 8289, section 5.5: "If min went above target close to when we last went below it, assume
    /// that the drop rate that controlled the queue on the last cycle is a good starting point to
    /// control it now."
    fn start_dropping(&mut self, codel: &Codel, now: Instant) {
        let control = &mut self.control;
        control.dropping = true;
        let delta = control.count.saturating_sub(control.last_count);
        let recently = now.since(control.drop_next) < codel.interval.saturating_mul(16);
        control.count = if delta > 1 && recently { delta } else { 1 };
        control.last_count = control.count;
        self.control.drop_next = self.control_law(codel, now);
    }

    /// The head, and whether packets have waited above the target for an interval.
    fn dodequeue(&mut self, codel: &Codel, now: Instant) -> Option<(Waiting<T>, bool)> {
        let Some(waiting) = self.pop() else {
            self.control.first_above = None;
            return None;
        };
        let sojourn = now.since(waiting.arrived);
        if sojourn < codel.target || self.bytes <= self.largest {
            // It went below the target, and must be above it for an interval again.
            self.control.first_above = None;
            return Some((waiting, false));
        }
        let first_above = *self.control.first_above.get_or_insert(now + codel.interval);
        Some((waiting, now >= first_above))
    }

    /// When the next drop is due.
    fn control_law(&self, codel: &Codel, from: Instant) -> Instant {
        let interval =
            codel.interval.as_nanos() as f64 / f64::from(self.control.count.max(1)).sqrt();
        from + Duration::from_nanos(interval as u64)
    }

    fn past_threshold(&self, codel: &Codel, mut waiting: Waiting<T>, now: Instant) -> Waiting<T> {
        let above =
            codel.ce_threshold.is_some_and(|threshold| now.since(waiting.arrived) > threshold);
        if above && waiting.packet.ecn.is_capable() {
            waiting.marks.mark = true;
        }
        waiting
    }
}

/// Marks a packet if possible; returns one that must be dropped.
fn mark_or<T>(ecn: bool, mut waiting: Waiting<T>) -> Result<Waiting<T>, Waiting<T>> {
    if ecn && waiting.packet.ecn.is_capable() {
        waiting.marks.mark = true;
        Ok(waiting)
    } else {
        Err(waiting)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Outcome, link, poll_until, refused};
    use super::super::{Counters, DropCause, Ecn, Link};
    use super::*;

    /// A sender that keeps `window` packets on their way, halves it when one is dropped or marked
    /// (at most once a round trip) and grows by one packet a round trip, over 10 Mbit/s and 20 ms:
    /// the greedy source that CoDel is made for. Returns the queueing times of the last half, in
    /// milliseconds, and the counters.
    fn greedy(discipline: &str, ecn: Ecn) -> (Vec<f64>, Counters) {
        let words = format!(
            "rate = '10mbit'\ndelay = '20ms'\nqueue = '1000packets'\ndiscipline = '{discipline}'"
        );
        let mut link: Link<usize> = link(&words, 1);
        let packet = Packet { ecn, ..Bytes::new(1500).into() };
        let (mut window, mut inside, mut now, mut cut_at) =
            (10.0f64, 0usize, Instant::ZERO, Instant::ZERO);
        let mut waited = Vec::new();
        for number in 0..20_000 {
            while inside as f64 >= window {
                now = now.max(link.poll_at().unwrap());
                let mut outcome = Outcome::default();
                poll_until(&mut link, now, &mut outcome);
                inside -= outcome.departures.len() + outcome.dropped.len();
                let congested =
                    !outcome.dropped.is_empty() || outcome.departures.iter().any(|one| one.mark);
                if congested && now.since(cut_at) > Duration::from_millis(40) {
                    (window, cut_at) = ((window / 2.0).max(2.0), now);
                }
                window += outcome.departures.len() as f64 / window;
                if number > 10_000 {
                    waited.extend(outcome.departures.iter().map(|one| one.queued.as_millis_f64()));
                }
            }
            inside += link.push(number, packet, now).admitted() as usize;
        }
        (waited, link.counters())
    }

    fn median(values: &mut [f64]) -> f64 {
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    }

    #[test]
    fn a_greedy_source_waits_near_the_target_and_the_link_stays_busy() {
        let (mut waited, counters) = greedy("codel", Ecn::NotEct);
        let (mut tail, _) = greedy("droptail", Ecn::NotEct);
        let (codel, tail) = (median(&mut waited), median(&mut tail));
        assert!(codel < 10.0, "median wait of {codel} ms at a target of 5 ms");
        assert!(tail > 20.0 * codel, "drop-tail {tail} ms, CoDel {codel} ms");
        assert!(counters.discipline_dropped_packets > 0 && counters.queue_dropped_packets == 0);
    }

    #[test]
    fn packets_that_can_be_marked_are_marked_and_none_is_dropped() {
        let (mut waited, counters) = greedy("codel", Ecn::Ect0);
        assert!(
            counters.marked_packets > 0 && counters.discipline_dropped_packets == 0,
            "{counters:?}"
        );
        assert!(median(&mut waited) < 10.0);
        let (_, counters) = greedy("codel noecn", Ecn::Ect0);
        assert!(
            counters.marked_packets == 0 && counters.discipline_dropped_packets > 0,
            "{counters:?}"
        );
    }

    /// RFC 8289, section 5.3: while it drops, the n-th drop comes interval / sqrt(n) after the one
    /// before.
    #[test]
    fn drops_follow_the_control_law() {
        let mut link: Link<usize> =
            link("rate = '10mbit'\nqueue = '10000packets'\ndiscipline = 'codel'", 1);
        let packet = Packet::from(Bytes::new(1500));
        let mut outcome = Outcome::default();
        // Twice what the link carries: the queue never empties.
        for number in 0..2000u64 {
            let now = Instant::from_nanos(number * 600_000);
            poll_until(&mut link, now, &mut outcome);
            let _ = link.push(number as usize, packet, now);
        }
        let at: Vec<f64> =
            outcome.dropped.iter().map(|one| one.at.as_nanos() as f64 / 1e6).collect();
        assert!(
            at.len() > 10 && outcome.dropped.iter().all(|one| one.cause == DropCause::Discipline)
        );
        for (index, pair) in at.windows(2).enumerate() {
            let law = 100.0 / ((index + 1) as f64).sqrt();
            // A packet of 1.2 ms is where a drop can be.
            assert!(
                (pair[1] - pair[0] - law).abs() <= 2.4,
                "drop {index}: {} after, {law} by law",
                pair[1] - pair[0]
            );
        }
    }

    #[test]
    fn a_discipline_without_a_rate_or_a_sense_is_refused() {
        assert!(refused("discipline = 'codel'").contains("needs a rate"));
        assert!(refused("rate = '1mbit'\ndiscipline = 'codel target 0ms'").contains("above 0"));
        assert!(
            refused("rate = '1mbit'\ndiscipline = 'codel target 1s'")
                .contains("below its interval")
        );
        assert!(refused("rate = '1mbit'\ndiscipline = 'cake'").contains("there are droptail"));
    }
}
