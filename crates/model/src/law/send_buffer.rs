//! From a send buffer to what it keeps in flight, and back.
//!
//! What is sent must be kept until it is acknowledged, so the send buffer bounds what is in flight. `sk_sndbuf` bounds
//! *memory*: `sk_wmem_queued` counts the truesize of each `sk_buff`, which is data in page fragments plus about a
//! kilobyte of head. Two factors lie between the buffer and the rate:
//!
//! * [`PAYLOAD_PER_TRUESIZE`], data over the memory charged for it. Bulk writers fill 64 KiB packets, so it is near 1.
//! * [`IN_FLIGHT_SHARE`], what is in flight over a round trip. A blocked writer is not woken for each byte that is
//!   acknowledged but when a third of the buffer is free (`sk_stream_min_wspace`, include/net/sock.h: free space at
//!   least half of what is queued). The buffer is refilled in bursts, which a link of finite rate must first carry, so
//!   part of the buffer is empty part of the time. This is the unexplained 0.7 of article C.
//!
//! Measured on Linux 6.18 with the trials' link at 50 ms, reno, payload over truesize 0.983 to 0.987 throughout:
//!
//! | link | `tcp_wmem[2]` | MB/s | goodput x RTT / buffer |
//! |---|---|---|---|
//! | 1 Gbit/s | 1 MiB | 16.7 | 0.80 |
//! | 1 Gbit/s | 2 MiB | 30.8 | 0.73 |
//! | 1 Gbit/s | 4 MiB | 56.3 | 0.67 |
//! | 200 Mbit/s | 1 MiB | 14.3 | 0.68 |
//! | no limit | 1 MiB | 20.5 | 0.98 |
//!
//! The second line of evidence is the kernel in virtual time, 6.1 and 6.12 alike: 55.21 MB/s with 4 MiB, 0.66. So the
//! share falls from 0.98 to 0.66 as the buffer comes near the path's BDP, where the answer matters; the law uses that
//! end. It is low by up to a fifth for buffers far below the BDP. Below some 64 KiB the heads of the `sk_buff`s count
//! as well (4096 bytes keep about 2000 in flight); the law does not model that.
//!
//! What bounds `sk_sndbuf`: autotuning raises it up to `tcp_wmem[2]` ([`autotuned`]); SO_SNDBUF sets it to twice the
//! request, bounded by `wmem_max`, and ends autotuning.

use crate::law::bdp;
use crate::units::{Bytes, Duration, Rate, Window};

/// Data over truesize in a bulk sender's queue: 0.983 to 0.987 measured on Linux 6.18.
pub const PAYLOAD_PER_TRUESIZE: f64 = PAYLOAD_PERCENT as f64 / 100.0;
const PAYLOAD_PERCENT: u64 = 98;

/// What a send buffer near the BDP keeps in flight over a round trip: 0.66 to 0.68 measured, 0.7 in article C.
pub const IN_FLIGHT_SHARE: f64 = IN_FLIGHT_PERCENT as f64 / 100.0;
const IN_FLIGHT_PERCENT: u64 = 66;

/// What a send buffer of `sndbuf` (`sk_sndbuf`) keeps in flight, as a mean over a round trip: the window of the law
/// rate = window / RTT.
pub fn window(sndbuf: Bytes) -> Window {
    Window::new(percent_of(sndbuf, IN_FLIGHT_PERCENT))
}

/// The most that a send buffer of `sndbuf` ever has in flight: what a queue on the path must expect.
pub fn peak_window(sndbuf: Bytes) -> Window {
    Window::new(percent_of(sndbuf, PAYLOAD_PERCENT))
}

/// The smallest send buffer that keeps `window` in flight; saturates.
pub fn sndbuf_for(window: Window) -> Bytes {
    let sndbuf = (u128::from(window.bytes().get()) * 100).div_ceil(u128::from(IN_FLIGHT_PERCENT));
    Bytes::new(u64::try_from(sndbuf).unwrap_or(u64::MAX))
}

fn percent_of(amount: Bytes, percent: u64) -> Bytes {
    // At most 100 % of u64, so it fits again.
    Bytes::new((u128::from(amount.get()) * u128::from(percent) / 100) as u64)
}

/// The largest RTT at which `sndbuf` still fills `rate`; `None` at rate zero. Without the factor, as the articles
/// reckon it, it is [`bdp::largest_rtt`].
pub fn largest_rtt(sndbuf: Bytes, rate: Rate) -> Option<Duration> {
    bdp::largest_rtt(window(sndbuf).bytes(), rate)
}

/// The `sk_sndbuf` to which autotuning raises a buffer for a congestion window of `segments`: twice that many segments
/// at the memory a segment may take by itself, bounded by `tcp_wmem[2]` (`tcp_sndbuf_expand`, net/ipv4/tcp_input.c; BBR
/// asks for three times).
///
/// A segment is reckoned as its data and headers rounded up to a power of two, plus an `sk_buff`: 4352 bytes for 1500-byte
/// packets on x86-64, so that an untouched connection shows 10 x 2 x 4352 = 87040.
pub fn autotuned(segments: u64, mss: Bytes, tcp_wmem_max: Bytes) -> Bytes {
    /// `MAX_TCP_HEADER` and `skb_shared_info`, as far as they decide the power of two.
    const HEADERS: u64 = 640;
    const SK_BUFF: u64 = 256;
    let rounded = mss.get().saturating_add(HEADERS).checked_next_power_of_two().unwrap_or(u64::MAX);
    let per_segment = rounded.saturating_add(SK_BUFF);
    Bytes::new(per_segment.saturating_mul(segments.max(10)).saturating_mul(2)).min(tcp_wmem_max)
}

/// `SOCK_MIN_SNDBUF` on x86-64: the kernel raises smaller send buffers to this.
pub const SOCK_MIN_SNDBUF: Bytes = Bytes::new(4608);

/// The `sk_sndbuf` that SO_SNDBUF gives: twice what was asked for, after `wmem_max` has bounded the request (socket(7)).
/// Autotuning ends for that socket.
pub fn so_sndbuf(requested: Bytes, wmem_max: Bytes) -> Bytes {
    requested.min(wmem_max).checked_mul(2).unwrap_or(Bytes::MAX).max(SOCK_MIN_SNDBUF)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn megabytes_per_second(sndbuf: &str, rtt: &str) -> f64 {
        let rate = window(sndbuf.parse().unwrap()).per_rtt(rtt.parse().unwrap()).unwrap();
        rate.as_f64() / 8e6
    }

    /// Figures measured where the send buffer was the limit, near the BDP: article B3 (53.0M, in MiB), the kernel in
    /// virtual time, and this machine.
    #[test]
    fn within_three_percent_of_what_was_measured_near_the_bdp() {
        for (measured, sndbuf, rtt) in [
            (53.0 * 1.048_576, "4MiB", "50ms"),
            (55.21, "4MiB", "50ms"),
            (56.29, "4MiB", "50ms"),
            (14.27, "1MiB", "50ms"),
        ] {
            let law = megabytes_per_second(sndbuf, rtt);
            assert!((law / measured - 1.0).abs() < 0.035, "law {law}, measured {measured}");
        }
    }

    /// Far below the BDP the law is the cautious side, and the peak bounds everything.
    #[test]
    fn between_the_law_and_the_peak_elsewhere() {
        for (measured, sndbuf) in [(16.71, "1MiB"), (20.46, "1MiB"), (30.78, "2MiB")] {
            let peak = peak_window(sndbuf.parse().unwrap()).per_rtt("50ms".parse().unwrap()).unwrap().as_f64() / 8e6;
            assert!(megabytes_per_second(sndbuf, "50ms") < measured && measured < peak, "{measured} of {peak}");
        }
    }

    #[test]
    fn the_articles_largest_rtt_and_ours() {
        // Article C: 4 MB fill 1 Gbit/s up to 32 ms. With what is in flight of 4 MiB it is 22 ms.
        let rtt = largest_rtt("4MiB".parse().unwrap(), "1gbit".parse().unwrap()).unwrap();
        assert_eq!(rtt.to_string(), "22.15 ms");
        assert_eq!(largest_rtt(Bytes::MAX, Rate::ZERO), None);
    }

    #[test]
    fn buffers_that_sockets_show() {
        // An untouched connection with 1500-byte packets, and over loopback with MSS 65483.
        assert_eq!(autotuned(10, Bytes::new(1460), Bytes::MAX).get(), 87_040);
        assert_eq!(autotuned(10, Bytes::new(65_483), Bytes::MAX).get(), 2_626_560);
        assert_eq!(autotuned(u64::MAX, Bytes::MAX, "4MiB".parse().unwrap()), "4MiB".parse().unwrap());
        assert_eq!(so_sndbuf("16KiB".parse().unwrap(), Bytes::new(212_992)), "32KiB".parse().unwrap());
        assert_eq!(so_sndbuf(Bytes::ZERO, Bytes::MAX), SOCK_MIN_SNDBUF);
    }

    proptest! {
        #[test]
        fn the_buffer_for_a_window_is_the_smallest(bytes in 1u64..1 << 40) {
            let sndbuf = sndbuf_for(Window::new(Bytes::new(bytes)));
            prop_assert!(window(sndbuf).bytes().get() >= bytes);
            prop_assert!(window(sndbuf - Bytes::new(1)).bytes().get() < bytes);
        }

        #[test]
        fn no_buffer_keeps_more_in_flight_than_itself(bytes: u64) {
            let sndbuf = Bytes::new(bytes);
            prop_assert!(window(sndbuf) <= peak_window(sndbuf));
            prop_assert!(peak_window(sndbuf).bytes() <= sndbuf);
            let _ = sndbuf_for(Window::new(sndbuf));
        }
    }
}
