//! Quantities (nanoseconds, bytes) counted in log-linear buckets: bounded memory, known error.

/// Buckets per doubling: a bucket is 1/512 of its value wide, so its middle is within 0.1 % (0.05
/// ms at 50 ms).
const PER_OCTAVE_BITS: u32 = 9;

/// Counts values. Minimum, maximum and count are exact; quantiles are within 0.1 % of a value that
/// was seen.
///
/// Memory grows with the number of different values. All possible numbers would take some 28,000
/// buckets of 8 bytes.
#[derive(Debug, Clone, Default)]
pub(super) struct Histogram {
    /// Each bucket with its count, ordered by bucket.
    buckets: Vec<(u16, u32)>,
    /// Meaningful once something was counted.
    min: u64,
    max: u64,
}

impl Histogram {
    pub fn add(&mut self, value: u64) {
        self.add_times(value, 1);
    }

    /// Adds the same value several times.
    pub fn add_times(&mut self, value: u64, times: u32) {
        self.min = if self.buckets.is_empty() { value } else { self.min.min(value) };
        self.max = self.max.max(value);
        let bucket = bucket_of(value);
        match self.buckets.binary_search_by_key(&bucket, |(bucket, _)| *bucket) {
            Ok(at) => self.buckets[at].1 = self.buckets[at].1.saturating_add(times),
            Err(at) => {
                if self.buckets.is_empty() {
                    self.buckets.reserve_exact(1);
                }
                self.buckets.insert(at, (bucket, times));
            }
        }
    }

    pub fn count(&self) -> u64 {
        self.buckets.iter().map(|(_, count)| u64::from(*count)).sum()
    }

    pub fn min(&self) -> Option<u64> {
        (!self.buckets.is_empty()).then_some(self.min)
    }

    pub fn max(&self) -> Option<u64> {
        (!self.buckets.is_empty()).then_some(self.max)
    }

    /// The least value that at least `fraction` of the values seen do not exceed (nearest rank).
    pub fn quantile(&self, fraction: f64) -> Option<u64> {
        let all = self.count();
        let rank = ((fraction * all as f64).ceil() as u64).clamp(1, all.max(1));
        let mut seen = 0;
        let (bucket, _) = self.buckets.iter().find(|(_, count)| {
            seen += u64::from(*count);
            seen >= rank
        })?;
        Some(middle_of(*bucket).clamp(self.min, self.max))
    }
}

fn bucket_of(value: u64) -> u16 {
    let Some(octave) = value.checked_ilog2().and_then(|log| log.checked_sub(PER_OCTAVE_BITS))
    else {
        return value as u16;
    };
    let mantissa = (value >> octave) as u32 - (1 << PER_OCTAVE_BITS);
    (((octave + 1) << PER_OCTAVE_BITS) + mantissa) as u16
}

fn middle_of(bucket: u16) -> u64 {
    let (octave, mantissa) =
        (u32::from(bucket) >> PER_OCTAVE_BITS, u64::from(bucket) & ((1 << PER_OCTAVE_BITS) - 1));
    match octave.checked_sub(1) {
        None => mantissa,
        Some(shift) => {
            let low = ((1 << PER_OCTAVE_BITS) + mantissa) << shift;
            low + ((1_u64 << shift) >> 1)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_bucket_is_within_a_thousandth_of_its_values(nanos: u64) {
            let middle = middle_of(bucket_of(nanos));
            prop_assert!(middle.abs_diff(nanos) as f64 <= nanos as f64 / 1000.0, "{} became {}", nanos, middle);
        }

        #[test]
        fn quantiles_are_near_the_exact_ones(mut values in prop::collection::vec(0_u64..1_000_000_000, 1..300)) {
            let mut histogram = Histogram::default();
            values.iter().for_each(|value| histogram.add(*value));
            values.sort_unstable();
            for fraction in [0.0, 0.5, 0.95, 0.99, 1.0] {
                let rank = ((fraction * values.len() as f64).ceil() as usize).max(1);
                let exact = values[rank - 1];
                let found = histogram.quantile(fraction).unwrap();
                prop_assert!(found.abs_diff(exact) as f64 <= exact as f64 / 1000.0, "{} for {}", found, exact);
            }
            prop_assert_eq!(histogram.min(), Some(values[0]));
            prop_assert_eq!(histogram.count(), values.len() as u64);
        }
    }

    #[test]
    fn nothing_has_no_quantile() {
        assert_eq!(Histogram::default().quantile(0.5), None);
    }
}
