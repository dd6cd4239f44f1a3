//! Orders of segments that are nearly in order.

use std::cmp::Ordering;

/// The numbers below `count`, by this key; of the same key, the lower number first.
pub(super) fn sorted_numbers<K: Ord>(count: usize, key: impl Fn(usize) -> K) -> Vec<u32> {
    sorted(0..count, key)
}

/// These numbers, which come in order, by this key; of the same key, the lower number first.
///
/// Packets are captured nearly in any order that is asked for. Those that are not in it are taken
/// out, sorted, and put back, so that the rest is looked at twice at most.
pub(super) fn sorted<K: Ord>(
    numbers: impl Iterator<Item = usize>,
    key: impl Fn(usize) -> K,
) -> Vec<u32> {
    let of = |number: u32| key(number as usize);
    let mut sorted: Vec<u32> = Vec::with_capacity(numbers.size_hint().0);
    let mut apart: Vec<u32> = Vec::new();
    let mut greatest: Option<K> = None;
    for number in numbers {
        let next = key(number);
        let number = number as u32;
        if greatest.as_ref().is_some_and(|greatest| next < *greatest) {
            // Either it comes late, or the one before it came early.
            let is_late = match sorted[..] {
                [.., before, _] => next < of(before),
                _ => false,
            };
            if is_late {
                apart.push(number);
                continue;
            }
            apart.extend(sorted.pop());
        }
        sorted.push(number);
        greatest = Some(next);
    }
    sort(&mut apart, &|one, other| of(one).cmp(&of(other)).then(one.cmp(&other)));
    put_back(&mut sorted, &apart, |one, other| (of(one), one) < (of(other), other));
    sorted
}

/// One function for all, because each kind of sort is some kilobytes of program.
fn sort(numbers: &mut [u32], order: &dyn Fn(u32, u32) -> Ordering) {
    numbers.sort_unstable_by(|one, other| order(*one, *other));
}

/// Adds `apart` to `sorted`, both in order, from the end on.
fn put_back(sorted: &mut Vec<u32>, apart: &[u32], is_before: impl Fn(u32, u32) -> bool) {
    let (mut kept, mut to) = (sorted.len(), sorted.len() + apart.len());
    sorted.resize(to, 0);
    for late in apart.iter().rev() {
        while kept > 0 && is_before(*late, sorted[kept - 1]) {
            (kept, to) = (kept - 1, to - 1);
            sorted[to] = sorted[kept];
        }
        to -= 1;
        sorted[to] = *late;
    }
}

/// Of `values` in order, the one at `place`. They are put into another order.
pub(super) fn ranked(values: &mut [i64], place: usize) -> Option<i64> {
    (place < values.len()).then(|| *values.select_nth_unstable(place).1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// It is what a stable sort makes of them, whatever order they are in.
        #[test]
        fn any_order_is_sorted(
            mut keys in prop::collection::vec(0_u32..200, 0..300),
            nearly in any::<bool>(),
            swaps in prop::collection::vec((0_usize..300, 0_usize..300), 0..6),
        ) {
            if nearly {
                keys.sort_unstable();
                for (one, other) in swaps {
                    if one.max(other) < keys.len() {
                        keys.swap(one, other);
                    }
                }
            }
            let mut stable: Vec<u32> = (0..keys.len() as u32).collect();
            stable.sort_by_key(|at| keys[*at as usize]);
            prop_assert_eq!(sorted_numbers(keys.len(), |at| keys[at]), stable);
        }
    }
}
