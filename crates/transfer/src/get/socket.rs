//! A socket that reads at most at a rate, shared with others or its own.
//!
//! The rate is limited below TLS and HTTP, so that what may not be read yet stays in the kernel's
//! receive queue, and closes the advertised window. The receive buffer is sized from rate and
//! round-trip time ([`ReceiveBuffer`]), so the server's sender is held by a small window and sends
//! smoothly, too, instead of filling megabytes of buffer and then waiting.

use crate::clock;
use crate::pace::Limiter;
use fullpipe_model::units::{Bytes, Duration, Instant, Rate};
use nix::sys::socket::{setsockopt, sockopt};
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
/// What the window holds beyond the path, so that the sender need not wait for a reader that is a
/// little late. A sender that paused may send this at once: BBR does so every ten seconds, when it
/// has measured the round trip with four packets under way for 200 ms.
const SLACK: Duration = Duration::from_millis(8);
/// The same for a path that became longer.
const MOST_SLACK: Duration = Duration::from_millis(100);
/// The kernel doubles `SO_RCVBUF`, and offers about two thirds of that as window.
const WINDOW_SHARE: f64 = 4.0 / 3.0;
/// How long the rate must not be reached before the buffer grows.
const BEHIND: Duration = Duration::from_secs(1);

/// The receive buffer of a limited connection: what the rate carries in a round trip and a little,
/// since the sender must not wait for the window while the reader waits for the schedule. It
/// doubles while the rate is not reached: the path may have become longer.
#[derive(Debug)]
pub(super) struct ReceiveBuffer {
    /// `SO_RCVBUF`.
    size: Bytes,
    most: Bytes,
    /// Since when the rate has not been reached.
    behind: Option<Instant>,
}

impl ReceiveBuffer {
    /// For `rate`, over a path whose handshake took `rtt`.
    pub(super) fn new(rate: Rate, rtt: Duration) -> ReceiveBuffer {
        let window = rate.over(rtt.saturating_add(SLACK)).as_f64();
        let most = Self::most(rate, rtt);
        let size = Bytes::from_f64(window / WINDOW_SHARE).clamp(LEAST_BUFFER, most);
        ReceiveBuffer { size, most, behind: None }
    }

    /// The largest that it becomes.
    pub(super) fn most(rate: Rate, rtt: Duration) -> Bytes {
        let longest = rtt.saturating_mul(2).saturating_add(MOST_SLACK);
        rate.over(longest).clamp(LEAST_BUFFER, MOST_BUFFER)
    }

    pub(super) fn size(&self) -> Bytes {
        self.size
    }

    /// Records whether the rate is not reached at `now`; returns the size that the buffer is to
    /// have, where it grows.
    fn grow(&mut self, now: Instant, is_behind: bool) -> Option<Bytes> {
        if !is_behind || self.size >= self.most {
            self.behind = None;
            return None;
        }
        let since = *self.behind.get_or_insert(now);
        if now.since(since) < BEHIND {
            return None;
        }
        self.behind = None;
        self.size = (self.size + self.size).min(self.most);
        Some(self.size)
    }
}

/// A TCP connection whose reads are limited.
#[derive(Debug)]
pub(super) struct Socket {
    stream: TcpStream,
    limiters: Vec<SharedLimiter>,
    buffer: Option<ReceiveBuffer>,
    timer: Option<Pin<Box<Sleep>>>,
}

impl Socket {
    /// `buffer` is what the stream's receive buffer was set to, if it was.
    pub(super) fn new(
        stream: TcpStream,
        limiters: Vec<SharedLimiter>,
        buffer: Option<ReceiveBuffer>,
    ) -> Socket {
        Socket { stream, limiters, buffer, timer: None }
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
        let mut is_behind = false;
        for limiter in &socket.limiters {
            let mut limiter = lock(limiter);
            limiter.spend(Bytes::new(read as u64));
            is_behind |= limiter.is_behind();
        }
        let grown = socket.buffer.as_mut().and_then(|one| one.grow(clock::now(), is_behind));
        if let Some(size) = grown {
            // Where the kernel refuses, the connection is slower than it may be, and no less right.
            let _ = setsockopt(&socket.stream, sockopt::RcvBuf, &(size.get() as usize));
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

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Rate = Rate::from_bits_per_sec(80_000_000);
    const RTT: Duration = Duration::from_millis(20);

    #[test]
    fn the_window_is_what_the_rate_carries_in_a_round_trip_and_a_little() {
        let buffer = ReceiveBuffer::new(RATE, RTT);
        let window = buffer.size().as_f64() * WINDOW_SHARE;
        assert!((window - 10e6 * 0.028).abs() < 2.0, "{window}");
        let slow = ReceiveBuffer::new(Rate::from_bits_per_sec(80_000), RTT);
        assert_eq!(slow.size(), LEAST_BUFFER);
    }

    #[test]
    fn it_doubles_for_each_second_in_which_the_rate_is_not_reached() {
        let mut buffer = ReceiveBuffer::new(RATE, RTT);
        let (start, first) = (Instant::from_nanos(1), buffer.size());
        let after = |ms| start + Duration::from_millis(ms);
        assert_eq!(buffer.grow(after(0), true), None);
        assert_eq!(buffer.grow(after(900), true), None);
        assert_eq!(buffer.grow(after(950), false), None, "it is reached again");
        assert_eq!(buffer.grow(after(1000), true), None);
        assert_eq!(buffer.grow(after(2000), true), Some(first + first));
        let grown = (2..20).filter_map(|n| buffer.grow(after(n * 1001), true)).last();
        assert_eq!(grown, Some(ReceiveBuffer::most(RATE, RTT)));
        assert_eq!(buffer.grow(after(60_000), true), None, "there is a largest");
    }
}
