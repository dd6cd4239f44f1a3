//! The segments of one direction of a connection, as both places saw them: numbers that do not
//! wrap, times by one clock.

use super::Tap;
use super::clocks::{Clocks, Crossing, FARTHEST, nanos};
use super::matching::Matched;
use super::sighting::{Marks, Sighted, SightedWay, Sighting};
use crate::capture::segment::{Flags, SequenceNumber};
use crate::connection::unwrapped::Unwrapped;
use std::cmp::Ordering;

/// A segment at one place.
#[derive(Debug, Clone, Copy)]
pub(super) struct Carried {
    /// Nanoseconds by A's clock.
    pub at: i64,
    /// The first number that it takes of the sequence space, and the one after the last; the same
    /// for an acknowledgement alone.
    pub start: i64,
    pub end: i64,
    ack: i64,
    marks: Marks,
}

impl Carried {
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Some of its bytes.
    pub fn part(&self, start: i64, end: i64) -> Carried {
        Carried { start, end, ..*self }
    }

    /// What it acknowledges, in the numbers of the other direction.
    pub fn ack(&self) -> Option<i64> {
        (self.ack != i64::MIN).then_some(self.ack)
    }

    /// TSval (RFC 7323).
    pub fn timestamp(&self) -> Option<u32> {
        self.marks.timestamp()
    }

    /// IPv4's identification.
    pub fn ip_id(&self) -> Option<u16> {
        self.marks.ip_id()
    }
}

/// One direction at both places.
#[derive(Debug)]
pub(super) struct BothViews<'a> {
    pub ways: [&'a SightedWay; 2],
    pub carried: [Vec<Carried>; 2],
    /// What is acknowledged of this direction, with the time, as each place saw it go back.
    pub acked: [Vec<(i64, i64)>; 2],
    /// Ranges that were acknowledged selectively.
    pub sacked: [Vec<(i64, i64, i64)>; 2],
    /// By what something on the way numbered the bytes anew.
    pub renumbered: u32,
    /// Whether the segments have the same time stamps at both places.
    pub keeps_timestamps: bool,
    crossed: Vec<(u32, u32)>,
}

impl<'a> BothViews<'a> {
    /// What A's first end sent (0), or its second (1). Each place's times are by its own clock.
    fn new(matched: &'a Matched, way: usize) -> Self {
        let Matched { a, b, is_turned } = matched;
        let [there, back] =
            [[way, way ^ usize::from(*is_turned)], [1 - way, (1 - way) ^ usize::from(*is_turned)]];
        let of = |ends: [usize; 2]| -> [&'a SightedWay; 2] { [&a.ways[ends[0]], &b.ways[ends[1]]] };
        let (ways, backs) = (of(there), of(back));
        let renumbered = shift(ways);
        let bases = bases(ways, renumbered);
        let back_bases = bases_of_acks(backs);
        let taps = Tap::ALL.map(Tap::at);
        let carried = taps.map(|tap| carried(ways[tap], bases[tap], back_bases[tap]));
        let (crossed, keeps_timestamps) = crossed(&carried);
        BothViews {
            ways,
            carried,
            acked: taps.map(|tap| acked(backs[tap], bases[tap])),
            sacked: taps.map(|tap| sacked(backs[tap], bases[tap])),
            renumbered,
            keeps_timestamps,
            crossed,
        }
    }

    /// The segments that passed each place once, and both: their numbers among those of each place.
    pub fn crossed(&self) -> impl Iterator<Item = (usize, usize)> {
        self.crossed.iter().map(|(a, b)| (*a as usize, *b as usize))
    }

    /// Makes all times those of A's clock.
    pub fn set_clock(&mut self, clocks: &Clocks) {
        let of_b = Tap::B.at();
        let carried = self.carried[of_b].iter_mut().map(|one| &mut one.at);
        let acked = self.acked[of_b].iter_mut().map(|one| &mut one.0);
        let sacked = self.sacked[of_b].iter_mut().map(|one| &mut one.0);
        for at in carried.chain(acked).chain(sacked) {
            *at = clocks.a_of_b(*at);
        }
    }
}

/// By what something on the way numbered the bytes anew.
fn shift(ways: [&SightedWay; 2]) -> u32 {
    match ways.map(|way| way.syn) {
        [Some(a), Some(b)] => b.seq.0.wrapping_sub(a.seq.0),
        _ => 0,
    }
}

/// From where each place counts the bytes.
fn bases(ways: [&SightedWay; 2], renumbered: u32) -> [SequenceNumber; 2] {
    let [a, b] = ways.map(|way| way.sightings.first().map(|first| first.seq));
    let of_b = || b.map(|first| SequenceNumber(first.0.wrapping_sub(renumbered)));
    let base = a.or_else(of_b).unwrap_or_default();
    [base, base + renumbered]
}

/// From where each place counts what is acknowledged, which is sent by `backs`.
fn bases_of_acks(backs: [&SightedWay; 2]) -> [SequenceNumber; 2] {
    let base = backs[0].sightings.first().map(|first| first.seq).unwrap_or_default();
    [base, base + shift(backs)]
}

fn carried(way: &SightedWay, base: SequenceNumber, back: SequenceNumber) -> Vec<Carried> {
    let mut unwrapped = (Unwrapped::from(base), Unwrapped::from(back));
    let carry = |one: &Sighting| {
        let start = unwrapped.0.of(one.seq);
        let has_ack = one.flags.any(Flags::ACK);
        Carried {
            at: nanos(one.at),
            start,
            end: start + i64::from(one.length()),
            ack: if has_ack { unwrapped.1.of(one.ack) } else { i64::MIN },
            marks: one.marks(),
        }
    };
    way.sightings.iter().map(carry).collect()
}

fn acked(back: &SightedWay, base: SequenceNumber) -> Vec<(i64, i64)> {
    let (mut acks, mut most) = (Unwrapped::from(base), i64::MIN);
    let mut all = Vec::new();
    for one in &back.sightings {
        let ack = if one.flags.any(Flags::ACK) { acks.of(one.ack) } else { i64::MIN };
        if ack > most {
            most = ack;
            all.push((nanos(one.at), most));
        }
    }
    all
}

fn sacked(back: &SightedWay, base: SequenceNumber) -> Vec<(i64, i64, i64)> {
    let mut acks = Unwrapped::from(base);
    let mut all = Vec::new();
    for (at, blocks) in &back.sacks {
        for (from, to) in blocks.as_slice() {
            let from = acks.of(*from);
            all.push((nanos(*at), from, acks.of(*to)));
        }
    }
    all
}

/// The segments that passed each place once, and both; and whether their time stamps are the same.
fn crossed(carried: &[Vec<Carried>; 2]) -> (Vec<(u32, u32)>, bool) {
    let sorted =
        carried.each_ref().map(|carried| sorted_numbers(carried.len(), |at| carried[at].carries()));
    let once = |with_timestamps: bool| {
        [0, 1].map(|tap| once(&sorted[tap], &carried[tap], with_timestamps))
    };
    let (mut same, mut other) = (0_u64, 0_u64);
    for (a, b) in in_both(once(false)) {
        let [a, b] = [carried[0][a as usize].timestamp(), carried[1][b as usize].timestamp()];
        *(if a == b { &mut same } else { &mut other }) += u64::from(a.is_some());
    }
    let keeps_timestamps = same >= other;
    let mut both: Vec<(u32, u32)> = in_both(once(keeps_timestamps)).collect();
    // A capture that missed one of two copies pairs the other with what it is not.
    let is_other = |(a, b): &(u32, u32)| {
        let [a, b] = [&carried[0][*a as usize], &carried[1][*b as usize]];
        a.ip_id() != b.ip_id() && a.end == b.end
    };
    let others = both.iter().filter(|pair| is_other(pair)).count();
    if 10 * others < both.len() {
        both.retain(|pair| !is_other(pair));
    }
    (both, keeps_timestamps)
}

/// What a segment carries: where it starts, what it acknowledges, its time stamp.
type Carries = (i64, i64, i64);

impl Carried {
    fn carries(&self) -> Carries {
        // What carries data may have been merged with what follows: its start tells it. What
        // carries nothing is told by what it acknowledges.
        let ack = if self.is_empty() { self.ack } else { i64::MAX };
        (self.start, ack, self.timestamp().map_or(-1, i64::from))
    }
}

/// The numbers below `count`, by this key. Nearly all are in order as they are, which a stable sort
/// makes use of.
pub(super) fn sorted_numbers<K: Ord>(count: usize, key: impl Fn(usize) -> K) -> Vec<u32> {
    sorted(count, &|one, other| key(one as usize).cmp(&key(other as usize)))
}

/// One function for all, because each kind of sort is some kilobytes of program.
fn sorted(count: usize, order: &dyn Fn(u32, u32) -> Ordering) -> Vec<u32> {
    let mut numbers: Vec<u32> = (0..u32::try_from(count).unwrap_or(u32::MAX)).collect();
    numbers.sort_by(|one, other| order(*one, *other));
    numbers
}

/// Of `values` in order, the one at `place`. They are put into another order.
pub(super) fn ranked(values: &mut [i64], place: usize) -> Option<i64> {
    (place < values.len()).then(|| *values.select_nth_unstable(place).1)
}

/// The segments that are alone in what they carry, with or without their time stamps.
fn once(
    sorted: &[u32],
    carried: &[Carried],
    with_timestamps: bool,
) -> impl Iterator<Item = (Carries, u32)> {
    let key = move |at: u32| {
        let (start, ack, timestamp) = carried[at as usize].carries();
        (start, ack, if with_timestamps { timestamp } else { -1 })
    };
    let groups = sorted.chunk_by(move |one, other| key(*one) == key(*other));
    groups.filter_map(move |group| match group {
        [only] => Some((key(*only), *only)),
        _ => None,
    })
}

fn in_both([a, b]: [impl Iterator<Item = (Carries, u32)>; 2]) -> impl Iterator<Item = (u32, u32)> {
    let mut rest = b.peekable();
    a.filter_map(move |(key, number)| {
        while rest.next_if(|(other, _)| *other < key).is_some() {}
        rest.next_if(|(other, _)| *other == key).map(|(_, other)| (number, other))
    })
}

/// What passed both places of a connection.
pub(super) struct PassedBoth<'a> {
    /// What A's first end sent, and what its second did. Each place's times are by its own clock.
    pub directions: [BothViews<'a>; 2],
    /// The place that is nearer to A's first end: packets reach the other one later.
    pub near: Option<Tap>,
}

impl<'a> PassedBoth<'a> {
    pub fn new(matched: &'a Matched) -> Self {
        let directions = [0, 1].map(|way| BothViews::new(matched, way));
        let near = match directions.each_ref().map(usual_lead) {
            [Some(first), Some(second)] if first != second => {
                Some(if first > second { Tap::A } else { Tap::B })
            }
            _ => by_hops(matched),
        };
        PassedBoth { directions, near }
    }

    /// What says how the clocks are related.
    pub fn crossings(&self) -> impl Iterator<Item = Crossing> {
        let ways = self.directions.iter().enumerate();
        self.near.into_iter().flat_map(move |near| {
            ways.clone().flat_map(move |(way, views)| {
                let is_forward = (near == Tap::A) == (way == 0);
                views.times().map(move |(a, b)| Crossing { a, b, is_forward })
            })
        })
    }
}

impl BothViews<'_> {
    /// When what crossed was at each place.
    fn times(&self) -> impl Iterator<Item = (i64, i64)> {
        let times = self.crossed().map(|(a, b)| (self.carried[0][a].at, self.carried[1][b].at));
        times.filter(|(a, b)| a.abs_diff(*b) <= FARTHEST.unsigned_abs())
    }
}

/// By how much B's clock shows more for the same segments.
fn usual_lead(views: &BothViews<'_>) -> Option<i64> {
    let mut ahead: Vec<i64> = views.times().map(|(a, b)| b - a).collect();
    let middle = ahead.len() / 2;
    ranked(&mut ahead, middle)
}

/// The place nearer to A's first end by the hops that packets have left.
fn by_hops(matched: &Matched) -> Option<Tap> {
    let ttl = |one: &Sighted, way: usize| one.ways[way].sightings.first().map(|one| one.header.ttl);
    let turned = usize::from(matched.is_turned);
    let of = |way: usize| ttl(&matched.a, way).zip(ttl(&matched.b, way ^ turned));
    let nearer = of(0).map(|(a, b)| a.cmp(&b)).or(of(1).map(|(a, b)| b.cmp(&a)))?;
    match nearer {
        Ordering::Greater => Some(Tap::A),
        Ordering::Less => Some(Tap::B),
        Ordering::Equal => None,
    }
}
