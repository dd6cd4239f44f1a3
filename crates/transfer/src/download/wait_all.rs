//! Waits in the kernel for a whole buffer: `recv` with `MSG_WAITALL`.
//!
//! It must never wait for more than will come, or the end of a body would be late by the timeout.
//! So it counts the response's bytes: those up to the first empty line are the head, and
//! `Content-Length` more follow. Until both are known, and after the last of them, the socket is
//! read normally.
//!
//! The thread blocks in here, up to [`TIMEOUT`], so it must be a thread that does nothing else.

use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, recv, setsockopt, sockopt};
use nix::sys::time::{TimeVal, TimeValLike};
use std::io;
use std::os::fd::AsRawFd;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use tokio::io::ReadBuf;
use tokio::net::TcpStream;

/// The longest wait in microseconds.
const TIMEOUT_US: i64 = 2000;
/// Ends a head.
const EMPTY_LINE: [u8; 4] = *b"\r\n\r\n";

/// How much of a response is still to come.
#[derive(Debug)]
pub(super) struct WaitAll {
    content_length: Arc<OnceLock<u64>>,
    read: u64,
    head: Option<u64>,
    /// The last bytes read while in the head.
    last: [u8; 4],
    blocking: bool,
}

impl WaitAll {
    pub(super) fn new(content_length: Arc<OnceLock<u64>>) -> WaitAll {
        WaitAll { content_length, read: 0, head: None, last: [0; 4], blocking: false }
    }

    /// Bytes that will come; zero if unknown.
    pub(super) fn left(&self) -> u64 {
        match (self.head, self.content_length.get()) {
            (Some(head), Some(length)) => head.saturating_add(*length).saturating_sub(self.read),
            _ => 0,
        }
    }

    /// Counts bytes that were read in any way.
    pub(super) fn seen(&mut self, data: &[u8]) {
        if self.head.is_none() {
            for (at, &byte) in (1..).zip(data) {
                self.last.rotate_left(1);
                self.last[3] = byte;
                if self.last == EMPTY_LINE {
                    self.head = Some(self.read + at);
                    break;
                }
            }
        }
        self.read += data.len() as u64;
    }

    /// Fills `buffer` as far as the response goes, or with what comes within the timeout.
    pub(super) fn poll_read(
        &mut self,
        stream: &TcpStream,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.blocking {
            nix::fcntl::fcntl(stream, nix::fcntl::FcntlArg::F_SETFL(nix::fcntl::OFlag::O_RDWR))?;
            setsockopt(stream, sockopt::ReceiveTimeout, &TimeVal::microseconds(TIMEOUT_US))?;
            self.blocking = true;
        }
        let most = self.left().min(buffer.remaining() as u64) as usize;
        match recv(stream.as_raw_fd(), buffer.initialize_unfilled_to(most), MsgFlags::MSG_WAITALL) {
            Ok(count) => {
                buffer.advance(count);
                Poll::Ready(Ok(()))
            }
            // Nothing came, so timers may run.
            Err(Errno::EAGAIN | Errno::EINTR) => {
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            Err(errno) => Poll::Ready(Err(errno.into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_left_is_known_once_the_head_is_however_it_is_cut(cuts in prop::collection::vec(1usize..40, 1..20), body in 0u64..500) {
            let mut response = b"HTTP/1.1 200 OK\r\nServer: x\r\nContent-Length: n\r\n\r\n".to_vec();
            let head = response.len();
            response.resize(head + body as usize, b'\r');
            let length = Arc::new(OnceLock::new());
            let mut wait_all = WaitAll::new(length.clone());
            length.set(body).unwrap();
            let mut at = 0;
            for cut in cuts.iter().cycle() {
                if at == response.len() {
                    break;
                }
                let end = (at + cut).min(response.len());
                wait_all.seen(&response[at..end]);
                at = end;
                let left = if at >= head { (response.len() - at) as u64 } else { 0 };
                prop_assert_eq!(wait_all.left(), left);
            }
        }
    }
}
