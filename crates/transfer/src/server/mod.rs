//! The server: a directory or generated content over HTTP/1.1.
//!
//! [`Server::bind`] makes the listening socket and returns. So the real address is known, and
//! connecting succeeds (the kernel completes handshakes), before [`Server::run`] serves on the
//! calling thread until it is stopped. In between the server may move to another thread: a socket
//! stays in the network namespace in which it was created.
//!
//! It answers `GET` and `HEAD` for `/bytes/<size>` (for example `/bytes/2GiB`) and for the files
//! below a directory, whole or one byte range (RFC 9110 section 14). It does not list directories,
//! compress, support TLS or follow symbolic links that leave its directory.
//!
//! For its bounds see [`Limits`]. A client that stops reading may hold its connection forever,
//! because experiments with a zero window need that.

mod body;
mod files;
mod listen;
mod range;
mod respond;

pub(crate) use listen::{bind_error, listen};

use crate::Stop;
use crate::pacing::WritePace;
use fullpipe_model::units::{Bytes, Duration, Rate};
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// What a server offers, and its socket options.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    /// Address and port; with port 0 the kernel chooses one, and [`Server::local_addr`] returns it.
    /// Default `127.0.0.1:0`.
    pub bind: SocketAddr,
    /// Serves the files below this directory, in addition to generated content.
    pub directory: Option<PathBuf>,
    /// The application writes at most this much to each connection's socket, in steps of at most
    /// [`crate::pace::STEP`]: tcp_info calls this application limited (`app_limited`).
    pub write_rate: Option<Rate>,
    /// With `write_rate`: the application writes this much of each response as fast as it can
    /// before the rate holds, as a video server fills the player's buffer.
    pub write_rate_after: Option<Bytes>,
    /// With `write_rate`: the application writes this much at once, then waits as the rate
    /// requires.
    pub write_block: Option<Bytes>,
    /// The application takes this long to answer each request, as one does that computes, or that
    /// waits for news (long polling).
    pub answer_after: Duration,
    /// `SO_SNDBUF` of every connection. The kernel doubles it, silently bounds it by
    /// `net.core.wmem_max`, and no longer tunes it: [`Server::sndbuf`] has the result.
    pub sndbuf: Option<Bytes>,
    /// `TCP_CONGESTION` of every connection, for example `bbr`; checked after it is set.
    pub congestion: Option<String>,
    /// Bounds for all clients together and for each.
    pub limits: Limits,
}

impl Default for ServerOptions {
    fn default() -> Self {
        ServerOptions {
            bind: (Ipv4Addr::LOCALHOST, 0).into(),
            directory: None,
            write_rate: None,
            write_rate_after: None,
            write_block: None,
            answer_after: Duration::ZERO,
            sndbuf: None,
            congestion: None,
            limits: Limits::default(),
        }
    }
}

/// Bounds of a server.
#[derive(Debug, Clone)]
pub struct Limits {
    /// The most connections at once; more wait in the listen backlog. Default 256.
    pub connections: usize,
    /// The longest request line and headers; more is answered with status 431. Default 16 KiB, at
    /// most [`Limits::HEADER_MAX`].
    pub header: Bytes,
    /// Time for a request's headers to arrive, including idle time before it. Default 30 s.
    pub header_read: Duration,
    /// Time that active responses get when the server stops. Default 200 ms.
    pub shutdown: Duration,
}

impl Limits {
    /// The largest value of [`Limits::header`]: the buffer for headers.
    pub const HEADER_MAX: Bytes = Bytes::new(64 << 10);
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            connections: 256,
            header: Bytes::new(16 << 10),
            header_read: Duration::from_secs(30),
            shutdown: Duration::from_millis(200),
        }
    }
}

/// Totals of a server that has stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Served {
    /// Connections accepted.
    pub connections: u64,
    /// Requests answered, including errors, excluding those that were not HTTP.
    pub requests: u64,
    /// Body bytes written to sockets (the kernel may have discarded the last of them).
    pub body: Bytes,
}

/// Why a server cannot start.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// No listening socket.
    #[error("listen on {addr}: {source}; {hint}")]
    Bind {
        /// The requested address.
        addr: SocketAddr,
        /// The kernel's error.
        source: io::Error,
        /// What to try.
        hint: &'static str,
    },
    /// A socket option was refused.
    #[error("set {option} = {value} on the socket listening on {addr}: {source}; {hint}")]
    SocketOption {
        /// The option's name in socket(7) or tcp(7).
        option: &'static str,
        /// The requested value.
        value: String,
        /// The listening address.
        addr: SocketAddr,
        /// The kernel's error.
        source: io::Error,
        /// What to try.
        hint: &'static str,
    },
    /// The directory cannot be served.
    #[error("serve directory {}: {source}; give an existing directory that may be read and searched", path.display())]
    Directory {
        /// The requested directory.
        path: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
    /// An option is out of range.
    #[error("server option {option} = {value}: {must}")]
    Option {
        /// The field of [`ServerOptions`].
        option: &'static str,
        /// Its value.
        value: String,
        /// What it must be.
        must: &'static str,
    },
    /// The runtime (epoll and timers) could not be made.
    #[error(
        "start the server's event loop: {source}; the process may be out of file descriptors (see ulimit -n)"
    )]
    Runtime {
        /// What the kernel said.
        source: io::Error,
    },
}

/// A listening socket, and what it will serve.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    local_addr: SocketAddr,
    sndbuf: Bytes,
    limits: Limits,
    answer_after: Duration,
    site: Arc<respond::Site>,
}

impl Server {
    /// Makes the listening socket, on the calling thread and in its network namespace.
    pub fn bind(options: ServerOptions) -> Result<Self, ServerError> {
        refuse_impossible(&options)?;
        let directory = options.directory.map(files::Directory::open).transpose()?;
        let listener = listen(options.bind)?;
        let addr = listener.local_addr().map_err(|source| bind_error(options.bind, source))?;
        if let Some(congestion) = &options.congestion {
            listen::set_congestion(&listener, addr, congestion)?;
        }
        let sndbuf = listen::set_sndbuf(&listener, addr, options.sndbuf)?;
        let pace = options.write_rate.map(|rate| WritePace {
            rate,
            block: options.write_block,
            after: options.write_rate_after.unwrap_or(Bytes::ZERO),
        });
        let site = Arc::new(respond::Site::new(directory, pace));
        let (limits, answer_after) = (options.limits, options.answer_after);
        Ok(Server { listener, local_addr: addr, sndbuf, limits, answer_after, site })
    }

    /// The address for clients, with the port that the kernel chose.
    pub fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// The initial `SO_SNDBUF` of every connection, as the kernel reports it: with its bookkeeping,
    /// so twice the value that was set. Without [`ServerOptions::sndbuf`] it is `tcp_wmem[1]`, and
    /// the kernel tunes it.
    pub fn sndbuf(&self) -> Bytes {
        self.sndbuf
    }

    /// Serves on the calling thread until `stop`; then gives active responses [`Limits::shutdown`]
    /// to end and cuts off the rest.
    pub fn run(self, stop: &Stop) -> Result<Served, ServerError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|source| ServerError::Runtime { source })?;
        runtime.block_on(self.serve(stop))
    }

    async fn serve(self, stop: &Stop) -> Result<Served, ServerError> {
        let listener = tokio::net::TcpListener::from_std(self.listener)
            .map_err(|source| ServerError::Runtime { source })?;
        let places = Arc::new(Semaphore::new(self.limits.connections));
        let mut connections = JoinSet::new();
        let mut accepted = 0;
        let mut stopped = pin!(stop.stopped());
        loop {
            // A place is taken before accepting; without one, the connection waits in the kernel's
            // backlog.
            let next = async {
                let place =
                    places.clone().acquire_owned().await.expect("the semaphore is never closed");
                (listener.accept().await, place)
            };
            let (connection, place) = tokio::select! {
                biased;
                () = &mut stopped => break,
                next = next => next,
                Some(_ended) = connections.join_next() => continue,
            };
            match connection {
                Ok((stream, _peer)) => {
                    accepted += 1;
                    let connection = serve_connection(
                        stream,
                        self.site.clone(),
                        self.limits.clone(),
                        self.answer_after,
                        stop.clone(),
                    );
                    connections.spawn(async move {
                        connection.await;
                        drop(place);
                    });
                }
                Err(error) if listen::concerns_one_connection(&error) => {}
                // Descriptors or memory ran out: retrying at once would only burn the experiment's
                // CPU.
                Err(_) => tokio::time::sleep(std::time::Duration::from_millis(20)).await,
            }
        }
        drop(listener);
        let all_ended = async { while connections.join_next().await.is_some() {} };
        // Connections still open after the grace period are cut off when the set is dropped.
        let _ = tokio::time::timeout(self.limits.shutdown.into(), all_ended).await;
        connections.shutdown().await;
        let (requests, body) = self.site.served();
        Ok(Served { connections: accepted, requests, body })
    }
}

/// Serves HTTP/1.1 until the peer, an error or `stop` ends the connection. Errors are the peer's;
/// nobody else needs them.
async fn serve_connection(
    stream: TcpStream,
    site: Arc<respond::Site>,
    limits: Limits,
    answer_after: Duration,
    stop: Stop,
) {
    // Paced writes are small; Nagle's algorithm (RFC 896) would hold them back for the peer's
    // delayed ACK.
    let _ = stream.set_nodelay(true);
    let service = service_fn(|request| {
        let site = &site;
        async move {
            if answer_after > Duration::ZERO {
                tokio::time::sleep(answer_after.into()).await;
            }
            site.respond(&request)
        }
    });
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(std::time::Duration::from(limits.header_read))
        .max_header_size(limits.header.get() as usize)
        // Also bounds what is queued before a write: one chunk of a body is written before the next
        // is taken.
        .max_buf_size(Limits::HEADER_MAX.get() as usize)
        .half_close(true)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = pin!(connection);
    tokio::select! {
        _ = connection.as_mut() => return,
        () = stop.stopped() => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = connection.await;
}

fn refuse(option: &'static str, value: String, must: &'static str) -> Result<(), ServerError> {
    Err(ServerError::Option { option, value, must })
}

fn refuse_impossible(options: &ServerOptions) -> Result<(), ServerError> {
    if options.write_rate == Some(Rate::ZERO) {
        return refuse(
            "write_rate",
            Rate::ZERO.to_string(),
            "must be above zero, or nothing would ever be sent",
        );
    }
    if options.limits.connections == 0 {
        return refuse("limits.connections", "0".into(), "must be at least 1");
    }
    let header = options.limits.header;
    if header == Bytes::ZERO || header > Limits::HEADER_MAX {
        return refuse("limits.header", header.to_string(), "must be between 1 B and 64 KiB");
    }
    Ok(())
}
