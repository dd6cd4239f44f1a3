//! What the evidence proves or rules out, before the trained judge is asked.
//!
//! Statistics find what a transfer is like. They do not see that a limit needs something that did
//! not happen: a slow reader closes its window, a send buffer is not made smaller by a drop, and a
//! link that never delayed or dropped a segment was never full.

use super::{Transfer, window_of};
use crate::limit::Limit;
use crate::limit::judge::{LinkEvidence, Possible, ratio};
use crate::limit::proof::{Moment, is_full_link};
use crate::limit::thresholds::{
    AS_MUCH, CLOSED_PART, CLOSED_TO, FEW_SEGMENTS, GROWS_AFTER_DROP, GROWS_TO_THE_END, PAUSED,
    QUEUE_LEAST, QUEUE_SIGN, QUEUES_LEAST, REACHED_PART, RUN_LEAST, RUNS_PART, UNREAD_PART,
};
use fullpipe_model::units::Duration;

impl Transfer<'_> {
    /// Which limits the evidence allows. `limits` are what the rules decided.
    pub(super) fn possible(&self, limits: &[Limit]) -> Possible {
        let is_window_known = self.features.iter().any(|f| f.window_max.is_some());
        let is_reached = is_window_known && self.reaches_window();
        Possible {
            loss: self.has_repairs,
            is_window_known,
            receive_window: is_reached,
            reader: is_reached && (!self.saw_start || self.window_closes()),
            send_buffer: !self.is_shaped_by_drops(),
            link: self.shows_link() && !self.awaits_timers(limits),
            sender_application: true,
        }
    }

    /// The evidence for a busy link. `inflation` is the median round trip as a multiple of the
    /// path's.
    pub(super) fn link_evidence(&self, inflation: f64) -> LinkEvidence {
        let is_given = self.hint.is_some();
        if !is_given && self.is_full_link() {
            return LinkEvidence::Full;
        }
        LinkEvidence::new(is_given, inflation)
    }

    /// Whether a queue that stood proves that the link was full.
    fn is_full_link(&self) -> bool {
        let Some(base) = self.rtt else { return false };
        let segment = self.features.iter().map(|f| f.segment).max().unwrap_or(0);
        let mut most = 0.0_f64;
        let moments: Vec<Moment> = (0..self.features.len())
            .map(|at| {
                most = most.max(self.rates[at]);
                let is_slower = self.rates[at] < AS_MUCH * most;
                Moment {
                    length: self.surroundings.lengths[at],
                    rate: self.surroundings.wide_rates()[at],
                    rtt: self.features[at].rtt.get(),
                    is_held: self.is_held_by_a_host(at, is_slower),
                }
            })
            .collect();
        is_full_link(&moments, base, segment.into())
    }

    /// Whether a host is seen to hold the sender, whatever queue there is: it pauses, it writes in
    /// pieces, or the reader closes its window and less arrives than before.
    fn is_held_by_a_host(&self, at: usize, is_slower: bool) -> bool {
        let f = &self.features[at];
        let is_paused = f.part(f.idle) > PAUSED && f.retransmissions == 0;
        let receiver = self.receiver(at);
        let is_closed = window_of(f) < CLOSED_TO * self.window_peak[at];
        is_paused
            || self.is_written_short(at)
            || receiver == Some(Limit::ReceiverApplication)
            || (receiver.is_some() && is_closed && is_slower)
    }

    /// Whether the sender was ever near the receive window, for more than a moment.
    fn reaches_window(&self) -> bool {
        let reached = (0..self.features.len()).filter(|at| self.receiver(*at).is_some()).count();
        let full: u64 = self.features.iter().map(|f| f.full).sum();
        let all = self.features.iter().map(|f| f.length).sum::<Duration>().as_nanos();
        reached as f64 >= REACHED_PART * self.features.len() as f64
            || full as f64 >= REACHED_PART * all as f64
    }

    /// Whether the window closes: it falls below what it was, or stays where it is while data
    /// arrives.
    fn window_closes(&self) -> bool {
        let is_closed = |at: &usize| {
            let window = window_of(&self.features[*at]);
            window < CLOSED_TO * self.window_peak[*at]
        };
        let closed = (0..self.features.len()).filter(is_closed).count() as f64;
        let sum = |of: fn(&super::Features) -> u64| self.features.iter().map(of).sum::<u64>() as f64;
        closed >= CLOSED_PART * self.features.len() as f64
            || ratio(sum(|f| f.unread.into()), sum(|f| f.delivered)) >= UNREAD_PART
    }

    /// Whether drops shape the amount in flight: from one to the next, or to the end, it grows. A
    /// buffer's bound is reached and stays.
    fn is_shaped_by_drops(&self) -> bool {
        let is_lossy = |f: &super::Features| f.retransmissions > 0;
        let Some(first) = self.features.iter().position(is_lossy) else { return false };
        let (mut grown, mut seen, mut from) = (0.0, 0.0, first);
        let all: f64 = self.surroundings.lengths.iter().sum();
        for run in self.features[first..].chunk_by(|a, b| is_lossy(a) == is_lossy(b)) {
            let range = from..from + run.len();
            from = range.end;
            if is_lossy(&run[0]) || run.len() < RUN_LEAST {
                continue;
            }
            let time: f64 = self.surroundings.lengths[range].iter().sum();
            let quarter = |number: usize| {
                let part = &run[number * run.len() / 4..(number + 1) * run.len() / 4];
                part.iter().map(super::Features::in_flight_mean).sum::<f64>() / part.len() as f64
            };
            let ends_in_drop = from < self.features.len();
            let grows = quarter(3) >= GROWS_AFTER_DROP * quarter(0)
                && (ends_in_drop || quarter(3) >= GROWS_TO_THE_END * quarter(2));
            seen += time;
            grown += if grows { time } else { 0.0 };
        }
        seen >= RUNS_PART * all && grown >= 0.5 * seen
    }

    /// Whether the path showed itself at all: it dropped something, delayed something, or its rate
    /// was given. Where it did neither, data came as evenly as it left.
    fn shows_link(&self) -> bool {
        let Some(base) = self.rtt.filter(|_| self.hint.is_none() && !self.has_repairs) else {
            return true;
        };
        let least = QUEUE_LEAST.max(Duration::from_secs_f64(base.as_secs_f64() * QUEUE_SIGN));
        let is_delayed = |f: &&super::Features| {
            let few = f.in_flight_max.get() <= FEW_SEGMENTS * u64::from(f.segment);
            !few && f.rtt.get().is_some_and(|rtt| rtt.saturating_sub(base) >= least)
        };
        self.features.iter().filter(is_delayed).count() >= QUEUES_LEAST
    }
}
