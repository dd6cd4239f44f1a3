//! The packets that passed both places, of all connections, in the order of A's clock.
//!
//! There are as many as a capture has packets, so they are not collected: each direction of a
//! connection has its own in order, and whichever is next comes next.

use super::Tap;
use super::clocks::Crossing;
use super::copies::{BothViews, PassedBoth};
use super::sorted::sorted_numbers;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// All crossings of some connections.
pub(super) struct Crossings<'a> {
    ways: Vec<CrossingsOfWay<'a>>,
    /// When the next of each direction is.
    next: BinaryHeap<Reverse<(i64, usize)>>,
    left: usize,
}

/// Those of one direction, in the order of A's clock.
struct CrossingsOfWay<'a> {
    views: &'a BothViews,
    /// Their numbers among what crossed.
    order: std::vec::IntoIter<u32>,
    is_forward: bool,
}

impl<'a> Crossings<'a> {
    pub fn of(connections: &'a [PassedBoth]) -> Self {
        let known = connections.iter().filter_map(|one| Some((one.near?, &one.directions)));
        let ways: Vec<CrossingsOfWay<'a>> = known
            .flat_map(|(near, directions)| {
                directions.iter().enumerate().map(move |(way, views)| {
                    let mut order =
                        sorted_numbers(views.crossed().len(), |at| views.times_at(at).0);
                    order.retain(|at| views.is_possible(*at as usize));
                    let order = order.into_iter();
                    CrossingsOfWay { views, order, is_forward: (near == Tap::A) == (way == 0) }
                })
            })
            .collect();
        let left = ways.iter().map(|way| way.order.len()).sum();
        let next = ways.iter().enumerate().filter_map(|(at, way)| Some(Reverse((way.at()?, at))));
        Crossings { next: next.collect(), ways, left }
    }
}

impl CrossingsOfWay<'_> {
    /// When the next one is.
    fn at(&self) -> Option<i64> {
        self.order.as_slice().first().map(|at| self.views.times_at(*at as usize).0)
    }

    fn next(&mut self) -> Option<Crossing> {
        let (a, b) = self.views.times_at(self.order.next()? as usize);
        Some(Crossing { a, b, is_forward: self.is_forward })
    }
}

impl Iterator for Crossings<'_> {
    type Item = Crossing;

    fn next(&mut self) -> Option<Crossing> {
        let mut top = self.next.peek_mut()?;
        let Reverse((_, way)) = *top;
        let crossing = self.ways[way].next();
        match self.ways[way].at() {
            Some(at) => *top = Reverse((at, way)),
            None => drop(std::collections::binary_heap::PeekMut::pop(top)),
        }
        self.left -= 1;
        crossing
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Crossings<'_> {}
