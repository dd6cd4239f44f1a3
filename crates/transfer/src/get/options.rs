//! What to fetch, how, and what came of it.

use crate::Timing;
use crate::count::Step;
use fullpipe_model::limit::Limit;
use fullpipe_model::units::{Bytes, Duration, Rate, column};
use serde::Serialize;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// What to fetch, and how.
#[derive(Debug, Clone)]
pub struct GetRequest {
    /// `http://` or `https://`.
    pub url: String,
    /// Where the body goes.
    pub target: Target,
    /// How to fetch it.
    pub options: GetOptions,
}

/// Where the body goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A file, which appears under this name when all its bytes are on disk. A device or a pipe of
    /// this name is written to in order, as standard output is, and stays what it is.
    File(PathBuf),
    /// Standard output, in order, by one connection.
    Stdout,
}

/// An algorithm that limits the rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LimiterKind {
    /// Small steps on a schedule, and a receive buffer of the rate's size.
    #[default]
    Smooth,
    /// curl's: reads at full speed, then sleeps. To be compared with.
    Sleep,
}

/// How many connections to use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Connections {
    /// So many.
    Fixed(u16),
    /// As many as pay, and at most so many.
    Auto {
        /// At least one.
        most: u16,
        /// While a window holds each of them, as their windows add up.
        windows: u16,
    },
}

/// Which addresses of a host are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Family {
    /// All, in the resolver's order.
    #[default]
    Any,
    /// IPv4 alone.
    V4,
    /// IPv6 alone.
    V6,
}

impl Family {
    pub(super) fn has(self, address: &SocketAddr) -> bool {
        match self {
            Family::Any => true,
            Family::V4 => address.is_ipv4(),
            Family::V6 => address.is_ipv6(),
        }
    }
}

/// How to fetch.
#[derive(Debug, Clone)]
pub struct GetOptions {
    /// Fields of the request besides ours: name and value.
    pub headers: Vec<(String, String)>,
    /// The most redirects to follow.
    pub redirects: u32,
    /// How often in succession a transient failure is tried again.
    pub retries: u32,
    /// Whether a refused connection is tried again, too: the server may be starting.
    pub retry_refused: bool,
    /// For a connection with TLS, or the lack of one.
    pub connect_timeout: Duration,
    /// The longest silence of the server, and the longest time for an answer's head.
    pub read_timeout: Duration,
    /// For the whole download.
    pub max_time: Option<Duration>,
    /// Of all connections together, as TCP carries it.
    pub limit_rate: Option<Rate>,
    /// Of each connection.
    pub limit_rate_each: Option<Rate>,
    /// How the rate is limited.
    pub limiter: LimiterKind,
    /// How many connections.
    pub connections: Connections,
    /// Which addresses.
    pub family: Family,
    /// `http://HOST:PORT`, `socks5://..` or `socks5h://..`, for `http://` URLs.
    pub http_proxy: Option<String>,
    /// The same for `https://` URLs.
    pub https_proxy: Option<String>,
    /// Hosts and domains that are reached without a proxy; `*`: all.
    pub no_proxy: Vec<String>,
    /// Certificates to trust instead of the machine's, in PEM.
    pub cacert: Option<PathBuf>,
    /// Trusts any certificate.
    pub insecure: bool,
    /// HTTP/2 without TLS and without asking.
    pub http2_prior_knowledge: bool,
    /// Never HTTP/2.
    pub http1_only: bool,
    /// The expected hash of the file, in hexadecimal.
    pub sha256: Option<String>,
    /// Forgets what an earlier run has fetched.
    pub restart: bool,
}

impl Default for GetOptions {
    fn default() -> Self {
        GetOptions {
            headers: Vec::new(),
            redirects: 20,
            retries: 3,
            retry_refused: false,
            connect_timeout: Duration::from_secs(30),
            read_timeout: Duration::from_secs(30),
            max_time: None,
            limit_rate: None,
            limit_rate_each: None,
            limiter: LimiterKind::Smooth,
            connections: Connections::Fixed(1),
            family: Family::Any,
            http_proxy: None,
            https_proxy: None,
            no_proxy: Vec::new(),
            cacert: None,
            insecure: false,
            http2_prior_knowledge: false,
            http1_only: false,
            sha256: None,
            restart: false,
        }
    }
}

/// What the diagnosis says of a download that runs. Whoever watches the sockets writes it, from any
/// thread; the download reads it when it decides about connections.
#[derive(Debug, Clone, Default)]
pub struct Diagnosis(Arc<Mutex<Option<Limit>>>);

impl Diagnosis {
    /// What limits the connections now.
    pub fn set(&self, limit: Limit) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(limit);
    }

    /// The last word.
    pub fn get(&self) -> Option<Limit> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A file that was fetched.
#[derive(Debug, Clone, Serialize)]
pub struct Got {
    /// The URL that was finally fetched.
    pub url: String,
    /// Redirects that were followed.
    pub redirects: u32,
    /// Status code of the first answer with data: 200 or 206.
    pub status: u16,
    /// `HTTP/1.1` or `HTTP/2.0`.
    pub version: String,
    /// The server's address, or the proxy's.
    pub peer: SocketAddr,
    /// The file's length.
    #[serde(rename = "file_bytes", serialize_with = "column::bytes::serialize")]
    pub file: Bytes,
    /// What this run has fetched of it.
    #[serde(rename = "fetched_bytes", serialize_with = "column::bytes::serialize")]
    pub fetched: Bytes,
    /// curl's time breakdown, of the first request.
    pub timing: Timing,
    /// The most connections that fetched at once.
    pub connections: usize,
    /// Why it was one although more were allowed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub one_connection: Option<&'static str>,
    /// The numbers of connections that were tried.
    pub steps: Vec<Step>,
    /// How often something was tried again.
    pub retries: u32,
    /// The file's hash, if one was expected.
    pub sha256: Option<String>,
}

impl Got {
    /// What was fetched, divided by the time from the first byte to the end; `None` if that is
    /// zero.
    pub fn goodput(&self) -> Option<Rate> {
        self.fetched.per(self.timing.total.saturating_sub(self.timing.starttransfer))
    }
}
