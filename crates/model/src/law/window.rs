//! The window law: rate = SWND / RTT, with SWND = min(rwnd, cwnd, usable send buffer), and the link
//! above all.
//!
//! RFC 9293 section 3.8.6 gives the receive window, RFC 5681 section 3.1 the minimum with the
//! congestion window; the send buffer bounds it as well, because what is not acknowledged must be
//! kept. With RTT near zero the window stops mattering and the link decides.

use crate::limit::{Cause, Limit};
use crate::units::{Duration, Rate, Window};

/// Growth is not a steady state, so a congestion window that bounds a steady transfer is kept small
/// by loss.
const BY_LOSS: Limit = Limit::CongestionWindow(Cause::Loss);

/// The three windows that a sender obeys; [`Window::UNLIMITED`] for one that is not known to bind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Windows {
    /// The largest window that the receiver advertises.
    pub receive: Window,
    /// What the send buffer can keep in flight (see [`crate::law::send_buffer`]).
    pub send: Window,
    /// The congestion window.
    pub congestion: Window,
}

impl Windows {
    /// Nothing binds: the link decides.
    pub const UNLIMITED: Windows = Windows {
        receive: Window::UNLIMITED,
        send: Window::UNLIMITED,
        congestion: Window::UNLIMITED,
    };

    /// SWND, the least of the three, and which one it is. Among equal ones the receive window comes
    /// first, then the send buffer, because those can be set.
    fn swnd(self) -> (Window, Limit) {
        let mut least = (self.receive, Limit::ReceiveWindow);
        for next in [(self.send, Limit::SendBuffer), (self.congestion, BY_LOSS)] {
            if next.0 < least.0 {
                least = next;
            }
        }
        least
    }
}

/// The rate of a steady transfer and what bounds it: one SWND each round trip, at most `link`.
///
/// ```
/// use fullpipe_model::law::window::{rate, Windows};
/// use fullpipe_model::limit::Limit;
/// use fullpipe_model::units::{Bytes, Window};
/// // Article C2: a window of 3 MB over 146 ms carries 20.5 MB/s, whatever the link.
/// let windows = Windows { receive: Window::new(Bytes::new(3_000_000)), ..Windows::UNLIMITED };
/// let (rate, limit) = rate(windows, "146ms".parse().unwrap(), "1gbit".parse().unwrap());
/// assert_eq!((format!("{rate:#}").as_str(), limit), ("20.55 MB/s", Limit::ReceiveWindow));
/// ```
pub fn rate(windows: Windows, rtt: Duration, link: Rate) -> (Rate, Limit) {
    let (swnd, limit) = windows.swnd();
    match swnd.per_rtt(rtt) {
        Some(rate) if rate < link => (rate, limit),
        _ => (link, Limit::Link),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::law::bdp::bdp;
    use crate::units::Bytes;
    use proptest::prelude::*;

    fn window(bytes: u64) -> Window {
        Window::new(Bytes::new(bytes))
    }

    /// Article A's model: throughput [KiB/s] = window [B] * (1000 / RTT [ms]) / 1024.
    #[test]
    fn article_a1_by_its_own_model() {
        for rtt_ms in [2u64, 10, 20, 40, 80, 100] {
            let windows = Windows { receive: window(1040), ..Windows::UNLIMITED };
            let (rate, limit) =
                rate(windows, Duration::from_millis(rtt_ms), "10gbit".parse().unwrap());
            let article = 1040.0 * (1000.0 / rtt_ms as f64) / 1024.0;
            let ours = rate.as_f64() / 8.0 / 1024.0;
            assert!(
                (ours - article).abs() < 0.01,
                "{rtt_ms} ms: {ours} KiB/s, the article's model {article}"
            );
            assert_eq!(limit, Limit::ReceiveWindow);
        }
        let windows = Windows { receive: window(1040), ..Windows::UNLIMITED };
        let (rate, _) = rate(windows, Duration::from_millis(10), "10gbit".parse().unwrap());
        assert_eq!(format!("{rate:#}"), "104 kB/s");
    }

    #[test]
    fn article_c4_and_the_link() {
        // (12 MB - 6 MB) / 0.068 s = 88.2 MB/s; the article saw "near 88.2 MB/s".
        let at = |receive, rtt| {
            rate(
                Windows { receive: window(receive), ..Windows::UNLIMITED },
                rtt,
                "1gbit".parse().unwrap(),
            )
        };
        assert_eq!(format!("{:#}", at(6_000_000, Duration::from_millis(68)).0), "88.24 MB/s");
        // C3: 18 MB, as its graph shows, are just short of 125 MB/s at 146 ms; 18.3 MB are enough.
        assert_eq!(
            at(18_300_000, Duration::from_millis(146)),
            ("1gbit".parse().unwrap(), Limit::Link)
        );
        assert_eq!(at(1, Duration::ZERO), ("1gbit".parse().unwrap(), Limit::Link));
    }

    #[test]
    fn ties_name_what_can_be_set() {
        let same = Windows { receive: window(9), send: window(9), congestion: window(9) };
        assert_eq!(same.swnd().1, Limit::ReceiveWindow);
        assert_eq!(Windows { receive: window(10), ..same }.swnd().1, Limit::SendBuffer);
    }

    proptest! {
        #[test]
        fn a_window_of_one_bdp_fills_the_link(bits in 1_000u64..=1_000_000_000_000, micros in 1u64..=10_000_000) {
            let (link, rtt) = (Rate::from_bits_per_sec(bits), Duration::from_micros(micros));
            let full = Windows { receive: Window::new(bdp(link, rtt)), ..Windows::UNLIMITED };
            prop_assert_eq!(rate(full, rtt, link), (link, Limit::Link));
        }

        #[test]
        fn never_above_the_link_and_never_above_any_window(
            receive: u64, send: u64, congestion: u64, nanos: u64, bits: u64,
        ) {
            let (rtt, link) = (Duration::from_nanos(nanos), Rate::from_bits_per_sec(bits));
            let windows = Windows { receive: window(receive), send: window(send), congestion: window(congestion) };
            let (rate, _) = rate(windows, rtt, link);
            prop_assert!(rate <= link);
            for one in [windows.receive, windows.send, windows.congestion] {
                prop_assert!(one.per_rtt(rtt).is_none_or(|bound| rate <= bound));
            }
        }
    }
}
