//! Why a file was not fetched.

use super::GetOptions;
use crate::causes::chain;
use fullpipe_model::units::{Bytes, Duration};
use hyper::StatusCode;
use std::fmt;
use std::io;
use std::path::PathBuf;

/// What a later run can do with what has arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// Not decided yet: the download goes on, or had not begun.
    Unsaid,
    /// It continues.
    Continues,
    /// It continues if the server has ranges, which it does not say.
    IfRanges,
    /// It begins anew: why.
    Nothing(&'static str),
    /// The bytes went where they cannot be continued.
    Stream,
}

impl fmt::Display for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kept::Unsaid => Ok(()),
            Kept::Continues => {
                f.write_str("; what arrived is kept, and the same command continues")
            }
            Kept::IfRanges => f.write_str(
                "; what arrived is kept, and the same command continues if the server has ranges, \
                 which it does not say (Accept-Ranges)",
            ),
            Kept::Nothing(why) => {
                write!(f, "; nothing of it is kept, because {why}: the same command begins anew")
            }
            Kept::Stream => f.write_str(
                "; the output is a stream, so the same command begins anew: with -o FILE it could \
                 continue",
            ),
        }
    }
}

/// Why a file was not fetched.
#[derive(Debug, thiserror::Error)]
pub enum GetError {
    /// The URL cannot be fetched. The caller's fault.
    #[error("fetch '{url}': {problem}; write for example https://example.org/large.iso")]
    Url {
        /// The given URL.
        url: String,
        /// What is wrong with it.
        problem: String,
    },
    /// An option cannot be used. The caller's fault.
    #[error("{option} {value}: {must}")]
    Option {
        /// As on the command line.
        option: &'static str,
        /// Its value.
        value: String,
        /// What it must be.
        must: String,
    },
    /// The event loop could not be made.
    #[error(
        "start the download's event loop: {0}; the process may be out of file descriptors (see ulimit -n)"
    )]
    Runtime(io::Error),
    /// The host has no address.
    #[error("look up '{host}': {source}; check the name, or give an IP address")]
    Lookup {
        /// The host's name.
        host: String,
        /// The resolver's error.
        source: io::Error,
    },
    /// No connection.
    #[error(
        "connect to {host}: {source}; check the address and the port, and firewalls on the path"
    )]
    Connect {
        /// Host and port.
        host: String,
        /// The kernel's error for the last address.
        source: io::Error,
    },
    /// The proxy did not connect to the server.
    #[error("connect to {host} by the proxy {proxy}: {problem}; check the proxy, or use --noproxy")]
    Proxy {
        /// Host and port.
        host: String,
        /// The proxy.
        proxy: String,
        /// What it said.
        problem: String,
    },
    /// No TLS connection, or nobody to trust.
    #[error("TLS with {host}: {problem}; {advice}")]
    Tls {
        /// The server's name.
        host: String,
        /// What went wrong.
        problem: String,
        /// What to try.
        advice: &'static str,
    },
    /// Nothing came in time.
    #[error(
        "fetch {url}: waited {waited} for {what}; the server is slow or the path is broken: try again, or allow more with {option}"
    )]
    Timeout {
        /// What was fetched.
        url: String,
        /// What did not come.
        what: &'static str,
        /// How long it was waited for.
        waited: Duration,
        /// The option with which to wait longer.
        option: &'static str,
    },
    /// The answer is not HTTP, or the connection broke before it.
    #[error(
        "fetch {url}: no valid HTTP answer: {}; check that an HTTP server listens there",
        chain(source)
    )]
    Answer {
        /// What was fetched.
        url: String,
        /// The HTTP implementation's error.
        source: hyper::Error,
    },
    /// The server refused.
    #[error("fetch {url}: the server says {status}; {}", advice(*status))]
    Status {
        /// What was fetched.
        url: String,
        /// Status code and reason.
        status: StatusCode,
    },
    /// Too many redirects, or one that leads nowhere.
    #[error("fetch {url}: redirects to '{location}' after {followed} redirects: {problem}")]
    Redirect {
        /// What was fetched.
        url: String,
        /// The redirect's target.
        location: String,
        /// Redirects followed before.
        followed: u32,
        /// Why it is not followed, and what to try.
        problem: &'static str,
    },
    /// The body ended too early, or its framing is broken.
    #[error("receive {url}: the connection ended after {} of {} bytes: {cause}{kept}",
        received.get(), expected.map_or_else(|| "an unknown number of".into(), |all| all.get().to_string()))]
    Short {
        /// What was fetched.
        url: String,
        /// Bytes of the file that have arrived, in this run or before.
        received: Bytes,
        /// The file's length.
        expected: Option<Bytes>,
        /// What the HTTP implementation said.
        cause: String,
        /// What becomes of it.
        kept: Kept,
    },
    /// The answer's framing contradicts itself.
    #[error(
        "fetch {url}: the answer has {problem}, so nobody can tell where its body ends (RFC 9112 section 6.3); tell the server's owner, or try another proxy or mirror"
    )]
    Framing {
        /// What was fetched.
        url: String,
        /// What is wrong.
        problem: &'static str,
    },
    /// The server answered with other bytes than those asked for.
    #[error(
        "fetch {url}: asked for the bytes {asked}, the server sent '{sent}'; none of it was kept: try --connections 1, or report it to the server's owner"
    )]
    WrongRange {
        /// What was fetched.
        url: String,
        /// The range asked for.
        asked: String,
        /// `Content-Range` of the answer.
        sent: String,
    },
    /// The file changed while it was fetched.
    #[error(
        "fetch {url}: the file changed on the server during the download ({what}); run the same command again to begin anew"
    )]
    Changed {
        /// What was fetched.
        url: String,
        /// What is different.
        what: String,
    },
    /// The file is not the expected one.
    #[error("check {url}: SHA-256 is {found}, not {expected}; the bytes are kept in {}, and the next run begins anew", part.display())]
    Hash {
        /// What was fetched.
        url: String,
        /// As given.
        expected: String,
        /// Of what arrived.
        found: String,
        /// Where the bytes are.
        part: PathBuf,
    },
    /// Another download writes the same file.
    #[error("write {}: another download has this file open; let it end, or name another file with -o", path.display())]
    Busy {
        /// The partial file.
        path: PathBuf,
    },
    /// The bytes could not be written.
    #[error("write {}: {source}; {hint}{kept}", path.display())]
    Output {
        /// The file.
        path: PathBuf,
        /// The kernel's error.
        source: io::Error,
        /// What to try.
        hint: &'static str,
        /// What becomes of what has arrived.
        kept: Kept,
    },
    /// The caller's [`crate::Stop`].
    #[error("fetch {url}: stopped after {received}{kept}")]
    Stopped {
        /// What was fetched.
        url: String,
        /// What had arrived.
        received: Bytes,
        /// What becomes of it.
        kept: Kept,
    },
    /// `--max-time` ended first.
    #[error("fetch {url}: {received} arrived in {limit}, the time that --max-time allows{kept}")]
    OutOfTime {
        /// What was fetched.
        url: String,
        /// What had arrived.
        received: Bytes,
        /// The time allowed.
        limit: Duration,
        /// What becomes of it.
        kept: Kept,
    },
}

impl GetError {
    /// Whether the same request may succeed a moment later. A refused connection counts only where
    /// `options` say so.
    pub(super) fn is_transient(&self, options: &GetOptions) -> bool {
        match self {
            GetError::Connect { source, .. } => {
                options.retry_refused || source.kind() != io::ErrorKind::ConnectionRefused
            }
            GetError::Timeout { .. } | GetError::Answer { .. } | GetError::Short { .. } => true,
            // As curl --retry has them.
            GetError::Status { status, .. } => {
                matches!(status.as_u16(), 408 | 429 | 500 | 502 | 503 | 504)
            }
            _ => false,
        }
    }

    /// The same error, saying what becomes of what has arrived.
    pub(super) fn with_kept(mut self, what: Kept) -> GetError {
        if let GetError::Short { kept, .. }
        | GetError::Output { kept, .. }
        | GetError::Stopped { kept, .. }
        | GetError::OutOfTime { kept, .. } = &mut self
        {
            *kept = what;
        }
        self
    }

    /// Whether no other connection could do better.
    pub(super) fn is_final(&self) -> bool {
        matches!(self, GetError::Output { .. } | GetError::Changed { .. } | GetError::Option { .. })
    }

    /// Whether the caller asked for what cannot be done.
    pub fn is_usage(&self) -> bool {
        matches!(self, GetError::Url { .. } | GetError::Option { .. })
    }

    /// Whether the caller's [`crate::Stop`] ended it.
    pub fn is_stop(&self) -> bool {
        matches!(self, GetError::Stopped { .. })
    }
}

fn advice(status: StatusCode) -> &'static str {
    match status.as_u16() {
        401 | 403 => "it may want credentials: -H 'Authorization: ..'",
        404 | 410 => "check the path",
        429 => "it wants fewer requests: wait, or use --connections 1",
        500..=599 => "try again later",
        _ => "check the URL",
    }
}
