//! From a send buffer to what it keeps in flight, and back.
//!
//! What is sent must be kept until it is acknowledged, so the send buffer bounds what is in flight.
//! `sk_sndbuf` bounds *memory*: `sk_wmem_queued` counts the truesize of each `sk_buff`, which is
//! data in page fragments plus about a kilobyte of head. Two factors lie between the buffer and the
//! rate:
//!
//! * 0.98 (`PAYLOAD_PERCENT`), data over the memory charged for it. Bulk writers fill 64 KiB
//!   packets, so it is near 1.
//! * Two thirds, for how a blocked writer is woken: not for each byte that is acknowledged but when
//!   a third of the buffer is free (`sk_stream_min_wspace`, include/net/sock.h: free space at least
//!   half of what is queued). It then refills the buffer, a little beyond its bound, as the last
//!   packet is taken whole. Three such refills need a little more than one buffer, so a round
//!   trip's ACKs set off two: the third waits for the first ACK of the next round.
//!
//! Their product is `IN_FLIGHT_SHARE`, 0.66: the 0.7 that article C measured and left
//! unexplained. Figures in MB/s at 50 ms; "measured" is Linux 6.18 through the trials' link with
//! reno on a loaded machine (payload over truesize 0.983 to 0.987 throughout), "replayed" is the
//! rule above, byte by byte, as the tests of this file replay it:
//!
//! | link | `tcp_wmem[2]` | measured | replayed | law | measured share |
//! |---|---|---|---|---|---|
//! | 1 Gbit/s | 1 MiB | 16.7 | 15.2 | 13.8 | 0.80 |
//! | 1 Gbit/s | 2 MiB | 30.8 | 28.1 | 27.7 | 0.73 |
//! | 1 Gbit/s | 4 MiB | 56.3 | 55.8 | 55.4 | 0.67 |
//! | 200 Mbit/s | 1 MiB | 14.3 | 14.4 | 13.8 | 0.68 |
//!
//! The kernel in virtual time, 6.1 and 6.12 alike within 0.2 % (`bench/buffers.sh`), keeps 0.73 of
//! 1 MiB, 0.68 of 2 and 4 MiB and 0.66 of 8 MiB in flight.
//!
//! # Small buffers keep whole writes in flight
//! With `tcp_wmem` of 4096 bytes a writer of 256 KiB at a time has 262147 bytes in flight on 6.12,
//! one of 64 KiB has 65536, and nginx at the start of a transfer 1.7 MB. The reason is in
//! `tcp_sendmsg_locked` (net/ipv4/tcp.c): the buffer is asked (`sk_stream_memory_free`) only before
//! a *new* packet is begun, never before more is put into the last one. A packet is begun with room
//! for 45 segments. When it is full it is pushed, and what the pacing rate allows for about a
//! millisecond (`tcp_tso_autosize`: the rate shifted right by 10) is cut off it and sent; what
//! remains is again a packet with room. So below about 67 MB/s of pacing rate, 64 KiB in a 1024th
//! of a second, a write is taken whole whatever the buffer says, until the congestion window holds:
//! then the last packet stays full, and the buffer is asked. Two proofs by virtual time, 1 Gbit/s
//! and 50 ms, `tcp_wmem` 4096: with `tcp_min_tso_segs` = 45, which has packets sent whole, `Send-Q`
//! is one packet of 65160 bytes to the byte ([`SUPER_PACKET`]), and the goodput 1.26 MB/s, one
//! packet a round trip; with 32 or less it is the write of 262147 bytes, and 4.99 MB/s.
//! [`window_of_writes`] is that law in short; `law/refill.rs` replays the rule for a path,
//! which is what a prediction takes. The two thirds of this file size buffers.
//!
//! For buffers between a write and the BDP the truth is above the two thirds, as each refill goes
//! beyond the bound by a part of a write: in virtual time 512 KiB carry 0.97 of themselves, 1 MiB
//! 0.73.
//!
//! The kernel does not tell this limit apart: TCP_INFO's `tcpi_sndbuf_limited` showed 0.02 of 4 s
//! in the third line's run, 1 of 3 s with BBR. It counts only while the congestion window is not
//! the limit, and in slow start a window below twice what is in flight is taken for the limit
//! (`tcp_is_cwnd_limited`). The receive window's counterpart was exact with reno (all of the time),
//! and 1.25 of 3 s with BBR.
//!
//! What bounds `sk_sndbuf`: autotuning raises it to the memory of twice the congestion window, up
//! to `tcp_wmem[2]` (`tcp_sndbuf_expand`, net/ipv4/tcp_input.c; BBR asks for three times).
//! SO_SNDBUF sets it to twice the request, bounded by `wmem_max`, and ends autotuning.

use crate::law::bdp;
use crate::units::{Bytes, Duration, Rate, Window};

/// Data over truesize in a bulk sender's queue: 0.983 to 0.987 measured on Linux 6.18.
#[cfg(test)]
const PAYLOAD_PERCENT: u64 = 98;

/// What a send buffer keeps in flight over a round trip: two thirds (see the module) of
/// `PAYLOAD_PERCENT`. Near the BDP 0.66 to 0.68 was measured, 0.7 in article C.
pub(crate) const IN_FLIGHT_SHARE: f64 = IN_FLIGHT_PERCENT as f64 / 100.0;
const IN_FLIGHT_PERCENT: u64 = 66;

/// The bytes that a send buffer of `sndbuf` (`sk_sndbuf`) keeps in flight, as a mean over a round
/// trip: the window of the law rate = window / RTT.
pub fn window(sndbuf: Bytes) -> Window {
    Window::new(percent_of(sndbuf, IN_FLIGHT_PERCENT))
}

/// The least that a buffer accepts, whatever its size: one packet of 45 segments of 1448 bytes, the
/// most below 64 KiB.
pub const SUPER_PACKET: Bytes = Bytes::new(45 * 1448);

/// The bytes that a send buffer of `sndbuf` keeps in flight for an application that writes `write`
/// bytes at a time and is paced below [`SUPER_PACKET`] per millisecond: the buffer's own share, or
/// a whole write if that is more (see the module).
pub fn window_of_writes(sndbuf: Bytes, write: Bytes) -> Window {
    window(sndbuf).max(Window::new(write.max(SUPER_PACKET)))
}

/// The smallest send buffer that keeps `window` in flight; saturates.
pub(crate) fn sndbuf_for(window: Window) -> Bytes {
    let sndbuf = (u128::from(window.bytes().get()) * 100).div_ceil(u128::from(IN_FLIGHT_PERCENT));
    Bytes::new(u64::try_from(sndbuf).unwrap_or(u64::MAX))
}

fn percent_of(amount: Bytes, percent: u64) -> Bytes {
    // At most 100 % of u64, so it fits again.
    Bytes::new((u128::from(amount.get()) * u128::from(percent) / 100) as u64)
}

/// The largest RTT at which `sndbuf` still fills `rate`; `None` at rate zero. Without the factor,
/// as in the articles, it is [`bdp::largest_rtt`].
pub fn largest_rtt(sndbuf: Bytes, rate: Rate) -> Option<Duration> {
    bdp::largest_rtt(window(sndbuf).bytes(), rate)
}

/// `SOCK_MIN_SNDBUF` on x86-64: the kernel raises smaller send buffers to this.
pub(super) const SOCK_MIN_SNDBUF: Bytes = Bytes::new(4608);

/// The `sk_sndbuf` that SO_SNDBUF gives: twice the request, after `wmem_max` has bounded it
/// (socket(7)). Autotuning ends for that socket.
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

    /// Figures measured where the send buffer was the limit, near the BDP: article B3 (53.0M, in
    /// MiB), the kernel in virtual time, and this machine.
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

    /// Goodput of a writer that blocks on a full buffer and is woken when a third of it is free,
    /// packets of 45 segments over a link of `bytes_per_s`: the kernel's rule replayed byte by
    /// byte, in seconds as floats, with none of this file's factors.
    fn replay(sndbuf: f64, bytes_per_s: f64, rtt: f64) -> f64 {
        const SEGMENTS: f64 = 2.0 * 1448.0;
        const PACKET: f64 = 45.0 * 1448.0;
        const END: f64 = 6.0;
        let (mut queued, mut link_free, mut acknowledged) = (0.0, 0.0f64, 0.0);
        let mut acks = std::collections::VecDeque::from([(0.0, 0.0)]);
        while let Some((now, bytes)) = acks.pop_front() {
            if now > END {
                break;
            }
            queued -= bytes;
            acknowledged += if now > END / 3.0 { bytes } else { 0.0 };
            // sk_stream_wspace >= sk_stream_min_wspace: the writer wakes and writes until the
            // buffer is full.
            if sndbuf - queued >= queued / 2.0 {
                while queued < sndbuf {
                    queued += PACKET;
                    let mut left = PACKET;
                    while left > 0.0 {
                        let sent = left.min(SEGMENTS);
                        left -= sent;
                        link_free = link_free.max(now) + sent / bytes_per_s;
                        acks.push_back((link_free + rtt, sent));
                    }
                }
            }
        }
        acknowledged / (END * 2.0 / 3.0)
    }

    /// Why two thirds: the rule replayed gives the law within the overshoot of a packet in each
    /// refill.
    #[test]
    fn the_wake_up_rule_replayed_gives_the_law() {
        for (mebibytes, goodput) in [(2.0, 120.7e6), (4.0, 120.7e6), (8.0, 120.7e6), (1.0, 24.1e6)]
        {
            let sndbuf = mebibytes * 1_048_576.0;
            let replayed = replay(sndbuf, goodput, 0.05) * PAYLOAD_PERCENT as f64 / 100.0;
            let law = sndbuf * IN_FLIGHT_SHARE / 0.05;
            assert!(
                (replayed / law - 1.0).abs() < 0.05,
                "{mebibytes} MiB: replayed {replayed}, law {law}"
            );
        }
    }

    /// Linux 6.12 in virtual time, 1 Gbit/s and 50 ms, goodput over the second half of the bytes in
    /// MB/s and the median round trip: writes of 262147 bytes (ours) and 65536 (Python's), and
    /// packets sent whole.
    #[test]
    fn small_buffers_carry_whole_writes() {
        for (measured, sndbuf, write, rtt) in [
            (4.99, 4096, 262_147, 51_085),
            (5.10, 65_536, 262_147, 51_085),
            (1.32, 4096, 65_536, 50_298),
            (1.32, 65_536, 65_536, 50_364),
            (1.26, 4096, 0, 50_300),
        ] {
            let window = window_of_writes(Bytes::new(sndbuf), Bytes::new(write));
            let law = window.per_rtt(Duration::from_micros(rtt)).unwrap().as_f64() / 8e6;
            assert!(
                (law / measured - 1.0).abs() < 0.035,
                "{sndbuf}, {write}: law {law}, measured {measured}"
            );
        }
        let large = Bytes::new(4 << 20);
        assert_eq!(window_of_writes(large, Bytes::new(262_147)), window(large));
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
        assert_eq!(
            so_sndbuf("16KiB".parse().unwrap(), Bytes::new(212_992)),
            "32KiB".parse().unwrap()
        );
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
            prop_assert!(window(sndbuf).bytes() <= sndbuf);
            let _ = sndbuf_for(Window::new(sndbuf));
        }
    }
}
