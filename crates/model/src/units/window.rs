//! Windows: the bytes that may be in flight, as opposed to the buffer behind them.

use super::{Bytes, Duration, Rate};

/// Bytes that may be in flight: an advertised receive window, a congestion window, or what a send
/// buffer holds.
///
/// Not a [`Bytes`], because a buffer is not a window: Linux converts between them by a factor (see
/// `law::window`).
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Default,
    serde::Serialize,
    serde::Deserialize,
)]
#[serde(transparent)]
pub struct Window(u64);

impl Window {
    /// A closed window.
    pub const ZERO: Window = Window(0);
    /// No bound.
    pub const UNLIMITED: Window = Window(u64::MAX);

    /// A window of `amount`.
    pub const fn new(amount: Bytes) -> Self {
        Window(amount.get())
    }

    /// Its size.
    pub const fn bytes(self) -> Bytes {
        Bytes::new(self.0)
    }

    /// The rate that a window allows: one window in each round trip; `None` if `rtt` is zero (the
    /// link decides then).
    pub fn per_rtt(self, rtt: Duration) -> Option<Rate> {
        self.bytes().per(rtt)
    }
}

impl std::fmt::Display for Window {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.bytes().fmt(f)
    }
}
