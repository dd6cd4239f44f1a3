//! How often a path loses, where only a few losses were seen.
//!
//! A transfer that saw ten losses may as well have seen six or fifteen on the same path, and its
//! goodput would be another one. So where loss limits, the lab's first transfer need not repeat the
//! measurement with the share that was counted. [`refit`] looks for a share that the count allows,
//! and with which it does.

use crate::limit::{Cause, Limit};
use crate::tune::MeasuredPath;
use crate::units::Probability;

/// A goodput that is this near is left as it is.
const NEAR: f64 = 0.03;
/// Half of a 95 % interval of a count's square root (Anscombe 1948): its standard deviation is 1/2
/// whatever the count.
const HALF_INTERVAL: f64 = 0.98;

/// The path with another share of loss, after a trial of `tried` had `ratio` times the goodput of
/// `measured`. Goodput falls with the square root of loss (Mathis and others, CCR 27(3), 1997).
/// `None` where loss does not limit, where the trial was near enough, and where the losses that
/// were counted do not allow another share (with 95 % confidence; runs count once).
///
/// ```
/// use fullpipe_model::limit::{Cause, Limit};
/// use fullpipe_model::tune::prove::refit;
/// use fullpipe_model::tune::MeasuredPath;
/// use fullpipe_model::units::Probability;
///
/// let (rtt, goodput) = ("50ms".parse().unwrap(), "8mbit".parse().unwrap());
/// let mut path = MeasuredPath::new(rtt, goodput, Limit::CongestionWindow(Cause::Loss));
/// path.loss = Probability::new(0.01);
/// path.lost_segments = Some(25);
/// let refitted = refit(&path, &path, 1.1).unwrap();
/// assert!((refitted.loss.unwrap().get() - 0.0121).abs() < 1e-9);
/// assert_eq!(refit(&path, &path, 1.01), None, "near enough");
/// ```
pub fn refit(measured: &MeasuredPath, tried: &MeasuredPath, ratio: f64) -> Option<MeasuredPath> {
    let by_loss = measured.limited_by == Limit::CongestionWindow(Cause::Loss);
    let is_near = !ratio.is_finite() || (ratio - 1.0).abs() < NEAR;
    if !by_loss || is_near {
        return None;
    }
    let (counted, now) = (measured.loss?.get(), tried.loss?.get());
    let events = measured.lost_segments? as f64 / measured.loss_run.unwrap_or(1.0).max(1.0);
    if !(events > 0.0 && counted > 0.0 && now > 0.0) {
        return None;
    }
    let (root, least) = (events.sqrt(), 0.25_f64);
    let [low, high] =
        [-1.0, 1.0].map(|side| ((root + side * HALF_INTERVAL).max(least) / root).powi(2) * counted);
    let loss = (now * ratio * ratio).clamp(low, high.max(low));
    let differs = (loss / now - 1.0).abs() > NEAR;
    let loss = Probability::new(loss.min(1.0)).filter(|_| differs)?;
    Some(MeasuredPath { loss: Some(loss), ..tried.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn few_losses_allow_much_and_many_allow_little() {
        let (rtt, goodput) = ("50ms".parse().unwrap(), "8mbit".parse().unwrap());
        let mut path = MeasuredPath::new(rtt, goodput, Limit::CongestionWindow(Cause::Loss));
        path.loss = Probability::new(0.01);
        let most = |path: &MeasuredPath| refit(path, path, 10.0).unwrap().loss.unwrap().get();
        path.lost_segments = Some(9);
        // The exact 95 % interval of a count of 9 is 4.1 to 17.1 (Garwood 1936).
        assert!((most(&path) / 0.01 - 1.76).abs() < 0.05, "{}", most(&path));
        path.lost_segments = Some(2500);
        assert!((most(&path) / 0.01 - 1.04).abs() < 0.01, "{}", most(&path));
        path.loss_run = Some(100.0);
        assert!(most(&path) > 0.014, "runs count once");
        path.limited_by = Limit::Link;
        assert_eq!(refit(&path, &path, 10.0), None);
    }

    proptest! {
        #[test]
        fn no_path_panics(path in crate::tune::any_measured_path(), ratio in any::<f64>()) {
            let refitted = refit(&path, &path, ratio);
            prop_assert!(refitted.is_none_or(|other| other.loss != path.loss));
        }
    }
}
