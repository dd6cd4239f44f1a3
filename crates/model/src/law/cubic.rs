//! The response function of CUBIC: what it carries under random loss.
//!
//! RFC 9438, section 5.1: with one loss in 1/p segments, CUBIC's mean window is
//! (C (3 + beta) / (4 (1 - beta)))^(1/4) RTT^(3/4) / p^(3/4) segments, with C = 0.4 and beta = 0.7
//! 1.054 RTT^(3/4) / p^(3/4). Where Reno's is larger (short round trips, much loss) it is as fast
//! as Reno (section 4.3). The law holds for independent losses that fast retransmit repairs: above
//! 1 or 2 % timeouts make it an upper bound ([`crate::law::pftk`]).

use crate::law::mathis;
use crate::units::{Bytes, Duration, Probability, Rate, Window};

/// CUBIC's C and multiplicative decrease (section 5).
const C: f64 = 0.4;
const BETA: f64 = 0.7;

/// The mean congestion window, in bytes, under random loss `p` over `rtt`: at least Reno's,
/// unlimited without loss.
pub fn congestion_window(mss: Bytes, rtt: Duration, p: Probability) -> Window {
    let reno = mathis::congestion_window(mss, p);
    if p == Probability::ZERO {
        return reno;
    }
    let factor = (C * (3.0 + BETA) / (4.0 * (1.0 - BETA))).powf(0.25);
    let segments = factor * (rtt.as_secs_f64() / p.get()).powf(0.75);
    Window::new(Bytes::from_f64(mss.as_f64() * segments)).max(reno)
}

/// CUBIC's goodput under random loss `p`, at most `link`.
///
/// ```
/// use fullpipe_model::law::{cubic, mathis};
/// let (mss, rtt) = ("1448".parse().unwrap(), "100ms".parse().unwrap());
/// let (p, link) = ("0.001%".parse().unwrap(), "10gbit".parse().unwrap());
/// let cubic = cubic::rate(mss, rtt, p, link);
/// assert_eq!(cubic.to_string(), "122.1 Mbit/s");
/// assert!(cubic > mathis::rate(mss, rtt, p, link).0);
/// ```
pub fn rate(mss: Bytes, rtt: Duration, p: Probability, link: Rate) -> Rate {
    congestion_window(mss, rtt, p).per_rtt(rtt).map_or(link, |rate| rate.min(link))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn segments(rtt: &str, p: f64) -> f64 {
        let mss = Bytes::new(1_500);
        let window =
            congestion_window(mss, rtt.parse().unwrap(), Probability::new(p).unwrap()).bytes();
        window.as_f64() / 1_500.0
    }

    /// Table 1 of RFC 9438: mean windows in segments at 100 ms, C = 0.4.
    #[test]
    fn as_the_table_of_the_rfc() {
        for (p, table) in [(1e-2, 12.0), (1e-3, 38.0), (1e-4, 187.0), (1e-5, 1_054.0)] {
            let law = segments("100ms", p);
            assert!((law / table - 1.0).abs() < 0.06, "p {p}: {law} against {table}");
        }
        assert!((segments("100ms", 1e-8) / 187_403.0 - 1.0).abs() < 0.06);
        // Table 2, at 10 ms: as Reno down to 1e-6.
        assert!((segments("10ms", 1e-4) / 120.0 - 1.0).abs() < 0.06);
    }

    proptest! {
        #[test]
        fn more_loss_is_never_faster_and_nothing_exceeds_the_link(nanos: u64, bits: u64, p in 0.0..1.0_f64) {
            let (rtt, link) = (Duration::from_nanos(nanos), Rate::from_bits_per_sec(bits));
            let at = |p: f64| rate(Bytes::new(1_448), rtt, Probability::new(p).unwrap(), link);
            prop_assert!(at(p) <= link);
            prop_assert!(at(p) >= at(p + (1.0 - p) / 2.0));
        }
    }
}
