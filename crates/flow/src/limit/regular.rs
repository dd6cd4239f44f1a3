//! Whether drops come too regularly for chance.
//!
//! What is dropped by chance says nothing of what is dropped next: from one drop to the next passes
//! any amount of data, as between the clicks of a Geiger counter, whatever the congestion control
//! does. A queue or a bucket drops when it is full: each time when the congestion window has grown
//! back, after about the same amount.

use fullpipe_model::units::Bytes;

/// What the drops of a transfer are like.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct DropPattern {
    /// The policer that explains what was lost.
    pub policed: Option<super::Policed>,
    /// After how much data drops come again and again, where that is too regular for chance.
    pub after: Option<Bytes>,
}

/// Two amounts are alike if the larger is no more than this many times the smaller, and so many
/// segments.
const ALIKE: f64 = 1.25;
const SEGMENTS_OFF: u64 = 2;
/// Of smaller amounts, segments and repairs make too much.
const MEDIAN_LEAST: u64 = 16;
/// Of amounts by chance, that are exponentially distributed with such a median, no more than this
/// part is like the one before: 1 - 8/9 exp(-2/23) = 0.19, where 23 segments is the mean.
const ALIKE_BY_CHANCE: f64 = 0.2;
/// Chance is refuted if it makes as many alike less often than this. Both distances are tried.
const REFUTED: f64 = 0.0005;
/// Where two drops take turns (cubic's window grows past the last drop every other time), each is
/// like the one before the last.
const DISTANCES: [usize; 2] = [1, 2];

/// The median of the amounts that pass from drop to drop, if they are too much alike for chance;
/// `segment` is the payload of a full segment. An amount counts from where the sender had repaired
/// the drop before, since what was under way then could not grow or shrink.
pub(crate) fn regular(amounts: &[u64], segment: u64) -> Option<Bytes> {
    let mut sorted = amounts.to_vec();
    sorted.sort_unstable();
    let median = *sorted.get(sorted.len() / 2)?;
    let off = SEGMENTS_OFF * segment;
    let is_refuted = DISTANCES.into_iter().any(|distance| {
        let pairs = amounts.iter().zip(amounts.iter().skip(distance));
        let all = pairs.len();
        let alike = pairs.filter(|(a, b)| are_alike(**a, **b, off)).count();
        by_chance(alike, all) < REFUTED
    });
    (is_refuted && median >= MEDIAN_LEAST * segment).then_some(Bytes::new(median))
}

fn are_alike(a: u64, b: u64, off: u64) -> bool {
    a.max(b) as f64 <= ALIKE * a.min(b) as f64 + off as f64
}

/// How often chance makes at least `alike` of `all` pairs alike: the tail of the binomial
/// distribution.
fn by_chance(alike: usize, all: usize) -> f64 {
    let odds = ALIKE_BY_CHANCE / (1.0 - ALIKE_BY_CHANCE);
    let mut one = (1.0 - ALIKE_BY_CHANCE).powi(i32::try_from(all).unwrap_or(i32::MAX));
    let mut tail = 0.0;
    for at in 0..=all {
        tail += if at >= alike { one } else { 0.0 };
        one *= odds * (all - at) as f64 / (at + 1) as f64;
    }
    tail
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SEGMENT: u64 = 1448;

    /// Amounts by chance: exponentially distributed, with this mean in segments.
    fn by_luck(mut seed: u64, mean: f64, count: usize) -> Vec<u64> {
        let mut next = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let even = ((seed >> 11) as f64 + 1.0) / (1_u64 << 53) as f64;
            (-even.ln() * mean) as u64 * SEGMENT
        };
        (0..count).map(|_| next()).collect()
    }

    proptest! {
        #[test]
        fn chance_is_not_regular(
            seed in any::<u64>(),
            mean in 60.0_f64..100_000.0,
            count in 0_usize..1000,
        ) {
            prop_assert_eq!(regular(&by_luck(seed, mean, count), SEGMENT), None);
        }

        /// What is full drops after about the same amount, or two in turns; now and then something
        /// else drops.
        #[test]
        fn what_is_full_is(
            least in 20_u64..10_000,
            other in 1.0_f64..3.0,
            off in 0.0_f64..0.1,
            luck in 8_usize..40,
        ) {
            let amounts: Vec<u64> = (0..60).map(|at: usize| {
                let turn = if at.is_multiple_of(2) { 1.0 } else { other };
                let early = if at % luck == luck - 1 { 0.3 } else { 1.0 };
                let swing = if at.is_multiple_of(3) { 1.0 + off } else { 1.0 };
                (least as f64 * turn * early * swing) as u64 * SEGMENT
            }).collect();
            let after = regular(&amounts, SEGMENT).map(|after| after.get() / SEGMENT);
            let most = (least as f64 * other * (1.0 + off)) as u64;
            prop_assert!(after.is_some_and(|after| after + 1 >= least && after <= most));
        }
    }

    #[test]
    fn a_few_drops_or_small_amounts_say_nothing() {
        let alike = [100 * SEGMENT; 20];
        assert_eq!(regular(&alike, SEGMENT), Some(Bytes::new(100 * SEGMENT)));
        assert_eq!(regular(&alike[..5], SEGMENT), None);
        assert_eq!(regular(&[12 * SEGMENT; 20], SEGMENT), None);
        assert_eq!(regular(&[], SEGMENT), None);
    }

    /// The sum of `comb(n, i) * 0.2**i * 0.8**(n - i)` from `i = k` on, as Python has it.
    #[test]
    fn the_tail_is_that_of_the_binomial_distribution() {
        for (alike, all, law) in [(0, 0, 1.0), (6, 8, 1.231e-3), (10, 20, 2.595e-3)] {
            assert!((by_chance(alike, all) / law - 1.0).abs() < 1e-3, "{alike} of {all}");
        }
    }
}
