//! The options of a socket that decide how fast it can be.

use crate::units::{Bytes, Rate, Window, column};

/// What an application asked of its socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct SocketOptions {
    /// Whether it set SO_RCVBUF, which ends autotuning; `None` before Linux 5.15.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sets_rcvbuf: Option<bool>,
    /// Whether it set SO_SNDBUF, which ends autotuning; `None` before Linux 5.15.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sets_sndbuf: Option<bool>,
    /// The largest window that the socket advertises (TCP_WINDOW_CLAMP, or what the kernel set).
    #[serde(
        rename = "window_clamp_bytes",
        with = "column::window_optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub window_clamp: Option<Window>,
    /// How much unsent data may wait before the writer has to (TCP_NOTSENT_LOWAT of the socket);
    /// `None` where it set none.
    #[serde(
        rename = "notsent_lowat_bytes",
        with = "column::bytes_optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub notsent_lowat: Option<Bytes>,
    /// The most that the socket may send at (SO_MAX_PACING_RATE); `None` for no bound.
    #[serde(
        rename = "max_pacing_rate_bps",
        with = "column::rate_optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub max_pacing_rate: Option<Rate>,
}
