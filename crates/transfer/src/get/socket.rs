//! A socket that reads at most at a rate, shared with others or its own.
//!
//! The rate is limited below TLS and HTTP, so that what may not be read yet stays in the kernel's
//! receive queue, and closes the advertised window. The receive buffer is sized from rate and
//! round-trip time ([`receive_buffer`]), so the server's sender is held by a small window and sends
//! smoothly, too, instead of filling megabytes of buffer and then waiting.

use crate::clock;
use crate::pace::Limiter;
use fullpipe_model::units::{Bytes, Duration, Rate};
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep};

/// What a connection runs on: a socket, a tunnel, or TLS in one of them.
pub(super) trait Io: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Io for T {}

/// A limiter that several connections may share.
pub(super) type SharedLimiter = Arc<Mutex<Limiter>>;

/// The least receive buffer. A window that was closed opens again once a sixteenth of it is free,
/// but not by less than a segment (`__tcp_select_window`, net/ipv4/tcp_output.c), so a smaller one
/// is no smoother; and what packets cost in memory takes a good part of it.
const LEAST_BUFFER: Bytes = Bytes::new(24 << 10);
/// Beyond this the kernel's own tuning is no less smooth.
const MOST_BUFFER: Bytes = Bytes::new(4 << 20);
/// What the buffer holds beyond the path, so that a late reader does not slow the sender.
const SLACK: Duration = Duration::from_millis(100);

/// `SO_RCVBUF` for a limited download: what the rate carries in two round trips and a little, since
/// the sender must not wait for the window while the reader waits for the schedule.
pub(super) fn receive_buffer(rate: Rate, rtt: Duration) -> Bytes {
    rate.over(rtt.saturating_mul(2).saturating_add(SLACK)).clamp(LEAST_BUFFER, MOST_BUFFER)
}

/// A TCP connection whose reads are limited.
#[derive(Debug)]
pub(super) struct Socket {
    stream: TcpStream,
    limiters: Vec<SharedLimiter>,
    timer: Option<Pin<Box<Sleep>>>,
}

impl Socket {
    pub(super) fn new(stream: TcpStream, limiters: Vec<SharedLimiter>) -> Socket {
        Socket { stream, limiters, timer: None }
    }

    /// Ready with the amount that every limiter lets pass.
    fn poll_allowance(&mut self, cx: &mut Context<'_>) -> Poll<usize> {
        loop {
            if let Some(timer) = &mut self.timer {
                ready!(timer.as_mut().poll(cx));
                self.timer = None;
            }
            let now = clock::now();
            let asked = self.limiters.iter().map(|limiter| lock(limiter).allowance(now));
            let (mut most, mut wait) = (usize::MAX, Duration::ZERO);
            for answer in asked {
                match answer {
                    Ok(amount) => most = most.min(amount.get() as usize),
                    Err(longer) => wait = wait.max(longer),
                }
            }
            if wait == Duration::ZERO {
                return Poll::Ready(most);
            }
            self.timer = Some(Box::pin(sleep(wait.into())));
        }
    }

    fn ran_dry<T>(&self) -> Poll<T> {
        self.limiters.iter().for_each(|limiter| lock(limiter).ran_dry());
        Poll::Pending
    }
}

fn lock(limiter: &SharedLimiter) -> std::sync::MutexGuard<'_, Limiter> {
    limiter.lock().unwrap_or_else(PoisonError::into_inner)
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let socket = self.get_mut();
        if socket.limiters.is_empty() {
            return Pin::new(&mut socket.stream).poll_read(cx, buffer);
        }
        // Only a socket with data may take a part of the shared rate.
        let Poll::Ready(is_ready) = socket.stream.poll_read_ready(cx) else {
            return socket.ran_dry();
        };
        is_ready?;
        let most = ready!(socket.poll_allowance(cx)).min(buffer.remaining());
        let mut part = ReadBuf::new(buffer.initialize_unfilled_to(most));
        let Poll::Ready(outcome) = Pin::new(&mut socket.stream).poll_read(cx, &mut part) else {
            return socket.ran_dry();
        };
        outcome?;
        let read = part.filled().len();
        buffer.advance(read);
        for limiter in &socket.limiters {
            lock(limiter).spend(Bytes::new(read as u64));
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
