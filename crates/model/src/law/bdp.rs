//! The bandwidth-delay product: the bytes in flight on a full path (RFC 7323 section 1.1 uses this
//! name).
//!
//! BDP = rate x RTT. The same product is used in three directions: bytes from rate and RTT, the
//! rate that an amount in flight gives at an RTT ([`crate::law::window`]), and the largest RTT at
//! which an amount in flight fills a rate.

use crate::units::{Bytes, Duration, Rate};

/// Bytes in flight on a full path of `rate` and `rtt`; saturates.
///
/// ```
/// use fullpipe_model::law::bdp::bdp;
/// assert_eq!(bdp("1gbit".parse().unwrap(), "50ms".parse().unwrap()), "6.25MB".parse().unwrap());
/// ```
pub fn bdp(rate: Rate, rtt: Duration) -> Bytes {
    // Rounded up: one byte less would not fill the path.
    let bits = u128::from(rate.bits_per_sec()) * u128::from(rtt.as_nanos());
    Bytes::new(u64::try_from(bits.div_ceil(8_000_000_000)).unwrap_or(u64::MAX))
}

/// The largest RTT at which `in_flight` bytes fill `rate`; `None` at rate zero, which any amount
/// fills.
pub fn largest_rtt(in_flight: Bytes, rate: Rate) -> Option<Duration> {
    let bits = u128::from(in_flight.get()) * 8_000_000_000;
    let nanos = bits.checked_div(u128::from(rate.bits_per_sec()))?;
    Some(Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_articles_products() {
        // Article B: 1000 Mbit/s / 8 * 0.05 s = 6.25 MB.
        assert_eq!(bdp("1gbit".parse().unwrap(), "50ms".parse().unwrap()).get(), 6_250_000);
        // Article C3: 0.146 s * 112 MB/s = 16.35 MB.
        assert_eq!(bdp("112MB/s".parse().unwrap(), "146ms".parse().unwrap()).get(), 16_352_000);
        // Article C: 4 MiB fill 1 Gbit/s "up to 32 ms", 10 Gbit/s up to 3.2 ms. Exactly: with 4
        // MiB, not 4 MB.
        let rtt = |rate: &str| largest_rtt("4MiB".parse().unwrap(), rate.parse().unwrap()).unwrap();
        assert_eq!(rtt("1gbit").as_micros(), 33_554);
        assert_eq!(rtt("10gbit").as_micros(), 3_355);
        assert_eq!(
            largest_rtt("4MB".parse().unwrap(), "1gbit".parse().unwrap()),
            Some("32ms".parse().unwrap())
        );
    }

    #[test]
    fn nothing_in_flight_without_rate_or_delay() {
        assert_eq!(bdp(Rate::ZERO, Duration::MAX), Bytes::ZERO);
        assert_eq!(bdp(Rate::from_bits_per_sec(u64::MAX), Duration::ZERO), Bytes::ZERO);
        assert_eq!(largest_rtt(Bytes::MAX, Rate::ZERO), None);
    }

    proptest! {
        #[test]
        fn the_largest_rtt_is_filled_and_a_byte_time_more_is_not(
            rate in 1_000u64..=1_000_000_000_000, amount in 1u64..1 << 40,
        ) {
            let rate = Rate::from_bits_per_sec(rate);
            let rtt = largest_rtt(Bytes::new(amount), rate).unwrap();
            prop_assert!(bdp(rate, rtt) <= Bytes::new(amount));
            let byte_time = rate.time_for(Bytes::new(1)).unwrap() + Duration::from_nanos(1);
            prop_assert!(bdp(rate, rtt + byte_time) > Bytes::new(amount));
        }

        #[test]
        fn grows_with_rate_and_rtt(rate: u64, rtt: u64, more in 0u64..1 << 20) {
            let at = |rate, rtt| bdp(Rate::from_bits_per_sec(rate), Duration::from_nanos(rtt));
            prop_assert!(at(rate.saturating_add(more), rtt) >= at(rate, rtt));
            prop_assert!(at(rate, rtt.saturating_add(more)) >= at(rate, rtt));
        }
    }
}
