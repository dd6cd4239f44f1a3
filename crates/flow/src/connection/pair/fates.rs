//! What became of each segment between the places, before the first and after the second.

use super::Tap;
use super::answers::Answers;
use super::busy::{BusyParts, SentData, busy_part};
use super::by_start::{ByStart, near_point};
use super::clocks::{Clocks, FARTHEST};
use super::copies::BothViews;
use super::course::{CourseOf, WayCourse};
use super::parted::Parted;
use super::segments::{Carried, Segments};
use super::sorted::{ranked, sorted, sorted_numbers};
use super::way::{QueueDelay, SegmentCount, WayBetween};
use crate::limit::{DropRuns, Offered};
use fullpipe_model::units::{Bytes, Duration};

/// One direction, from the place nearer to its sender to the other.
pub(super) struct Comparison<'a> {
    pub views: &'a BothViews,
    /// The other direction, whose acknowledgements answer it.
    pub back: &'a BothViews,
    /// The place nearer to its sender.
    pub near: Tap,
    /// Whether the same packet has the same IP identification at both places.
    pub keeps_ids: bool,
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
/// What a link carries beside the payload of a segment: headers of Ethernet, IPv4 and TCP with time
/// stamps. Nearly all segments of data are alike, so it hardly matters.
const HEADERS: i64 = 66;
/// What fills a gap sooner was reordered (as Wireshark has it).
const REORDERED: i64 = 3_000_000;

impl Comparison<'_> {
    /// What became of its segments. `crossed` are those that passed each place once.
    pub fn compared(&self, crossed: Vec<(u32, u32)>) -> WayBetween {
        let (near, far) = (self.near(), self.far());
        let delays = self.delays(crossed);
        let busy = self.busy(&delays);
        let mut way = WayBetween {
            sent: self.counted(near.iter().map(|one| one.end - one.start)),
            queue: delays.queue,
            busy: busy.map(|parts| parts.busy),
            waited: busy.map(|parts| parts.waited),
            reordered: delays.reordered(near, far),
            ..WayBetween::default()
        };
        self.acknowledgements(&delays, &mut way);
        let far_tap = self.near.other();
        let answers = Answers::new(far, self.back.of(far_tap), self.views.bases[far_tap.at()]);
        let (near_bytes, far_bytes) = (ByStart::new(near), ByStart::new(far));
        let parted = self.assigned(&near_bytes, &delays);
        let by_start = [&near_bytes, &far_bytes];
        let lost = self.between(&parted, by_start, &answers, &delays, &mut way);
        self.extra(&parted, &delays, &mut way);
        self.before(&parted, by_start, &mut way);
        self.after(&parted, &far_bytes, &answers, &mut way);
        way.course = self.start.map(|start| self.course(&CourseOf { start }, lost, &delays));
        way
    }

    /// What it did over time. `lost` is what was lost between the places.
    fn course(&self, course: &CourseOf, lost: Vec<LostPiece>, delays: &Delays) -> WayCourse {
        let (near, far) = (self.near(), self.far());
        let waited = delays.waited(near, far).map(|(_, at, waited)| (at, waited, waited));
        let last = near.iter().chain(far.iter()).map(|one| one.at).max();
        WayCourse {
            sent: course.passed(near),
            arrived: course.passed(far),
            lost: course.spans(lost.into_iter()),
            waited: course.spans(waited),
            ends: last.map_or(Duration::ZERO, |last| course.since_start(last)),
        }
    }

    fn near(&self) -> &Segments {
        self.views.of(self.near)
    }

    fn far(&self) -> &Segments {
        self.views.of(self.near.other())
    }

    fn counted(&self, lengths: impl Iterator<Item = i64>) -> SegmentCount {
        let mut count = SegmentCount::default();
        lengths.filter(|length| *length > 0).for_each(|length| count.add(length, self.segment));
        count
    }

    fn delays(&self, crossed: Vec<(u32, u32)>) -> Delays {
        let (near, far) = (self.near(), self.far());
        let mut passed = crossed;
        if self.near == Tap::B {
            passed.iter_mut().for_each(|(a, b)| std::mem::swap(a, b));
        }
        if !passed.is_sorted_by_key(|(near, _)| *near) {
            let in_order = sorted_numbers(passed.len(), |at| passed[at].0);
            passed = in_order.into_iter().map(|at| passed[at as usize]).collect();
        }
        passed.retain(|pair| delay(near, far, *pair).abs() <= FARTHEST);
        Delays::new(passed, near, far)
    }

    /// For how much of the time what is between the places was busy.
    fn busy(&self, delays: &Delays) -> Option<BusyParts> {
        let (near, far) = (self.near(), self.far());
        let data = delays.passed.iter().filter_map(|(at_near, at_far)| {
            let (sent, arrived) = (near.at(*at_near as usize), far.at(*at_far as usize));
            let length = if sent.end == arrived.end { sent.end - sent.start + HEADERS } else { 0 };
            let waited = arrived.at - sent.at - delays.least;
            (!sent.is_empty()).then_some(SentData { at: sent.at, waited, length })
        });
        busy_part(data, self.clocks.round_trip().unwrap_or_default())
    }

    /// Gives what arrived to the segments that it was sent as.
    fn assigned(&self, near_bytes: &ByStart<'_>, delays: &Delays) -> Parted {
        let (near, far) = (self.near(), self.far());
        let mut parted = Parted::new(near, far);
        let keeps_timestamps = self.views.keeps_timestamps;
        let slack = self.slack();
        // The last first: of several that could have been it, the last one was.
        for (number, arrived) in far.with_bytes().rev() {
            let arrived = &arrived;
            let is_sent = |sent: &Carried| {
                let in_time = arrived.at >= sent.at + delays.least - slack;
                let same = |one: Option<u32>, other: Option<u32>| {
                    one.zip(other).is_none_or(|(one, other)| one == other)
                };
                let whole = sent.start == arrived.start && sent.end == arrived.end;
                let id =
                    |one: &Carried| one.ip_id().filter(|_| self.keeps_ids && whole).map(u32::from);
                in_time
                    && (!keeps_timestamps || same(sent.timestamp(), arrived.timestamp()))
                    && same(id(sent), id(arrived))
            };
            let mut sent_as = near_bytes.overlapping(arrived).filter(|at| is_sent(&near.at(*at)));
            match (sent_as.next(), sent_as.next()) {
                (Some(only), None) => parted.give_to(number, arrived, near, only),
                (first, second) => {
                    let all: Vec<usize> = first.into_iter().chain(second).chain(sent_as).collect();
                    let order = sorted_numbers(all.len(), |at| (near.at(all[at]).at, all[at]));
                    let last_first = order.into_iter().rev().map(|at| all[at as usize]);
                    parted.give(number, arrived, near, last_first);
                }
            }
        }
        parted
    }

    /// What did not arrive at the other place. What of it was lost is returned, if it is to be
    /// drawn.
    fn between(
        &self,
        parted: &Parted,
        [near_bytes, far_bytes]: [&ByStart<'_>; 2],
        answers: &Answers<'_>,
        delays: &Delays,
        way: &mut WayBetween,
    ) -> Vec<LostPiece> {
        let (near, far) = (self.near(), self.far());
        let (began, ended) = self.spans[self.near.other().at()];
        let is_unqueued = way.queue.is_some_and(|queue| queue.most < UNQUEUED);
        let last_arrived = delays.passed.last().map_or(0, |(near, _)| *near as usize);
        let (mut run, mut queues, mut sizes) = (0, Vec::new(), Sizes::default());
        let (mut offered, mut drawn) = (DropRuns::default(), Vec::new());
        for (number, sent) in near.with_bytes() {
            let pieces = parted.lost(number, &sent);
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
                let later = far_bytes.overlapping(&piece).map(|at| far.at(at).at);
                let later = later.filter(|at| *at > sent.at).min().unwrap_or(i64::MAX);
                let later = later.min(self.answered_again(&piece, near_bytes, answers, delays));
                if answers.have(&piece, later) {
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
                queues.extend(delays.queue_before(number, near, far));
            }
            run += lost.segments;
            way.lost += lost;
        }
        way.longest_run = way.longest_run.max(run);
        way.nothing_above = sizes.nothing_above(self.segment);
        way.policed = offered.policed(self.segment);
        let middle = queues.len() / 2;
        way.queue_at_loss = ranked(&mut queues, middle).map(duration);
        drawn
    }

    /// From when on an acknowledgement may answer the next copy of `piece`, of which the far place
    /// may have missed that one: then it says nothing of this one, and that it was sent again says
    /// that nobody had acknowledged it.
    fn answered_again(
        &self,
        piece: &Carried,
        near_bytes: &ByStart<'_>,
        answers: &Answers<'_>,
        delays: &Delays,
    ) -> i64 {
        let later = near_bytes
            .overlapping(piece)
            .map(|at| self.near().at(at))
            .filter(|one| one.at > piece.at && one.start <= piece.start && one.end >= piece.end);
        let first = later.map(|one| one.at).min();
        let answer = delays.least + answers.fastest - self.slack();
        first.map_or(i64::MAX, |at| at.saturating_add(answer))
    }

    /// By how much times of both places differ although they are the same.
    fn slack(&self) -> i64 {
        FINE.max(self.clocks.unsettled())
    }

    /// What arrived and had not been seen, or had been counted already.
    fn extra(&self, parted: &Parted, delays: &Delays, way: &mut WayBetween) {
        let (began, ended) = self.spans[self.near.at()];
        for (number, bytes, could_be) in parted.extras() {
            let arrived = self.far().at(number).at;
            let is_seen = arrived - delays.most >= began && arrived - delays.least <= ended;
            let count = if could_be { &mut way.duplicated } else { &mut way.missed_at_near };
            if is_seen {
                count.add(bytes, self.segment);
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
        // Those that went beyond what was sent before.
        let mut farthest: Vec<u32> = Vec::new();
        let mut most = i64::MIN;
        for (number, sent) in near.with_bytes() {
            let is_first = |at: usize| at >= number;
            if sent.end <= most && near_bytes.overlapping(&sent).all(is_first) {
                let is_before = |at: &u32| near.at(*at as usize).end <= sent.start;
                let passed = farthest.partition_point(is_before);
                let passed = farthest.get(passed).map(|at| near.at(*at as usize).at);
                let waited = passed.map_or(0, |at| sent.at - at);
                let arrived = |at: usize| parted.is_extra(at) && self.far().at(at).at < sent.at;
                let was_missed = far_bytes.overlapping(&sent).any(arrived);
                if was_missed {
                    // The place where it arrived has counted it.
                } else if waited >= slow {
                    way.lost_before.add(sent.end - sent.start, self.segment);
                } else {
                    way.reordered_before.add(sent.end - sent.start, self.segment);
                }
            }
            if sent.end > most {
                most = sent.end;
                farthest.push(number as u32);
            }
        }
    }

    /// What passed the second place more than once: the first copy was lost after it, or its answer
    /// did not reach the sender in time.
    fn after(
        &self,
        parted: &Parted,
        far_bytes: &ByStart<'_>,
        answers: &Answers<'_>,
        way: &mut WayBetween,
    ) {
        let far = self.far();
        let is_sent = |at: &usize| !parted.is_duplicate(*at);
        let mut most = i64::MIN;
        for (number, again) in far.with_bytes() {
            let is_new = again.start >= most;
            most = most.max(again.end);
            if is_new || !is_sent(&number) {
                continue;
            }
            let before = far_bytes.overlapping(&again).filter(|at| *at < number);
            let Some(first) = before.filter(is_sent).max().map(|at| far.at(at)) else { continue };
            let (from, to) = (first.start.max(again.start), first.end.min(again.end));
            let piece = first.part(from, to);
            // An answer that comes sooner than any could after this copy is the first one's.
            let count = match answers.have(&piece, again.at.saturating_add(answers.fastest)) {
                true => &mut way.needless,
                false => &mut way.lost_after,
            };
            count.add(to - from, self.segment);
        }
    }

    /// Segments that only acknowledge: how many there were, and how many did not arrive.
    fn acknowledgements(&self, delays: &Delays, way: &mut WayBetween) {
        let (began, ended) = self.spans[self.near.other().at()];
        let (near, far) = (self.near(), self.far());
        let [sent, arrived] = [near, far].map(|segments| self.alone(segments));
        let mut rest = &arrived[..];
        for number in sent {
            let one = near.at(number as usize);
            let is_seen = one.at + delays.least >= began && one.at + delays.most <= ended;
            way.acknowledgements += 1;
            let key = self.acknowledges(&one);
            let of = |at: &u32| self.acknowledges(&far.at(*at as usize));
            rest = &rest[near_point(rest, 0, |at| of(at) < key)..];
            match rest.first() {
                Some(at) if of(at) == key => rest = &rest[1..],
                _ => way.acknowledgements_lost += u64::from(is_seen),
            }
        }
    }

    /// The numbers of those that only acknowledge, by what, and of the same by time.
    fn alone(&self, segments: &Segments) -> Vec<u32> {
        let alone = segments.iter().enumerate();
        let alone = alone.filter(|(_, one)| one.is_empty() && one.ack().is_some());
        sorted(alone.map(|(number, _)| number), |number| {
            let one = segments.at(number);
            (self.acknowledges(&one), one.at)
        })
    }

    /// What a segment acknowledges, with its time stamp where that is the same at both places.
    fn acknowledges(&self, one: &Carried) -> (i64, i64) {
        let timestamp = one.timestamp().filter(|_| self.views.keeps_timestamps);
        (one.ack().unwrap_or(i64::MIN), timestamp.map_or(-1, i64::from))
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

/// How long a segment took from the near place to the far one, by its numbers there.
#[inline]
fn delay(near: &Segments, far: &Segments, (at_near, at_far): (u32, u32)) -> i64 {
    far.at(at_far as usize).at - near.at(at_near as usize).at
}

/// The delays of the segments that passed each place once.
struct Delays {
    /// Their numbers at the near place, in order, and at the far one.
    passed: Vec<(u32, u32)>,
    least: i64,
    most: i64,
    /// What packets waited beyond the least.
    queue: Option<QueueDelay>,
}

impl Delays {
    fn new(passed: Vec<(u32, u32)>, near: &Segments, far: &Segments) -> Self {
        let mut delays: Vec<i64> = passed.iter().map(|pair| delay(near, far, *pair)).collect();
        let least = delays.iter().copied().min().unwrap_or(-FARTHEST);
        let last = delays.last().copied();
        // Nearly all: single ones may be what they are not, where a capture missed packets. But a
        // queue that grows until the end is longest there.
        let nearly_all = delays.len() * 99 / 100;
        let past = delays.len().saturating_sub(1);
        let longest = delays.iter().copied().max();
        // Each place is at most the one before, so it is looked for below that only.
        let mut until = delays.len();
        let [most, p95, median] = [nearly_all, past * 95 / 100, past / 2].map(|place| {
            let found = ranked(&mut delays[..until], place);
            until = until.min(place + 1);
            found
        });
        let most = most.unwrap_or(0);
        let last = last.unwrap_or(most).max(most);
        let queue = match (median, p95, longest) {
            (Some(median), Some(p95), Some(most)) => {
                let [median, p95, most] = [median, p95, most].map(|one| duration(one - least));
                Some(QueueDelay { median, p95, most })
            }
            _ => None,
        };
        Delays { passed, least, most: last + (last - least) / 4, queue }
    }

    /// The number of each of them at the near place, when it passed there, and how long it waited.
    fn waited(&self, near: &Segments, far: &Segments) -> impl Iterator<Item = (usize, i64, i64)> {
        self.passed.iter().map(move |pair| {
            let number = pair.0 as usize;
            (number, near.at(number).at, delay(near, far, *pair) - self.least)
        })
    }

    /// How long the last packet waited that was sent before this one and arrived.
    fn queue_before(&self, number: usize, near: &Segments, far: &Segments) -> Option<i64> {
        let before = self.passed.partition_point(|(near, _)| (*near as usize) < number);
        let last = self.passed.get(before.checked_sub(1)?)?;
        Some(delay(near, far, *last) - self.least)
    }

    /// How many segments with data arrived after one that was sent later.
    fn reordered(&self, near: &Segments, far: &Segments) -> u64 {
        let mut last = i64::MIN;
        let mut count = 0;
        let with_bytes = |pair: &&(u32, u32)| !near.at(pair.0 as usize).is_empty();
        for (_, at_far) in self.passed.iter().filter(with_bytes) {
            let arrived = far.at(*at_far as usize).at;
            count += u64::from(arrived < last);
            last = last.max(arrived);
        }
        count
    }
}

fn duration(nanos: i64) -> Duration {
    Duration::from_nanos(u64::try_from(nanos).unwrap_or_default())
}
