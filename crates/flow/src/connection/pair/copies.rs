//! The segments of one direction of a connection, as both places saw them: numbers that do not
//! wrap, times by one clock.

use super::Tap;
use super::clocks::{Clocks, Crossing, FARTHEST, nanos};
use super::matching::Matched;
use super::sighting::{Sighted, SightedWay, Sighting};
use crate::capture::segment::{Flags, SequenceNumber};

/// A segment at one place.
#[derive(Debug, Clone, Copy)]
pub(super) struct Carried {
    /// Nanoseconds by A's clock.
    pub at: i64,
    /// The first number that it takes of the sequence space, and the one after the last; the same
    /// for an acknowledgement alone.
    pub start: i64,
    pub end: i64,
    /// What it acknowledges, in the numbers of the other direction.
    pub ack: Option<i64>,
    pub timestamp: Option<u32>,
    pub ip_id: Option<u16>,
}

impl Carried {
    pub fn is_empty(&self) -> bool {
        self.start == self.end
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
    /// The segments that passed each place once, and both: their numbers among those of each place.
    pub crossed: Vec<(usize, usize)>,
}

/// Both directions of a connection: what A's first end sent, and what its second did.
pub(super) fn directions<'a>(matched: &'a Matched, clocks: &Clocks) -> [BothViews<'a>; 2] {
    [0, 1].map(|way| direction(matched, way, clocks))
}

fn direction<'a>(matched: &'a Matched, way: usize, clocks: &Clocks) -> BothViews<'a> {
    let Matched { a, b, is_turned } = matched;
    let [there, back] =
        [[way, way ^ usize::from(*is_turned)], [1 - way, (1 - way) ^ usize::from(*is_turned)]];
    let of = |ends: [usize; 2]| -> [&'a SightedWay; 2] { [&a.ways[ends[0]], &b.ways[ends[1]]] };
    let (ways, backs) = (of(there), of(back));
    let shift = |ways: [&SightedWay; 2]| match ways.map(|way| way.syn) {
        [Some(a), Some(b)] => b.seq.0.wrapping_sub(a.seq.0),
        _ => 0,
    };
    let renumbered = shift(ways);
    let first = ways[0].sightings.first().map(|first| first.seq);
    let first_of_b = || ways[1].sightings.first();
    let base = first
        .or_else(|| first_of_b().map(|first| SequenceNumber(first.seq.0.wrapping_sub(renumbered))));
    let bases = [base.unwrap_or_default(), base.unwrap_or_default() + renumbered];
    let back_base = backs[0].sightings.first().map(|first| first.seq).unwrap_or_default();
    let back_bases = [back_base, back_base + shift(backs)];
    let mut views = BothViews {
        ways,
        carried: Default::default(),
        acked: Default::default(),
        sacked: Default::default(),
        renumbered,
        keeps_timestamps: true,
        crossed: Vec::new(),
    };
    for tap in Tap::ALL.map(Tap::at) {
        let clock = |at| if tap == Tap::A.at() { nanos(at) } else { clocks.a_of_b(nanos(at)) };
        let mut unwrapped = (Unwrapped::from(bases[tap]), Unwrapped::from(back_bases[tap]));
        let carry = |one: &Sighting| {
            let start = unwrapped.0.of(one.seq);
            Carried {
                at: clock(one.at),
                start,
                end: start + i64::from(one.length()),
                ack: one.flags.any(Flags::ACK).then(|| unwrapped.1.of(one.ack)),
                timestamp: one.timestamp(),
                ip_id: one.ip_id(),
            }
        };
        views.carried[tap] = ways[tap].sightings.iter().map(carry).collect();
        let mut acks = Unwrapped::from(bases[tap]);
        let mut most = i64::MIN;
        for one in &backs[tap].sightings {
            if one.flags.any(Flags::ACK) && acks.of(one.ack) > most {
                most = acks.last;
                views.acked[tap].push((clock(one.at), most));
            }
        }
        let mut acks = Unwrapped::from(bases[tap]);
        for (at, blocks) in &backs[tap].sacks {
            for (from, to) in blocks.as_slice() {
                let from = acks.of(*from);
                views.sacked[tap].push((clock(*at), from, acks.of(*to)));
            }
        }
    }
    views.keeps_timestamps = keeps_timestamps(&views.carried);
    views.crossed = crossed(&views.carried, views.keeps_timestamps);
    views
}

/// Sequence numbers as numbers that do not wrap: each is the one nearest to the last.
#[derive(Debug, Clone, Copy)]
struct Unwrapped {
    number: SequenceNumber,
    last: i64,
}

impl Unwrapped {
    fn from(base: SequenceNumber) -> Self {
        Unwrapped { number: base, last: 0 }
    }

    fn of(&mut self, number: SequenceNumber) -> i64 {
        self.last += i64::from(number.after(self.number));
        self.number = number;
        self.last
    }
}

/// Whether the segments have the same time stamps at both places.
fn keeps_timestamps(carried: &[Vec<Carried>; 2]) -> bool {
    let [a, b] = carried.each_ref().map(|carried| once(carried, false));
    let both = in_both(&a, &b);
    let stamps = both.iter().map(|(a, b)| [carried[0][*a].timestamp, carried[1][*b].timestamp]);
    let (same, other): (Vec<_>, Vec<_>) =
        stamps.filter(|[a, _]| a.is_some()).partition(|[a, b]| a == b);
    same.len() >= other.len()
}

fn crossed(carried: &[Vec<Carried>; 2], keeps_timestamps: bool) -> Vec<(usize, usize)> {
    let [a, b] = carried.each_ref().map(|carried| once(carried, keeps_timestamps));
    let mut both = in_both(&a, &b);
    // A capture that missed one of two copies pairs the other with what it is not.
    let is_other = |(a, b): &(usize, usize)| {
        let [a, b] = [&carried[0][*a], &carried[1][*b]];
        a.ip_id != b.ip_id && a.end == b.end
    };
    let others = both.iter().filter(|pair| is_other(pair)).count();
    if 10 * others < both.len() {
        both.retain(|pair| !is_other(pair));
    }
    both
}

/// Three numbers by which something is sorted, and its own number.
pub(super) type Keyed = ((i64, i64, i64), usize);

/// Sorted by the keys. One function for all, because each kind of sort is some kilobytes of
/// program.
pub(super) fn sorted(keys: impl Iterator<Item = Keyed>) -> Vec<Keyed> {
    let mut keys: Vec<Keyed> = keys.collect();
    keys.sort_unstable();
    keys
}

/// The segments that are alone in what they carry, by that, sorted.
fn once(carried: &[Carried], keeps_timestamps: bool) -> Vec<Keyed> {
    let key = |one: &Carried| {
        let timestamp = one.timestamp.filter(|_| keeps_timestamps);
        // What carries data may have been merged with what follows: its start tells it. What
        // carries nothing is told by what it acknowledges.
        let ack = if one.is_empty() { one.ack.unwrap_or(i64::MIN) } else { i64::MAX };
        (one.start, ack, timestamp.map_or(-1, i64::from))
    };
    let keyed = sorted(carried.iter().map(key).zip(0..));
    let mut alone = Vec::with_capacity(keyed.len());
    for group in keyed.chunk_by(|one, other| one.0 == other.0) {
        if let [only] = group {
            alone.push(*only);
        }
    }
    alone
}

fn in_both(a: &[Keyed], b: &[Keyed]) -> Vec<(usize, usize)> {
    let mut rest = b;
    let mut both = Vec::new();
    for (key, number) in a {
        let before = rest.partition_point(|(other, _)| other < key);
        rest = &rest[before..];
        if let Some((_, other)) = rest.first().filter(|(other, _)| other == key) {
            both.push((*number, *other));
        }
    }
    both
}

/// What says how the clocks are related, and the place that is nearer to A's first end: packets
/// reach the other one later.
pub(super) fn crossings(matched: &Matched) -> (Vec<Crossing>, Option<Tap>) {
    let directions = directions(matched, &Clocks::default());
    let crossed = directions.each_ref().map(|direction| {
        let of = |(a, b): (usize, usize)| (direction.carried[0][a].at, direction.carried[1][b].at);
        let times = direction.crossed.iter().copied().map(of);
        times.filter(|(a, b)| a.abs_diff(*b) <= FARTHEST.unsigned_abs()).collect::<Vec<_>>()
    });
    let median = |times: &[(i64, i64)]| {
        let ahead = sorted(times.iter().map(|(a, b)| ((b - a, 0, 0), 0)));
        ahead.get(ahead.len() / 2).map(|((middle, ..), _)| *middle)
    };
    let near = match [median(&crossed[0]), median(&crossed[1])] {
        [Some(first), Some(second)] if first != second => {
            Some(if first > second { Tap::A } else { Tap::B })
        }
        _ => by_hops(matched),
    };
    let Some(near) = near else { return (Vec::new(), None) };
    let all = crossed.into_iter().enumerate().flat_map(|(way, times)| {
        let is_forward = (near == Tap::A) == (way == 0);
        times.into_iter().map(move |(a, b)| Crossing { a, b, is_forward })
    });
    (all.collect(), Some(near))
}

/// The place nearer to A's first end by the hops that packets have left.
fn by_hops(matched: &Matched) -> Option<Tap> {
    let ttl = |one: &Sighted, way: usize| one.ways[way].sightings.first().map(|one| one.header.ttl);
    let turned = usize::from(matched.is_turned);
    let of = |way: usize| ttl(&matched.a, way).zip(ttl(&matched.b, way ^ turned));
    let nearer = of(0).map(|(a, b)| a.cmp(&b)).or(of(1).map(|(a, b)| b.cmp(&a)))?;
    match nearer {
        std::cmp::Ordering::Greater => Some(Tap::A),
        std::cmp::Ordering::Less => Some(Tap::B),
        std::cmp::Ordering::Equal => None,
    }
}
