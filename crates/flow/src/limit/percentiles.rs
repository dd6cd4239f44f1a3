//! Percentiles of values. Floats are compared as integers that sort like them, which is several
//! times as fast.

use super::judge::NONE;

/// Values in ascending order.
pub(super) struct Sorted(Vec<i64>);

impl Sorted {
    pub fn new(values: impl IntoIterator<Item = f64>) -> Self {
        let mut values: Vec<i64> = values.into_iter().map(key).collect();
        values.sort_unstable();
        Sorted(values)
    }

    /// The value below which `percent` per cent of the values are; [`NONE`] if there are no values.
    pub fn percentile(&self, percent: usize) -> f64 {
        self.0.get(self.0.len().saturating_sub(1) * percent / 100).map_or(NONE, |key| value(*key))
    }
}

/// For each value, `of` the values from `around` before it to `around` after it, in ascending
/// order. Fewer are given at both ends of the series. [`value`] turns them back into floats.
pub(super) fn around<T>(values: &[f64], around: usize, of: impl Fn(&[i64]) -> T) -> Vec<T> {
    let mut sorted: Vec<i64> = Vec::with_capacity(2 * around + 2);
    values.iter().take(around).for_each(|value| insert(&mut sorted, *value));
    let seen = (0..values.len()).map(|at| {
        if let Some(next) = values.get(at + around) {
            insert(&mut sorted, *next);
        }
        if let Some(gone) = at.checked_sub(around + 1) {
            let gone = key(values[gone]);
            sorted.remove(sorted.partition_point(|known| *known < gone));
        }
        of(&sorted)
    });
    seen.collect()
}

/// Adds a value where it belongs.
fn insert(sorted: &mut Vec<i64>, new: f64) {
    let at = sorted.partition_point(|known| *known < key(new));
    sorted.insert(at, key(new));
}

/// The float of a [`key`].
pub(super) fn value(key: i64) -> f64 {
    f64::from_bits(in_order(key).cast_unsigned())
}

/// An integer that compares with others as `f64::total_cmp` does.
fn key(value: f64) -> i64 {
    in_order(value.to_bits().cast_signed())
}

fn in_order(bits: i64) -> i64 {
    bits ^ ((bits >> 63).cast_unsigned() >> 1).cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn what_is_around_a_value_is_its_neighbours_sorted(
            values in proptest::collection::vec(-3.0..3.0, 0..60),
            width in 0usize..20,
        ) {
            let found = around(&values, width, |sorted| sorted.iter().copied().map(value).collect());
            let found: Vec<Vec<f64>> = found;
            proptest::prop_assert_eq!(found.len(), values.len());
            for (at, found) in found.into_iter().enumerate() {
                let range = at.saturating_sub(width)..(at + width + 1).min(values.len());
                let mut neighbours = values[range].to_vec();
                neighbours.sort_by(f64::total_cmp);
                proptest::prop_assert_eq!(found, neighbours);
            }
        }
    }
}
