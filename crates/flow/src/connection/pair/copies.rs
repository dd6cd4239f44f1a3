//! One direction of a connection as both places saw it: which packets passed both, and in which
//! order the places are.

use super::Tap;
use super::clocks::{Clocks, FARTHEST};
use super::matching::Matched;
use super::segments::Segments;
use super::sighting::SightedWay;
use super::sorted::{ranked, sorted_numbers};
use crate::capture::segment::SequenceNumber;
use fullpipe_model::units::Instant;
use std::cmp::Ordering;
use std::net::SocketAddr;

/// One direction at both places.
#[derive(Debug)]
pub(super) struct BothViews {
    pub at: [Segments; 2],
    /// From where each place counts the bytes.
    pub bases: [SequenceNumber; 2],
    /// Whether the segments have the same time stamps at both places.
    pub keeps_timestamps: bool,
    crossed: Vec<(u32, u32)>,
}

impl BothViews {
    fn new(at: [Segments; 2], bases: [SequenceNumber; 2]) -> Self {
        let (crossed, keeps_timestamps) = crossed(&at);
        BothViews { at, bases, keeps_timestamps, crossed }
    }

    /// What that place saw.
    pub fn of(&self, tap: Tap) -> &Segments {
        &self.at[tap.at()]
    }

    /// Whether something on the way numbered the bytes anew.
    pub fn is_renumbered(&self) -> bool {
        self.bases[0] != self.bases[1]
    }

    /// The segments that passed each place once, and both: their numbers among those of each place.
    /// They come by what they carry.
    pub fn crossed(&self) -> impl ExactSizeIterator<Item = (usize, usize)> {
        self.crossed.iter().map(|(a, b)| (*a as usize, *b as usize))
    }

    /// Whether IPv4's identification is the same at both places, and tells segments apart.
    pub fn keeps_ids(&self) -> bool {
        let [a, b] = &self.at;
        let (mut count, mut changes, mut last) = (0_usize, 0, None);
        for (at_a, at_b) in self.crossed() {
            let [one, other] = [a.at(at_a), b.at(at_b)];
            let is_whole = !one.is_empty() && one.start == other.start && one.end == other.end;
            let Some((one, other)) = one.ip_id().filter(|_| is_whole).zip(other.ip_id()) else {
                continue;
            };
            if one != other {
                return false;
            }
            count += 1;
            changes += usize::from(last.replace(one).is_some_and(|last| last != one));
        }
        count > 0 && 2 * changes >= count - 1
    }

    /// What crossed, as [`BothViews::crossed`] gives it; it is not kept.
    pub fn take_crossed(&mut self) -> Vec<(u32, u32)> {
        std::mem::take(&mut self.crossed)
    }

    /// When the one of this number, of what crossed, was at each place.
    #[inline]
    pub fn times_at(&self, number: usize) -> (i64, i64) {
        let (a, b) = self.crossed[number];
        let [of_a, of_b] = self.at.each_ref().map(|one| &one.way.sightings);
        (of_a[a as usize].at, of_b[b as usize].at)
    }

    /// Whether clocks can be so far apart.
    pub fn is_possible(&self, number: usize) -> bool {
        let (a, b) = self.times_at(number);
        a.abs_diff(b) <= FARTHEST.unsigned_abs()
    }

    /// By how much B's clock shows more for what crossed.
    fn leads(&self) -> impl Iterator<Item = i64> {
        let possible = (0..self.crossed.len()).filter(|at| self.is_possible(*at));
        possible.map(|at| {
            let (a, b) = self.times_at(at);
            b - a
        })
    }
}

/// By what something on the way numbered the bytes anew.
fn shift(ways: &[SightedWay; 2]) -> u32 {
    match ways.each_ref().map(|way| way.syn) {
        [Some(a), Some(b)] => b.seq.0.wrapping_sub(a.seq.0),
        _ => 0,
    }
}

/// From where each place counts the bytes.
fn bases(ways: &[SightedWay; 2], renumbered: u32) -> [SequenceNumber; 2] {
    let [a, b] = ways.each_ref().map(|way| way.sightings.first().map(|first| first.seq));
    let of_b = || b.map(|first| SequenceNumber(first.0.wrapping_sub(renumbered)));
    let base = a.or_else(of_b).unwrap_or_default();
    [base, base + renumbered]
}

/// The segments that passed each place once, and both; and whether their time stamps are the same.
fn crossed(at: &[Segments; 2]) -> (Vec<(u32, u32)>, bool) {
    let [a, b] = at;
    let sorted = at.each_ref().map(|one| sorted_numbers(one.len(), |at| one.carries(at)));
    let mut both = InBoth::new(at, &sorted, true);
    let mut found: Vec<(u32, u32)> = both.by_ref().collect();
    let keeps_timestamps = both.same >= both.other;
    if !keeps_timestamps {
        found = InBoth::new(at, &sorted, false).collect();
    }
    // A capture that missed one of two copies pairs the other with what it is not.
    let is_other = |(at_a, at_b): &(u32, u32)| {
        let [a, b] = [a.at(*at_a as usize), b.at(*at_b as usize)];
        a.ip_id() != b.ip_id() && a.end == b.end
    };
    let others = found.iter().filter(|pair| is_other(pair)).count();
    if others > 0 && 10 * others < found.len() {
        found.retain(|pair| !is_other(pair));
    }
    (found, keeps_timestamps)
}

/// Where a segment starts, and what it acknowledges.
type StartAndAck = (i64, i64);
/// What a segment carries: also its time stamp.
type Carries = (StartAndAck, i64);

impl Segments {
    #[inline]
    fn carries(&self, number: usize) -> Carries {
        let one = self.at(number);
        // What carries data may have been merged with what follows: its start tells it. What
        // carries nothing is told by what it acknowledges.
        let ack = if one.is_empty() { one.ack().unwrap_or(i64::MIN) } else { i64::MAX };
        ((one.start, ack), one.timestamp().map_or(-1, i64::from))
    }
}

/// The pairs of segments that are alone in what they carry at each place, with or without their
/// time stamps.
struct InBoth<'a> {
    at: &'a [Segments; 2],
    /// What is left of the segments of each place, by what they carry.
    rest: [&'a [u32]; 2],
    /// What the first of them carries.
    carries: [Option<Carries>; 2],
    with_timestamps: bool,
    /// What is left of those that are at the same place, by their time stamps.
    copies: [Vec<(i64, u32)>; 2],
    /// Pairs that are alone at their place, by whether their time stamps are the same.
    same: u64,
    other: u64,
}

impl<'a> InBoth<'a> {
    fn new(at: &'a [Segments; 2], sorted: &'a [Vec<u32>; 2], with_timestamps: bool) -> Self {
        let rest = sorted.each_ref().map(|sorted| &sorted[..]);
        let copies = Default::default();
        let carries = [0, 1].map(|tap| Some(at[tap].carries(*rest[tap].first()? as usize)));
        InBoth { at, rest, carries, with_timestamps, copies, same: 0, other: 0 }
    }

    /// Takes the first of the rest of a place, and all that are where it is.
    #[inline]
    fn take(&mut self, tap: usize) -> &'a [u32] {
        let (mut count, first) = (0, self.carries[tap].take());
        let next = self.rest[tap].iter().skip(1).find_map(|at| {
            count += 1;
            let next = self.at[tap].carries(*at as usize);
            (first.is_none_or(|first| first.0 != next.0)).then_some(next)
        });
        self.carries[tap] = next;
        let count = if next.is_some() { count } else { self.rest[tap].len() };
        let (taken, rest) = self.rest[tap].split_at(count);
        self.rest[tap] = rest;
        taken
    }

    /// The next copies that are alone with their time stamp at both places.
    fn next_copy(&mut self) -> Option<(u32, u32)> {
        let [a, b] = &mut self.copies;
        while let (Some((of_a, at_a)), Some((of_b, at_b))) = (a.last().copied(), b.last().copied())
        {
            match of_a.cmp(&of_b) {
                Ordering::Less => drop(a.pop()),
                Ordering::Greater => drop(b.pop()),
                Ordering::Equal => {
                    let alone = [&mut *a, &mut *b].map(|copies| pop_same(copies, of_a) == 1);
                    if alone == [true, true] {
                        return Some((at_a, at_b));
                    }
                }
            }
        }
        a.clear();
        b.clear();
        None
    }
}

/// Removes those at the end that have this time stamp, and says how many there were.
fn pop_same(copies: &mut Vec<(i64, u32)>, timestamp: i64) -> usize {
    let before = copies.len();
    while copies.pop_if(|(one, _)| *one == timestamp).is_some() {}
    before - copies.len()
}

impl Iterator for InBoth<'_> {
    type Item = (u32, u32);

    fn next(&mut self) -> Option<(u32, u32)> {
        loop {
            if let Some(pair) = self.next_copy() {
                return Some(pair);
            }
            let [Some(a), Some(b)] = self.carries else { return None };
            match a.0.cmp(&b.0) {
                Ordering::Less => drop(self.take(0)),
                Ordering::Greater => drop(self.take(1)),
                Ordering::Equal => {
                    let [of_a, of_b] = [self.take(0), self.take(1)];
                    if let ([only_a], [only_b]) = (of_a, of_b) {
                        let is_same = a.1 == b.1;
                        let count = if is_same { &mut self.same } else { &mut self.other };
                        *count += u64::from(a.1 >= 0);
                        if is_same || !self.with_timestamps {
                            return Some((*only_a, *only_b));
                        }
                    } else if self.with_timestamps {
                        self.copies = [(0, of_a), (1, of_b)].map(|(tap, numbers)| {
                            let stamped = numbers.iter().rev();
                            stamped.map(|at| (self.at[tap].carries(*at as usize).1, *at)).collect()
                        });
                    }
                }
            }
        }
    }
}

/// What passed both places of a connection.
#[derive(Debug)]
pub(super) struct PassedBoth {
    /// What A's first end sent, and what its second did. Each place's times are by its own clock
    /// until [`PassedBoth::set_clock`].
    pub directions: [BothViews; 2],
    /// The place that is nearer to A's first end: packets reach the other one later.
    pub near: Option<Tap>,
    pub ends: MatchedEnds,
}

/// Who the ends of a connection are, at both places.
#[derive(Debug, Clone, Copy)]
pub(super) struct MatchedEnds {
    pub of: [[SocketAddr; 2]; 2],
    /// The first end at one place is the second at the other.
    pub is_turned: bool,
    /// Which of A's ends asked for it.
    pub client: usize,
    /// When each place saw its first packet, by its own clock.
    pub began: [Instant; 2],
}

impl PassedBoth {
    pub fn new(matched: Matched) -> Self {
        let client = matched.client();
        let Matched { a, b, is_turned } = matched;
        let ends =
            MatchedEnds { of: [a.ends(), b.ends()], is_turned, client, began: [a.began, b.began] };
        let ([a_first, a_second], mut of_b) = (a.ways, b.ways);
        if is_turned {
            of_b.reverse();
        }
        let [b_first, b_second] = of_b;
        let ways = [[a_first, b_first], [a_second, b_second]];
        let renumbered = ways.each_ref().map(shift);
        let bases = [0, 1].map(|way| bases(&ways[way], renumbered[way]));
        let mut number = 0;
        let directions = ways.map(|ways| {
            let (way, mut tap) = (number, 0);
            number += 1;
            let at = ways.map(|sighted| {
                tap += 1;
                Segments::new(sighted, bases[way][tap - 1], bases[1 - way][tap - 1])
            });
            BothViews::new(at, bases[way])
        });
        let near = nearer(&directions).or_else(|| by_hops(&directions));
        PassedBoth { directions, near, ends }
    }

    /// Makes all times those of A's clock.
    pub fn set_clock(&mut self, clocks: &Clocks) {
        for direction in &mut self.directions {
            direction.at[Tap::B.at()].way.set_clock(clocks);
        }
    }
}

/// The place nearer to A's first end by the clocks: of two directions the one in which B's clock
/// shows more goes from A to B.
fn nearer(directions: &[BothViews; 2]) -> Option<Tap> {
    let [first, second] = directions.each_ref().map(lead_span);
    let (first, second) = (first?, second?);
    // All of one direction show more than all of the other, or their middles decide.
    let is_more = if first.0 > second.1 || first.1 < second.0 {
        first.0 > second.1
    } else {
        let [first, second] = directions.each_ref().map(usual_lead);
        if first == second {
            return None;
        }
        first > second
    };
    Some(if is_more { Tap::A } else { Tap::B })
}

/// The least and the most by which B's clock shows more for the same segments.
fn lead_span(views: &BothViews) -> Option<(i64, i64)> {
    let leads = views.leads().map(|lead| (lead, lead));
    leads.reduce(|(least, most), (lead, _)| (least.min(lead), most.max(lead)))
}

/// By how much it does usually.
fn usual_lead(views: &BothViews) -> Option<i64> {
    let mut ahead: Vec<i64> = views.leads().collect();
    let middle = ahead.len() / 2;
    ranked(&mut ahead, middle)
}

/// The place nearer to A's first end by the hops that packets have left.
fn by_hops(directions: &[BothViews; 2]) -> Option<Tap> {
    let ttl = |one: &Segments| one.way.sightings.first().map(|one| one.header.ttl);
    let of = |way: usize| {
        let [a, b] = directions[way].at.each_ref().map(ttl);
        a.zip(b)
    };
    let nearer = of(0).map(|(a, b)| a.cmp(&b)).or(of(1).map(|(a, b)| b.cmp(&a)))?;
    match nearer {
        Ordering::Greater => Some(Tap::A),
        Ordering::Less => Some(Tap::B),
        Ordering::Equal => None,
    }
}
