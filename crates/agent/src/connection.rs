//! What the agent shows of a connection.

use fullpipe_model::tune::window_control::Phase;
use fullpipe_model::units::{Bytes, Duration, Rate, Window};
use std::net::SocketAddr;

/// A receiving connection, as it was at the end of its last round trip.
#[derive(Debug, Clone)]
pub struct Connection {
    /// This end.
    pub local: SocketAddr,
    /// The peer.
    pub remote: SocketAddr,
    /// What the law is doing.
    pub phase: Phase,
    /// Whether it holds the window because unread data stood.
    pub is_slow_reader: bool,
    /// The window that the law grants; with [`crate::AgentOptions::control`], `TCP_WINDOW_CLAMP`.
    pub window: Window,
    /// Two of its segments: the law never grants less.
    pub two_segments: Window,
    /// What the peer was still allowed to send.
    pub promised: Window,
    /// How fast the application read, what came beyond a hole counted as read; `None` before the
    /// first whole round trip.
    pub drain: Option<Rate>,
    /// What was received and not read.
    pub queue: Bytes,
    /// Its mean over time, in steps of a KiB.
    pub queue_mean: Bytes,
    /// The most that was seen.
    pub queue_peak: Bytes,
    /// The most that stood beyond a hole in the last round trip, from `rcv_nxt` on, hole included.
    pub out_of_order: Bytes,
    /// `sk_rcvbuf`, in memory with its overhead, not in payload.
    pub buffer: Bytes,
    /// `rcv_rtt_est`; `srtt_us` where the kernel has none, or without timestamps a larger one.
    pub rtt: Duration,
    /// The least round trip of the last 10 to 20 seconds.
    pub least_rtt: Duration,
    /// Outgoing segments looked at.
    pub acknowledgements: u64,
    /// Times that the kernel refused an option.
    pub refusals: u64,
    /// The application chose its buffer (`SO_RCVBUF`), so the agent leaves the socket alone.
    pub is_frozen: bool,
    /// It has ended.
    pub is_closed: bool,
}
