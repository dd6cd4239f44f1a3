//! Why a download failed.

use crate::causes::chain;
use fullpipe_model::units::{Bytes, Duration};
use std::io;
use std::net::SocketAddr;

/// How far a request had come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestPhase {
    /// No connection yet.
    Connect,
    /// The request was sent, but the response's headers have not arrived.
    Response,
}

impl std::fmt::Display for RequestPhase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            RequestPhase::Connect => "the connection",
            RequestPhase::Response => "the response",
        })
    }
}

/// Why a download failed.
#[derive(Debug, thiserror::Error)]
pub enum DownloadError {
    /// An option is out of range. The caller's fault.
    #[error("download option {option} = {value}: {must}")]
    Option {
        /// The field of [`crate::DownloadOptions`].
        option: &'static str,
        /// Its value.
        value: String,
        /// What it must be.
        must: &'static str,
    },
    /// The runtime (epoll and timers) could not be made.
    #[error(
        "start the download's event loop: {source}; the process may be out of file descriptors (see ulimit -n)"
    )]
    Runtime {
        /// The kernel's error.
        source: io::Error,
    },
    /// A socket option was refused.
    #[error("set SO_RCVBUF = {value}: {source}; take a size between 2304 B and net.core.rmem_max")]
    Rcvbuf {
        /// The requested size.
        value: Bytes,
        /// The kernel's error.
        source: io::Error,
    },
    /// No connection: nobody listens there, or there is no route.
    #[error("connect to {peer}: {source}; {hint}")]
    Connect {
        /// The server.
        peer: SocketAddr,
        /// The kernel's error.
        source: io::Error,
        /// What to try.
        hint: &'static str,
    },
    /// The duration ended, or the caller stopped it, before there was a response.
    #[error(
        "fetch {url}: stopped after {elapsed} while waiting for {phase}; check the path, or allow more time"
    )]
    NoResponse {
        /// The URL.
        url: String,
        /// What it waited for.
        phase: RequestPhase,
        /// Time since the start.
        elapsed: Duration,
    },
    /// The connection broke, or the response is not HTTP.
    #[error(
        "fetch {url}: no HTTP response from {peer}: {}; check that an HTTP server listens there",
        chain(source)
    )]
    Response {
        /// The URL.
        url: String,
        /// The server.
        peer: SocketAddr,
        /// The HTTP implementation's error.
        source: hyper::Error,
    },
    /// The server refused, or sent elsewhere.
    #[error("fetch {url}: the server says {status}; check the path")]
    Status {
        /// The URL.
        url: String,
        /// Status code and reason.
        status: hyper::StatusCode,
    },
    /// The connection ended before the body did: the server crashed or gave up, or a middlebox cut
    /// it.
    #[error(
        "receive {url}: the connection ended after {} of {} bytes: {}; see the server's log, or try again",
        received.get(),
        expected.map_or_else(|| "an unknown number of".into(), |expected| expected.get().to_string()),
        chain(source)
    )]
    ClosedEarly {
        /// What was fetched.
        url: String,
        /// Body bytes until then.
        received: Bytes,
        /// `Content-Length`, where the server said it.
        expected: Option<Bytes>,
        /// What the HTTP implementation said.
        source: hyper::Error,
    },
    /// The body is not the generated content: something on the path or in a server changed, lost or
    /// reordered bytes.
    #[error(
        "verify {url}: byte {} is {found:#04x} and should be {expected:#04x}; \
         check that the URL serves generated content (/bytes/<size>)",
        offset.get()
    )]
    Content {
        /// The URL.
        url: String,
        /// Offset of the first difference.
        offset: Bytes,
        /// The expected byte.
        expected: u8,
        /// The byte received.
        found: u8,
    },
}
