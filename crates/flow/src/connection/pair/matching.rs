//! Which connection of one place is which of the other's.

use super::sighting::{Sighted, SightedWay, Sighting};
use crate::capture::segment::{Flags, FlowKey};
use std::cmp::Reverse;
use std::collections::HashMap;
use std::hash::BuildHasher;

/// A connection that passed both places.
#[derive(Debug)]
pub(super) struct Matched {
    pub a: Sighted,
    pub b: Sighted,
    /// The first end at one place is the second at the other: addresses were translated.
    pub is_turned: bool,
}

impl Matched {
    /// Which of A's ends asked for it: the sender of the SYN, whichever place saw that, or else the
    /// one with the higher port.
    pub fn client(&self) -> usize {
        let of_b = || self.b.opener().map(|end| end ^ usize::from(self.is_turned));
        let ports = self.a.ends().map(|end| end.port());
        self.a.opener().or_else(of_b).unwrap_or_else(|| usize::from(ports[1] > ports[0]))
    }
}

/// What was matched, and how many were left at each place. Both come by their first packets.
pub(super) fn matched(a: Vec<Sighted>, b: Vec<Sighted>) -> (Vec<Matched>, [usize; 2]) {
    let mut by_key: HashMap<FlowKey, Vec<usize>, foldhash::fast::RandomState> = HashMap::default();
    for (at, one) in b.iter().enumerate() {
        by_key.entry(one.key).or_default().push(at);
    }
    let mut b: Vec<Option<Sighted>> = b.into_iter().map(Some).collect();
    let (mut found, mut left) = (Vec::new(), Vec::new());
    for a in a {
        let mut none = Vec::new();
        let of_key = by_key.get_mut(&a.key).unwrap_or(&mut none);
        let others: Vec<&Sighted> = of_key.iter().filter_map(|at| b[*at].as_ref()).collect();
        let best = best_of(&a, &others).map(|at| of_key.swap_remove(at));
        match best.and_then(|at| b[at].take()) {
            Some(b) => found.push(Matched { a, b, is_turned: false }),
            None => left.push(a),
        }
    }
    let unmatched = translated(left, b.into_iter().flatten().collect(), &mut found);
    found.sort_by_key(|one| one.a.began);
    (found, unmatched)
}

/// The one of `others`, which have the same addresses and ports, that is `one`: they have parts of
/// the sequence space in common, or both are alone and have the same SYN, which a firewall numbered
/// anew.
fn best_of(one: &Sighted, others: &[&Sighted]) -> Option<usize> {
    let in_common = |other: &Sighted| -> usize {
        let ways = one.ways.iter().zip(&other.ways);
        ways.filter(|(a, b)| overlap(a, b)).count()
    };
    let best = others.iter().enumerate().max_by_key(|(_, other)| in_common(other));
    let (at, other) = best?;
    let is_renumbered = others.len() == 1 && has_same_syn(one, other);
    (in_common(other) > 0 || is_renumbered).then_some(at)
}

/// Whether a SYN of one is a SYN of the other but for its number: it has the same time stamp, or
/// where there is none, the same IP identification.
fn has_same_syn(one: &Sighted, other: &Sighted) -> bool {
    one.ways.iter().zip(&other.ways).any(|(one, other)| {
        let [one, other] = [one, other]
            .map(|way| way.sightings.iter().find(|one| one.flags.any(Flags::SYN)).copied());
        one.zip(other).is_some_and(|(one, other)| {
            match (one.marks().timestamp(), other.marks().timestamp()) {
                (Some(one), Some(other)) => one == other,
                _ => {
                    one.marks().ip_id().is_some_and(|id| id != 0)
                        && one.marks().ip_id() == other.marks().ip_id()
                }
            }
        })
    })
}

/// Whether both have a part of the sequence space, as far as first and last segments tell.
fn overlap(a: &SightedWay, b: &SightedWay) -> bool {
    let (Some(first_a), Some(last_a), Some(first_b), Some(last_b)) =
        (a.sightings.first(), a.sightings.last(), b.sightings.first(), b.sightings.last())
    else {
        return false;
    };
    let ends_before =
        |last: &Sighting, first: &Sighting| (last.seq + last.length()).is_before(first.seq);
    !ends_before(last_a, first_b) && !ends_before(last_b, first_a)
}

/// How many segments of a direction are looked up where addresses do not help.
const LOOKED_UP: usize = 256;
/// Segments of data that two connections must have in common without their SYNs.
const ENOUGH: u32 = 3;

/// Matches connections whose addresses something translated, by what they carried. Returns how many
/// of each place are left.
fn translated(of_a: Vec<Sighted>, of_b: Vec<Sighted>, found: &mut Vec<Matched>) -> [usize; 2] {
    let state = foldhash::fast::RandomState::default();
    let mut places: HashMap<u64, (usize, usize), foldhash::fast::RandomState> = HashMap::default();
    for (number, one) in of_a.iter().enumerate() {
        for (way, sightings) in one.ways.iter().enumerate() {
            for telling in sightings.sightings.iter().filter_map(identity) {
                places.entry(state.hash_one(telling)).or_insert((number, way));
            }
        }
    }
    let mut of_a: Vec<Option<Sighted>> = of_a.into_iter().map(Some).collect();
    let mut left_of_b = 0;
    for b in of_b {
        let mut votes: HashMap<(usize, bool), u32> = HashMap::new();
        for (way, sightings) in b.ways.iter().enumerate() {
            let telling = sightings.sightings.iter().filter_map(identity).take(LOOKED_UP);
            for identity in telling {
                if let Some((number, other)) = places.get(&state.hash_one(identity)) {
                    let worth = if identity.is_syn { ENOUGH } else { 1 };
                    *votes.entry((*number, *other != way)).or_default() += worth;
                }
            }
        }
        // Of several with as many, the first.
        let best = votes.into_iter().max_by_key(|(which, votes)| (*votes, Reverse(*which)));
        let best = best.filter(|(_, votes)| *votes >= ENOUGH);
        match best.and_then(|((number, is_turned), _)| Some((of_a[number].take()?, is_turned))) {
            Some((a, is_turned)) => found.push(Matched { a, b, is_turned }),
            None => left_of_b += 1,
        }
    }
    [of_a.iter().flatten().count(), left_of_b]
}

/// What tells a segment from others whatever its addresses are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Identity {
    is_syn: bool,
    seq: u32,
    ack: u32,
    payload: u32,
}

fn identity(sighting: &Sighting) -> Option<Identity> {
    let is_syn = sighting.flags.any(Flags::SYN);
    (is_syn || sighting.payload > 0).then_some(Identity {
        is_syn,
        seq: sighting.seq.0,
        ack: sighting.ack.0,
        payload: sighting.payload,
    })
}
