//! Decides what held the sender in each interval, from what a capture showed.

mod brief;
mod ceiling;
mod features;
mod gates;
mod one_rate;
pub(super) mod overflows;
mod pauses;
mod queues;
mod rivals;
mod shared;
mod surroundings;
mod trains;
mod traits;

use super::thresholds::{
    AROUND, AS_MUCH, AT_CAPACITY, AT_CAPACITY_QUEUED, BOUNDED, BOUNDED_ONE_IN, BUSY, BUSY_AND_FLAT,
    BUSY_MOST, CAPACITY_PERCENTILE, CLOSING, COLLAPSED, FEW_PIECES, FEW_SEGMENTS, FILLED_LEAST,
    FILLED_MEAN, FLAT, GROWS_WITHIN, GROWTH, HASTY_LEAST, HASTY_PART, MOST, NEARLY, OF_HINT,
    OF_LINK, OF_UNQUEUED, OWN_PACE, PAUSED, PIECES, PLATEAU, PLATEAU_PERCENTILE, QUEUED_LEAST,
    REPAIR_WITHIN, STILL_GROWS, TIMED, TIMERS_LEAST, TOUCHED, TRAIN_EVENTS_LEAST, UNMOVED,
    UNREPAIRED, WOKEN,
};
use brief::Brief;
pub(crate) use features::Features;
use one_rate::one_rate;
use pauses::Writes;
pub(crate) use queues::queue_least;
use queues::standing_queues;
use surroundings::Surroundings;
use trains::{burst_rate, train_rate};

use super::judge::{Case, INTERVALS_LEAST, SEGMENTS_LEAST};
use super::{Candidate, Clocked, Coverage, DropPattern, Source, Verdict};
use super::{CongestionCause, Interval, Limit, PathHint};
use fullpipe_model::units::{Bytes, Duration, Rate};

/// What is known of a transfer apart from its intervals.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Path {
    /// The round trip without queues, as far as the capture shows it.
    pub rtt: Option<Duration>,
    /// What is known from another source.
    pub hint: PathHint,
    /// Which part of the transfer was captured.
    pub coverage: Coverage,
    /// Whether it was captured at the sender, before any link of the path.
    pub is_at_sender: bool,
    /// How often data followed data of the other end, as an answer follows a question.
    pub turns: u32,
    /// How many of its segments do not fill the MSS. Both are counted for short transfers.
    pub pieces: u32,
    /// What was lost, and when.
    pub drops: DropPattern,
    /// Whether packets overtook each other so far that the sender took it for loss.
    pub is_reordered: bool,
}

/// Decides what held the sender in each interval.
pub(crate) fn decide(features: &[Features], path: Path, clocked: Clocked) -> Verdict {
    shared::or_its_receiver(decide_by(features, path, clocked), features, path, clocked)
}

/// Decides what held the sender in each interval, by rates of the path that are those of all
/// connections of the two hosts.
fn decide_by(features: &[Features], path: Path, clocked: Clocked) -> Verdict {
    let transfer = Transfer::new(features, path);
    let mut phase = CongestionPhase::Start;
    let mut before = None;
    let intervals: Vec<Interval> = (0..features.len())
        .map(|at| {
            let signs = transfer.signs(at);
            let phase_before = phase;
            let limit = transfer.limit(at, &signs, &mut phase, before);
            before = Some(limit);
            let rivals = transfer.rivals(at, &signs, phase_before);
            let rivals = rivals.filter(|rival| *rival != limit);
            let mut candidates = vec![Candidate { limit, share: 1.0 }];
            for rival in rivals {
                if candidates.iter().all(|known| known.limit != rival) {
                    candidates.push(Candidate { limit: rival, share: 0.0 });
                }
            }
            features[at].interval(candidates)
        })
        .collect();
    if features.iter().all(|f| f.delivered == 0) {
        return Verdict::new(Source::Capture, unknown(features)).with_coverage(path.coverage);
    }
    let segments: u64 = features.iter().map(|f| u64::from(f.segments)).sum();
    if segments < SEGMENTS_LEAST {
        return Brief::new(&transfer, path).verdict(intervals, path.coverage);
    }
    let limits: Vec<Limit> = intervals.iter().map(Interval::limit).collect();
    let mut verdict = Verdict::new(Source::Capture, intervals).with_coverage(path.coverage);
    verdict.trains = train_rate(features, path.is_at_sender);
    verdict.bursts = burst_rate(features);
    if features.len() < INTERVALS_LEAST {
        return verdict;
    }
    let verdict = verdict.weighed(|part, _| {
        if part.len() == features.len() {
            return transfer.case(&limits);
        }
        let coverage = match path.coverage {
            Coverage::FromStart if part.start > 0 => Coverage::MiddleAtSender,
            coverage => coverage,
        };
        let transfer = Transfer::new(&features[part.clone()], Path { coverage, ..path });
        transfer.case(&limits[part])
    });
    let verdict = if path.is_reordered { verdict.or_taken_for_loss() } else { verdict };
    let rates = transfer.surroundings.wide_rates();
    let verdict = overflows::overrule(verdict, features, path);
    let verdict = pauses::overrule(verdict, features, rates, Writes { clocked, turns: path.turns });
    match path.drops.policed.filter(|_| !path.is_reordered) {
        Some(law) => one_rate(verdict, law, features, path.is_at_sender),
        None => verdict,
    }
}

/// Intervals of a capture of one direction, without the answers: nothing says what the sender
/// waited for.
fn unknown(features: &[Features]) -> Vec<Interval> {
    let unknown = Candidate { limit: Limit::Unknown, share: 1.0 };
    features.iter().map(|f| f.interval(vec![unknown])).collect()
}

/// The phase of congestion control, as far as segments show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CongestionPhase {
    /// Growing for the first time since the start or an idle period.
    Start,
    /// Neither growing for the first time nor reduced.
    Grown,
    /// Reduced by loss, or growing after that.
    AfterLoss,
}

/// What an interval shows that several rules ask for.
#[derive(Debug, Clone, Copy)]
struct Signs {
    /// Something was retransmitted, or the sender waits for a repair.
    lost: bool,
    /// The path was busy, by its capacity and by the rate to which the transfer returns.
    is_at_capacity: bool,
    is_on_plateau: bool,
    /// The limit at the receiver, if its window was in the way.
    receiver: Option<Limit>,
}

/// All intervals of one direction, with what shows only when they are seen together.
struct Transfer<'a> {
    features: &'a [Features],
    surroundings: Surroundings<'a>,
    /// Bits per second that the path carried over an interval and its neighbours, and those of this
    /// connection alone.
    rates: Vec<f64>,
    own_rates: Vec<f64>,
    rtt: Option<Duration>,
    /// Bits per second that the path carried while a queue stood before it.
    capacity: Option<f64>,
    /// The rate, in bits per second, to which a transfer with loss in most intervals returns again
    /// and again. Its congestion control does not slow down for loss, so the path is its limit.
    rate_plateau: Option<f64>,
    /// What is in flight while only a fixed bound holds it: in 90 % of the intervals it was less.
    plateau: f64,
    hint: Option<f64>,
    /// Whether a queue stood in an interval and in both of its neighbours. A burst of writes makes
    /// a queue that is gone after one.
    has_standing_queue: Vec<bool>,
    /// Whether a good part of the intervals reached the same maximum in flight. After loss, that is
    /// no coincidence.
    is_bounded: bool,
    /// How many intervals came to within [`PLATEAU`] of the plateau.
    at_plateau: usize,
    /// Whether the handshake was captured.
    saw_start: bool,
    is_at_sender: bool,
    is_reordered: bool,
    /// Whether something was retransmitted.
    has_repairs: bool,
    /// For each interval, the largest window up to and including it.
    window_peak: Vec<f64>,
}

impl<'a> Transfer<'a> {
    /// The question for the judge. `limits` are what the rules decided.
    fn case(&self, limits: &[Limit]) -> Case {
        let inflation = self.inflation(self.features);
        Case {
            traits: self.traits(limits, &inflation),
            possible: self.possible(limits),
            link: self.link_evidence(inflation.percentile(50)),
            judges_parts: !self.awaits_timers(limits),
        }
    }

    fn new(features: &'a [Features], path: Path) -> Self {
        let Path { rtt, hint, coverage, is_at_sender, is_reordered, .. } = path;
        let saw_start = coverage == Coverage::FromStart;
        let rtt = hint.rtt.or(rtt);
        let surroundings = Surroundings::new(features);
        // With its neighbours, so that an ACK on an interval's border does not matter.
        let rates = (0..features.len()).map(|at| surroundings.mean_rate(at, 1)).collect();
        let own_rates = (0..features.len()).map(|at| surroundings.own_rate(at, 1)).collect();
        let mut flights: Vec<f64> = features.iter().map(|f| f.in_flight_max.as_f64()).collect();
        let top = flights.iter().copied().fold(0.0, f64::max);
        let plateau = percentile(&mut flights, PLATEAU_PERCENTILE);
        let is_bounded = flights.iter().filter(|flight| **flight >= BOUNDED * top).count()
            * BOUNDED_ONE_IN
            >= flights.len();
        let at_plateau = flights.iter().filter(|flight| **flight >= PLATEAU * plateau).count();
        let hint = hint.rate.map(Rate::as_f64);
        let mut peak = 0.0_f64;
        let peaks = features.iter().map(|f| {
            peak = peak.max(window_of(f));
            peak
        });
        let window_peak = peaks.collect();
        let has_repairs = features.iter().any(|f| f.retransmissions > 0);
        let rate_plateau = has_repairs.then(|| surroundings.rate_plateau()).flatten();
        let mut transfer = Transfer {
            features,
            surroundings,
            rates,
            own_rates,
            rtt,
            capacity: None,
            rate_plateau,
            plateau,
            hint,
            has_standing_queue: standing_queues(features, rtt),
            is_bounded,
            at_plateau,
            has_repairs,
            saw_start,
            is_at_sender,
            is_reordered,
            window_peak,
        };
        transfer.capacity = transfer.capacity_behind_queues();
        transfer
    }

    /// The most that was carried while a queue stood, from at least three intervals. `None` if more
    /// was carried without a queue: then the round trip was long for another reason (a busy
    /// machine, delayed ACKs).
    fn capacity_behind_queues(&self) -> Option<f64> {
        let mut queued = Vec::new();
        let mut free = Vec::new();
        for at in 0..self.features.len() {
            if self.repairs_near(at) {
                continue;
            }
            if self.has_standing_queue[at] {
                queued.push(self.rates[at])
            } else {
                free.push(self.rates[at])
            }
        }
        if queued.len() < QUEUED_LEAST {
            return None;
        }
        let queued = percentile(&mut queued, CAPACITY_PERCENTILE);
        // In a few intervals a repaired hole was acknowledged at once, so they show more than any
        // path carries.
        let few = HASTY_LEAST + self.features.len() / HASTY_PART;
        let free = free.len().checked_sub(1 + few).map_or(0.0, |at| nth(&mut free, at));
        // Where the rate is known, a queue at a much lower rate is not the link's.
        let plausible = self.hint.is_none_or(|hint| queued >= OF_LINK * hint);
        (plausible && queued >= OF_UNQUEUED * free).then_some(queued)
    }

    fn signs(&self, at: usize) -> Signs {
        Signs {
            lost: self.features[at].retransmissions > 0 || self.waits_for_repair(at),
            is_at_capacity: self.is_at_capacity(at),
            is_on_plateau: self.is_on_plateau(at),
            receiver: self.receiver(at),
        }
    }

    fn limit(
        &self,
        at: usize,
        signs: &Signs,
        phase: &mut CongestionPhase,
        before: Option<Limit>,
    ) -> Limit {
        let Signs { lost, is_at_capacity, is_on_plateau, receiver } = *signs;
        let f = &self.features[at];
        if f.part(f.idle) > MOST && self.awaits_timer(at) {
            *phase = CongestionPhase::AfterLoss;
            return Limit::CongestionWindow(CongestionCause::Loss);
        }
        if f.part(f.idle) > MOST {
            *phase = CongestionPhase::Start;
            return Limit::SenderApplication;
        }
        if lost {
            *phase = CongestionPhase::AfterLoss;
        }
        if is_at_capacity
            && receiver != Some(Limit::ReceiverApplication)
            && !self.is_written_short(at)
        {
            // Loss at a full queue is the path's signal that it is at its limit.
            *phase = if lost { CongestionPhase::AfterLoss } else { CongestionPhase::Grown };
            return Limit::Link;
        }
        let waited = lost && self.carries_less_than_the_window(at);
        if let Some(limit) = receiver.filter(|limit| !(waited && *limit == Limit::ReceiveWindow)) {
            // A full window leaves congestion control as it is: it keeps growing when the window
            // opens.
            if lost {
                *phase = CongestionPhase::AfterLoss;
            }
            return limit;
        }
        let grows = *phase == CongestionPhase::Start && self.grows(at);
        if is_on_plateau || (self.is_busy(at) && !grows && !self.is_own_pace(at)) {
            return Limit::Link;
        }
        if lost {
            return Limit::CongestionWindow(CongestionCause::Loss);
        }
        // The last data leaves and drains. Whatever held the sender before went on holding it until
        // there was nothing left to send.
        let is_last = self.features[at + 1..].iter().all(|later| later.sent == 0);
        if let Some(before) = before.filter(|_| is_last) {
            return before;
        }
        self.sender(at, phase)
    }

    /// Whether nothing is sent although something is in flight, and the next thing sent is a
    /// repair.
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

    /// Whether the sender waits for its timer. Nothing seems to be in flight, because the last data
    /// was lost before the capture point. The silence ends when the timer expires and the data is
    /// repaired.
    fn awaits_timer(&self, at: usize) -> bool {
        let next = self.features[at..].iter().take(REPAIR_WITHIN).find(|f| f.segments > 0);
        // IP identifications also count packets to other hosts. A gap in them alone is no sign of
        // loss.
        next.is_some_and(|next| next.recovered || (self.has_repairs && next.follows_gap))
    }

    /// Whether the sender spent a good part of the time waiting for timers, again and again. A busy
    /// path does not look like that.
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
        // A handful of segments makes no standing queue; only their own acknowledgement delays
        // them.
        let f = &self.features[at];
        let few = f.in_flight_max.get() <= FEW_SEGMENTS * u64::from(f.segment);
        // With a queue, a smaller rate is the noise of an interval's borders.
        let least = if self.has_standing_queue[at] { AT_CAPACITY_QUEUED } else { AT_CAPACITY };
        !few && self.capacity.is_some_and(|capacity| rate >= least * capacity)
    }

    fn is_on_plateau(&self, at: usize) -> bool {
        self.rate_plateau.is_some_and(|plateau| {
            self.surroundings.wide_rates()[at] >= AT_CAPACITY_QUEUED * plateau
        })
    }

    /// The limit at the receiver, if its window was in the way most of the time.
    fn receiver(&self, at: usize) -> Option<Limit> {
        let f = &self.features[at];
        if f.part(f.full) <= MOST && !self.touches_window(at) && !self.keeps_filling(at) {
            return None;
        }
        let collapsed = window_of(f) < COLLAPSED * self.window_peak[at]
            && !(self.has_standing_queue[at] && self.carries_as_much_as_ever(at));
        Some(if collapsed || self.is_unread(at) {
            Limit::ReceiverApplication
        } else {
            Limit::ReceiveWindow
        })
    }

    /// Whether this connection carried noticeably more in no interval before.
    fn carries_as_much_as_ever(&self, at: usize) -> bool {
        let most = self.own_rates[..=at].iter().copied().fold(0.0, f64::max);
        self.own_rates[at] >= AS_MUCH * most
    }

    /// Whether data is acknowledged before the receiving application reads it, again and again, and
    /// the window closes by as much.
    fn is_unread(&self, at: usize) -> bool {
        if self.saw_start {
            // The largest window is better evidence: even a fast reader does not read at once, and
            // closes the window for a moment.
            return false;
        }
        let near = self.near(at);
        let unread: u64 = near.iter().map(|f| u64::from(f.unread)).sum();
        let delivered: u64 = near.iter().map(|f| f.delivered).sum();
        unread as f64 >= CLOSING * delivered as f64
    }

    /// Whether the narrowest place before the capture point is busy all of the time: trains are no
    /// faster than the rate over several round trips. A sender that something else holds leaves
    /// gaps.
    fn is_busy(&self, at: usize) -> bool {
        let f = &self.features[at];
        if f.in_flight_max.get() <= FEW_SEGMENTS * u64::from(f.segment) {
            return false;
        }
        let at_a_stretch = self.surroundings.train_rate(at);
        let part = self.surroundings.wide_rates()[at] / at_a_stretch;
        // The least bound first, because most intervals are far from it.
        if at_a_stretch <= 0.0 || !(BUSY_AND_FLAT..=BUSY_MOST).contains(&part) {
            return false;
        }
        let near = self.near(at);
        let events: u32 = near.iter().map(|f| f.train_events).sum();
        if (events as usize) < TRAIN_EVENTS_LEAST * near.len() {
            return false;
        }
        let least = if self.surroundings.flatness(at) >= FLAT { BUSY_AND_FLAT } else { BUSY };
        (least..=BUSY_MOST).contains(&part)
    }

    /// This interval, and those of some round trips before and after.
    fn near(&self, at: usize) -> &[Features] {
        &self.features[at.saturating_sub(AROUND)..(at + AROUND + 1).min(self.features.len())]
    }

    /// Whether paced data reaches the window. It never quite fills it, but comes as near as it can:
    /// nearly all of the time, or again and again with little room left on average.
    fn touches_window(&self, at: usize) -> bool {
        let f = &self.features[at];
        let (mean, segment, window) = (f.in_flight_mean(), f64::from(f.segment), window_of(f));
        let reaches = f.in_flight_max.as_f64() + 2.0 * segment >= window && mean >= NEARLY * window;
        f.window_max.get().is_some() && (mean + segment >= TOUCHED * window || reaches)
    }

    /// Whether the window keeps filling up. The application opens it bit by bit and the sender
    /// paces, so it is full for a part of each round trip, again and again.
    fn keeps_filling(&self, at: usize) -> bool {
        let f = &self.features[at];
        if f.part(f.full) < FILLED_LEAST {
            return false;
        }
        let around = &self.features[self.surroundings.near(at)];
        let sum: f64 = around.iter().map(|f| f.part(f.full)).sum();
        sum / around.len() as f64 >= FILLED_MEAN
    }

    fn carries_less_than_the_window(&self, at: usize) -> bool {
        let f = &self.features[at];
        let window_per_rtt =
            f.window_max.get().zip(self.rtt).and_then(|(window, rtt)| window.per_rtt(rtt));
        let carried = f.evidence().goodput;
        window_per_rtt.is_some_and(|allowed| carried.as_f64() < UNREPAIRED * allowed.as_f64())
    }

    /// The most in flight in the next `count` intervals.
    fn later(&self, at: usize, count: usize) -> f64 {
        let end = (at + 1 + count).min(self.features.len());
        self.features[at + 1..end].iter().map(|f| f.in_flight_max.as_f64()).fold(0.0, f64::max)
    }

    fn grows(&self, at: usize) -> bool {
        let now = self.features[at].in_flight_max.as_f64();
        // An oscillation is not growth: compare with the larger of the two intervals before.
        let before = self.features[at.saturating_sub(2)..at]
            .iter()
            .map(|f| f.in_flight_max.as_f64())
            .fold(0.0, f64::max);
        now >= GROWTH * before || self.later(at, 4) >= GROWTH * now.max(before)
    }

    /// Whether congestion control is still reduced: less is in flight than there could be, or it
    /// still grows.
    fn is_reduced(&self, at: usize) -> bool {
        if self.near(at).len() > AROUND && self.surroundings.flatness(at) >= UNMOVED {
            // Either loss does not slow this congestion control down, or it has come back to a
            // bound.
            return false;
        }
        let now = self.features[at].in_flight_max.as_f64();
        now < PLATEAU * self.plateau
            || self.later(at, GROWS_WITHIN) >= STILL_GROWS * now
            || !self.is_bounded
    }

    /// Whether the amount in flight stays as high as a full send buffer keeps it. A blocked writer
    /// is woken when a third of the buffer is free, so the maximum in flight swings by that much.
    fn is_steady(&self, at: usize) -> bool {
        let now = self.features[at].in_flight_max.as_f64();
        now >= WOKEN * self.plateau && self.later(at, 2) <= self.plateau / PLATEAU
    }

    fn is_own_pace(&self, at: usize) -> bool {
        let f = &self.features[at];
        f.part(f.idle) > PAUSED || self.is_written_in_pieces(at)
    }

    /// What holds the sender on its own side, once path and receiver are ruled out.
    fn sender(&self, at: usize, phase: &mut CongestionPhase) -> Limit {
        if self.is_own_pace(at) {
            return Limit::SenderApplication;
        }
        match *phase {
            CongestionPhase::Start if self.grows(at) => {
                return Limit::CongestionWindow(CongestionCause::SlowStart);
            }
            CongestionPhase::Start => *phase = CongestionPhase::Grown,
            CongestionPhase::AfterLoss if self.is_reduced(at) => {
                return Limit::CongestionWindow(CongestionCause::Loss);
            }
            CongestionPhase::AfterLoss | CongestionPhase::Grown => {}
        }
        if self.is_steady(at) { Limit::SendBuffer } else { Limit::Unknown }
    }

    /// Whether the application's writes do not fill segments. A sender that has more to send fills
    /// them, as it does before a full link. Where the link's rate is given and reached, this does
    /// not matter.
    fn is_written_short(&self, at: usize) -> bool {
        self.pieces(at) >= PIECES && self.hint.is_none_or(|hint| self.rates[at] < OF_HINT * hint)
    }

    /// The fraction of new segments around this interval that were not full, without one: whatever
    /// held a transfer, its last segment rarely fills up.
    fn pieces(&self, at: usize) -> f64 {
        let counts = self.surroundings.counts(at);
        counts.short.saturating_sub(1) as f64 / (counts.fresh as f64).max(1.0)
    }

    /// Whether new data leaves when the application writes it and not when an ACK makes room, or in
    /// writes that do not fill segments. Writes at the application's own pace drift past the ACKs
    /// of earlier writes. From time to time a write follows an ACK for a while, and looks as if the
    /// ACK had made room for it. The intervals around this one therefore count too.
    fn is_written_in_pieces(&self, at: usize) -> bool {
        let f = &self.features[at];
        let pieces = self.pieces(at);
        if pieces >= PIECES {
            return true;
        }
        let counts = self.surroundings.counts(at);
        let own_pace = counts.unprompted as f64 > OWN_PACE * counts.sent as f64;
        let unprompted = f.sent > 0 && f.unprompted as f64 > MOST * f.sent as f64;
        let first = at == 0 || self.features[at - 1].part(self.features[at - 1].idle) > MOST;
        // No ACK precedes the first flight after a silence. That flight is the application's pace
        // only if nothing followed it.
        let followed = self.features.get(at + 1).is_some_and(|next| next.sent > 0);
        if first {
            f.sent > 0 && !followed
        } else {
            pieces >= FEW_PIECES && (unprompted || own_pace)
        }
    }
}

fn window_of(f: &Features) -> f64 {
    f.window_max.get().map_or(0.0, |window| window.bytes().as_f64())
}

/// The value below which `percent` per cent of the values are; 0 if there are none.
fn percentile(values: &mut [f64], percent: usize) -> f64 {
    if values.is_empty() { 0.0 } else { nth(values, values.len() * percent / 100) }
}

/// The value that would be at `at` if the values were sorted.
fn nth(values: &mut [f64], at: usize) -> f64 {
    *values.select_nth_unstable_by(at, f64::total_cmp).1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limit::judge::{LinkEvidence, Opinion, Possible};

    impl Path {
        /// Of a whole transfer, captured at its sender or not.
        pub(in crate::limit::decide) fn whole(rtt: Option<Duration>, is_at_sender: bool) -> Path {
            let (hint, coverage) = (PathHint::default(), Coverage::FromStart);
            Path {
                rtt,
                hint,
                coverage,
                is_at_sender,
                turns: 0,
                pieces: 0,
                drops: DropPattern::default(),
                is_reordered: false,
            }
        }
    }

    /// A table that was trained with other traits would be ignored silently.
    #[test]
    fn the_committed_table_was_trained_with_these_traits() {
        let path = Path::whole(None, true);
        let length = Duration::from_millis(10);
        let busy = Features { segments: 10, delivered: 10, length, ..<_>::default() };
        let verdict = decide(&[busy; 20], path, Clocked::default());
        let traits = verdict.traits;
        let case =
            Case { traits, possible: Possible::ALL, link: LinkEvidence::None, judges_parts: true };
        let opinion = Opinion::of(Source::Capture, &case.traits, case.possible).unwrap();
        assert!((opinion.likely.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{opinion:?}");
    }
}
