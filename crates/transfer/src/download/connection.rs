//! Connects a socket to the server, and reads it for the HTTP implementation.

use super::pauses::Pausing;
use super::wait_all::WaitAll;
use super::{Connected, DownloadError, DownloadOptions};
use crate::clock;
use crate::pacing::Pacing;
use fullpipe_model::units::{Bytes, Instant};
use nix::sys::socket::{getsockopt, sockopt};
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpSocket, TcpStream};

/// Connects to `server`, with the receive buffer that was asked for.
pub(super) async fn connect(
    server: SocketAddr,
    options: &DownloadOptions,
) -> Result<TcpStream, DownloadError> {
    let refused = |source| connect_error(server, source);
    let socket = match server {
        SocketAddr::V4(_) => TcpSocket::new_v4(),
        SocketAddr::V6(_) => TcpSocket::new_v6(),
    }
    .map_err(refused)?;
    if let Some(value) = options.rcvbuf {
        let size =
            u32::try_from(value.get()).ok().filter(|size| (1..=i32::MAX as u32).contains(size));
        let set = size.ok_or(io::ErrorKind::InvalidInput.into());
        set.and_then(|size| socket.set_recv_buffer_size(size))
            .map_err(|source| DownloadError::Rcvbuf { value, source })?;
    }
    // As curl does. A request is one small write, so this matters only to later ones on the
    // connection.
    socket.set_nodelay(true).map_err(refused)?;
    socket.connect(server).await.map_err(refused)
}

/// What the kernel reports about a connection.
pub(super) fn describe(stream: &TcpStream) -> io::Result<Connected> {
    Ok(Connected {
        local: stream.local_addr()?,
        peer: stream.peer_addr()?,
        rcvbuf: Bytes::new(getsockopt(stream, sockopt::RcvBuf)? as u64),
    })
}

pub(super) fn connect_error(peer: SocketAddr, source: io::Error) -> DownloadError {
    let hint = match source.kind() {
        io::ErrorKind::ConnectionRefused => {
            "check the port, and that the server runs (ss -ltn on its host)"
        }
        io::ErrorKind::NetworkUnreachable | io::ErrorKind::HostUnreachable => {
            "check the route (ip route get shows it) and that the host is up"
        }
        io::ErrorKind::TimedOut => "check the address, and firewalls on the path",
        _ => "check the address, and the limit of open files (ulimit -n)",
    };
    DownloadError::Connect { peer, source, hint }
}

/// A socket that records when its first byte was read, and reads at most at a rate.
///
/// The rate is limited here, below HTTP's buffers, so that data which may not be read yet stays in
/// the kernel's receive queue.
#[derive(Debug)]
pub(super) struct Socket {
    stream: TcpStream,
    first_byte: Arc<OnceLock<Instant>>,
    pacing: Option<Pacing>,
    pausing: Option<Pausing>,
    wait_all: Option<WaitAll>,
}

impl Socket {
    pub(super) fn new(
        stream: TcpStream,
        options: &DownloadOptions,
        first_byte: Arc<OnceLock<Instant>>,
        content_length: Arc<OnceLock<u64>>,
    ) -> Self {
        let pacing = options.read_rate.map(|rate| Pacing::new(rate, options.read_block));
        let wait_all = (options.wait_all && pacing.is_none()).then(|| WaitAll::new(content_length));
        let pausing = options.read_pauses.map(Pausing::new);
        Socket { stream, first_byte, pacing, pausing, wait_all }
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let socket = self.get_mut();
        let before = buffer.filled().len();
        if let Some(pausing) = &mut socket.pausing {
            ready!(pausing.poll_over(cx));
        }
        match &mut socket.pacing {
            None => match &mut socket.wait_all {
                Some(wait_all) if wait_all.left() > 0 => {
                    ready!(wait_all.poll_read(&socket.stream, cx, buffer))?
                }
                _ => ready!(Pin::new(&mut socket.stream).poll_read(cx, buffer))?,
            },
            Some(pacing) => {
                let most =
                    ready!(pacing.poll_allowance(cx)).get().min(buffer.remaining() as u64) as usize;
                let mut part = ReadBuf::new(buffer.initialize_unfilled_to(most));
                ready!(Pin::new(&mut socket.stream).poll_read(cx, &mut part))?;
                let read = part.filled().len();
                buffer.advance(read);
                pacing.spend(Bytes::new(read as u64));
            }
        }
        if let Some(wait_all) = &mut socket.wait_all {
            wait_all.seen(&buffer.filled()[before..]);
        }
        if buffer.filled().len() > before {
            socket.first_byte.get_or_init(clock::now);
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(cx, data)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}
