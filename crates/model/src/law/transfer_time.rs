//! How long a transfer of N bytes takes: connect, slow start, steady state.
//!
//! The client waits one round trip for the SYN-ACK and one from its request to the first byte. Then
//! the window doubles each round trip until the steady rate is reached, and the steady rate holds
//! from there. The share of slow start is its cost compared with sending at the steady rate from
//! the first byte: near 1 for small files, which no buffer helps.
//!
//! This is a lower bound: no loss, no HyStart, an application that always has data, no name lookup
//! or TLS.

use crate::law::slow_start;
use crate::units::{Bytes, Duration, Rate, Window};

/// The parts of a transfer's time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TransferTime {
    /// SYN to SYN-ACK: curl's `connect`.
    pub connect: Duration,
    /// Connected to first byte: the request's round trip, curl's `starttransfer` less `connect`.
    pub request: Duration,
    /// From the first byte until the steady rate is reached, or the end if that is earlier.
    pub slow_start: Duration,
    /// The time at the steady rate.
    pub steady: Duration,
}

impl TransferTime {
    /// From SYN to last byte; saturates.
    pub fn total(self) -> Duration {
        self.connect
            .saturating_add(self.request)
            .saturating_add(self.slow_start)
            .saturating_add(self.steady)
    }

    /// The mean rate of `amount` over the total; `None` in no time.
    pub fn mean_rate(self, amount: Bytes) -> Option<Rate> {
        amount.per(self.total())
    }

    /// The share of the total that connecting and slow start cost: what would be saved if `amount`
    /// moved at `steady_rate` from the beginning. Between 0 and 1.
    pub fn share_lost(self, amount: Bytes, steady_rate: Rate) -> f64 {
        let total = self.total();
        match steady_rate.time_for(amount) {
            Some(ideal) if total > Duration::ZERO => {
                total.saturating_sub(ideal).as_secs_f64() / total.as_secs_f64()
            }
            _ => 0.0,
        }
    }
}

/// The least time for `amount` over a path of `rtt` whose steady rate is `steady_rate`
/// ([`crate::law::window::rate`], after framing); `None` at rate zero.
///
/// ```
/// use fullpipe_model::law::transfer_time::transfer_time;
/// // 100 kB over 1 Gbit/s and 50 ms: 2 round trips to begin, 2 of slow start, the rest arrives with the third window.
/// let time = transfer_time(
///     "100kB".parse().unwrap(), "1448".parse().unwrap(), "50ms".parse().unwrap(), "1gbit".parse().unwrap()).unwrap();
/// assert_eq!(time.total().to_string(), "200.5 ms");
/// ```
pub fn transfer_time(
    amount: Bytes,
    mss: Bytes,
    rtt: Duration,
    steady_rate: Rate,
) -> Option<TransferTime> {
    steady_rate.time_for(Bytes::new(1))?;
    let full = Window::new(crate::law::bdp::bdp(steady_rate, rtt));
    let rounds = rounds_of(amount, mss, slow_start::round_trips(mss, full));
    let rest = amount.saturating_sub(slow_start::sent_in(mss, rounds));
    Some(TransferTime {
        connect: rtt,
        request: rtt,
        slow_start: rtt.saturating_mul(u64::from(rounds)),
        steady: steady_rate.time_for(rest).unwrap_or(Duration::MAX),
    })
}

/// The whole round trips of slow start that `amount` needs, at most `rounds`; nobody waits for the
/// end of the last window.
fn rounds_of(amount: Bytes, mss: Bytes, rounds: u32) -> u32 {
    (0..rounds).find(|done| slow_start::sent_in(mss, done + 1) >= amount).unwrap_or(rounds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::law::{AdvWinScale, Framing, WindowLaw};
    use proptest::prelude::*;

    fn time(amount: &str, rtt: &str, rate: &str) -> TransferTime {
        let steady = Framing::IP_1500.goodput(rate.parse().unwrap());
        transfer_time(amount.parse().unwrap(), Bytes::new(1448), rtt.parse().unwrap(), steady)
            .unwrap()
    }

    /// Articles B1 and B4, a file of 1967 MiB: 16.63 s and 17.01 s with curl. A bound must not be
    /// above them, and these transfers were good: at most 5 % above it.
    #[test]
    fn the_articles_good_downloads_are_just_above_the_bound() {
        for (rtt, curl) in [("1ms", 16.63), ("50ms", 17.01)] {
            // htb counts Ethernet headers; on a link that counts IP packets the bound is a little
            // lower still.
            let bound = time("1967MiB", rtt, "1gbit").total().as_secs_f64();
            // 1967 MiB / 120.7 MB/s is 17.1 s: the article's shaper let a little more than its rate
            // pass.
            assert!((curl / bound - 1.0).abs() < 0.05, "{rtt}: bound {bound}, curl {curl}");
        }
    }

    /// Article E1: 52059880 bytes at 350 ms through proxies, by the receive buffer, three runs
    /// each. The connection between the proxies is open already, so only slow start and the steady
    /// part count. (With 16 MB and more the time is mostly slow start, and the article's is shorter
    /// than that; not asserted.)
    #[test]
    fn article_e1_while_the_receive_window_binds() {
        let (amount, rtt) = (Bytes::new(52_059_880), "350ms".parse().unwrap());
        for (rcvbuf, measured_ms) in [
            (2_194_304, [18_369, 18_282, 18_381]),
            (4_194_304, [10_848, 10_794, 11_120]),
            (6_194_304, [8455, 8452, 8426]),
        ] {
            let window = WindowLaw::AdvWinScale(AdvWinScale::DEFAULT).window(Bytes::new(rcvbuf));
            let law =
                transfer_time(amount, Bytes::new(1448), rtt, window.per_rtt(rtt).unwrap()).unwrap();
            let law_ms = law.slow_start.saturating_add(law.steady).as_millis_f64();
            for measured in measured_ms {
                assert!(
                    (law_ms / f64::from(measured) - 1.0).abs() < 0.03,
                    "{rcvbuf}: law {law_ms}, measured {measured}"
                );
            }
        }
    }

    #[test]
    fn small_files_pay_round_trips_only() {
        let small = time("10kB", "50ms", "1gbit");
        assert_eq!(
            (small.connect, small.request),
            ("50ms".parse().unwrap(), "50ms".parse().unwrap())
        );
        assert_eq!(small.slow_start, Duration::ZERO);
        assert!(small.share_lost("10kB".parse().unwrap(), "1gbit".parse().unwrap()) > 0.99);
    }

    proptest! {
        #[test]
        fn never_faster_than_the_steady_rate(
            amount in 1u64..1 << 45, micros in 0u64..10_000_000, bits in 1_000u64..=1_000_000_000_000,
        ) {
            let (amount, steady) = (Bytes::new(amount), Rate::from_bits_per_sec(bits));
            let time = transfer_time(amount, Bytes::new(1448), Duration::from_micros(micros), steady).unwrap();
            // A window of slow start is at most a BDP, so its round trip is never shorter than the
            // link needs for it.
            let floor = steady.time_for(amount).unwrap();
            prop_assert!(time.total() + Duration::from_nanos(10) >= floor, "{time:?} against {floor}");
            let share = time.share_lost(amount, steady);
            prop_assert!((0.0..=1.0).contains(&share));
        }

        #[test]
        fn longer_for_more(
            amount in 1u64..1 << 45, more in 0u64..1 << 30, micros in 0u64..10_000_000, bits in 1_000u64..1 << 40,
        ) {
            let (rtt, rate) = (Duration::from_micros(micros), Rate::from_bits_per_sec(bits));
            let at = |bytes| transfer_time(Bytes::new(bytes), Bytes::new(1448), rtt, rate).unwrap().total();
            prop_assert!(at(amount + more) >= at(amount));
        }

        #[test]
        fn total_over_everything(amount: u64, mss: u64, nanos: u64, bits: u64) {
            let (rtt, rate) = (Duration::from_nanos(nanos), Rate::from_bits_per_sec(bits));
            let time = transfer_time(Bytes::new(amount), Bytes::new(mss), rtt, rate);
            prop_assert_eq!(time.is_none(), bits == 0);
        }
    }
}
