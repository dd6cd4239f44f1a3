//! A connection on which requests can be made: TCP, perhaps by a proxy, perhaps with TLS, and
//! HTTP/1.1 or HTTP/2 on top.

use super::proxy::{self, Proxy};
use super::socket::{Io, ReceiveBuffer, SharedLimiter, Socket};
use super::{Family, GetError, GetOptions, LimiterKind, tls};
use crate::causes::chain;
use crate::clock;
use crate::pace::Limiter;
use bytes::Bytes as Buffer;
use fullpipe_model::units::{Duration, Instant, Rate};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper::header::HeaderValue;
use hyper::{Request, Response, Uri, Version};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use nix::sys::socket::{setsockopt, sockopt};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use std::cell::OnceCell;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use url::Url;

/// Streams and connections of HTTP/2 may have this much under way where no limit is set: no less
/// than what TCP's own window grows to.
const HTTP2_WINDOW: u32 = 16 << 20;

/// What every connection of a download needs.
#[derive(Debug)]
pub(crate) struct ConnectConfig {
    pub(super) options: GetOptions,
    tls: OnceCell<Arc<ClientConfig>>,
    limiter: Option<SharedLimiter>,
}

impl ConnectConfig {
    pub(crate) fn new(options: GetOptions) -> ConnectConfig {
        let limiter = options.limit_rate.map(|rate| shared(options.limiter, rate));
        ConnectConfig { options, tls: OnceCell::new(), limiter }
    }

    fn tls(&self) -> Result<Arc<ClientConfig>, GetError> {
        if let Some(config) = self.tls.get() {
            return Ok(config.clone());
        }
        let config = tls::configuration(&self.options)?;
        Ok(self.tls.get_or_init(|| config).clone())
    }

    fn limiters(&self) -> Vec<SharedLimiter> {
        let kind = self.options.limiter;
        let own = self.options.limit_rate_each.map(|rate| shared(kind, rate));
        self.limiter.iter().cloned().chain(own).collect()
    }

    /// The lowest limit that holds for one connection, where it is a smooth one.
    fn smooth_rate(&self) -> Option<Rate> {
        let limits = [self.options.limit_rate, self.options.limit_rate_each];
        limits.into_iter().flatten().min().filter(|_| self.options.limiter == LimiterKind::Smooth)
    }
}

fn shared(kind: LimiterKind, rate: Rate) -> SharedLimiter {
    Arc::new(Mutex::new(match kind {
        LimiterKind::Smooth => Limiter::smooth(rate),
        LimiterKind::Sleep => Limiter::sliding(rate),
    }))
}

/// A connection on which requests can be made.
pub(crate) struct Carrier {
    send: Sender,
    driver: JoinHandle<()>,
    pub(super) local: SocketAddr,
    pub(super) peer: SocketAddr,
    /// The time of TCP's handshake.
    pub(super) rtt: Duration,
    pub(super) looked_up: Instant,
    pub(super) connected: Instant,
    /// When the TLS handshake was done, if there was one.
    pub(super) secured: Option<Instant>,
    /// A proxy wants whole URLs in requests.
    whole_urls: bool,
    /// What that proxy wants with each request.
    authorization: Option<HeaderValue>,
}

enum Sender {
    One(http1::SendRequest<Full<Buffer>>),
    Two(http2::SendRequest<Full<Buffer>>),
}

impl Drop for Carrier {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl Carrier {
    /// Whether another request can be made on it.
    pub(crate) async fn is_ready(&mut self) -> bool {
        match &mut self.send {
            Sender::One(send) => send.ready().await.is_ok(),
            Sender::Two(send) => send.ready().await.is_ok(),
        }
    }

    /// Whether a body may be left unread without losing the connection.
    pub(super) fn is_multiplexed(&self) -> bool {
        matches!(self.send, Sender::Two(_))
    }

    /// Makes a request for `url`; `request` has the fields but `Host`.
    pub(crate) async fn ask(
        &mut self,
        mut request: Request<Full<Buffer>>,
        url: &Url,
    ) -> Result<Response<Incoming>, hyper::Error> {
        let whole = &url[..url::Position::AfterQuery];
        let target = match (&self.send, self.whole_urls) {
            (Sender::One(_), false) => &url[url::Position::BeforePath..url::Position::AfterQuery],
            _ => whole,
        };
        // A parsed URL is always a valid target.
        *request.uri_mut() = target.parse().unwrap_or_else(|_| Uri::from_static("/"));
        match &mut self.send {
            Sender::One(send) => {
                let host = &url[url::Position::BeforeHost..url::Position::AfterPort];
                if let (Ok(host), false) = (host.parse(), request.headers().contains_key("host")) {
                    request.headers_mut().insert(hyper::header::HOST, host);
                }
                if let Some(value) = &self.authorization {
                    let name = hyper::header::PROXY_AUTHORIZATION;
                    request.headers_mut().insert(name, value.clone());
                }
                send.send_request(request).await
            }
            Sender::Two(send) => {
                *request.version_mut() = Version::HTTP_2;
                send.send_request(request).await
            }
        }
    }
}

/// Connects to the server of `url`, or to the proxy that leads to it.
pub(crate) async fn connect(config: &ConnectConfig, url: &Url) -> Result<Carrier, GetError> {
    let limit = config.options.connect_timeout;
    let done = tokio::time::timeout(limit.into(), establish(config, url)).await;
    done.unwrap_or_else(|_| {
        Err(GetError::Timeout {
            url: url.to_string(),
            what: "a connection",
            waited: limit,
            option: "--connect-timeout",
        })
    })
}

async fn establish(config: &ConnectConfig, url: &Url) -> Result<Carrier, GetError> {
    let (host, port) = place(url)?;
    let proxy = Proxy::of(&config.options, url)?;
    let (near_host, near_port) =
        proxy.as_ref().map_or((host.clone(), port), |proxy| (proxy.host.clone(), proxy.port));
    let peers = look_up(&near_host, near_port, config.options.family).await?;
    let looked_up = clock::now();
    let (stream, rtt) = dial(&peers, &format!("{near_host}:{near_port}")).await?;
    let connected = clock::now();
    let buffer = config.smooth_rate().map(|rate| ReceiveBuffer::new(rate, rtt));
    let (local, peer) = prepare(&stream, buffer.as_ref())
        .map_err(|source| GetError::Connect { host: format!("{near_host}:{near_port}"), source })?;
    let socket = Socket::new(stream, config.limiters(), buffer);
    let secure = url.scheme() == "https";
    let whole_urls = !secure && proxy.as_ref().is_some_and(|proxy| !proxy.is_socks());
    let io = match &proxy {
        Some(proxy) if !whole_urls => proxy::tunnel(proxy, socket, &host, port).await?,
        _ => Box::new(socket) as Box<dyn Io>,
    };
    let (io, http2) = match secure {
        true => secured(config, io, &host).await?,
        false => (io, config.options.http2_prior_knowledge && !whole_urls),
    };
    let times = (looked_up, connected, secure.then(clock::now));
    let (send, driver) = handshake(config, io, http2, rtt)
        .await
        .map_err(|source| GetError::Answer { url: url.to_string(), source })?;
    let (looked_up, connected, secured) = times;
    // By a tunnel the proxy was told when it was asked for that, and the server never is.
    let authorization = proxy.as_ref().filter(|_| whole_urls).and_then(Proxy::authorization);
    Ok(Carrier {
        send,
        driver,
        local,
        peer,
        rtt,
        looked_up,
        connected,
        secured,
        whole_urls,
        authorization: authorization.cloned(),
    })
}

/// Sets the options of a connection that is open, and tells its two ends.
fn prepare(
    stream: &TcpStream,
    buffer: Option<&ReceiveBuffer>,
) -> io::Result<(SocketAddr, SocketAddr)> {
    stream.set_nodelay(true)?;
    if let Some(buffer) = buffer {
        // After the handshake, so that the window's scale is that of a large buffer, and before the
        // request, so that the server never sees a large window.
        setsockopt(stream, sockopt::RcvBuf, &(buffer.size().get() as usize))?;
    }
    Ok((stream.local_addr()?, stream.peer_addr()?))
}

/// Host, without brackets, and port.
fn place(url: &Url) -> Result<(String, u16), GetError> {
    let port = url.port_or_known_default().filter(|port| *port != 0);
    let problem = match (url.host_str(), port) {
        (Some(host), Some(port)) => {
            let host = host.trim_start_matches('[').trim_end_matches(']').to_string();
            return Ok((host, port));
        }
        (None, _) => "no host",
        (_, None) => "no such port",
    };
    Err(GetError::Url { url: url.to_string(), problem: problem.into() })
}

async fn look_up(host: &str, port: u16, family: Family) -> Result<Vec<SocketAddr>, GetError> {
    let found = tokio::net::lookup_host((host, port)).await.and_then(|all| {
        let peers: Vec<SocketAddr> = all.filter(|peer| family.has(peer)).collect();
        match peers.is_empty() {
            true => Err(io::Error::other("no address of the wanted family")),
            false => Ok(peers),
        }
    });
    found.map_err(|source| GetError::Lookup { host: host.into(), source })
}

/// The first address that answers, and the time that it took. Each but the last gets two seconds,
/// so that a host with a dead address is reached all the same.
async fn dial(peers: &[SocketAddr], host: &str) -> Result<(TcpStream, Duration), GetError> {
    const PATIENCE: std::time::Duration = std::time::Duration::from_secs(2);
    let mut last = io::Error::from(io::ErrorKind::TimedOut);
    for (left, peer) in peers.iter().enumerate().map(|(n, peer)| (peers.len() - 1 - n, peer)) {
        let before = clock::now();
        let dialled = match left {
            0 => Ok(TcpStream::connect(peer).await),
            _ => tokio::time::timeout(PATIENCE, TcpStream::connect(peer)).await,
        };
        match dialled {
            Ok(Ok(stream)) => return Ok((stream, clock::now().since(before))),
            Ok(Err(source)) => last = source,
            Err(_) => {}
        }
    }
    Err(GetError::Connect { host: host.into(), source: last })
}

/// TLS on top, and whether the server chose HTTP/2.
async fn secured(
    config: &ConnectConfig,
    io: Box<dyn Io>,
    host: &str,
) -> Result<(Box<dyn Io>, bool), GetError> {
    let failed = |problem: String| tls::failed(host, &problem);
    let name = ServerName::try_from(host.to_string()).map_err(|e| failed(e.to_string()))?;
    let connector = tokio_rustls::TlsConnector::from(config.tls()?);
    let stream = connector.connect(name, io).await.map_err(|error| failed(chain(&error)))?;
    let http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
    Ok((Box::new(stream), http2))
}

/// HTTP on top.
async fn handshake(
    config: &ConnectConfig,
    io: Box<dyn Io>,
    http2: bool,
    rtt: Duration,
) -> Result<(Sender, JoinHandle<()>), hyper::Error> {
    let io = TokioIo::new(io);
    if !http2 {
        let (send, driver) = http1::Builder::new().handshake(io).await?;
        let driver = async move { drop(driver.await) };
        return Ok((Sender::One(send), tokio::spawn(driver)));
    }
    let window = config
        .smooth_rate()
        .map_or(HTTP2_WINDOW, |rate| ReceiveBuffer::most(rate, rtt).get().max(16 << 10) as u32);
    let (send, driver) = http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .initial_stream_window_size(window)
        .initial_connection_window_size(window.max(65_535))
        .handshake(io)
        .await?;
    let driver = async move { drop(driver.await) };
    Ok((Sender::Two(send), tokio::spawn(driver)))
}
