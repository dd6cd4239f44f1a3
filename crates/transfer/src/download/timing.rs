//! curl's time breakdown.

use fullpipe_model::units::{Duration, column};
use serde::Serialize;

/// When each step was done, with the names of `curl --write-out '%{time_..}'`, since the start of
/// the download.
///
/// They never decrease from top to bottom. A step that does not exist is zero:
/// [`Timing::appconnect`] without TLS, and [`Timing::redirect`] without a redirect. After redirects
/// the steps are those of the last request, still counted from the very start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Timing {
    /// When the last redirect's request began.
    #[serde(rename = "redirect_us", serialize_with = "column::micros::serialize")]
    pub redirect: Duration,
    /// The host's address was known.
    #[serde(rename = "namelookup_us", serialize_with = "column::micros::serialize")]
    pub namelookup: Duration,
    /// The TCP handshake was done, as the client sees it: its SYN was acknowledged.
    #[serde(rename = "connect_us", serialize_with = "column::micros::serialize")]
    pub connect: Duration,
    /// The TLS handshake was done.
    #[serde(rename = "appconnect_us", serialize_with = "column::micros::serialize")]
    pub appconnect: Duration,
    /// The request was about to be sent.
    #[serde(rename = "pretransfer_us", serialize_with = "column::micros::serialize")]
    pub pretransfer: Duration,
    /// The response's first byte (of its status line) was read.
    #[serde(rename = "starttransfer_us", serialize_with = "column::micros::serialize")]
    pub starttransfer: Duration,
    /// The end.
    #[serde(rename = "total_us", serialize_with = "column::micros::serialize")]
    pub total: Duration,
}
