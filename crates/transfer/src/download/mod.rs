//! The client: one `GET` over HTTP/1.1, observed as it arrives.
//!
//! [`download`] runs on the calling thread until the body is complete, the time is up or the caller
//! stops it, and tells an observer about the connection and about every interval as it ends.
//!
//! **Back-pressure.** The client takes no more from the socket than it consumes, so what is not
//! consumed fills the kernel's receive queue and closes the advertised window. Between the two
//! stand at most two read buffers of [`READ_BUFFER_MAX`](DownloadOptions::READ_BUFFER_MAX): the one
//! being filled and the one being consumed. With [`DownloadOptions::read_rate`] the limit is on the
//! reads from the socket themselves, and nothing stands between.
//!
//! It does not speak TLS or HTTP/2, decompress, send credentials, or resume.

mod attempt;
mod connection;
mod error;
mod intervals;
mod location;
mod output;
mod timing;
mod wait_all;

pub use error::{DownloadError, Phase};
pub use intervals::Interval;
pub use timing::Timing;

use crate::{Stop, clock};
use attempt::Attempt;
use fullpipe_model::units::{Bytes, Duration, Instant, Rate, column};
use serde::Serialize;
use std::net::SocketAddr;
use std::path::PathBuf;

/// What to fetch, and how.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// `http://host[:port]/path`; an IP literal as host needs no resolver.
    pub url: String,
    /// How.
    pub options: DownloadOptions,
}

/// Tokio's own default.
const EVENT_INTERVAL: u32 = 61;

/// How to fetch.
#[derive(Debug, Clone)]
pub struct DownloadOptions {
    /// Length of the intervals in which body bytes are counted, at least a millisecond. Default 100
    /// ms.
    pub interval: Duration,
    /// Ends the download after this time, counted from its start; what came until then is the
    /// result.
    pub max_duration: Option<Duration>,
    /// The application reads at most this much from the socket, headers included, in steps of at
    /// most [`crate::pace::STEP`]: a slow reader.
    pub read_rate: Option<Rate>,
    /// With `read_rate`: the application reads so much, then waits until that is paid for.
    pub read_block: Option<Bytes>,
    /// `SO_RCVBUF`, set before connecting so that the window scale fits it. The kernel doubles it,
    /// clamps it silently to `net.core.rmem_max`, and no longer tunes it: [`Connected::rcvbuf`]
    /// says what came of it.
    pub rcvbuf: Option<Bytes>,
    /// Reads a body whose length is known by waiting in the kernel until a large buffer is full
    /// (`MSG_WAITALL`), rather than to be woken for each packet. The kernel takes packets from the
    /// receive queue as they come all the same, so windows are those of a reader that is never
    /// late. For where entering the program costs more than a packet does, as in virtual time: a
    /// stop, the end of an interval and of the duration are noticed up to 2 ms late. Not together
    /// with `read_rate`, which stands above it.
    pub wait_all: bool,
    /// Where the body goes. Default [`Output::Discard`].
    pub output: Output,
    /// Compares the body with [`crate::content`], byte by byte.
    pub verify: bool,
    /// How many redirects are followed. Default 0: a redirect is an error.
    pub redirects: u32,
}

impl DownloadOptions {
    /// Size of the largest read from the socket. Reads start at 8 KiB and grow to it while they are
    /// filled.
    pub const READ_BUFFER_MAX: Bytes = Bytes::new(256 << 10);
}

impl Default for DownloadOptions {
    fn default() -> Self {
        DownloadOptions {
            interval: Duration::from_millis(100),
            max_duration: None,
            read_rate: None,
            read_block: None,
            rcvbuf: None,
            wait_all: false,
            output: Output::Discard,
            verify: false,
            redirects: 0,
        }
    }
}

/// Where the body goes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Output {
    /// Nowhere.
    #[default]
    Discard,
    /// To a file, which appears under this name when it is complete and replaces an earlier one.
    /// Until then it has a temporary name in the same directory; an error or a stop removes it.
    File(PathBuf),
}

/// Tells the observer what has happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// The connection stands (again after each redirect).
    Connected(Connected),
    /// The final response's headers are here; its length where the server said it.
    Headers {
        /// `Content-Length`.
        content_length: Option<Bytes>,
    },
    /// An interval has ended (the last one is cut short by the end of the download).
    Interval(Interval),
}

/// A connection that stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Connected {
    /// Our address and port.
    pub local: SocketAddr,
    /// The server's.
    pub peer: SocketAddr,
    /// `SO_RCVBUF` after connecting, as the kernel reports it: bookkeeping included, that is twice
    /// what was set.
    #[serde(rename = "rcvbuf_bytes", serialize_with = "column::bytes::serialize")]
    pub rcvbuf: Bytes,
}

/// How a download ended that did not fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// All of the body came.
    Complete,
    /// [`DownloadOptions::max_duration`] was over first.
    StoppedAfterDuration,
    /// The caller's [`Stop`] came first.
    StoppedByCaller,
}

/// What came, and when.
#[derive(Debug, Clone, Serialize)]
pub struct Download {
    /// How it ended.
    pub outcome: Outcome,
    /// The URL that was fetched in the end.
    pub url: String,
    /// Redirects followed to get there.
    pub redirects: u32,
    /// Status code, 2xx.
    pub status: u16,
    /// The `Server` header.
    pub server: Option<String>,
    /// The connection that carried the body.
    #[serde(flatten)]
    pub connection: Connected,
    /// Length of the body as announced.
    #[serde(rename = "content_length_bytes", serialize_with = "column::bytes_optional::serialize")]
    pub content_length: Option<Bytes>,
    /// Length of the body as received.
    #[serde(rename = "body_bytes", serialize_with = "column::bytes::serialize")]
    pub body: Bytes,
    /// The start, on `CLOCK_MONOTONIC`.
    #[serde(rename = "started_monotonic_ns", serialize_with = "column::instant::serialize")]
    pub started: Instant,
    /// curl's breakdown, from the start.
    pub timing: Timing,
    /// Body bytes by interval; the sum is [`Download::body`].
    pub intervals: Vec<Interval>,
}

impl Download {
    /// The body over the time in which it came, from the response's first byte on; `None` where
    /// that is no time.
    pub fn goodput(&self) -> Option<Rate> {
        self.body.per(self.timing.total.saturating_sub(self.timing.starttransfer))
    }
}

/// Downloads on the calling thread; `observer` is called on it too, between reads, and should
/// return quickly.
///
/// `stop` ends it from another thread, except during a name lookup, which the system's resolver
/// bounds.
pub fn download(
    request: &Request,
    stop: &Stop,
    observer: &mut dyn FnMut(Event),
) -> Result<Download, DownloadError> {
    let options = &request.options;
    let refuse = |option, value: String, must| Err(DownloadError::Option { option, value, must });
    if options.interval < Duration::from_millis(1) {
        return refuse("interval", options.interval.to_string(), "must be at least 1 ms");
    }
    if options.read_rate == Some(Rate::ZERO) {
        return refuse(
            "read_rate",
            Rate::ZERO.to_string(),
            "must be above zero, or nothing would ever be read",
        );
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        // Where reading blocks, timers have a turn after each.
        .event_interval(if request.options.wait_all { 1 } else { EVENT_INTERVAL })
        .build()
        .map_err(|source| DownloadError::Runtime { source })?;
    runtime.block_on(follow(request, stop, observer))
}

/// Fetches the URL, and what it redirects to.
async fn follow(
    request: &Request,
    stop: &Stop,
    observer: &mut dyn FnMut(Event),
) -> Result<Download, DownloadError> {
    let started = clock::now();
    let mut url = request.url.clone();
    let mut redirects = 0;
    let mut redirect_time = Duration::ZERO;
    loop {
        let mut attempt = Attempt {
            url: &url,
            options: &request.options,
            stop,
            observer,
            started,
            redirect_time,
        };
        match attempt.run().await? {
            attempt::Answer::Download(download) => return Ok(Download { redirects, ..*download }),
            attempt::Answer::Redirect { status, location } => {
                if redirects == request.options.redirects {
                    return Err(DownloadError::Redirect {
                        url,
                        status,
                        location,
                        followed: redirects,
                    });
                }
                url = location::resolve(&url, &location)?;
                redirects += 1;
                redirect_time = clock::now().since(started);
            }
        }
    }
}
