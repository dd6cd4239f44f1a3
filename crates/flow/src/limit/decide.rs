//! From what a capture showed in each interval to what held the sender.

mod features;
mod rivals;
mod traits;

use super::thresholds::{
    AROUND, AT_CAPACITY, AT_CAPACITY_QUEUED, BOUNDED, BOUNDED_ONE_IN, BUSY, BUSY_AND_FLAT,
    BUSY_MOST, CAPACITY_PERCENTILE, CLOSING, COLLAPSED, FEW_PIECES, FEW_SEGMENTS, FILLED_LEAST,
    FILLED_MEAN, FLAT, GROWS_WITHIN, GROWTH, HASTY_LEAST, HASTY_PART, MOST, NEAR, NEARLY, OF_HINT,
    OF_LINK, OF_UNQUEUED, OWN_PACE, PAUSED, PIECES, PLATEAU, PLATEAU_PERCENTILE, PLATEAU_SHARE,
    PLATEAU_WIDTH, QUEUE_LEAST, QUEUE_PART, QUEUED_LEAST, QUEUED_MOSTLY, REPAIR_WITHIN,
    STILL_GROWS, TIMED, TIMERS_LEAST, TOUCHED, TRAIN_EVENTS_LEAST, UNMOVED, UNREPAIRED, WIDE,
    WOKEN,
};
pub(crate) use features::Features;

use super::judge::{INTERVALS_LEAST, SEGMENTS_LEAST};
use super::{Candidate, Coverage, Source, Verdict};
use super::{CongestionCause, Interval, Limit, PathHint};
use fullpipe_model::units::{Bytes, Duration, Rate};

/// What is known of a transfer beside its intervals.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Path {
    /// The round trip without queues, as far as it was seen.
    pub rtt: Option<Duration>,
    /// What is known from elsewhere.
    pub hint: PathHint,
    /// What of the transfer was captured.
    pub coverage: Coverage,
}

/// What held the sender in each interval.
pub(crate) fn decide(features: &[Features], path: Path) -> Verdict {
    let transfer = Transfer::new(features, path);
    let mut phase = Phase::Start;
    let mut before = None;
    let intervals: Vec<Interval> = (0..features.len())
        .map(|at| {
            let phase_before = phase;
            let limit = transfer.limit(at, &mut phase, before);
            before = Some(limit);
            let rivals = transfer.rivals(at, phase_before).filter(|rival| *rival != limit);
            let mut candidates = vec![Candidate { limit, share: 1.0 }];
            for rival in rivals {
                if candidates.iter().all(|known| known.limit != rival) {
                    candidates.push(Candidate { limit: rival, share: 0.0 });
                }
            }
            Interval {
                start: features[at].start,
                length: features[at].length,
                candidates,
                evidence: features[at].evidence(),
            }
        })
        .collect();
    let limits: Vec<Limit> = intervals.iter().map(Interval::limit).collect();
    let verdict = Verdict::new(Source::Capture, intervals).with_coverage(path.coverage);
    let segments: u64 = features.iter().map(|f| u64::from(f.segments)).sum();
    if features.len() < INTERVALS_LEAST || segments < SEGMENTS_LEAST {
        return verdict;
    }
    let traits = transfer.traits(&limits);
    let has_window = features.iter().any(|f| f.window_max.is_some());
    let awaits_timers = transfer.awaits_timers(&limits);
    // A rate that was given tells a full link without a queue.
    let has_queue = path.hint.rate.is_some() || transfer.inflation_median() > QUEUED_MOSTLY;
    verdict.weighed(traits, has_queue, |limit| match limit {
        Limit::CongestionWindow(CongestionCause::Loss) => transfer.has_repairs,
        Limit::ReceiveWindow | Limit::ReceiverApplication => has_window,
        Limit::Link => !awaits_timers,
        _ => true,
    })
}

/// How congestion control stands, as far as segments show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Growing for the first time since the start or an idle period.
    Start,
    /// Neither growing for the first time nor reduced.
    Grown,
    /// Reduced by loss, or growing after that.
    AfterLoss,
}

/// All intervals of one direction, with what only all of them together can tell.
struct Transfer<'a> {
    features: &'a [Features],
    /// Bits per second over an interval and its neighbours.
    rates: Vec<f64>,
    rtt: Option<Duration>,
    /// Bits per second that the path carried while a queue stood before it.
    capacity: Option<f64>,
    /// Bits per second at which a transfer with loss in most intervals comes back again and again:
    /// its congestion control does not slow down for loss, the path is its limit.
    rate_plateau: Option<f64>,
    /// What is in flight when nothing but a fixed bound holds it: 90 % of the time it was less.
    plateau: f64,
    hint: Option<f64>,
    /// Whether a good part of the intervals reached the same most in flight: chance does not do
    /// that after loss.
    is_bounded: bool,
    /// How many intervals came to within [`PLATEAU`] of it.
    at_plateau: usize,
    /// The handshake was captured.
    saw_start: bool,
    /// Something was sent again.
    has_repairs: bool,
    /// The largest window up to and with each interval.
    window_peak: Vec<f64>,
}

impl<'a> Transfer<'a> {
    fn new(features: &'a [Features], path: Path) -> Self {
        let Path { rtt, hint, coverage } = path;
        let saw_start = coverage == Coverage::FromStart;
        let rtt = hint.rtt.or(rtt);
        let rates = (0..features.len()).map(|at| smooth_rate(features, at)).collect::<Vec<_>>();
        let mut flights: Vec<f64> = features.iter().map(|f| f.in_flight_max.as_f64()).collect();
        flights.sort_by(f64::total_cmp);
        let plateau = flights.get(flights.len() * PLATEAU_PERCENTILE / 100).copied().unwrap_or(0.0);
        let top = flights.last().copied().unwrap_or(0.0);
        let is_bounded = flights.iter().filter(|flight| **flight >= BOUNDED * top).count()
            * BOUNDED_ONE_IN
            >= flights.len();
        let at_plateau = flights.iter().filter(|flight| **flight >= PLATEAU * plateau).count();
        let hint = hint.rate.map(Rate::as_f64);
        let peak = |peak: &mut f64, f: &Features| {
            *peak = peak.max(window_of(f));
            Some(*peak)
        };
        let window_peak = features.iter().scan(0.0, peak).collect();
        let rate_plateau = rate_plateau(features);
        let has_repairs = features.iter().any(|f| f.retransmissions > 0);
        let mut transfer = Transfer {
            features,
            rates,
            rtt,
            capacity: None,
            rate_plateau,
            plateau,
            hint,
            is_bounded,
            at_plateau,
            has_repairs,
            saw_start,
            window_peak,
        };
        transfer.capacity = transfer.capacity_behind_queues();
        transfer
    }

    /// The most that was carried while a queue stood: of at least three intervals, and unless more
    /// was carried without a queue, since then the round trip was long for another reason (a busy
    /// machine, delayed ACKs).
    fn capacity_behind_queues(&self) -> Option<f64> {
        let mut queued = Vec::new();
        let mut free = Vec::new();
        for at in 0..self.features.len() {
            // One ACK of a repaired hole acknowledges what arrived over several round trips.
            let near = &self.features[at.saturating_sub(2)..(at + 3).min(self.features.len())];
            if near.iter().any(|f| f.retransmissions > 0) {
                continue;
            }
            if self.has_standing_queue(at) {
                queued.push(self.rates[at])
            } else {
                free.push(self.rates[at])
            }
        }
        if queued.len() < QUEUED_LEAST {
            return None;
        }
        queued.sort_by(f64::total_cmp);
        free.sort_by(f64::total_cmp);
        let queued = queued[queued.len() * CAPACITY_PERCENTILE / 100];
        // A few intervals in which a repaired hole was acknowledged at once carried more than any
        // path.
        let few = HASTY_LEAST + self.features.len() / HASTY_PART;
        let free = free.len().checked_sub(1 + few).map_or(0.0, |at| free[at]);
        // Where the rate is known, a queue at much less is not the link's.
        let plausible = self.hint.is_none_or(|hint| queued >= OF_LINK * hint);
        (plausible && queued >= OF_UNQUEUED * free).then_some(queued)
    }

    /// A queue that stands for three round trips; a burst of writes makes one that is gone after
    /// one.
    fn has_standing_queue(&self, at: usize) -> bool {
        let around = at.saturating_sub(1)..(at + 2).min(self.features.len());
        around.len() == 3 && around.into_iter().all(|at| self.has_queue(at))
    }

    fn has_queue(&self, at: usize) -> bool {
        let (Some(base), Some(now)) = (self.rtt, self.features[at].rtt.get()) else { return false };
        let least = QUEUE_LEAST.max(Duration::from_secs_f64(base.as_secs_f64() * QUEUE_PART));
        now.saturating_sub(base) >= least
    }

    fn limit(&self, at: usize, phase: &mut Phase, before: Option<Limit>) -> Limit {
        let f = &self.features[at];
        if f.part(f.idle) > MOST && self.awaits_timer(at) {
            *phase = Phase::AfterLoss;
            return Limit::CongestionWindow(CongestionCause::Loss);
        }
        if f.part(f.idle) > MOST {
            *phase = Phase::Start;
            return Limit::SenderApplication;
        }
        let lost = f.retransmissions > 0 || self.waits_for_repair(at);
        if lost {
            *phase = Phase::AfterLoss;
        }
        let receiver = self.receiver(at);
        if self.is_at_capacity(at)
            && receiver != Some(Limit::ReceiverApplication)
            && !self.is_written_short(at)
        {
            // Loss at a full queue is how the path tells its limit.
            *phase = if lost { Phase::AfterLoss } else { Phase::Grown };
            return Limit::Link;
        }
        let waited = lost && self.carries_less_than_the_window(at);
        if let Some(limit) = receiver.filter(|limit| !(waited && *limit == Limit::ReceiveWindow)) {
            // A window that is full leaves congestion control as it is: it grows on when the window
            // opens.
            if lost {
                *phase = Phase::AfterLoss;
            }
            return limit;
        }
        let grows = *phase == Phase::Start && self.grows(at);
        if self.is_on_plateau(at) || (self.is_busy(at) && !grows && !self.is_own_pace(at)) {
            return Limit::Link;
        }
        if lost {
            return Limit::CongestionWindow(CongestionCause::Loss);
        }
        // The last data leaves and drains: whatever held the sender before did until there was
        // nothing left to send.
        let is_last = self.features[at + 1..].iter().all(|later| later.sent == 0);
        if let Some(before) = before.filter(|_| is_last) {
            return before;
        }
        self.sender(at, phase)
    }

    /// Nothing is sent although something is in flight, and the next thing sent is a repair.
    fn waits_for_repair(&self, at: usize) -> bool {
        let waits =
            |f: &Features| f.segments == 0 && f.delivered == 0 && f.in_flight_max > Bytes::ZERO;
        waits(&self.features[at])
            && self.features[at..]
                .iter()
                .take(REPAIR_WITHIN)
                .find(|f| !waits(f))
                .is_some_and(|next| next.retransmissions > 0)
    }

    /// Nothing is in flight as far as can be seen, because what was sent last was lost before the
    /// capture point: the silence ends with its repair, after the sender's timer.
    fn awaits_timer(&self, at: usize) -> bool {
        let next = self.features[at..].iter().take(REPAIR_WITHIN).find(|f| f.segments > 0);
        // Identifications count what goes to other hosts too: alone they are no loss.
        next.is_some_and(|next| next.recovered || (self.has_repairs && next.follows_gap))
    }

    /// A good part of the time nothing was sent until a timer ran out, and again: no path is busy
    /// so.
    fn awaits_timers(&self, limits: &[Limit]) -> bool {
        let lost = Limit::CongestionWindow(CongestionCause::Loss);
        let (mut waited, mut all) = (0.0, 0.0);
        for (f, limit) in self.features.iter().zip(limits) {
            let length = f.length.as_secs_f64();
            all += length;
            let is_silent = f.part(f.idle) > MOST || f.segments == 0;
            waited += if *limit == lost && is_silent { length } else { 0.0 };
        }
        let timers = self.features.iter().filter(|f| f.recovered).count();
        waited > TIMED * all && timers >= TIMERS_LEAST
    }

    fn is_at_capacity(&self, at: usize) -> bool {
        let rate = self.rates[at];
        if self.hint.is_some_and(|hint| rate >= OF_HINT * hint) {
            return true;
        }
        // A handful of segments makes no standing queue; what delays them is their own
        // acknowledgement.
        let f = &self.features[at];
        let few = f.in_flight_max.get() <= FEW_SEGMENTS * u64::from(f.segment);
        // Beside a queue a smaller rate is the noise of an interval's borders.
        let least = if self.has_standing_queue(at) { AT_CAPACITY_QUEUED } else { AT_CAPACITY };
        !few && self.capacity.is_some_and(|capacity| rate >= least * capacity)
    }

    fn is_on_plateau(&self, at: usize) -> bool {
        self.rate_plateau.is_some_and(|plateau| {
            mean_rate(self.features, at, WIDE) >= AT_CAPACITY_QUEUED * plateau
        })
    }

    /// The receive window, if it was in the way most of the time.
    fn receiver(&self, at: usize) -> Option<Limit> {
        let f = &self.features[at];
        if f.part(f.full) <= MOST && !self.touches_window(at) && !self.keeps_filling(at) {
            return None;
        }
        let collapsed = window_of(f) < COLLAPSED * self.window_peak[at];
        Some(if collapsed || self.is_unread(at) {
            Limit::ReceiverApplication
        } else {
            Limit::ReceiveWindow
        })
    }

    /// Data is acknowledged before the receiving application reads it, again and again, and the
    /// window closes by as much.
    fn is_unread(&self, at: usize) -> bool {
        if self.saw_start {
            // The largest window says it better: a reader that is fast, but not at once, closes a
            // window for a moment too.
            return false;
        }
        let near = self.near(at);
        let sum = |of: fn(&Features) -> u64| near.iter().map(of).sum::<u64>() as f64;
        sum(|f| f.unread.into()) >= CLOSING * sum(|f| f.delivered)
    }

    /// What passes at a stretch is no faster than what passes over several round trips: the
    /// narrowest place before the capture point is busy all of the time. A sender that something
    /// else holds leaves gaps.
    fn is_busy(&self, at: usize) -> bool {
        let near = self.near(at);
        let mut trains: Vec<f64> = near.iter().map(|f| f.train_max.into()).collect();
        trains.sort_by(f64::total_cmp);
        let at_a_stretch = trains[trains.len() / 2];
        let f = &self.features[at];
        let events: u32 = near.iter().map(|f| f.train_events).sum();
        if at_a_stretch <= 0.0 || (events as usize) < TRAIN_EVENTS_LEAST * near.len() {
            return false;
        }
        if f.in_flight_max.get() <= FEW_SEGMENTS * u64::from(f.segment) {
            return false;
        }
        let part = mean_rate(self.features, at, WIDE) / at_a_stretch;
        let least = if self.flatness(at) >= FLAT { BUSY_AND_FLAT } else { BUSY };
        (least..=BUSY_MOST).contains(&part)
    }

    /// How little of what is in flight changes in the time around: the fifth least mean by the
    /// fifth greatest.
    fn flatness(&self, at: usize) -> f64 {
        let mut means: Vec<f64> = self.near(at).iter().map(Features::in_flight_mean).collect();
        means.sort_by(f64::total_cmp);
        let (low, high) = (means[means.len() / 5], means[means.len() * 4 / 5]);
        if high > 0.0 { low / high } else { 0.0 }
    }

    /// The intervals of some round trips before and after.
    fn near(&self, at: usize) -> &[Features] {
        &self.features[at.saturating_sub(AROUND)..(at + AROUND + 1).min(self.features.len())]
    }

    /// Paced data never quite fills the window, and comes as near to it as it can: nearly all of
    /// the time, or again and again, with little room in the mean.
    fn touches_window(&self, at: usize) -> bool {
        let f = &self.features[at];
        let (mean, segment, window) = (f.in_flight_mean(), f64::from(f.segment), window_of(f));
        let reaches = f.in_flight_max.as_f64() + 2.0 * segment >= window && mean >= NEARLY * window;
        f.window_max.is_some() && (mean + segment >= TOUCHED * window || reaches)
    }

    /// A window that an application opens bit by bit, at a sender that paces: full for a part of
    /// each round trip, again and again, and never out of the way.
    fn keeps_filling(&self, at: usize) -> bool {
        let part = |f: &Features| f.part(f.full);
        let around = self.around(at);
        let mean = around.iter().map(part).sum::<f64>() / around.len() as f64;
        part(&self.features[at]) >= FILLED_LEAST && mean >= FILLED_MEAN
    }

    fn carries_less_than_the_window(&self, at: usize) -> bool {
        let f = &self.features[at];
        let window_per_rtt =
            f.window_max.zip(self.rtt).and_then(|(window, rtt)| window.per_rtt(rtt));
        let carried = f.evidence().goodput;
        window_per_rtt.is_some_and(|allowed| carried.as_f64() < UNREPAIRED * allowed.as_f64())
    }

    /// The most in flight of the next `count` intervals.
    fn later(&self, at: usize, count: usize) -> f64 {
        let end = (at + 1 + count).min(self.features.len());
        self.features[at + 1..end].iter().map(|f| f.in_flight_max.as_f64()).fold(0.0, f64::max)
    }

    fn grows(&self, at: usize) -> bool {
        let now = self.features[at].in_flight_max.as_f64();
        // What swings is not what grows: the most of the two intervals before counts.
        let before = self.features[at.saturating_sub(2)..at]
            .iter()
            .map(|f| f.in_flight_max.as_f64())
            .fold(0.0, f64::max);
        now >= GROWTH * before || self.later(at, 4) >= GROWTH * now.max(before)
    }

    /// Less is in flight than there could be, or it still comes to be more.
    fn is_reduced(&self, at: usize) -> bool {
        if self.near(at).len() > AROUND && self.flatness(at) >= UNMOVED {
            // Congestion control that loss does not slow down, or a bound to which it has come
            // back.
            return false;
        }
        let now = self.features[at].in_flight_max.as_f64();
        now < PLATEAU * self.plateau
            || self.later(at, GROWS_WITHIN) >= STILL_GROWS * now
            || !self.is_bounded
    }

    /// A blocked writer is woken when a third of the buffer is free, so the most in flight swings
    /// by that much.
    fn is_steady(&self, at: usize) -> bool {
        let now = self.features[at].in_flight_max.as_f64();
        now >= WOKEN * self.plateau && self.later(at, 2) <= self.plateau / PLATEAU
    }

    fn is_own_pace(&self, at: usize) -> bool {
        let f = &self.features[at];
        f.part(f.idle) > PAUSED || self.is_written_in_pieces(at)
    }

    /// Neither path nor receiver: what in the sender.
    fn sender(&self, at: usize, phase: &mut Phase) -> Limit {
        if self.is_own_pace(at) {
            return Limit::SenderApplication;
        }
        match *phase {
            Phase::Start if self.grows(at) => {
                return Limit::CongestionWindow(CongestionCause::SlowStart);
            }
            Phase::Start => *phase = Phase::Grown,
            Phase::AfterLoss if self.is_reduced(at) => {
                return Limit::CongestionWindow(CongestionCause::Loss);
            }
            Phase::AfterLoss | Phase::Grown => {}
        }
        if self.is_steady(at) { Limit::SendBuffer } else { Limit::Unknown }
    }

    /// Writes that do not fill segments: a sender that has more to send, as it has before a full
    /// link, fills them. Where the link's rate is given and reached, there is nothing to weigh.
    fn is_written_short(&self, at: usize) -> bool {
        self.pieces(at) >= PIECES && self.hint.is_none_or(|hint| self.rates[at] < OF_HINT * hint)
    }

    /// The part of the new segments around that were not full.
    fn pieces(&self, at: usize) -> f64 {
        let sum = |of: fn(&Features) -> u64| self.around(at).iter().map(of).sum::<u64>() as f64;
        sum(|f| f.short.into())
            / sum(|f| f.segments.saturating_sub(f.retransmissions).into()).max(1.0)
    }

    /// New data leaves when the application writes it, not when an ACK makes room; or in writes
    /// that do not fill segments.
    fn is_written_in_pieces(&self, at: usize) -> bool {
        let f = &self.features[at];
        let around = self.around(at);
        let sum = |of: fn(&Features) -> u64| around.iter().map(of).sum::<u64>() as f64;
        let pieces = self.pieces(at);
        if pieces >= PIECES {
            return true;
        }
        let own_pace = sum(|f| f.unprompted) > OWN_PACE * sum(|f| f.sent);
        let unprompted = f.sent > 0 && f.unprompted as f64 > MOST * f.sent as f64;
        let first = at == 0 || self.features[at - 1].part(self.features[at - 1].idle) > MOST;
        // The first flight after silence has no ACK to follow: it is the application's only if it
        // was all there was.
        let followed = self.features.get(at + 1).is_some_and(|next| next.sent > 0);
        if first {
            f.sent > 0 && !followed
        } else {
            pieces >= FEW_PIECES && (unprompted || own_pace)
        }
    }

    /// The intervals around. Writes at an own pace drift past the ACKs of the writes before: now
    /// and then one follows an ACK for a while, and looks as if the ACK had made room for it.
    fn around(&self, at: usize) -> &[Features] {
        &self.features[at.saturating_sub(NEAR)..(at + NEAR + 1).min(self.features.len())]
    }
}

fn window_of(f: &Features) -> f64 {
    f.window_max.map_or(0.0, |window| window.bytes().as_f64())
}

/// Bits per second delivered in an interval and the ones beside it, so that an ACK that falls on a
/// border does not matter.
fn smooth_rate(features: &[Features], at: usize) -> f64 {
    mean_rate(features, at, 1)
}

fn mean_rate(features: &[Features], at: usize, around: usize) -> f64 {
    let around = &features[at.saturating_sub(around)..(at + around + 1).min(features.len())];
    let bytes: u64 = around.iter().map(|f| f.delivered).sum();
    let time: f64 = around.iter().map(|f| f.length.as_secs_f64()).sum();
    if time > 0.0 { bytes as f64 * 8.0 / time } else { 0.0 }
}

/// The rate that most intervals come back to, of a transfer that lost something in most of them.
fn rate_plateau(features: &[Features]) -> Option<f64> {
    let lossy = (0..features.len()).filter(|at| {
        let near = &features[at.saturating_sub(WIDE)..(at + WIDE + 1).min(features.len())];
        near.iter().any(|f| f.retransmissions > 0)
    });
    if features.len() < 8 * WIDE || lossy.count() * 4 < features.len() * 3 {
        return None;
    }
    let mut rates: Vec<f64> = (0..features.len()).map(|at| mean_rate(features, at, WIDE)).collect();
    rates.sort_by(f64::total_cmp);
    let middle = rates[rates.len() * 6 / 10];
    let within =
        rates.iter().filter(|rate| (**rate - middle).abs() <= PLATEAU_WIDTH * middle).count();
    (within as f64 >= PLATEAU_SHARE * rates.len() as f64).then_some(middle)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limit::judge::Opinion;

    /// A table that was trained with other traits would be left aside without a word.
    #[test]
    fn the_committed_table_was_trained_with_these_traits() {
        let path = Path { rtt: None, hint: PathHint::default(), coverage: Coverage::FromStart };
        let busy = Features { segments: 10, length: Duration::from_millis(10), ..<_>::default() };
        let verdict = decide(&[busy; 20], path);
        let opinion = Opinion::of(Source::Capture, &verdict.traits, |_| true).unwrap();
        assert!((opinion.likely.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{opinion:?}");
    }
}
