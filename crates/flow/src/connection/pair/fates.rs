//! What became of each segment between the places, before the first and after the second.

use super::Tap;
use super::busy::{SentData, busy_part};
use super::clocks::{Clocks, FARTHEST};
use super::copies::{BothViews, Carried, sorted};
use super::course::{CourseOf, WayCourse};
use super::policed::{Offered, policed};
use super::way::{QueueDelay, SegmentCount, WayBetween};
use fullpipe_model::units::{Bytes, Duration};

/// One direction, from the place nearer to its sender to the other.
pub(super) struct Comparison<'a> {
    pub views: &'a BothViews<'a>,
    /// The place nearer to its sender.
    pub near: Tap,
    pub clocks: &'a Clocks,
    /// The first and the last time at which each place captured anything, by A's clock.
    pub spans: [(i64, i64); 2],
    /// Payload of a full segment.
    pub segment: u64,
    /// The connection's first time, if its course is to be drawn.
    pub start: Option<i64>,
}

/// When a segment passed the near place, and the range of it that was lost.
type LostPiece = (i64, i64, i64);

/// Two times that are the same but for how finely they are written.
const FINE: i64 = 50_000;
/// What fills a gap sooner was reordered (as Wireshark has it).
const REORDERED: i64 = 3_000_000;

impl Comparison<'_> {
    /// What became of its segments.
    pub fn compared(&self) -> WayBetween {
        let (near, far) = (self.near(), self.far());
        let delays = self.delays();
        let mut parted = Parted::new(near, far);
        self.assign(&mut parted, &delays);
        let mut way = WayBetween {
            sent: self.counted(near.iter().map(|one| one.end - one.start)),
            queue: delays.queue(),
            busy: self.busy(&delays),
            reordered: delays.reordered(near),
            ..WayBetween::default()
        };
        let lost = self.between(&parted, &delays, &mut way);
        self.extra(&parted, &delays, &mut way);
        self.before(&parted, &mut way);
        self.after(&parted, &mut way);
        self.acknowledgements(&delays, &mut way);
        way.course = self.start.map(|start| self.course(&CourseOf { start }, lost, &delays));
        way
    }

    /// What it did over time. `lost` is what was lost between the places.
    fn course(&self, course: &CourseOf, lost: Vec<LostPiece>, delays: &Delays) -> WayCourse {
        let (near, far) = (self.near(), self.far());
        let waited = delays.delayed.iter().map(|one| {
            let waited = one.delay - delays.least;
            (near[one.near].at, waited, waited)
        });
        let last = near.iter().chain(far).map(|one| one.at).max();
        WayCourse {
            sent: course.passed(near),
            arrived: course.passed(far),
            lost: course.spans(lost.into_iter()),
            waited: course.spans(waited),
            ends: last.map_or(Duration::ZERO, |last| course.since_start(last)),
        }
    }

    fn near(&self) -> &[Carried] {
        &self.views.carried[self.near.at()]
    }

    fn far(&self) -> &[Carried] {
        &self.views.carried[self.near.other().at()]
    }

    fn counted(&self, lengths: impl Iterator<Item = i64>) -> SegmentCount {
        let mut count = SegmentCount::default();
        lengths.filter(|length| *length > 0).for_each(|length| count.add(length, self.segment));
        count
    }

    fn delays(&self) -> Delays {
        let order = |(a, b): &(usize, usize)| {
            let (near, far) = if self.near == Tap::A { (*a, *b) } else { (*b, *a) };
            ((near as i64, 0, 0), far)
        };
        let crossed = sorted(self.views.crossed.iter().map(order));
        let delayed = crossed.into_iter().map(|((near, ..), far)| {
            let (near, arrived) = (near as usize, self.far()[far].at);
            Delayed { near, arrived, delay: arrived - self.near()[near].at }
        });
        let delayed: Vec<Delayed> = delayed.filter(|one| one.delay.abs() <= FARTHEST).collect();
        let delays = sorted(delayed.iter().map(|one| ((one.delay, 0, 0), 0)));
        let least = delays.first().map_or(-FARTHEST, |((delay, ..), _)| *delay);
        // Nearly all: single ones may be what they are not, where a capture missed packets. But a
        // queue that grows until the end is longest there.
        let most = delays.get(delays.len() * 99 / 100).map_or(0, |((delay, ..), _)| *delay);
        let last = delayed.last().map_or(most, |one| one.delay).max(most);
        Delays { delayed, least, most: last + (last - least) / 4 }
    }

    /// For how much of the time what is between the places was busy.
    fn busy(&self, delays: &Delays) -> Option<f64> {
        let near = self.near();
        let data = delays.delayed.iter().filter(|one| !near[one.near].is_empty());
        let data: Vec<SentData> = data
            .map(|one| SentData { at: near[one.near].at, waited: one.delay - delays.least })
            .collect();
        busy_part(&data, self.clocks.round_trip().unwrap_or_default())
    }

    /// Gives what arrived to the segments that it was sent as.
    fn assign(&self, parted: &mut Parted, delays: &Delays) {
        let (near, far) = (self.near(), self.far());
        let keeps_timestamps = self.views.keeps_timestamps;
        let keeps_ids = self.keeps_ids();
        let by_start = ByStart::new(near);
        // The last first: of several that could have been it, the last one was.
        for (number, arrived) in far.iter().enumerate().rev().filter(|(_, one)| !one.is_empty()) {
            let is_sent = |sent: &Carried| {
                let in_time = arrived.at >= sent.at + delays.least - FINE;
                let same = |one: Option<u32>, other: Option<u32>| {
                    one.zip(other).is_none_or(|(one, other)| one == other)
                };
                let whole = sent.start == arrived.start && sent.end == arrived.end;
                let id = |one: &Carried| one.ip_id.filter(|_| keeps_ids && whole).map(u32::from);
                in_time
                    && (!keeps_timestamps || same(sent.timestamp, arrived.timestamp))
                    && same(id(sent), id(arrived))
            };
            let sent_as = by_start.overlapping(near, arrived).filter(|at| is_sent(&near[*at]));
            let sent_as = sorted(sent_as.map(|at| ((near[at].at, 0, 0), at)));
            parted.could_be[number] = !sent_as.is_empty();
            let mut rest = vec![(arrived.start, arrived.end)];
            for (_, at) in sent_as.into_iter().rev() {
                rest = parted.lost[at].take(&near[at], rest);
                if rest.is_empty() {
                    break;
                }
            }
            parted.extra[number] = rest.iter().map(|(from, to)| to - from).sum();
        }
    }

    /// Whether IPv4's identification is the same at both places, and tells segments apart.
    fn keeps_ids(&self) -> bool {
        let ids = |(a, b): (usize, usize)| {
            let [a, b] = [&self.views.carried[0][a], &self.views.carried[1][b]];
            let whole = !a.is_empty() && a.start == b.start && a.end == b.end;
            a.ip_id.filter(|_| whole).zip(b.ip_id)
        };
        let ids: Vec<_> = self.views.crossed.iter().copied().filter_map(ids).collect();
        let same = ids.iter().filter(|(a, b)| a == b).count();
        let is_counted = ids.windows(2).filter(|pair| pair[0].0 != pair[1].0).count();
        !ids.is_empty() && same == ids.len() && 2 * is_counted >= ids.len() - 1
    }

    /// What did not arrive at the other place. What of it was lost is returned, if it is to be
    /// drawn.
    fn between(&self, parted: &Parted, delays: &Delays, way: &mut WayBetween) -> Vec<LostPiece> {
        let (near, far) = (self.near(), self.far());
        let (began, ended) = self.spans[self.near.other().at()];
        let by_start = ByStart::new(far);
        let last_arrived = delays.delayed.last().map_or(0, |one| one.near);
        let (mut run, mut queues, mut sizes) = (0, Vec::new(), Sizes::default());
        let (mut offered, mut drawn) = (Vec::new(), Vec::new());
        for (number, sent) in near.iter().enumerate().filter(|(_, one)| !one.is_empty()) {
            let pieces = parted.lost[number].pieces(sent);
            // Its capture was still running when it would have arrived, or what was sent later did.
            let is_seen = sent.at + delays.least >= began
                && (sent.at + delays.most <= ended || number < last_arrived);
            let mut lost = SegmentCount::default();
            if !is_seen && !pieces.is_empty() {
                way.not_judged.add(sent.end - sent.start, self.segment);
                continue;
            }
            for (from, to) in pieces {
                let piece = Carried { start: from, end: to, ..*sent };
                let later = by_start.overlapping(far, &piece).map(|at| far[at].at);
                let later = later.filter(|at| *at > sent.at).min().unwrap_or(i64::MAX);
                if self.is_acknowledged(&piece, later) {
                    way.missed_at_far.add(to - from, self.segment);
                } else {
                    lost.add(to - from, self.segment);
                    drawn.extend(self.start.map(|_| (sent.at, from, to)));
                }
            }
            sizes.note(sent.end - sent.start, lost.segments > 0);
            let length = u64::try_from(sent.end - sent.start).unwrap_or_default();
            let (passed, is_lost) = (length - lost.bytes.get().min(length), lost.segments > 0);
            offered.push(Offered { at: sent.at, passed, is_lost });
            if lost.segments == 0 {
                way.longest_run = way.longest_run.max(run);
                run = 0;
                continue;
            }
            if run == 0 {
                way.runs += 1;
                queues.extend(delays.queue_before(number));
            }
            run += lost.segments;
            way.lost += lost;
        }
        way.longest_run = way.longest_run.max(run);
        way.nothing_above = sizes.nothing_above(self.segment);
        let is_unqueued = way.queue.is_some_and(|queue| queue.most < UNQUEUED);
        way.policed = is_unqueued.then(|| policed(&offered, self.segment)).flatten();
        let queues = sorted(queues.into_iter().map(|queue| ((queue, 0, 0), 0)));
        way.queue_at_loss = queues.get(queues.len() / 2).map(|((queue, ..), _)| duration(*queue));
        drawn
    }

    /// Whether the receiver had `piece` before its next copy could have answered for it at `later`.
    fn is_acknowledged(&self, piece: &Carried, later: i64) -> bool {
        let far = self.near.other().at();
        let acked = &self.views.acked[far];
        let at = acked.partition_point(|(_, ack)| *ack < piece.end);
        if acked.get(at).is_some_and(|(at, _)| *at < later && *at >= piece.at) {
            return true;
        }
        let sacked = &self.views.sacked[far];
        let from = sacked.partition_point(|(at, ..)| *at < piece.at);
        let until = sacked.partition_point(|(at, ..)| *at < later);
        let meanwhile = sacked[from..until.max(from)].iter().take(MOST_LOOKED_AT);
        meanwhile.copied().any(|(_, from, to)| from <= piece.start && to >= piece.end)
    }

    /// What arrived and had not been seen, or had been counted already.
    fn extra(&self, parted: &Parted, delays: &Delays, way: &mut WayBetween) {
        let (began, ended) = self.spans[self.near.at()];
        for (number, arrived) in self.far().iter().enumerate() {
            let sent = arrived.at - delays.least;
            let is_seen = arrived.at - delays.most >= began && sent <= ended;
            let count = match parted.could_be[number] {
                true => &mut way.duplicated,
                false => &mut way.missed_at_near,
            };
            if is_seen && parted.extra[number] > 0 {
                count.add(parted.extra[number], self.segment);
            }
        }
    }

    /// What was lost, or overtaken, before the first place: it came later, and filled a gap.
    fn before(&self, parted: &Parted, way: &mut WayBetween) {
        let near = self.near();
        let by_start = ByStart::new(near);
        let far = ByStart::new(self.far());
        let slow = self.clocks.round_trip().map_or(0, |rtt| (rtt.as_nanos() / 10) as i64 * 9);
        let slow = slow.max(REORDERED);
        // The most that was sent, with the time.
        let mut course: Vec<(i64, i64)> = Vec::new();
        for (number, sent) in near.iter().enumerate().filter(|(_, one)| !one.is_empty()) {
            let most = course.last().map_or(sent.start, |(_, most)| *most);
            let is_first = |at: usize| at >= number;
            let fills = sent.end <= most && by_start.overlapping(near, sent).all(is_first);
            if fills {
                let passed = course.partition_point(|(_, most)| *most <= sent.start);
                let waited = course.get(passed).map_or(0, |(at, _)| sent.at - at);
                let arrived = |at: usize| parted.extra[at] > 0 && self.far()[at].at < sent.at;
                let was_missed = far.overlapping(self.far(), sent).any(arrived);
                if was_missed {
                    // The place where it arrived has counted it.
                } else if waited >= slow {
                    way.lost_before.add(sent.end - sent.start, self.segment);
                } else {
                    way.reordered_before.add(sent.end - sent.start, self.segment);
                }
            }
            if sent.end > most || course.is_empty() {
                course.push((sent.at, sent.end.max(most)));
            }
        }
    }

    /// What passed the second place more than once: the first copy was lost after it, or its answer
    /// did not reach the sender in time.
    fn after(&self, parted: &Parted, way: &mut WayBetween) {
        let far = self.far();
        let by_start = ByStart::new(far);
        let answer = self.fastest_answer(far);
        let is_sent = |at: &usize| !(parted.could_be[*at] && parted.extra[*at] > 0);
        let mut most = i64::MIN;
        for (number, again) in far.iter().enumerate().filter(|(_, one)| !one.is_empty()) {
            let is_new = again.start >= most;
            most = most.max(again.end);
            if is_new || !is_sent(&number) {
                continue;
            }
            let before = by_start.overlapping(far, again).filter(|at| *at < number);
            let Some(first) = before.filter(is_sent).max().map(|at| &far[at]) else { continue };
            let (from, to) = (first.start.max(again.start), first.end.min(again.end));
            let piece = Carried { start: from, end: to, ..*first };
            // An answer that comes sooner than any could after this copy is the first one's.
            let count = match self.is_acknowledged(&piece, again.at.saturating_add(answer)) {
                true => &mut way.needless,
                false => &mut way.lost_after,
            };
            count.add(to - from, self.segment);
        }
    }

    /// The least time from data at the second place to the first acknowledgement of it there.
    fn fastest_answer(&self, far: &[Carried]) -> i64 {
        let acked = &self.views.acked[self.near.other().at()];
        let answered = |one: &Carried| {
            let first = acked.get(acked.partition_point(|(_, ack)| *ack < one.end))?;
            (first.0 >= one.at).then_some(first.0 - one.at)
        };
        let times = far.iter().filter(|one| !one.is_empty()).filter_map(answered);
        times.min().unwrap_or_default().saturating_sub(1)
    }

    /// Segments that only acknowledge: how many there were, and how many did not arrive.
    fn acknowledgements(&self, delays: &Delays, way: &mut WayBetween) {
        let (began, ended) = self.spans[self.near.other().at()];
        let keeps_timestamps = self.views.keeps_timestamps;
        let alone = |all: &[Carried]| {
            let alone = all.iter().filter(|one| one.is_empty());
            sorted(alone.filter_map(|one| {
                let timestamp = one.timestamp.filter(|_| keeps_timestamps);
                Some(((one.ack?, timestamp.map_or(-1, i64::from), one.at), 0))
            }))
        };
        let (near, far) = (alone(self.near()), alone(self.far()));
        let mut rest = &far[..];
        for ((ack, timestamp, at), _) in &near {
            let is_seen = at + delays.least >= began && at + delays.most <= ended;
            way.acknowledgements += 1;
            let key = (ack, timestamp);
            rest = &rest[rest.partition_point(|((ack, timestamp, _), _)| (ack, timestamp) < key)..];
            match rest.first() {
                Some(((ack, timestamp, _), _)) if (ack, timestamp) == key => rest = &rest[1..],
                _ => way.acknowledgements_lost += u64::from(is_seen),
            }
        }
    }
}

/// Where no packet waited for longer, there is no queue.
const UNQUEUED: Duration = Duration::from_millis(1);
/// Fewer losses tell nothing of sizes.
const TELLING_LOSSES: u64 = 3;

/// How long the segments were that arrived, and those that did not.
#[derive(Default)]
struct Sizes {
    lost: u64,
    smallest_lost: i64,
    largest_lost: i64,
    largest_arrived: i64,
    /// Some with data arrived after the first was lost.
    others_arrive: bool,
}

impl Sizes {
    fn note(&mut self, length: i64, is_lost: bool) {
        if is_lost {
            let smallest = if self.lost == 0 { length } else { self.smallest_lost };
            self.smallest_lost = smallest.min(length);
            self.largest_lost = self.largest_lost.max(length);
            self.lost += 1;
        } else {
            self.largest_arrived = self.largest_arrived.max(length);
            // SYN and FIN take one number.
            self.others_arrive |= self.lost > 0 && length > 1;
        }
    }

    /// The largest that arrived, if size decides; not where captures have merged segments.
    fn nothing_above(&self, segment: u64) -> Option<Bytes> {
        let arrived = u64::try_from(self.largest_arrived).ok()?;
        let is_merged = self.largest_lost > i64::try_from(segment).unwrap_or(i64::MAX);
        let decides = self.lost >= TELLING_LOSSES
            && self.smallest_lost > self.largest_arrived
            && self.others_arrive;
        (decides && !is_merged).then_some(Bytes::new(arrived))
    }
}

/// A segment that passed each place once.
struct Delayed {
    /// Its number at the near place.
    near: usize,
    arrived: i64,
    delay: i64,
}

/// The delays of the segments that passed each place once.
struct Delays {
    delayed: Vec<Delayed>,
    least: i64,
    most: i64,
}

impl Delays {
    /// What packets waited beyond the least.
    fn queue(&self) -> Option<QueueDelay> {
        let waits = sorted(self.delayed.iter().map(|one| ((one.delay - self.least, 0, 0), 0)));
        let at = |part: usize| duration(waits[(waits.len() - 1) * part / 100].0.0);
        (!waits.is_empty()).then(|| QueueDelay { median: at(50), p95: at(95), most: at(100) })
    }

    /// How long the last packet waited that was sent before this one and arrived.
    fn queue_before(&self, number: usize) -> Option<i64> {
        let before = self.delayed.partition_point(|one| one.near < number);
        let last = self.delayed.get(before.checked_sub(1)?)?;
        Some(last.delay - self.least)
    }

    /// How many segments with data arrived after one that was sent later.
    fn reordered(&self, near: &[Carried]) -> u64 {
        let mut last = i64::MIN;
        let mut count = 0;
        for one in self.delayed.iter().filter(|one| !near[one.near].is_empty()) {
            count += u64::from(one.arrived < last);
            last = last.max(one.arrived);
        }
        count
    }
}

fn duration(nanos: i64) -> Duration {
    Duration::from_nanos(u64::try_from(nanos).unwrap_or_default())
}

/// What is left of the segments once those that arrived are given to them.
struct Parted {
    /// Of each that was sent, what did not arrive.
    lost: Vec<Remaining>,
    /// Of each that arrived, how many bytes were not sent as anything else that arrived.
    extra: Vec<i64>,
    /// Whether each that arrived could be one that was sent.
    could_be: Vec<bool>,
}

impl Parted {
    fn new(near: &[Carried], far: &[Carried]) -> Self {
        Parted {
            lost: vec![Remaining::Whole; near.len()],
            extra: vec![0; far.len()],
            could_be: vec![false; far.len()],
        }
    }
}

/// Of a segment, what did not arrive.
#[derive(Debug, Clone)]
enum Remaining {
    Whole,
    /// These ranges; mostly none.
    Pieces(Vec<(i64, i64)>),
}

impl Remaining {
    fn pieces(&self, of: &Carried) -> Vec<(i64, i64)> {
        match self {
            Remaining::Whole => vec![(of.start, of.end)],
            Remaining::Pieces(pieces) => pieces.clone(),
        }
    }

    /// Takes out what arrived as `ranges`, and returns what of them is left.
    fn take(&mut self, of: &Carried, ranges: Vec<(i64, i64)>) -> Vec<(i64, i64)> {
        let pieces = self.pieces(of);
        let left = without(&ranges, &pieces);
        *self = Remaining::Pieces(without(&pieces, &ranges));
        left
    }
}

/// The parts of `ranges` that are in none of `others`.
fn without(ranges: &[(i64, i64)], others: &[(i64, i64)]) -> Vec<(i64, i64)> {
    let mut left = ranges.to_vec();
    for (from, to) in others {
        let parts = left
            .into_iter()
            .flat_map(|(start, end)| [(start, end.min(*from)), (start.max(*to), end)]);
        left = parts.filter(|(start, end)| start < end).collect();
    }
    left
}

/// More segments are not looked at for one, whatever somebody sends: a long segment over very many
/// short ones would make each of them look at all.
const MOST_LOOKED_AT: usize = 4096;

/// Segments sorted by where they start.
struct ByStart {
    order: Vec<usize>,
    /// The largest end of those up to each place in the order.
    ends: Vec<i64>,
}

impl ByStart {
    fn new(carried: &[Carried]) -> Self {
        let all = carried.iter().enumerate().filter(|(_, one)| !one.is_empty());
        let order = sorted(all.map(|(at, one)| ((one.start, 0, 0), at)));
        let order: Vec<usize> = order.into_iter().map(|(_, at)| at).collect();
        let ends = order.iter().scan(i64::MIN, |most, at| {
            *most = carried[*at].end.max(*most);
            Some(*most)
        });
        ByStart { ends: ends.collect(), order }
    }

    /// The numbers of the segments that have bytes of `one`, the last start first.
    fn overlapping<'a>(
        &'a self,
        carried: &'a [Carried],
        one: &Carried,
    ) -> impl Iterator<Item = usize> + 'a {
        let (start, end) = (one.start, one.end);
        let until = self.order.partition_point(|at| carried[*at].start < end);
        let before = self.order[..until].iter().zip(&self.ends[..until]).rev();
        let reach = before.take_while(move |(_, most)| **most > start).take(MOST_LOOKED_AT);
        reach.map(|(at, _)| *at).filter(move |at| carried[*at].end > start)
    }
}
