//! The steady rate of a sender that a window or a send buffer holds.
//!
//! Window over round trip is the rate of a sender that answers each acknowledgement at once. Linux
//! sends in bursts, and a burst costs the time that it takes on the link: its last segment is
//! acknowledged that much later than its first. At 1 Gbit/s a burst of 64 KiB takes half a
//! millisecond, which is 5 % of a round trip of 10 ms and a third of one of 1 ms.
//!
//! * **A window** ([`SteadyPath::rate_of_window`]): a sender that could use some of its window
//!   waits until it can send a full burst or a third of the window, or has not sent for a
//!   millisecond (`tcp_tso_should_defer`, `tcp_tso_win_divisor` = 3, net/ipv4/tcp_output.c), and a
//!   window opens by two segments, as the receiver acknowledges every second one. So one window
//!   passes in a round trip and the time of one burst on the link. Where bursts are two segments,
//!   what is left of the window beyond whole segments is never used (`tcp_snd_wnd_test`).
//! * **A send buffer** ([`SteadyPath::rate_of_send_buffer`]): see [`super::refill`].
//!
//! Below some 2 ms and a window of a few bursts the waiting for a third of the window decides: what
//! is left may just miss it, and then waits for acknowledgements of the next burst. Which it is
//! depends on the byte; there the law may be a fifth too high (`cargo xtask prediction`).

use crate::law::burst::{LEAST_SEGMENTS, SteadyPath, WINDOW_DIVISOR};
use crate::law::refill::{self, Refill};
use crate::law::send_buffer;
use crate::units::{Bytes, Duration, Rate, Window};

/// A sender waits for a larger burst only this long after it last sent: `tcp_tso_should_defer`.
const WAITS_AFTER_SENDING: f64 = 1e-3;

impl SteadyPath {
    /// Goodput with at most `window` bytes in flight; at most the link's.
    pub(crate) fn rate_of_window(self, window: Window) -> Rate {
        let bytes = window.bytes().as_f64();
        let goodput = self.goodput();
        if window == Window::UNLIMITED || self.rtt == Duration::ZERO || goodput == Rate::ZERO {
            return goodput;
        }
        // A segment is at most half of the window (`tcp_bound_to_half_wnd`).
        let pair = LEAST_SEGMENTS * self.mss().min((bytes / 2.0).max(1.0));
        let third = (bytes / WINDOW_DIVISOR / pair).ceil() * pair;
        let waited_for = goodput.as_f64() / 8.0 * WAITS_AFTER_SENDING;
        let burst = self.burst(bytes, self.rtt.as_secs_f64());
        let burst = burst.min(third).min(waited_for).max(pair);
        let segment = pair / LEAST_SEGMENTS;
        let used = if burst > pair { bytes } else { (bytes / segment).floor() * segment };
        let seconds = self.rtt.as_secs_f64() + self.on_link(burst);
        Rate::from_bits_per_sec_f64(used * 8.0 / seconds).min(goodput)
    }

    /// Goodput with a send buffer of `sndbuf` (`sk_sndbuf`) and an application that writes `write`
    /// bytes at a time; at most the link's.
    pub(crate) fn rate_of_send_buffer(self, sndbuf: Bytes, write: Bytes) -> Rate {
        if self.rtt == Duration::ZERO || self.goodput() == Rate::ZERO {
            return self.goodput();
        }
        if sndbuf > refill::REPLAYED_MAX {
            let window = send_buffer::window(sndbuf);
            let goodput = self.goodput();
            return window.per_rtt(self.rtt).map_or(goodput, |rate| rate.min(goodput));
        }
        let write = write.max(self.framing.mss()).as_f64();
        let sndbuf = sndbuf.max(send_buffer::SOCK_MIN_SNDBUF).as_f64();
        let refill = |burst| Refill { path: self, sndbuf, write, burst }.replay();
        // How much is in flight decides the pacing, and pacing what is in flight.
        let packet = self.super_packet();
        let by_writes = refill(packet - 1.0);
        let rtt = self.rtt.as_secs_f64() + self.on_link(by_writes.peak.min(write));
        let held = refill(self.burst(by_writes.peak, rtt).min(packet));
        Rate::from_bits_per_sec_f64(held.rate * 8.0).min(self.goodput())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::law::Framing;
    use proptest::prelude::*;

    /// What our server writes at once, as measured below.
    const WRITE: Bytes = Bytes::new(262_147);

    fn path(rate: &str, rtt: &str) -> SteadyPath {
        let (rate, rtt) = (rate.parse().unwrap(), rtt.parse().unwrap());
        SteadyPath { rate, rtt, framing: Framing::IP_1500 }
    }

    fn assert_near(law: Rate, measured: f64, part: f64) {
        let law = law.as_f64() / 1e6;
        assert!((measured / law - 1.0).abs() < part, "law {law}, measured {measured} Mbit/s");
    }

    /// Linux 6.1 in virtual time (`bench/prediction`), CUBIC: steady goodput in Mbit/s by the
    /// window that was advertised. Window over round trip alone is 21 % above the first of them.
    #[test]
    fn a_window_and_its_bursts_as_measured() {
        for (rate, rtt, window, measured) in [
            ("1gbit", "1ms", 6744, 45.162),
            ("1gbit", "1ms", 31_320, 227.394),
            ("1gbit", "1ms", 129_932, 765.475),
            ("1gbit", "10ms", 129_932, 101.577),
            ("1gbit", "10ms", 523_148, 402.439),
            ("1gbit", "40ms", 523_148, 104.553),
            ("1gbit", "400ms", 3_144_588, 62.9),
            ("100mbit", "80ms", 299_000, 29.772),
            ("100mbit", "20ms", 96_856, 37.868),
            ("10mbit", "60ms", 31_320, 3.965),
        ] {
            let law = path(rate, rtt).rate_of_window(Window::new(Bytes::new(window)));
            assert_near(law, measured, 0.03);
        }
    }

    /// The same by the send buffer: from a whole write in each round trip to two thirds.
    #[test]
    fn a_send_buffer_as_measured() {
        for (rate, rtt, sndbuf, measured) in [
            ("1gbit", "1ms", 32_768, 376.194),
            ("1gbit", "1ms", 131_072, 752.506),
            ("1gbit", "10ms", 32_768, 50.255),
            ("1gbit", "10ms", 524_288, 301.798),
            ("1gbit", "10ms", 1_048_576, 579.768),
            ("1gbit", "40ms", 32_768, 50.1),
            ("1gbit", "40ms", 1_048_576, 154.68),
            ("1gbit", "100ms", 1_048_576, 81.288),
            ("1gbit", "100ms", 4_194_304, 226.98),
            ("1gbit", "400ms", 524_288, 10.488),
            ("1gbit", "140ms", 400_000, 15.1),
            ("1gbit", "300ms", 400_000, 7.1),
            ("100mbit", "20ms", 150_000, 61.376),
            ("100mbit", "80ms", 700_000, 48.372),
        ] {
            let law = path(rate, rtt).rate_of_send_buffer(Bytes::new(sndbuf), WRITE);
            assert_near(law, measured, 0.025);
        }
        // What is left of a write beyond whole packets joins the next write or does not.
        let law = path("1gbit", "20ms").rate_of_send_buffer(Bytes::new(400_000), WRITE);
        assert_near(law, 135.355, 0.1);
    }

    #[test]
    fn large_buffers_are_not_replayed_and_carry_two_thirds() {
        let path = path("100gbit", "100ms");
        let [below, above] = [refill::REPLAYED_MAX, refill::REPLAYED_MAX + Bytes::new(1)]
            .map(|sndbuf| path.rate_of_send_buffer(sndbuf, WRITE).as_f64());
        assert!((below / above - 1.0).abs() < 0.03, "{below} and {above}");
        assert_eq!(path.rate_of_send_buffer(Bytes::MAX, WRITE), path.goodput());
    }

    proptest! {
        #[test]
        fn never_above_the_link_or_the_window(
            bits: u64, nanos: u64, mtu: u64, window: u64, write: u64,
        ) {
            let framing = Framing { mtu: Bytes::new(mtu), ..Framing::IP_1500 };
            let (rate, rtt) = (Rate::from_bits_per_sec(bits), Duration::from_nanos(nanos));
            let path = SteadyPath { rate, rtt, framing };
            let window = Window::new(Bytes::new(window));
            let by_window = path.rate_of_window(window);
            prop_assert!(by_window <= path.goodput());
            let allowed = window.per_rtt(rtt).map_or(f64::INFINITY, Rate::as_f64);
            prop_assert!(by_window.as_f64() <= allowed * 1.001 + 1.0);
            let by_buffer = path.rate_of_send_buffer(window.bytes(), Bytes::new(write));
            prop_assert!(by_buffer <= path.goodput());
        }

        /// Real paths and buffers: the replay ends, and carries at least half of the buffer.
        #[test]
        fn a_replay_carries_something(
            rate in 5.0f64..12.0, rtt in 1.0f64..6.5,
            sndbuf in 12.0f64..26.0, write in 12.0f64..20.0,
        ) {
            let path = SteadyPath {
                rate: Rate::from_bits_per_sec_f64(10f64.powf(rate)),
                rtt: Duration::from_micros(10f64.powf(rtt) as u64),
                framing: Framing::IP_1500,
            };
            let [sndbuf, write] = [sndbuf, write].map(|power| Bytes::from_f64(power.exp2()));
            let held = path.rate_of_send_buffer(sndbuf, write).as_f64();
            let round = path.rtt.as_secs_f64() + path.on_link(sndbuf.as_f64());
            prop_assert!(held >= sndbuf.as_f64() * 8.0 / round * 0.4, "{held} in {round}");
        }
    }
}
