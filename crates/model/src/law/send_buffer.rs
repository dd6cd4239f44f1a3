//! From a send buffer to what it can keep in flight, and back.
//!
//! What is sent must be kept until it is acknowledged, so the send buffer bounds what is in flight. `sk_sndbuf` bounds
//! *memory*: `sk_wmem_queued` counts each `sk_buff`'s truesize, data with headers and page slack.
//!
//! What bounds `sk_sndbuf`: autotuning raises it up to `tcp_wmem[2]`; SO_SNDBUF sets it to twice the request, bounded by
//! `wmem_max`, and ends autotuning.

use crate::units::{Bytes, Duration, Rate, Window};

/// The share of a send buffer that is in flight as data.
pub const PAYLOAD_PER_TRUESIZE: f64 = 0.66;
const PERCENT: u128 = 66;

/// What a send buffer of `sndbuf` (`sk_sndbuf`) keeps in flight.
pub fn window(sndbuf: Bytes) -> Window {
    Window::new(Bytes::new((u128::from(sndbuf.get()) * PERCENT / 100) as u64))
}

/// The smallest send buffer that keeps `window` in flight; saturates.
pub fn sndbuf_for(window: Window) -> Bytes {
    let sndbuf = (u128::from(window.bytes().get()) * 100).div_ceil(PERCENT);
    Bytes::new(u64::try_from(sndbuf).unwrap_or(u64::MAX))
}

/// The largest RTT at which `sndbuf` still fills `rate`; `None` at rate zero. Without the factor, as the articles
/// reckon it, it is [`crate::law::bdp::largest_rtt`].
pub fn largest_rtt(sndbuf: Bytes, rate: Rate) -> Option<Duration> {
    crate::law::bdp::largest_rtt(window(sndbuf).bytes(), rate)
}

/// `SOCK_MIN_SNDBUF` on x86-64: the kernel raises smaller send buffers to this.
pub const SOCK_MIN_SNDBUF: Bytes = Bytes::new(4608);

/// The `sk_sndbuf` that SO_SNDBUF gives: twice what was asked for, after `wmem_max` has bounded the request (socket(7)).
/// Autotuning ends for that socket.
pub fn so_sndbuf(requested: Bytes, wmem_max: Bytes) -> Bytes {
    requested.min(wmem_max).checked_mul(2).unwrap_or(Bytes::MAX).max(SOCK_MIN_SNDBUF)
}
