//! From a receive buffer to the window that it advertises, and back.
//!
//! `sk_rcvbuf` bounds *memory*: each packet queued is charged its `truesize` (data, headers,
//! `sk_buff`, slack of its pages). The advertised window promises *data*. Linux bridges the two
//! with a factor, in two generations:
//!
//! * Before 6.6: the sysctl `tcp_adv_win_scale`, one for the namespace. Positive s: window =
//!   rcvbuf - rcvbuf / 2^s; zero or negative: window = rcvbuf / 2^-s. Default 1: half
//!   (`tcp_win_from_space`, include/net/tcp.h).
//! * From 6.6 (commit dfa2f0483360): `scaling_ratio` of each socket, in 1/256
//!   (`TCP_RMEM_TO_WIN_SCALE` is 8): window = rcvbuf x ratio / 256. It starts at a guess (65, a
//!   quarter, before 697a6c8cec03 in 6.10; 128, half, since) and is replaced by
//!   `skb->len / skb->truesize` of a packet that arrives whenever that changes the segment size
//!   learned (`tcp_measure_rcv_mss`): for a bulk transfer the first full segment, and then never
//!   again. So it depends on the driver, and on whether that first segment came alone. With
//!   1500-byte packets in `sk_buff`s of 256 bytes whose heads are rounded up to powers of two:
//!   alone it is 1448 bytes of 2048 + 256, a ratio of 160, or 0.625; two in one super-packet are
//!   2896 bytes of 4096 + 256, a ratio of 170, or 0.664. Both were seen on Linux 6.12 and 6.18, 170
//!   in nearly all runs by a TUN device, as a sender's first flight goes out in pairs; by a veth
//!   whose packets are cut before it, 162. Commit 05f76b2d634e reports about 0.66. The sysctl still
//!   exists and does nothing.
//!
//! What bounds `sk_rcvbuf`: autotuning raises it up to `tcp_rmem[2]` (dynamic right-sizing,
//! `tcp_rcv_space_adjust`); SO_RCVBUF sets it to twice the request, bounded by `rmem_max`, and ends
//! autotuning.
//!
//! Dynamic right-sizing aims at a window of twice what the application read in the last round trip:
//! the sender doubles each round trip in slow start, and what is read now left a round trip ago.
//! Linux 3.13 to 4.15 asked for four times in slow start (commit b0983d3c9b13); since 4.16 (commit
//! c3916ad9320e) it is twice, more while the reading rate grows; 6.16 (ea33537d8292 and following)
//! subtracts what is still unread. The factor decides how fast the buffer grows, not what must be
//! allowed: a reader that keeps up needs a window of one BDP to fill a path.

use crate::law::KernelVersion;
use crate::units::{Bytes, Window};

/// The sysctl `tcp_adv_win_scale`, -31 to 31: which share of a receive buffer is advertised, before
/// Linux 6.6.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(transparent)]
pub struct AdvWinScale(i8);

impl AdvWinScale {
    /// The default, 1: half of the buffer.
    pub const DEFAULT: AdvWinScale = AdvWinScale(1);

    /// `value` as the sysctl takes it; `None` outside of -31 to 31.
    pub const fn new(value: i8) -> Option<Self> {
        if -31 <= value && value <= 31 { Some(AdvWinScale(value)) } else { None }
    }

    /// The sysctl's value.
    pub const fn get(self) -> i8 {
        self.0
    }
}

impl<'de> serde::Deserialize<'de> for AdvWinScale {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        AdvWinScale::new(<i8 as serde::Deserialize>::deserialize(d)?)
            .ok_or_else(|| serde::de::Error::custom("tcp_adv_win_scale must be between -31 and 31"))
    }
}

/// A socket's `scaling_ratio`: 256ths of the receive buffer that are advertised, since Linux 6.6.
/// Never zero.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(transparent)]
pub struct ScalingRatio(std::num::NonZeroU8);

impl ScalingRatio {
    /// The ratio of a new socket since Linux 6.10 (commit 697a6c8cec03; carried back to 6.6 and 6.9
    /// stable): half. Also a cautious assumption for sockets that have measured theirs.
    pub(crate) const HALF: ScalingRatio = ScalingRatio(std::num::NonZeroU8::new(128).unwrap());

    /// Two segments of 1448 bytes in one super-packet, as the first ones of a bulk transfer usually
    /// arrive: 0.664. This is what to expect; for a cautious plan use half.
    pub(crate) const USUAL: ScalingRatio = ScalingRatio(std::num::NonZeroU8::new(170).unwrap());

    /// `ratio` / 256, at least one, as the kernel keeps it.
    pub fn new(ratio: u8) -> Self {
        ScalingRatio(std::num::NonZeroU8::new(ratio).unwrap_or(std::num::NonZeroU8::MIN))
    }

    /// The ratio that the kernel measures for a packet: its length over the memory it is charged.
    pub fn measured(len: Bytes, truesize: Bytes) -> Self {
        let ratio =
            (u128::from(len.get()) << 8).checked_div(u128::from(truesize.get())).unwrap_or(0);
        ScalingRatio::new(u8::try_from(ratio).unwrap_or(u8::MAX))
    }

    /// The numerator over 256.
    pub const fn get(self) -> u8 {
        self.0.get()
    }
}

/// How a kernel turns a receive buffer into a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WindowLaw {
    /// Before Linux 6.6: one factor for the namespace.
    AdvWinScale(AdvWinScale),
    /// From Linux 6.6: a factor measured by each socket.
    ScalingRatio(ScalingRatio),
}

impl WindowLaw {
    /// The law of `kernel`. The sysctl applies to the older kernels; the newer ones get the usual
    /// ratio.
    pub fn of(kernel: KernelVersion, adv_win_scale: AdvWinScale) -> Self {
        if kernel < KernelVersion::SCALING_RATIO {
            WindowLaw::AdvWinScale(adv_win_scale)
        } else {
            WindowLaw::ScalingRatio(ScalingRatio::USUAL)
        }
    }

    /// The law for sizing a buffer. A scaling ratio depends on the driver, so no more than half is
    /// assumed.
    pub fn cautious(self) -> Self {
        match self {
            WindowLaw::ScalingRatio(ratio) => {
                WindowLaw::ScalingRatio(ratio.min(ScalingRatio::HALF))
            }
            sysctl => sysctl,
        }
    }

    /// The largest window that a receive buffer of `rcvbuf` (`sk_rcvbuf`) advertises.
    ///
    /// ```
    /// use fullpipe_model::law::{AdvWinScale, WindowLaw};
    /// use fullpipe_model::units::{Bytes, Window};
    /// let law = WindowLaw::AdvWinScale(AdvWinScale::DEFAULT);
    /// assert_eq!(law.window(Bytes::new(6_291_456)), Window::new(Bytes::new(3_145_728)));
    /// ```
    pub fn window(self, rcvbuf: Bytes) -> Window {
        let space = rcvbuf.get();
        Window::new(Bytes::new(match self {
            WindowLaw::AdvWinScale(AdvWinScale(s)) if s <= 0 => space >> -s,
            WindowLaw::AdvWinScale(AdvWinScale(s)) => space - (space >> s),
            // At most 255/256 of u64, so it fits again.
            WindowLaw::ScalingRatio(ratio) => {
                ((u128::from(space) * u128::from(ratio.get())) >> 8) as u64
            }
        }))
    }

    /// The smallest receive buffer that advertises at least `window`; saturates.
    pub fn rcvbuf_for(self, window: Window) -> Bytes {
        let window = u128::from(window.bytes().get());
        let space = match self {
            WindowLaw::AdvWinScale(AdvWinScale(s)) if s <= 0 => window << -s,
            // ceil(space (2^s - 1) / 2^s) >= window, solved for the smallest space.
            WindowLaw::AdvWinScale(AdvWinScale(s)) if window > 0 => {
                ((window - 1) << s) / ((1 << s) - 1) + 1
            }
            WindowLaw::AdvWinScale(_) => 0,
            WindowLaw::ScalingRatio(ratio) => (window << 8).div_ceil(u128::from(ratio.get())),
        };
        Bytes::new(u64::try_from(space).unwrap_or(u64::MAX))
    }

    /// The advertised share of the buffer.
    pub fn share(self) -> f64 {
        match self {
            WindowLaw::AdvWinScale(AdvWinScale(s)) if s <= 0 => 0.5f64.powi(i32::from(-s)),
            WindowLaw::AdvWinScale(AdvWinScale(s)) => 1.0 - 0.5f64.powi(i32::from(s)),
            WindowLaw::ScalingRatio(ratio) => f64::from(ratio.get()) / 256.0,
        }
    }
}

impl std::fmt::Display for WindowLaw {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            WindowLaw::AdvWinScale(scale) => write!(f, "tcp_adv_win_scale {}", scale.get()),
            WindowLaw::ScalingRatio(ratio) => write!(f, "scaling_ratio {}/256", ratio.get()),
        }
    }
}

/// `SOCK_MIN_RCVBUF` on x86-64: the kernel raises smaller receive buffers to this (two `sk_buff`s
/// of 2 KiB and 256 B).
const SOCK_MIN_RCVBUF: Bytes = Bytes::new(2304);

/// The `sk_rcvbuf` that SO_RCVBUF gives: twice what was asked for, after `rmem_max` has bounded the
/// request (socket(7), `__sock_set_rcvbuf`). Autotuning ends for that socket.
pub fn so_rcvbuf(requested: Bytes, rmem_max: Bytes) -> Bytes {
    requested.min(rmem_max).checked_mul(2).unwrap_or(Bytes::MAX).max(SOCK_MIN_RCVBUF)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn adv(scale: i8) -> WindowLaw {
        WindowLaw::AdvWinScale(AdvWinScale::new(scale).unwrap())
    }

    fn window(bytes: u64) -> Window {
        Window::new(Bytes::new(bytes))
    }

    #[test]
    fn the_articles_buffers() {
        // Article B: half of rmem is advertised, so rmem = 2 x BDP. The exact inverse is one byte
        // less.
        assert_eq!(adv(1).rcvbuf_for(window(6_250_000)), Bytes::new(12_499_999));
        assert_eq!(adv(1).window(Bytes::new(13_107_200)), window(6_553_600));
        // Article C: rcvbuf - rcvbuf / 2^s above zero, rcvbuf / 2^-s otherwise; 6 MB advertise 3
        // MB.
        assert_eq!(adv(1).window(Bytes::new(6_000_000)), window(3_000_000));
        assert_eq!(adv(2).window(Bytes::new(6_000_000)), window(4_500_000));
        assert_eq!(adv(0).window(Bytes::new(6_000_000)), window(6_000_000));
        assert_eq!(adv(-2).window(Bytes::new(6_000_000)), window(1_500_000));
        // Article B3 and the trials on 6.12 with the same buffers: half is the cautious figure
        // there too.
        assert_eq!(
            WindowLaw::ScalingRatio(ScalingRatio::HALF).window(Bytes::new(13_107_200)),
            window(6_553_600)
        );
    }

    #[test]
    fn the_kernel_version_decides_the_law() {
        let law = |text: &str| WindowLaw::of(text.parse().unwrap(), AdvWinScale::new(2).unwrap());
        assert_eq!(law("6.5.13"), adv(2));
        assert_eq!(law("6.6"), WindowLaw::ScalingRatio(ScalingRatio::USUAL));
        assert_eq!(law("6.6").cautious(), WindowLaw::ScalingRatio(ScalingRatio::HALF));
        assert_eq!(law("6.5").cautious(), adv(2));
    }

    /// Linux 6.18, a reader that keeps up, the trials' link at 1 Gbit/s and 50 ms, by
    /// `tcp_rmem[2]`: the windows seen in TCP_INFO and the goodput, in MB/s. Last, a trial of 400
    /// Mbit/s at 80 ms.
    #[test]
    fn the_usual_ratio_predicts_what_was_measured() {
        let law = WindowLaw::ScalingRatio(ScalingRatio::USUAL);
        for (rcvbuf, rcv_wnd, rtt, goodput) in [
            ("2MiB", 1_389_824.0, "50ms", 27.36),
            ("4MiB", 2_782_464.0, "50ms", 54.96),
            ("6MiB", 4_175_104.0, "50ms", 82.18),
            ("6MiB", 4_175_104.0, "80ms", 50.0),
        ] {
            let window = law.window(rcvbuf.parse().unwrap());
            assert!(
                (window.bytes().as_f64() / rcv_wnd - 1.0).abs() < 0.003,
                "{rcvbuf}: {window}, seen {rcv_wnd}"
            );
            let rate = window.per_rtt(rtt.parse().unwrap()).unwrap().as_f64() / 8e6;
            assert!((rate / goodput - 1.0).abs() < 0.05, "{rcvbuf}: {rate}, measured {goodput}");
        }
    }

    #[test]
    fn ratios_are_measured_as_the_kernel_does() {
        // One and two full segments in a head of a power of two, with their sk_buff: the ratios
        // that are seen.
        assert_eq!(
            ScalingRatio::measured(Bytes::new(2 * 1448), Bytes::new(4096 + 256)),
            ScalingRatio::USUAL
        );
        assert_eq!(ScalingRatio::measured(Bytes::new(1448), Bytes::new(2048 + 256)).get(), 160);
        // The ratio of a new socket in Linux 6.6 to 6.9: 1200 bytes of payload in each page of 4096
        // and its `sk_buff` (`SKB_TRUESIZE(4096)` on x86-64).
        assert_eq!(ScalingRatio::measured(Bytes::new(1200), Bytes::new(4096 + 576)).get(), 65);
        assert_eq!(ScalingRatio::measured(Bytes::ZERO, Bytes::new(768)).get(), 1);
        assert_eq!(ScalingRatio::measured(Bytes::new(9), Bytes::ZERO).get(), 1);
        assert_eq!(ScalingRatio::measured(Bytes::MAX, Bytes::new(1)).get(), 255);
    }

    /// Largest window over `tcp_rmem[2]` from 1 MiB to 8 MiB in virtual time (`bench/buffers.sh`):
    /// Linux 6.1 whatever the device, 6.12 by a veth, whose packets take their length and 832
    /// bytes, and by a TUN device.
    #[test]
    fn the_shares_that_both_kernels_advertised() {
        let veth = ScalingRatio::measured(Bytes::new(1448), Bytes::new(1448 + 832));
        assert_eq!(veth.get(), 162);
        for (law, measured) in [
            (WindowLaw::AdvWinScale(AdvWinScale::DEFAULT), 0.500),
            (WindowLaw::ScalingRatio(veth), 0.633),
            (WindowLaw::ScalingRatio(ScalingRatio::USUAL), 0.663),
        ] {
            assert!(
                (law.share() - measured).abs() < 0.0015,
                "{law}: {}, measured {measured}",
                law.share()
            );
        }
    }

    #[test]
    fn so_rcvbuf_doubles_within_its_bound() {
        assert_eq!(
            so_rcvbuf("16KiB".parse().unwrap(), "208KiB".parse().unwrap()),
            "32KiB".parse().unwrap()
        );
        assert_eq!(so_rcvbuf("4MiB".parse().unwrap(), Bytes::new(212_992)), Bytes::new(425_984));
        assert_eq!(so_rcvbuf(Bytes::ZERO, Bytes::MAX), SOCK_MIN_RCVBUF);
        assert_eq!(so_rcvbuf(Bytes::MAX, Bytes::MAX), Bytes::MAX);
    }

    fn any_law() -> impl Strategy<Value = WindowLaw> {
        prop_oneof![
            (-31i8..=31).prop_map(adv),
            any::<u8>().prop_map(|r| WindowLaw::ScalingRatio(ScalingRatio::new(r)))
        ]
    }

    proptest! {
        /// The two directions are one relation: the buffer returned is enough, and a byte less is
        /// not.
        #[test]
        fn the_buffer_for_a_window_is_the_smallest(law in any_law(), bytes in 1u64..1 << 31) {
            let rcvbuf = law.rcvbuf_for(window(bytes));
            prop_assert!(law.window(rcvbuf) >= window(bytes));
            prop_assert!(law.window(rcvbuf - Bytes::new(1)) < window(bytes));
        }

        #[test]
        fn no_buffer_advertises_more_than_itself(law in any_law(), bytes: u64) {
            prop_assert!(law.window(Bytes::new(bytes)).bytes() <= Bytes::new(bytes));
            let _ = law.rcvbuf_for(window(bytes));
        }

        #[test]
        fn the_share_is_the_law(law in any_law(), bytes in 1u64 << 32..1 << 40) {
            let exact = law.window(Bytes::new(bytes)).bytes().as_f64();
            prop_assert!((exact - bytes as f64 * law.share()).abs() <= 1.0, "{exact}");
        }
    }
}
