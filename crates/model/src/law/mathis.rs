//! The loss law: rate = MSS / (RTT x sqrt(2p/3)) for Reno in steady state.
//!
//! M. Mathis, J. Semke, J. Mahdavi, T. Ott, "The Macroscopic Behavior of the TCP Congestion
//! Avoidance Algorithm", CCR 27(3), 1997: a congestion window that moves in a sawtooth between W/2
//! and W loses one packet in 3/8 W^2. The law holds for independent losses that fast retransmit
//! repairs, p below about 2 %, an ACK for each segment and no other limit. Above that, timeouts
//! make it an upper bound. CUBIC is faster where rate x RTT is large (RFC 9438 section 5.1), and
//! never slower than Reno. BBR does not treat random loss as congestion at all.

use crate::limit::{Cause, Limit};
use crate::units::{Bytes, Duration, Probability, Rate, Window};

/// The mean congestion window, in bytes, under random loss `p`: MSS x sqrt(3 / 2p), at least one
/// MSS; unlimited without loss.
pub fn congestion_window(mss: Bytes, p: Probability) -> Window {
    if p == Probability::ZERO {
        return Window::UNLIMITED;
    }
    Window::new(Bytes::from_f64(mss.as_f64() * (1.5 / p.get()).sqrt()).max(mss))
}

/// Reno's rate under random loss `p`, at most `link`, and which of the two it is.
///
/// ```
/// use fullpipe_model::law::mathis;
/// let (rate, _) = mathis::rate(
///     "1448".parse().unwrap(), "40ms".parse().unwrap(), "1%".parse().unwrap(), "1gbit".parse().unwrap());
/// assert_eq!(rate.to_string(), "3.547 Mbit/s");
/// ```
pub fn rate(mss: Bytes, rtt: Duration, p: Probability, link: Rate) -> (Rate, Limit) {
    match congestion_window(mss, p).per_rtt(rtt) {
        Some(rate) if rate < link => (rate, Limit::CongestionWindow(Cause::Loss)),
        _ => (link, Limit::Link),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn agrees_with_the_sawtooth_it_is_derived_from() {
        // One loss in n packets: W with 3/8 W^2 = n, mean 3/4 W.
        for n in [50u32, 1_000, 100_000] {
            let p = Probability::new(1.0 / f64::from(n)).unwrap();
            let sawtooth = 0.75 * (f64::from(n) * 8.0 / 3.0).sqrt() * 1448.0;
            let law = congestion_window(Bytes::new(1448), p).bytes().as_f64();
            assert!((law / sawtooth - 1.0).abs() < 0.001, "{law} against {sawtooth}");
        }
    }

    #[test]
    fn loss_free_is_the_link() {
        let link = "1gbit".parse().unwrap();
        let law = |p| rate(Bytes::new(1448), Duration::from_millis(40), p, link);
        assert_eq!(law(Probability::ZERO), (link, Limit::Link));
        assert_eq!(law(Probability::ONE).1, Limit::CongestionWindow(Cause::Loss));
    }

    proptest! {
        #[test]
        fn falls_with_loss_and_rtt(micros in 1u64..10_000_000, p in 1u32..500_000_000, more in 1u32..500_000_000) {
            let link = Rate::from_bits_per_sec(u64::MAX);
            let loss = |billionths: u32| Probability::new(f64::from(billionths) / 1e9).unwrap();
            let at = |p, micros| rate(Bytes::new(1448), Duration::from_micros(micros), p, link).0;
            prop_assert!(at(loss(p + more), micros) <= at(loss(p), micros));
            prop_assert!(at(loss(p), micros + 1) <= at(loss(p), micros));
        }
    }
}
