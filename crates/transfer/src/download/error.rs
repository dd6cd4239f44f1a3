//! Why there is no download.

use fullpipe_model::units::{Bytes, Duration};
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// How far a request had come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// No connection yet.
    Connect,
    /// The request is sent, the response's headers are not here.
    Response,
}

impl std::fmt::Display for Phase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Phase::Connect => "the connection",
            Phase::Response => "the response",
        })
    }
}

/// Why there is no download.
#[derive(Debug, thiserror::Error)]
pub enum DownloadError {
    /// The URL is not one that can be fetched. The caller's fault.
    #[error("fetch '{url}': {problem}; write for example http://192.0.2.1:8080/bytes/1GiB")]
    Url {
        /// What was given.
        url: String,
        /// What is wrong with it.
        problem: String,
    },
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
        /// What the kernel said.
        source: io::Error,
    },
    /// The host has no address.
    #[error("look up '{host}': {source}; check the name, or give an IP address")]
    NameLookup {
        /// The host in the URL.
        host: String,
        /// What the resolver said.
        source: io::Error,
    },
    /// A socket option was refused.
    #[error("set SO_RCVBUF = {value}: {source}; take a size between 2304 B and net.core.rmem_max")]
    Rcvbuf {
        /// The size asked for.
        value: Bytes,
        /// What the kernel said.
        source: io::Error,
    },
    /// No connection: nobody listens there, or no route leads there.
    #[error("connect to {peer}: {source}; {hint}")]
    Connect {
        /// The last address tried.
        peer: SocketAddr,
        /// What the kernel said.
        source: io::Error,
        /// What to try.
        hint: &'static str,
    },
    /// The time was up, or the caller stopped it, before there was a response to report on.
    #[error(
        "fetch {url}: stopped after {elapsed} while waiting for {phase}; check the path, or allow more time"
    )]
    NoResponse {
        /// What was fetched.
        url: String,
        /// What it waited for.
        phase: Phase,
        /// From the start.
        elapsed: Duration,
    },
    /// The connection broke, or what came is not HTTP, before there was a response.
    #[error(
        "fetch {url}: no HTTP response from {peer}: {}; check that an HTTP server listens there",
        chain(source)
    )]
    Response {
        /// What was fetched.
        url: String,
        /// The server.
        peer: SocketAddr,
        /// What the HTTP implementation said.
        source: hyper::Error,
    },
    /// The server refused.
    #[error("fetch {url}: the server says {status}; check the path")]
    Status {
        /// What was fetched.
        url: String,
        /// Status code and reason.
        status: hyper::StatusCode,
    },
    /// More redirects than may be followed, or one without a target.
    #[error(
        "fetch {url}: the server says {status} and redirects to '{location}' after {followed} redirects; \
         fetch that URL, or allow more redirects"
    )]
    Redirect {
        /// What was fetched.
        url: String,
        /// Status code and reason.
        status: hyper::StatusCode,
        /// Where the server points to.
        location: String,
        /// Redirects followed until then.
        followed: u32,
    },
    /// The connection ended before the body did: the server crashed, gave up, or a middlebox cut
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
        /// What was fetched.
        url: String,
        /// Where it differs first.
        offset: Bytes,
        /// The byte due there.
        expected: u8,
        /// The byte received.
        found: u8,
    },
    /// The body could not be written.
    #[error("write {}: {source}; {hint}", path.display())]
    Output {
        /// The file asked for.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
        /// What to try.
        hint: &'static str,
    },
}

/// An error with its causes: hyper says what it was doing, its source says why that failed.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}
