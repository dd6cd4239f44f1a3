//! Reno under random loss with its timeouts: what Mathis's law leaves out.
//!
//! J. Padhye, V. Firoiu, D. Towsley, J. Kurose, "Modeling TCP Throughput: A Simple Model and its
//! Empirical Validation", SIGCOMM 1998, equation 30: the rate is, in segments a second,
//! 1 / (RTT sqrt(2bp/3) + T0 min(1, 3 sqrt(3bp/8)) p (1 + 32 p^2)). T0 is the retransmission
//! timeout; b, the segments that an ACK covers, is 1 here, because Linux counts the bytes that an
//! ACK covers (RFC 3465). With SACK and tail loss probes a sender needs fewer timeouts than the
//! model's, so for Linux this is a lower estimate.

use crate::units::{Bytes, Duration, Probability, Rate};

/// The least retransmission timeout of Linux (`TCP_RTO_MIN`), to which the round trip is added.
const RTO_LEAST: Duration = Duration::from_millis(200);

/// Goodput under random loss `p` with timeouts, at most `link`.
///
/// ```
/// use fullpipe_model::law::pftk;
/// let (mss, rtt, link) = ("1448".parse().unwrap(), "40ms".parse().unwrap(), "1gbit".parse().unwrap());
/// assert_eq!(pftk::rate(mss, rtt, "1%".parse().unwrap(), link).to_string(), "3.124 Mbit/s");
/// assert_eq!(pftk::rate(mss, rtt, "10%".parse().unwrap(), link).to_string(), "403.2 kbit/s");
/// ```
pub fn rate(mss: Bytes, rtt: Duration, p: Probability, link: Rate) -> Rate {
    if p == Probability::ZERO {
        return link;
    }
    let (p, rtt) = (p.get(), rtt.as_secs_f64());
    let timeout = RTO_LEAST.as_secs_f64() + rtt;
    let repaired = rtt * (2.0 * p / 3.0).sqrt();
    let timed = timeout * (3.0 * (3.0 * p / 8.0).sqrt()).min(1.0) * p * (1.0 + 32.0 * p * p);
    Rate::from_bits_per_sec_f64(mss.as_f64() * 8.0 / (repaired + timed)).min(link)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::law::mathis;
    use proptest::prelude::*;

    proptest! {
        /// Timeouts only cost, and with rare losses there are none.
        #[test]
        fn never_above_mathis_and_near_it_where_loss_is_rare(ms in 1_u64..1_000, p in 1e-6..0.3_f64) {
            let (mss, rtt) = (Bytes::new(1_448), Duration::from_millis(ms));
            let (p, link) = (Probability::new(p).unwrap(), Rate::from_bits_per_sec(u64::MAX));
            let with = rate(mss, rtt, p, link).as_f64();
            let without = mathis::rate(mss, rtt, p, link).0.as_f64();
            prop_assert!(with <= without * 1.000_001);
            prop_assert!(p.get() > 1e-4 || ms < 100 || with > 0.95 * without);
        }
    }
}
