//! What became of each segment between the places, before the first and after the second.

use super::Tap;
use super::busy::{SentData, busy_part};
use super::by_start::{ByStart, MOST_LOOKED_AT, near_point};
use super::clocks::{Clocks, FARTHEST};
use super::copies::{BothViews, Carried, ranked, sorted_numbers};
use super::course::{CourseOf, WayCourse};
use super::parted::Parted;
use super::way::{QueueDelay, SegmentCount, WayBetween};
use crate::limit::{Offered, drops, policed};
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
        let (near_bytes, far_bytes) = (ByStart::new(near), ByStart::new(far));
        let parted = self.assigned(&near_bytes, &delays);
        let mut way = WayBetween {
            sent: self.counted(near.iter().map(|one| one.end - one.start)),
            queue: delays.queue,
            busy: self.busy(&delays),
            reordered: delays.reordered(near),
            ..WayBetween::default()
        };
        let lost = self.between(&parted, &far_bytes, &delays, &mut way);
        self.extra(&parted, &delays, &mut way);
        self.before(&parted, [&near_bytes, &far_bytes], &mut way);
        self.after(&parted, &far_bytes, &mut way);
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
        let order = |(a, b): (usize, usize)| if self.near == Tap::A { (a, b) } else { (b, a) };
        let crossed: Vec<(usize, usize)> = self.views.crossed().map(order).collect();
        let in_order = sorted_numbers(crossed.len(), |at| crossed[at].0);
        let delayed = in_order.into_iter().map(|at| {
            let (near, far) = crossed[at as usize];
            let arrived = self.far()[far].at;
            Delayed { near, arrived, delay: arrived - self.near()[near].at }
        });
        let delayed: Vec<Delayed> = delayed.filter(|one| one.delay.abs() <= FARTHEST).collect();
        Delays::new(delayed)
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
    fn assigned(&self, near_bytes: &ByStart<'_>, delays: &Delays) -> Parted {
        let (near, far) = (self.near(), self.far());
        let mut parted = Parted::new(near, far);
        let keeps_timestamps = self.views.keeps_timestamps;
        let keeps_ids = self.keeps_ids();
        // The last first: of several that could have been it, the last one was.
        for (number, arrived) in far.iter().enumerate().rev().filter(|(_, one)| !one.is_empty()) {
            let is_sent = |sent: &Carried| {
                let in_time = arrived.at >= sent.at + delays.least - FINE;
                let same = |one: Option<u32>, other: Option<u32>| {
                    one.zip(other).is_none_or(|(one, other)| one == other)
                };
                let whole = sent.start == arrived.start && sent.end == arrived.end;
                let id = |one: &Carried| one.ip_id().filter(|_| keeps_ids && whole).map(u32::from);
                in_time
                    && (!keeps_timestamps || same(sent.timestamp(), arrived.timestamp()))
                    && same(id(sent), id(arrived))
            };
            let mut sent_as = near_bytes.overlapping(arrived).filter(|at| is_sent(&near[*at]));
            let first = sent_as.next();
            match sent_as.next() {
                None => parted.give(number, arrived, near, first.into_iter()),
                Some(second) => {
                    let all: Vec<usize> =
                        first.into_iter().chain([second]).chain(sent_as).collect();
                    let order = sorted_numbers(all.len(), |at| (near[all[at]].at, all[at]));
                    let last_first = order.into_iter().rev().map(|at| all[at as usize]);
                    parted.give(number, arrived, near, last_first);
                }
            }
        }
        parted
    }

    /// Whether IPv4's identification is the same at both places, and tells segments apart.
    fn keeps_ids(&self) -> bool {
        let ids = |(a, b): (usize, usize)| {
            let [a, b] = [&self.views.carried[0][a], &self.views.carried[1][b]];
            let whole = !a.is_empty() && a.start == b.start && a.end == b.end;
            a.ip_id().filter(|_| whole).zip(b.ip_id())
        };
        let ids: Vec<_> = self.views.crossed().filter_map(ids).collect();
        let same = ids.iter().filter(|(a, b)| a == b).count();
        let is_counted = ids.windows(2).filter(|pair| pair[0].0 != pair[1].0).count();
        !ids.is_empty() && same == ids.len() && 2 * is_counted >= ids.len() - 1
    }

    /// What did not arrive at the other place. What of it was lost is returned, if it is to be
    /// drawn.
    fn between(
        &self,
        parted: &Parted,
        far_bytes: &ByStart<'_>,
        delays: &Delays,
        way: &mut WayBetween,
    ) -> Vec<LostPiece> {
        let (near, far) = (self.near(), self.far());
        let (began, ended) = self.spans[self.near.other().at()];
        let is_unqueued = way.queue.is_some_and(|queue| queue.most < UNQUEUED);
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
                let piece = sent.part(from, to);
                let later = far_bytes.overlapping(&piece).map(|at| far[at].at);
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
            if is_unqueued {
                offered.push(Offered { at: sent.at, passed, is_lost });
            }
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
        way.policed = match &offered[..] {
            [first, .., last] => policed(&drops(&offered), (first.at, last.at), self.segment),
            _ => None,
        };
        let middle = queues.len() / 2;
        way.queue_at_loss = ranked(&mut queues, middle).map(duration);
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
    fn before(
        &self,
        parted: &Parted,
        [near_bytes, far_bytes]: [&ByStart<'_>; 2],
        way: &mut WayBetween,
    ) {
        let near = self.near();
        let slow = self.clocks.round_trip().map_or(0, |rtt| (rtt.as_nanos() / 10) as i64 * 9);
        let slow = slow.max(REORDERED);
        // The most that was sent, with the time.
        let mut course: Vec<(i64, i64)> = Vec::new();
        for (number, sent) in near.iter().enumerate().filter(|(_, one)| !one.is_empty()) {
            let most = course.last().map_or(sent.start, |(_, most)| *most);
            let is_first = |at: usize| at >= number;
            let fills = sent.end <= most && near_bytes.overlapping(sent).all(is_first);
            if fills {
                let passed = course.partition_point(|(_, most)| *most <= sent.start);
                let waited = course.get(passed).map_or(0, |(at, _)| sent.at - at);
                let arrived = |at: usize| parted.extra[at] > 0 && self.far()[at].at < sent.at;
                let was_missed = far_bytes.overlapping(sent).any(arrived);
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
    fn after(&self, parted: &Parted, far_bytes: &ByStart<'_>, way: &mut WayBetween) {
        let far = self.far();
        let answer = self.fastest_answer(far);
        let is_sent = |at: &usize| !(parted.could_be[*at] && parted.extra[*at] > 0);
        let mut most = i64::MIN;
        for (number, again) in far.iter().enumerate().filter(|(_, one)| !one.is_empty()) {
            let is_new = again.start >= most;
            most = most.max(again.end);
            if is_new || !is_sent(&number) {
                continue;
            }
            let before = far_bytes.overlapping(again).filter(|at| *at < number);
            let Some(first) = before.filter(is_sent).max().map(|at| &far[at]) else { continue };
            let (from, to) = (first.start.max(again.start), first.end.min(again.end));
            let piece = first.part(from, to);
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
        let mut last = 0;
        let answered = |one: &Carried| {
            last = near_point(acked, last, |(_, ack)| *ack < one.end);
            let first = acked.get(last)?;
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
            let keys: Vec<(i64, i64, i64)> = alone
                .filter_map(|one| {
                    let timestamp = one.timestamp().filter(|_| keeps_timestamps);
                    Some((one.ack()?, timestamp.map_or(-1, i64::from), one.at))
                })
                .collect();
            let order = sorted_numbers(keys.len(), |at| keys[at]);
            order.into_iter().map(|at| keys[at as usize]).collect::<Vec<_>>()
        };
        let (near, far) = (alone(self.near()), alone(self.far()));
        let mut rest = &far[..];
        for (ack, timestamp, at) in &near {
            let is_seen = at + delays.least >= began && at + delays.most <= ended;
            way.acknowledgements += 1;
            let key = (ack, timestamp);
            rest = &rest[near_point(rest, 0, |(ack, timestamp, _)| (ack, timestamp) < key)..];
            match rest.first() {
                Some((ack, timestamp, _)) if (ack, timestamp) == key => rest = &rest[1..],
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
    /// What packets waited beyond the least.
    queue: Option<QueueDelay>,
}

impl Delays {
    fn new(delayed: Vec<Delayed>) -> Self {
        let mut delays: Vec<i64> = delayed.iter().map(|one| one.delay).collect();
        let least = delays.iter().copied().min().unwrap_or(-FARTHEST);
        // Nearly all: single ones may be what they are not, where a capture missed packets. But a
        // queue that grows until the end is longest there.
        let nearly_all = delays.len() * 99 / 100;
        let most = ranked(&mut delays, nearly_all).unwrap_or(0);
        let last = delayed.last().map_or(most, |one| one.delay).max(most);
        let past = delays.len().saturating_sub(1);
        let mut at = |part: usize| Some(duration(ranked(&mut delays, past * part / 100)? - least));
        let queue = match (at(50), at(95), at(100)) {
            (Some(median), Some(p95), Some(most)) => Some(QueueDelay { median, p95, most }),
            _ => None,
        };
        Delays { delayed, least, most: last + (last - least) / 4, queue }
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
