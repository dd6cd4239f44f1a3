//! Slow start: how long it takes to reach the window that fills the path.
//!
//! The congestion window starts at ten segments (RFC 6928) and doubles each round trip. Delayed
//! ACKs do not slow it in Linux, which counts the bytes that an ACK covers (RFC 3465;
//! `tcp_slow_start`). HyStart (RFC 9406; on in CUBIC) leaves slow start early when delay rises,
//! often before the path is full, and the receive window must grow as fast (see
//! [`crate::law::receive_buffer`]). So the time here is the shortest possible.

use crate::units::{Bytes, Duration, Window};

/// Segments in the initial window: RFC 6928, `TCP_INIT_CWND`.
pub(crate) const INITIAL_WINDOW_SEGMENTS: u64 = 10;

/// The initial congestion window.
fn initial_window(mss: Bytes) -> Window {
    Window::new(mss.checked_mul(INITIAL_WINDOW_SEGMENTS).unwrap_or(Bytes::MAX).max(Bytes::new(1)))
}

/// The round trips of doubling from the initial window until `target` may be in flight; 0 if it
/// already fits.
pub(crate) fn round_trips(mss: Bytes, target: Window) -> u32 {
    let ratio = target.bytes().get().div_ceil(initial_window(mss).bytes().get());
    ratio.checked_next_power_of_two().map_or(64, u64::trailing_zeros)
}

/// The time of doubling from the initial window until `target` may be in flight.
///
/// ```
/// use fullpipe_model::law::slow_start;
/// use fullpipe_model::units::{Bytes, Duration, Window};
/// // 14480 bytes doubled 9 times are more than 6.25 MB: 450 ms at 50 ms.
/// let full = Window::new(Bytes::new(6_250_000));
/// assert_eq!(slow_start::time_to(Bytes::new(1448), full, Duration::from_millis(50)), Duration::from_millis(450));
/// ```
pub fn time_to(mss: Bytes, target: Window, rtt: Duration) -> Duration {
    rtt.saturating_mul(u64::from(round_trips(mss, target)))
}

/// The bytes sent after `round_trips` of doubling: IW (2^n - 1); saturates.
pub(crate) fn sent_in(mss: Bytes, round_trips: u32) -> Bytes {
    let doubled = 1u128.checked_shl(round_trips).map_or(u128::MAX, |power| power - 1);
    let sent = u128::from(initial_window(mss).bytes().get()).saturating_mul(doubled);
    Bytes::new(u64::try_from(sent).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn doubling_by_hand() {
        let mss = Bytes::new(1448);
        for (target, rounds) in
            [(0, 0), (14_480, 0), (14_481, 1), (28_960, 1), (28_961, 2), (u64::MAX, 51)]
        {
            assert_eq!(round_trips(mss, Window::new(Bytes::new(target))), rounds, "{target}");
        }
        assert_eq!(sent_in(mss, 3).get(), 14_480 + 28_960 + 57_920);
        assert_eq!(sent_in(mss, 200), Bytes::MAX);
    }

    proptest! {
        #[test]
        fn reaches_the_target_and_not_a_round_before(mss in 1u64..9000, target in 1u64..1 << 40) {
            let rounds = round_trips(Bytes::new(mss), Window::new(Bytes::new(target)));
            let window = |n: u32| u128::from(mss * 10) << n;
            prop_assert!(window(rounds) >= u128::from(target));
            prop_assert!(rounds == 0 || window(rounds - 1) < u128::from(target));
        }

        #[test]
        fn total(mss: u64, target: u64, nanos: u64) {
            let _ = time_to(Bytes::new(mss), Window::new(Bytes::new(target)), Duration::from_nanos(nanos));
        }
    }
}
