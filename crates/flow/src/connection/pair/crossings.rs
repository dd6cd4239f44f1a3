//! The packets that passed both places, of all connections, of which the clocks need the fastest.
//!
//! There are as many as a capture has packets, and each direction of a connection has its own in
//! another order. They are not put into one: a part of them tells which spans of time have about as
//! many each, and of each span the fastest packet of each direction is kept.

use super::Tap;
use super::by_start::near_point;
use super::clocks::Crossing;
use super::copies::{BothViews, PassedBoth};

/// Of each of so many spans, only the fastest packets of both directions matter.
const MOST_CROSSINGS: usize = 1024;
/// So many packets tell where a span ends.
const FOR_A_SPAN: usize = 16;

/// Those of one direction of a connection, in any order.
struct CrossingsOfWay<'a> {
    views: &'a BothViews,
    is_forward: bool,
}

/// The fastest packets of a span of time.
#[derive(Default, Clone, Copy)]
struct Fastest {
    forward: Option<Crossing>,
    back: Option<Crossing>,
}

/// At most two for each of some [`MOST_CROSSINGS`] spans, or all where they are few, in the order
/// of A's clock.
pub(super) fn fastest_crossings(connections: &[PassedBoth]) -> Vec<Crossing> {
    let known = connections.iter().filter_map(|one| Some((one.near?, &one.directions)));
    let ways: Vec<CrossingsOfWay<'_>> = known
        .flat_map(|(near, directions)| {
            directions.iter().enumerate().map(move |(way, views)| {
                let is_forward = (near == Tap::A) == (way == 0);
                CrossingsOfWay { views, is_forward }
            })
        })
        .collect();
    let count: usize = ways.iter().map(|way| way.views.crossed().len()).sum();
    if count <= 2 * MOST_CROSSINGS {
        let mut all: Vec<Crossing> = ways.iter().flat_map(|way| way.every(1)).collect();
        all.sort_by_key(|one| one.a);
        return all;
    }
    let told_by = (count / (MOST_CROSSINGS * FOR_A_SPAN)).max(1);
    let mut times: Vec<i64> =
        ways.iter().flat_map(|way| way.every(told_by)).map(|one| one.a).collect();
    times.sort_unstable();
    let of_span = times.len().div_ceil(MOST_CROSSINGS).max(1);
    let mut ends: Vec<i64> = times.into_iter().step_by(of_span).collect();
    ends.dedup();
    let mut spans = vec![Fastest::default(); ends.len() + 1];
    for way in &ways {
        // The next one is near.
        let mut span = 0;
        for one in way.every(1) {
            span = near_point(&ends, span, |end| *end <= one.a);
            spans[span].note(one);
        }
    }
    spans.into_iter().flat_map(Fastest::in_order).collect()
}

impl CrossingsOfWay<'_> {
    /// One of so many of them.
    fn every(&self, so_many: usize) -> impl Iterator<Item = Crossing> {
        let CrossingsOfWay { views, is_forward } = *self;
        let numbers = (0..views.crossed().len()).step_by(so_many);
        numbers.filter(|at| views.is_possible(*at)).map(move |at| {
            let (a, b) = views.times_at(at);
            Crossing { a, b, is_forward }
        })
    }
}

/// By how much B's clock shows more, and when.
fn speed(one: Crossing) -> (i64, i64) {
    (one.b - one.a, one.a)
}

impl Fastest {
    #[inline]
    fn note(&mut self, one: Crossing) {
        // Of several that are as fast, the first there and the last back, whatever their order.
        if one.is_forward {
            if self.forward.is_none_or(|best| speed(one) < speed(best)) {
                self.forward = Some(one);
            }
        } else {
            if self.back.is_none_or(|best| speed(one) > speed(best)) {
                self.back = Some(one);
            }
        }
    }

    fn in_order(self) -> impl Iterator<Item = Crossing> {
        let Fastest { forward, back } = self;
        let is_back_first = forward.zip(back).is_some_and(|(there, back)| back.a < there.a);
        let both = if is_back_first { [back, forward] } else { [forward, back] };
        both.into_iter().flatten()
    }
}
