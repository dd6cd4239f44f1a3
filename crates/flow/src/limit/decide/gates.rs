//! What the evidence proves or rules out, before the trained judge is asked.
//!
//! Statistics find what a transfer is like. They do not see that a limit needs something that did
//! not happen: a slow reader closes its window, a send buffer is not made smaller by a drop, and a
//! link that never delayed or dropped a segment was never full.

use super::trains::train_rate;
use super::{Features, Transfer, window_of};
use crate::limit::Limit;
use crate::limit::judge::{LinkEvidence, Possible, ratio};
use crate::limit::percentiles::Sorted;
use crate::limit::proof::{Moment, is_full_link};
use crate::limit::thresholds::{
    AS_MUCH, CLOSED_PART, CLOSED_TO, FEW_SEGMENTS, GROWN_PAIRS, GROWS_AFTER_DROP, LATE_ACK,
    LOWER_AFTER_DROP, MOSTLY_AT_CAPACITY, OF_LINK, PAUSED, QUEUE_SIGN, QUEUE_SIGN_LEAST,
    QUEUES_LEAST, REACHED_PART, ROOM_FOR_TRAINS, RUN_LEAST, RUNS_PART, UNREAD_PART,
};
use fullpipe_model::units::{Bytes, Duration, Rate};

impl Transfer<'_> {
    /// Which limits the evidence allows. `limits` are what the rules decided.
    pub(super) fn possible(&self, limits: &[Limit]) -> Possible {
        let is_window_known = self.features.iter().any(|f| f.window_max.get().is_some());
        let drops = self.after_drops();
        let is_overtaken = self.is_reordered && self.has_room_for_trains();
        // What stood before the capture began, nobody saw.
        let is_reached = is_window_known && (!self.saw_start || self.reaches_window());
        Possible {
            loss: self.has_repairs,
            is_window_known,
            receive_window: is_reached,
            reader: is_reached && (!self.saw_start || self.window_closes()),
            send_buffer: !drops.shape && (!is_overtaken || self.is_bounded),
            link: !is_overtaken && self.shows_link(limits) && !self.awaits_timers(limits),
            // What dropped was a short queue that is mostly empty, or a policer.
            queue: !drops.leave_room || self.is_mostly_queued() || self.is_mostly_at_capacity(),
            sender_application: true,
        }
    }

    /// The evidence for a busy link. `inflation` is the median round trip as a multiple of the
    /// path's.
    pub(super) fn link_evidence(&self, inflation: f64) -> LinkEvidence {
        if self.is_full_link() || (!self.is_reordered && self.drops_at_ceiling()) {
            return LinkEvidence::Full;
        }
        LinkEvidence::new(self.hint.is_some(), inflation)
    }

    /// Whether a queue that stood proves that the link was full.
    fn is_full_link(&self) -> bool {
        let Some(base) = self.rtt else { return false };
        let segment = self.features.iter().map(|f| f.segment).max().unwrap_or(0);
        let (mut most, mut own_most) = (0.0_f64, 0.0_f64);
        let (rates, own_rates) = (&self.rates, &self.own_rates);
        let moments: Vec<Moment> = (0..self.features.len())
            .map(|at| {
                most = most.max(rates[at]);
                own_most = own_most.max(own_rates[at]);
                let is_slower = own_rates[at] < AS_MUCH * own_most;
                Moment {
                    length: self.surroundings.lengths[at],
                    rate: rates[at],
                    rtt: self.features[at].rtt.get().filter(|_| !self.is_acknowledged_late(at)),
                    is_held: self.is_held_by_a_host(at, is_slower),
                }
            })
            .collect();
        if !self.saw_start && !self.features.iter().any(|f| f.window_max.get().is_some()) {
            // A window of unknown size may close.
            return false;
        }
        // Where the rate is known, a queue at a much lower rate is not the link's.
        let is_plausible = self.hint.is_none_or(|hint| most >= OF_LINK * hint);
        is_plausible && is_full_link(&moments, base, segment.into())
    }

    /// Whether a host is seen to hold the sender, whatever queue there is: it pauses, it writes in
    /// pieces, or the reader closes its window and less arrives than before.
    pub(super) fn is_held_by_a_host(&self, at: usize, is_slower: bool) -> bool {
        let f = &self.features[at];
        let is_paused = f.part(f.idle) > PAUSED && f.retransmissions == 0;
        let receiver = self.receiver(at);
        let is_closed = window_of(f) < CLOSED_TO * self.window_peak[at];
        // What drains a queue never rests.
        let rests = f.delivered == 0 && !self.repairs_near(at);
        is_paused
            || rests
            || self.is_written_short(at)
            || (receiver.is_some() && is_closed && is_slower)
            || (receiver == Some(Limit::ReceiverApplication) && !self.has_standing_queue[at])
            // Whether a window that is full had been larger, only the start can tell.
            || (receiver.is_some() && !self.saw_start)
    }

    /// Whether each ACK covers most of what is in flight. Then it waited for its receiver, and its
    /// round trip is not the path's.
    fn is_acknowledged_late(&self, at: usize) -> bool {
        let f = &self.features[at];
        f.delivered as f64 > LATE_ACK * f64::from(f.acks) * f.in_flight_max.as_f64()
    }

    /// Whether something was sent again, so that one ACK acknowledges what arrived over several
    /// round trips.
    pub(super) fn repairs_near(&self, at: usize) -> bool {
        let near = &self.features[at.saturating_sub(2)..(at + 3).min(self.features.len())];
        near.iter().any(|f| f.retransmissions > 0)
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
        let peaks = self.features.iter().zip(&self.window_peak);
        let closed = peaks.filter(|(f, peak)| window_of(f) < CLOSED_TO * *peak).count() as f64;
        let unread: u64 = self.features.iter().map(|f| u64::from(f.unread)).sum();
        let delivered: u64 = self.features.iter().map(|f| f.delivered).sum();
        closed >= CLOSED_PART * self.features.len() as f64
            || ratio(unread as f64, delivered as f64) >= UNREAD_PART
    }

    /// Whether much less is carried than passes one after the other, and no queue stands. Where
    /// packets overtake each other, drops and delays say nothing of a link, but this does.
    fn has_room_for_trains(&self) -> bool {
        let trains = self.features.iter().map(|f| f64::from(f.train_max));
        let trains = Sorted::new(trains.filter(|rate| *rate > 0.0)).percentile(50);
        let carried = Sorted::new(self.rates.iter().copied()).percentile(75);
        trains > ROOM_FOR_TRAINS * carried && !self.is_full_link()
    }

    /// What the time between drops shows. From one drop to the next, or to the end, the amount in
    /// flight grows, or stays below what it was before: drops shape it. A buffer's bound is reached
    /// and stays, and no drop lowers it. Where the rate grows with it, the link has room.
    fn after_drops(&self) -> AfterDrops {
        let Some(first) = self.features.iter().position(Features::is_lossy) else {
            return AfterDrops::default();
        };
        let (mut shaped, mut with_room, mut seen, mut from) = (0.0, 0.0, 0.0, first);
        // Slow start ends far above any bound, so only what comes after its drop is compared.
        let mut before = 0.0_f64;
        for run in self.features[first..].chunk_by(|a, b| a.is_lossy() == b.is_lossy()) {
            let lengths = &self.surroundings.lengths[from..from + run.len()];
            let carried = &self.surroundings.carried[from..from + run.len()];
            from += run.len();
            let now = most_in_flight(run);
            if run[0].is_lossy() || run.len() < RUN_LEAST {
                continue;
            }
            let is_lower = now < LOWER_AFTER_DROP * before;
            before = before.max(now);
            let grows = ends_higher(run.iter().map(Features::in_flight_mean));
            let ends_in_drop = from < self.features.len();
            let goes_on = ends_in_drop || grows_steadily(run);
            let time: f64 = lengths.iter().sum();
            seen += time;
            shaped += if (grows && goes_on) || is_lower { time } else { 0.0 };
            let has_room = grows && ends_higher(carried.iter().copied());
            with_room += if has_room { time } else { 0.0 };
        }
        let is_enough = seen >= RUNS_PART * self.surroundings.lengths.iter().sum::<f64>();
        AfterDrops {
            shape: is_enough && shaped >= 0.5 * seen,
            leave_room: is_enough && with_room >= 0.5 * seen,
        }
    }

    /// Whether the second half of the bytes passed at nearly the rate that the path carried behind
    /// a queue: the drops cost it little.
    fn is_mostly_at_capacity(&self) -> bool {
        let carried = &self.surroundings.carried;
        let all: f64 = carried.iter().sum();
        let mut sum = 0.0;
        let first = carried.iter().take_while(|bytes| {
            sum += **bytes;
            2.0 * sum <= all
        });
        let half = first.count();
        let bytes: f64 = carried[half..].iter().sum();
        let time: f64 = self.surroundings.lengths[half..].iter().sum();
        let rate = ratio(bytes * 8.0, time);
        let capacity =
            self.capacity.or(train_rate(self.features, self.is_at_sender).map(Rate::as_f64));
        capacity.is_some_and(|capacity| rate >= MOSTLY_AT_CAPACITY * capacity)
    }

    /// Whether the path delayed data in half of the intervals.
    fn is_mostly_queued(&self) -> bool {
        let Some(base) = self.rtt.filter(|_| self.hint.is_none()) else { return true };
        let least = least_sign(base);
        let late = self.features.iter().filter(|f| f.is_delayed(base, least)).count();
        2 * late >= self.features.iter().filter(|f| f.rtt.get().is_some()).count()
    }

    /// Whether hardly ever more than one segment was under way, and none was delayed: there was
    /// nothing that could wait for a link, as in a conversation of small questions.
    fn sends_one_by_one(&self) -> bool {
        let Some(base) = self.rtt.filter(|_| self.hint.is_none()) else { return false };
        let least = least_sign(base);
        let more =
            self.features.iter().filter(|f| f.in_flight_max.get() > f.segment.into()).count();
        let late = self.features.iter().filter(|f| f.is_delayed(base, least)).count();
        10 * more.max(late) <= self.features.len()
    }

    /// Whether the path showed itself at all: it dropped something, delayed something after the
    /// start, or its rate was given. Data that only leaves evenly was spaced by its sender, and so
    /// was data that only arrives evenly, which the rules take for a link's, where its round trips
    /// were measured: a link that spaces what passes makes it wait.
    fn shows_link(&self, limits: &[Limit]) -> bool {
        if self.sends_one_by_one() {
            return false;
        }
        let is_asked = self.hint.is_none() && !self.has_repairs;
        let Some(base) = self.rtt.filter(|_| is_asked) else { return true };
        let segment = self.features.iter().map(|f| f.segment).max().unwrap_or_default();
        let few = FEW_SEGMENTS * u64::from(segment);
        let many = self.features.iter().filter(|f| f.in_flight_max.get() > few).count();
        // Without time stamps, the handshake's stands for all.
        let is_measured = self.features.iter().filter_map(|f| f.rtt.get()).any(|rtt| rtt != base);
        let is_measured = is_measured && 2 * many >= self.features.len();
        let is_claimed = 2 * count_of(limits, Limit::Link) >= limits.len();
        if !(self.is_at_sender || is_measured && is_claimed) {
            return true;
        }
        // A segment takes its own time on a link that passes data at the rate of trains, where the
        // handshake's took none: that is no queue yet.
        let trains = train_rate(self.features, self.is_at_sender);
        let own = trains.and_then(|rate| rate.time_for(Bytes::new(segment.into())));
        let least = least_sign(base).max(own.unwrap_or(Duration::ZERO));
        let delayed = self.features.iter().enumerate().filter(|(_, f)| {
            let few = f.in_flight_max.get() <= FEW_SEGMENTS * u64::from(f.segment);
            !few && f.is_delayed(base, least)
        });
        let delayed: Vec<usize> = delayed.map(|(at, _)| at).collect();
        // A first burst queues whatever comes later.
        let is_late = delayed.last().is_some_and(|at| *at >= self.features.len() / 2);
        is_late && delayed.len() >= QUEUES_LEAST
    }
}

/// What drops did to the amount in flight.
#[derive(Debug, Clone, Copy, Default)]
struct AfterDrops {
    /// They shape it.
    shape: bool,
    /// More in flight carried more.
    leave_room: bool,
}

fn count_of(limits: &[Limit], one: Limit) -> usize {
    limits.iter().filter(|limit| **limit == one).count()
}

fn most_in_flight(of: &[Features]) -> f64 {
    of.iter().map(|f| f.in_flight_max).max().map_or(0.0, Bytes::as_f64)
}

/// Whether the amount in flight grows to the end of a run of intervals, by little perhaps, but
/// nearly everywhere. What a buffer bounds swings.
fn grows_steadily(run: &[Features]) -> bool {
    let (third, last) = run[run.len() / 2..].split_at(run.len() / 4);
    let has_grown =
        |(before, after): &(&Features, &Features)| after.in_flight_mean() > before.in_flight_mean();
    let grown = third.iter().zip(last).filter(has_grown).count();
    grown as f64 >= GROWN_PAIRS * third.len() as f64
}

/// Whether a number grows by [`GROWS_AFTER_DROP`] or more from the first quarter of a run of
/// intervals to the last.
fn ends_higher(run: impl ExactSizeIterator<Item = f64> + Clone) -> bool {
    of_quarter(run.clone(), 3) >= GROWS_AFTER_DROP * of_quarter(run, 0)
}

/// The median over a quarter of a run of intervals. One ACK of a repaired hole acknowledges what
/// several intervals carried.
fn of_quarter(run: impl ExactSizeIterator<Item = f64>, number: usize) -> f64 {
    let (from, to) = (number * run.len() / 4, (number + 1) * run.len() / 4);
    Sorted::new(run.skip(from).take(to - from)).percentile(50)
}

/// The least delay that may be a queue's, on a path of this round trip.
fn least_sign(base: Duration) -> Duration {
    QUEUE_SIGN_LEAST.max(Duration::from_secs_f64(base.as_secs_f64() * QUEUE_SIGN))
}

#[cfg(test)]
mod tests {
    use super::super::Path;
    use super::*;

    /// Intervals of 20 ms with so many bytes in flight; a drop is repaired in every one of
    /// `repaired`.
    fn shape(flights: impl Iterator<Item = u64>, repaired: &[usize]) -> Vec<Features> {
        let interval = |(at, flight): (usize, u64)| Features {
            length: Duration::from_millis(20),
            segments: 100,
            retransmissions: u32::from(repaired.contains(&at)),
            delivered: flight,
            in_flight_max: Bytes::new(flight),
            in_flight_time: flight as f64 * 20e6,
            ..Features::default()
        };
        flights.enumerate().map(interval).collect()
    }

    #[test]
    fn what_is_sent_one_by_one_and_not_delayed_meets_no_busy_link() {
        let base = Duration::from_millis(20);
        let one_by_one = |flight: u64, rtt_ms: u64| {
            let mut features = shape((0..60).map(|_| flight), &[]);
            for f in &mut features {
                f.segment = 1000;
                f.rtt.note(Duration::from_millis(rtt_ms));
            }
            let path = Path::whole(Some(base), false);
            Transfer::new(&features, path).shows_link(&[Limit::Link])
        };
        assert!(!one_by_one(1000, 20));
        assert!(one_by_one(3000, 20), "more than one may be spaced");
        assert!(one_by_one(1000, 60), "one alone takes long to pass");
    }

    fn after_drops(features: &[Features]) -> AfterDrops {
        let path = Path::whole(None, true);
        Transfer::new(features, path).after_drops()
    }

    #[test]
    fn drops_shape_what_grows_from_one_to_the_next() {
        let teeth = (0..120).map(|at| 100_000 + 2_000 * (at % 30));
        let drops = after_drops(&shape(teeth, &[0, 30, 60, 90]));
        assert!(drops.shape && drops.leave_room, "{drops:?}");
        let cubic = (0..120).map(|at| if at < 4 { 150_000 } else { 100_000 + 100 * at });
        assert!(after_drops(&shape(cubic, &[3])).shape, "after one drop, to the end");
    }

    #[test]
    fn a_bound_is_shaped_by_no_drop() {
        let swings = |at: u64| 100_000 + 30_000 * (at % 3);
        let after_slow_start = (0..120).map(|at| if at < 4 { 300_000 } else { swings(at) });
        let drops = after_drops(&shape(after_slow_start, &[3]));
        assert!(!drops.shape && !drops.leave_room, "{drops:?}");
        let again = after_drops(&shape((0..120).map(swings), &[10, 50, 90]));
        assert!(!again.shape && !again.leave_room, "{again:?}");
        assert!(!after_drops(&shape((0..120).map(swings), &[])).shape, "without a drop");
    }
}
