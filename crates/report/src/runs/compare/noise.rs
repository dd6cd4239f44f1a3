//! Whether two samples differ by more than they vary.
//!
//! In virtual time a result depends only on its inputs, so every difference is real. In real time
//! each run is one draw, and the spread of the repetitions shows how far draws are apart. By
//! Student's t-test (Welch's form, because both sides may vary differently) a difference of means
//! is beyond noise if its 95 % confidence interval excludes zero. A side with one run is assumed to
//! have the other side's spread; with one run on each side, nothing is known about it.
//!
//! One comparison in twenty is beyond this by chance, so among many rows and figures some will be.
//! A [`super::Bound`] says which differences matter.

use serde::Serialize;

/// A difference in relation to the variation of runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Noise {
    /// No noise: both are in virtual time.
    None,
    /// The difference is larger than noise explains.
    Beyond,
    /// Noise alone explains the difference.
    Within,
    /// Unknown: one run on each side, in real time.
    Unknown,
}

/// Student's t for a two-sided confidence of 95 %, by degrees of freedom from 1.
const T: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
];

/// Beyond the table: its limit, and how t approaches it.
fn t(freedom: f64) -> f64 {
    match T.get((freedom.max(1.0) as usize) - 1) {
        Some(&t) => t,
        None => 1.960 + 2.4 / freedom,
    }
}

/// Judges the difference of the means of `a` and `b`, both sampled in real time.
pub(super) fn of_samples(a: &[f64], b: &[f64]) -> Noise {
    let (Some(spread_a), Some(spread_b)) =
        (variance(a).or_else(|| variance(b)), variance(b).or_else(|| variance(a)))
    else {
        return Noise::Unknown;
    };
    let (of_a, of_b) = (spread_a / a.len() as f64, spread_b / b.len() as f64);
    let freedom = match (a.len(), b.len()) {
        (1, n) | (n, 1) => n as f64 - 1.0,
        (n, m) if of_a + of_b > 0.0 => {
            (of_a + of_b).powi(2)
                / (of_a.powi(2) / (n as f64 - 1.0) + of_b.powi(2) / (m as f64 - 1.0))
        }
        (n, m) => (n + m) as f64 - 2.0,
    };
    let difference = (mean(b) - mean(a)).abs();
    if difference <= t(freedom) * (of_a + of_b).sqrt() { Noise::Within } else { Noise::Beyond }
}

pub(super) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The variance of the sample; `None` for fewer than two values.
fn variance(values: &[f64]) -> Option<f64> {
    let mean = mean(values);
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (values.len() >= 2).then(|| squares / (values.len() as f64 - 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_difference_is_judged_by_the_spread() {
        // By hand: variances 1 and 1, se = sqrt(2/3) = 0.816, freedom 4, t 2.776: 2.27 is the
        // border.
        let a = [9.0, 10.0, 11.0];
        let moved = |by: f64| a.map(|value| value + by);
        assert_eq!(of_samples(&a, &moved(2.26)), Noise::Within);
        assert_eq!(of_samples(&a, &moved(2.27)), Noise::Beyond);
        // One against three: se = sqrt(1 + 1/3) = 1.155, freedom 2, t 4.303: 4.97.
        assert_eq!(of_samples(&a, &[14.9]), Noise::Within);
        assert_eq!(of_samples(&[5.0], &a), Noise::Beyond);
        assert_eq!(of_samples(&[1.0], &[2.0]), Noise::Unknown);
        assert_eq!(of_samples(&[1.0, 1.0], &[1.0, 1.0]), Noise::Within);
        assert_eq!(of_samples(&[1.0, 1.0], &[1.1, 1.1]), Noise::Beyond);
    }

    #[test]
    fn t_falls_with_freedom_towards_the_normal_distributions() {
        let values: Vec<f64> = (1..200).map(|freedom| t(f64::from(freedom))).collect();
        assert!(values.windows(2).all(|pair| pair[1] <= pair[0]), "{values:?}");
        assert!((t(60.0) - 2.000).abs() < 0.001 && (t(1e9) - 1.960).abs() < 0.001);
    }

    proptest! {
        #[test]
        fn neither_order_nor_scale_matters(
            a in prop::collection::vec(1.0..100.0f64, 1..6), b in prop::collection::vec(1.0..100.0f64, 1..6),
        ) {
            let noise = of_samples(&a, &b);
            prop_assert_eq!(of_samples(&b, &a), noise);
            let scaled = |values: &[f64]| values.iter().map(|value| value * 1024.0).collect::<Vec<_>>();
            prop_assert_eq!(of_samples(&scaled(&a), &scaled(&b)), noise);
            if a.len() + b.len() > 2 {
                prop_assert_ne!(of_samples(&a, &a.iter().map(|value| value + 1e6).collect::<Vec<_>>()), Noise::Within);
            }
        }
    }
}
