//! The client: one `GET` over HTTP/1.1, observed as it arrives.
//!
//! [`download`] runs on the calling thread until the body is complete, the duration ends or the
//! caller stops it. It tells an observer about the connection, and about every interval when it
//! ends.
//!
//! **Back-pressure.** The client reads no more from the socket than it consumes, so data that is
//! not consumed fills the kernel's receive queue and closes the advertised window. There are at
//! most two read buffers of [`READ_BUFFER_MAX`](DownloadOptions::READ_BUFFER_MAX) in between: one
//! being filled and one being consumed. With [`DownloadOptions::read_rate`] the limit applies to
//! the reads from the socket themselves, and nothing is in between.
//!
//! It measures a server whose address is known, and does no more: names, TLS, redirects, files and
//! resumption are [`get`](crate::get())'s.

mod attempt;
mod connection;
mod error;
mod intervals;
mod pauses;
mod timing;
mod wait_all;

pub use error::{DownloadError, RequestPhase};
pub use intervals::Interval;
pub use pauses::ReadPauses;
pub use timing::{DownloadPhase, Timing};

use crate::Stop;
use attempt::Attempt;
use fullpipe_model::units::{Bytes, Duration, Instant, Rate, column};
use serde::Serialize;
use std::net::SocketAddr;

/// What a server whose address is known has under a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resource {
    /// The server.
    pub server: SocketAddr,
    /// Path and query; begins with a slash.
    pub path: String,
}

impl Resource {
    /// The same as a URL.
    pub fn url(&self) -> String {
        format!("http://{}{}", self.server, self.path)
    }
}

/// What to fetch, and how.
#[derive(Debug, Clone)]
pub struct DownloadRequest {
    /// What.
    pub resource: Resource,
    /// How to fetch it.
    pub options: DownloadOptions,
}

/// Tokio's default.
const EVENT_INTERVAL: u32 = 61;

/// How to fetch.
#[derive(Debug, Clone)]
pub struct DownloadOptions {
    /// Length of the intervals in which body bytes are counted, at least a millisecond. Default 100
    /// ms.
    pub interval: Duration,
    /// Ends the download after this time since its start; the result is what arrived until then.
    pub max_duration: Option<Duration>,
    /// How often it is fetched, one request after another on one connection, at least once.
    pub requests: u32,
    /// How long the application takes from an answer to its next request.
    pub ask_after: Duration,
    /// A slow reader: the application reads at most this much from the socket, including headers,
    /// in steps of at most [`crate::pace::STEP`].
    pub read_rate: Option<Rate>,
    /// With `read_rate`: the application reads this much at once, then waits as the rate requires.
    pub read_block: Option<Bytes>,
    /// The application reads nothing for some time, again and again.
    pub read_pauses: Option<ReadPauses>,
    /// `SO_RCVBUF`, set before connecting so that the window scale fits it. The kernel doubles it,
    /// silently bounds it by `net.core.rmem_max`, and no longer tunes it: [`Connected::rcvbuf`] has
    /// the result.
    pub rcvbuf: Option<Bytes>,
    /// Reads a body of known length by waiting in the kernel until a large buffer is full
    /// (`MSG_WAITALL`), instead of being woken for each packet. The kernel still takes packets from
    /// the receive queue as they arrive, so windows are those of a reader that is never late. This
    /// is for virtual time, where entering the program costs more than a packet. A stop and the
    /// ends of intervals and of the duration are noticed up to 2 ms late. Ignored with `read_rate`.
    pub wait_all: bool,
    /// Compares the body with [`crate::content`], byte by byte.
    pub verify: bool,
}

impl DownloadOptions {
    /// Size of the largest read from the socket. Reads start at 8 KiB and grow as long as they are
    /// full.
    pub const READ_BUFFER_MAX: Bytes = Bytes::new(256 << 10);
}

impl Default for DownloadOptions {
    fn default() -> Self {
        DownloadOptions {
            interval: Duration::from_millis(100),
            max_duration: None,
            requests: 1,
            ask_after: Duration::ZERO,
            read_rate: None,
            read_block: None,
            read_pauses: None,
            rcvbuf: None,
            wait_all: false,
            verify: false,
        }
    }
}

/// An event for the observer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DownloadEvent {
    /// The connection is established.
    Connected(Connected),
    /// The response's headers have arrived, with the length if the server gave it.
    Headers {
        /// `Content-Length`.
        content_length: Option<Bytes>,
    },
    /// An interval has ended (the end of the download shortens the last one).
    Interval(Interval),
}

/// An established connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Connected {
    /// Our address and port.
    pub local: SocketAddr,
    /// The server's.
    pub peer: SocketAddr,
    /// `SO_RCVBUF` after connecting, as the kernel reports it: with its bookkeeping, so twice the
    /// value that was set.
    #[serde(rename = "rcvbuf_bytes", serialize_with = "column::bytes::serialize")]
    pub rcvbuf: Bytes,
}

/// How a download ended that did not fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DownloadOutcome {
    /// The whole body arrived.
    Complete,
    /// [`DownloadOptions::max_duration`] ended first.
    StoppedAfterDuration,
    /// The caller's [`Stop`] came first.
    StoppedByCaller,
}

/// What arrived, and when.
#[derive(Debug, Clone, Serialize)]
pub struct Download {
    /// How it ended.
    pub outcome: DownloadOutcome,
    /// What was fetched.
    pub url: String,
    /// Status code, 2xx.
    pub status: u16,
    /// The `Server` header.
    pub server: Option<String>,
    /// The connection that carried the body.
    #[serde(flatten)]
    pub connection: Connected,
    /// Length of the body as announced, of all answers together.
    #[serde(rename = "content_length_bytes", serialize_with = "column::bytes_optional::serialize")]
    pub content_length: Option<Bytes>,
    /// Length of the body as received.
    #[serde(rename = "body_bytes", serialize_with = "column::bytes::serialize")]
    pub body: Bytes,
    /// The start, on `CLOCK_MONOTONIC`.
    #[serde(rename = "started_monotonic_ns", serialize_with = "column::instant::serialize")]
    pub started: Instant,
    /// curl's time breakdown, since the start.
    pub timing: Timing,
    /// Body bytes by interval; the sum is [`Download::body`].
    pub intervals: Vec<Interval>,
}

impl Download {
    /// The body divided by the time from the response's first byte to the end; `None` if that is
    /// zero.
    pub fn goodput(&self) -> Option<Rate> {
        self.body.per(self.timing.total.saturating_sub(self.timing.starttransfer))
    }
}

/// Downloads on the calling thread. It calls `observer` on the same thread between reads, which
/// should return quickly. `stop` ends it from another thread.
///
/// # Errors
/// There is no connection, no answer with a body, or the body is cut short.
pub fn download(
    request: &DownloadRequest,
    stop: &Stop,
    observer: &mut dyn FnMut(DownloadEvent),
) -> Result<Download, DownloadError> {
    check(&request.options)?;
    runtime(&request.options)?.block_on(Attempt::new(request, stop, observer).run())
}

/// Downloads all of `requests` at the same time, on the calling thread; the first that fails ends
/// all. They begin a millisecond apart, since a listener's backlog drops what comes at once. Those
/// that wait in the kernel ([`DownloadOptions::wait_all`]) keep the others waiting.
///
/// # Errors
/// As for [`download`].
pub fn download_all(
    requests: Vec<DownloadRequest>,
    stop: &Stop,
) -> Result<Vec<Download>, DownloadError> {
    requests.iter().try_for_each(|request| check(&request.options))?;
    let all = async {
        let tasks = (0..).zip(requests).map(|(number, request)| {
            let stop = stop.clone();
            tokio::task::spawn_local(async move {
                tokio::time::sleep(Duration::from_millis(number).into()).await;
                Attempt::new(&request, &stop, &mut |_| {}).run().await
            })
        });
        let tasks: Vec<_> = tasks.collect();
        let mut downloads = Vec::with_capacity(tasks.len());
        for task in tasks {
            let ended = task.await.map_err(|error| DownloadError::Runtime { source: error.into() });
            downloads.push(ended??);
        }
        Ok(downloads)
    };
    let local = tokio::task::LocalSet::new();
    runtime(&DownloadOptions::default())?.block_on(local.run_until(all))
}

fn refuse(option: &'static str, value: String, must: &'static str) -> Result<(), DownloadError> {
    Err(DownloadError::Option { option, value, must })
}

fn check(options: &DownloadOptions) -> Result<(), DownloadError> {
    if options.interval < Duration::from_millis(1) {
        return refuse("interval", options.interval.to_string(), "must be at least 1 ms");
    }
    if options.requests == 0 {
        return refuse("requests", "0".into(), "must be at least 1");
    }
    if options.read_rate == Some(Rate::ZERO) {
        return refuse(
            "read_rate",
            Rate::ZERO.to_string(),
            "must be above zero, or nothing would ever be read",
        );
    }
    Ok(())
}

fn runtime(options: &DownloadOptions) -> Result<tokio::runtime::Runtime, DownloadError> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        // If reading blocks, timers run after each read.
        .event_interval(if options.wait_all { 1 } else { EVENT_INTERVAL })
        .build()
        .map_err(|source| DownloadError::Runtime { source })
}
