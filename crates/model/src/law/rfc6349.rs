//! The metrics of RFC 6349, "Framework for TCP Throughput Testing".
//!
//! How to think about it: a test first learns the path (its MTU, the baseline round trip without
//! load, the bottleneck bandwidth BB), and from that what a TCP connection could reach
//! ([`ideal_throughput`]) and needs for it ([`minimum_window`]). Then it transfers data and says
//! with three numbers how far the transfer was from that: how much longer it took
//! ([`transfer_time_ratio`]), how much of it was sent again ([`efficiency`]), and how much the
//! round trip grew under load ([`buffer_delay`]).
//!
//! The RFC counts BB in Ethernet frames: 38 bytes for each packet beside its MTU, and headers of 40
//! bytes without options. TCP timestamps, which Linux uses, take 12 bytes more of each segment, so
//! a perfect transfer has a ratio of 1.008 and not 1.

use crate::law::bdp::bdp;
use crate::units::{Bytes, Duration, Rate, Window};

/// What Ethernet adds to a packet on the wire: preamble and start of frame 8, header 14, FCS 4, gap
/// 12 (RFC 6349 section 4.1.1).
const ETHERNET: Bytes = Bytes::new(38);
/// Headers of IPv4 and TCP without options, as the RFC counts them.
const HEADERS: Bytes = Bytes::new(40);

/// The least receive window and send buffer that fill the path: the BDP in bytes (section 3.3.1).
///
/// ```
/// use fullpipe_model::law::rfc6349::minimum_window;
/// let window = minimum_window("44.21mbit".parse().unwrap(), "25ms".parse().unwrap());
/// assert_eq!(window.get(), 138_157); // the RFC's table: 138 Kbytes for a T3
/// ```
pub fn minimum_window(bottleneck: Rate, rtt: Duration) -> Bytes {
    bdp(bottleneck, rtt)
}

/// The bandwidth of a link, counted in Ethernet frames, that carries `goodput` in packets of `mtu`
/// with `headers` bytes of headers each: a BB from what TCP reached.
pub fn bottleneck_of(goodput: Rate, mtu: Bytes, headers: Bytes) -> Rate {
    let data = mtu.saturating_sub(headers).max(Bytes::new(1)).as_f64();
    Rate::from_bits_per_sec_f64(goodput.as_f64() * mtu.saturating_add(ETHERNET).as_f64() / data)
}

/// The most that TCP carries over `bottleneck`: frames per second times the data of each (section
/// 4.1.1), and at most a window in each round trip.
///
/// ```
/// use fullpipe_model::law::rfc6349::ideal_throughput;
/// use fullpipe_model::units::{Bytes, Duration, Window};
/// let (rate, mtu) = ("100mbit".parse().unwrap(), Bytes::new(1500));
/// let ideal = ideal_throughput(rate, mtu, Window::UNLIMITED, Duration::ZERO);
/// assert_eq!(ideal.to_string(), "94.93 Mbit/s"); // the RFC has 94.9
/// ```
pub fn ideal_throughput(bottleneck: Rate, mtu: Bytes, window: Window, rtt: Duration) -> Rate {
    let frame = mtu.saturating_add(ETHERNET).as_f64();
    let share = mtu.saturating_sub(HEADERS).as_f64() / frame;
    let layer_4 = Rate::from_bits_per_sec_f64(bottleneck.as_f64() * share).min(bottleneck);
    match window.per_rtt(rtt) {
        Some(held) if window != Window::UNLIMITED => layer_4.min(held),
        _ => layer_4,
    }
}

/// TCP Transfer Time Ratio: the actual time of a transfer over the ideal one (section 4.1.1); 1 is
/// ideal. `None` where no time would be ideal.
pub fn transfer_time_ratio(actual: Duration, ideal: Duration) -> Option<f64> {
    (ideal > Duration::ZERO).then(|| actual.as_secs_f64() / ideal.as_secs_f64())
}

/// TCP Efficiency in percent: the share of the bytes transmitted that was not sent again (section
/// 4.1.2). `transmitted` counts retransmissions. `None` where nothing was sent.
pub fn efficiency(transmitted: Bytes, retransmitted: Bytes) -> Option<f64> {
    let first = transmitted.saturating_sub(retransmitted);
    (transmitted > Bytes::ZERO).then(|| 100.0 * first.as_f64() / transmitted.as_f64())
}

/// Buffer Delay in percent: by how much the average round trip of a transfer is above the baseline
/// (section 4.1.3). It is below 0 where the baseline was taken on a slower path. `None` without a
/// baseline.
pub fn buffer_delay(average: Duration, baseline: Duration) -> Option<f64> {
    let (average, baseline) = (average.as_secs_f64(), baseline.as_secs_f64());
    (baseline > 0.0).then(|| 100.0 * (average - baseline) / baseline)
}

/// The average round trip of a transfer: the mean of one value for each second of it (section
/// 4.1.3). `None` without one.
pub fn average_rtt(of_seconds: &[Duration]) -> Option<Duration> {
    let sum: f64 = of_seconds.iter().map(|rtt| rtt.as_secs_f64()).sum();
    (!of_seconds.is_empty()).then(|| Duration::from_secs_f64(sum / of_seconds.len() as f64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rate(text: &str) -> Rate {
        text.parse().unwrap()
    }

    fn time(text: &str) -> Duration {
        text.parse().unwrap()
    }

    #[test]
    fn the_worked_examples_of_the_rfc() {
        // Section 4.1.1: ideally 8 s, actually 12 s.
        assert_eq!(transfer_time_ratio(time("12s"), time("8s")), Some(1.5));
        // Section 4.1.2: 102,000 bytes sent for 100,000, "98.03 %" (cut, not rounded).
        let part = efficiency(Bytes::new(102_000), Bytes::new(2_000)).unwrap();
        assert_eq!((part * 100.0).floor(), 9803.0);
        // Section 4.1.3: 32 ms against 25 ms.
        assert_eq!(buffer_delay(time("32ms"), time("25ms")).map(f64::round), Some(28.0));
        let seconds = ["30ms", "31ms", "35ms"].map(time);
        assert_eq!(average_rtt(&seconds), Some(time("32ms")));
    }

    #[test]
    fn what_a_path_needs_and_carries_as_in_the_rfc() {
        // Section 3.3.1: a T3 at 25 ms needs 1,105,250 bits in flight.
        assert_eq!(minimum_window(rate("44.21mbit"), time("25ms")).get(), 1_105_250 / 8 + 1);
        // Section 3.3.1's table: a T1 at 20 ms needs 3.84 Kbytes, 1 Gbit/s at 5 ms 625 Kbytes.
        assert_eq!(minimum_window(rate("1.536mbit"), time("20ms")).get(), 3_840);
        assert_eq!(minimum_window(rate("1gbit"), time("5ms")).get(), 625_000);
        // Section 4.1.1: 8127 frames a second of 1460 bytes.
        let mtu = Bytes::new(1500);
        let ideal = ideal_throughput(rate("100mbit"), mtu, Window::UNLIMITED, time("10ms"));
        assert_eq!(ideal.bits_per_sec() / (1460 * 8), 8127);
        let window = Window::new(Bytes::new(64 << 10));
        let held = ideal_throughput(rate("100mbit"), mtu, window, time("25ms"));
        assert_eq!(Some(held), window.per_rtt(time("25ms")));
        let back = bottleneck_of(ideal, mtu, HEADERS);
        assert!(back.bits_per_sec().abs_diff(100_000_000) <= 2, "{back}");
    }

    #[test]
    fn nothing_is_made_of_nothing() {
        assert_eq!(transfer_time_ratio(time("1s"), Duration::ZERO), None);
        assert_eq!(efficiency(Bytes::ZERO, Bytes::ZERO), None);
        assert_eq!(buffer_delay(time("1s"), Duration::ZERO), None);
        assert_eq!(average_rtt(&[]), None);
    }

    proptest! {
        #[test]
        fn total_and_within_bounds(bits: u64, mtu: u64, window: u64, nanos: u64, again: u64) {
            let (rate, mtu) = (Rate::from_bits_per_sec(bits), Bytes::new(mtu));
            let (window, rtt) = (Window::new(Bytes::new(window)), Duration::from_nanos(nanos));
            prop_assert!(ideal_throughput(rate, mtu, window, rtt) <= rate);
            if let Some(part) = efficiency(Bytes::new(window.bytes().get()), Bytes::new(again)) {
                prop_assert!((0.0..=100.0).contains(&part));
            }
            let _ = bottleneck_of(rate, mtu, HEADERS);
        }
    }
}
