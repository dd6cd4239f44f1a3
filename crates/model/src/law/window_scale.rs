//! The window scale: how large a window the 16 bits of a TCP header can express (RFC 7323 section
//! 2).
//!
//! The shift is chosen once, when the SYN or SYN-ACK is sent, and holds for the connection: raising
//! `tcp_rmem` later affects new connections only. Linux (`tcp_select_initial_window`,
//! net/ipv4/tcp_output.c) takes the largest buffer that the socket may ever get,
//! `max(tcp_rmem[2], rmem_max)`, bounded by the window clamp, and chooses the smallest shift that
//! can express a window of that size: ilog2(space) - 15, between 0 and 14.

use crate::units::{Bytes, Window};

/// The largest shift: windows stay below 2^30, half of the sequence space apart (RFC 7323 section
/// 2.3).
const MAX_SHIFT: u8 = 14;

/// The largest window without scaling: `tcp_window_scaling` is 0 on one side, or a middlebox strips
/// the option.
pub const MAX_UNSCALED: Window = Window::new(Bytes::new(65_535));

/// The largest window that TCP can express at all: 1 GiB less 16 KiB.
pub const MAX_WINDOW: Window = WindowScale(MAX_SHIFT).largest();

/// A window scale shift, 0 to 14.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(transparent)]
pub struct WindowScale(u8);

impl WindowScale {
    /// `shift`; larger ones become 14, as RFC 7323 section 2.3 requires.
    pub const fn new(shift: u8) -> Self {
        WindowScale(if shift > MAX_SHIFT { MAX_SHIFT } else { shift })
    }

    /// The shift that Linux chooses with these settings (`window_clamp` is [`Bytes::MAX`] unless a
    /// route or socket sets one).
    pub fn chosen(tcp_rmem_max: Bytes, rmem_max: Bytes, window_clamp: Bytes) -> Self {
        let space = tcp_rmem_max.max(rmem_max).min(window_clamp).get();
        WindowScale::new(space.checked_ilog2().unwrap_or(0).saturating_sub(15) as u8)
    }

    /// The shift.
    pub const fn get(self) -> u8 {
        self.0
    }

    /// The largest window that this shift can express.
    pub const fn largest(self) -> Window {
        Window::new(Bytes::new(65_535 << self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn chosen(rmem: u64) -> u8 {
        WindowScale::chosen(Bytes::new(rmem), Bytes::new(212_992), Bytes::MAX).get()
    }

    #[test]
    fn the_shifts_that_captures_show() {
        // 7 is what Linux hosts with 6 MiB send, 10 with 32 MiB (6.16); locked to 4096 bytes it
        // follows rmem_max.
        assert_eq!(chosen(6_291_456), 7);
        assert_eq!(chosen(33_554_432), 10);
        assert_eq!(chosen(4096), 2);
        assert_eq!(WindowScale::chosen(Bytes::new(4096), Bytes::new(4096), Bytes::MAX).get(), 0);
        assert_eq!(WindowScale::chosen(Bytes::MAX, Bytes::ZERO, Bytes::MAX).get(), 14);
        assert_eq!(WindowScale::chosen(Bytes::MAX, Bytes::ZERO, Bytes::new(65_535)).get(), 0);
        assert_eq!(MAX_WINDOW.bytes().get(), 1_073_725_440);
    }

    proptest! {
        #[test]
        fn every_buffer_below_the_limit_can_be_said(rmem in 0u64..=1_073_725_440) {
            let scale = WindowScale::chosen(Bytes::new(rmem), Bytes::ZERO, Bytes::MAX);
            prop_assert!(scale.largest().bytes().get() >= rmem);
            prop_assert!(scale.get() == 0 || rmem >= 1 << (scale.get() + 15), "a smaller shift would have done");
        }
    }
}
