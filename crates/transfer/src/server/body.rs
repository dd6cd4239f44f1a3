//! Response bodies: generated, from a file, or a line of text; optionally paced.

use crate::content;
use crate::pacing::{Pacing, WritePace};
use bytes::Bytes as Buffer;
use fullpipe_model::units::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

/// The most passed to the socket at once. More gains no speed on loopback, and this fits into the
/// L2 cache.
const CHUNK: u64 = 256 << 10;

/// Where the bytes come from.
#[derive(Debug)]
pub(super) enum BodySource {
    /// [`content`] from this offset on.
    Generated { next: Bytes },
    /// A file, positioned at the next byte, and the buffer into which it is read; the buffer is
    /// reused when the socket has released it.
    File { file: File, buffer: Arc<[u8]> },
    /// A short text, such as an error.
    Text(Buffer),
}

/// The body from which hyper takes the next piece.
#[derive(Debug)]
pub(super) struct ResponseBody {
    source: BodySource,
    left: u64,
    /// What may still be written before the pace holds.
    free: u64,
    pacing: Option<Pacing>,
    sent: Option<Arc<AtomicU64>>,
}

impl ResponseBody {
    pub(super) fn empty() -> Self {
        ResponseBody {
            source: BodySource::Text(Buffer::new()),
            left: 0,
            free: 0,
            pacing: None,
            sent: None,
        }
    }

    pub(super) fn text(text: String) -> Self {
        ResponseBody {
            left: text.len() as u64,
            source: BodySource::Text(text.into()),
            free: 0,
            pacing: None,
            sent: None,
        }
    }

    /// `range` of the representation behind `source`, at this pace; `sent` counts its bytes.
    pub(super) fn content(
        source: BodySource,
        range: &Range<u64>,
        pace: Option<WritePace>,
        sent: Arc<AtomicU64>,
    ) -> Self {
        ResponseBody {
            source,
            left: range.end - range.start,
            free: pace.map_or(0, |pace| pace.after.get()),
            pacing: pace.map(|pace| Pacing::new(pace.rate, pace.block)),
            sent: Some(sent),
        }
    }
}

impl BodySource {
    pub(super) fn file(file: File) -> Self {
        BodySource::File { file, buffer: Arc::default() }
    }

    /// The next bytes, at least one and at most `most`.
    fn take(&mut self, most: u64) -> io::Result<Buffer> {
        match self {
            BodySource::Generated { next } => {
                let chunk = content::at(*next, Bytes::new(most));
                *next += Bytes::new(chunk.len() as u64);
                Ok(chunk)
            }
            BodySource::File { file, buffer } => {
                let room = match Arc::get_mut(buffer) {
                    Some(room) if !room.is_empty() => room,
                    _ => {
                        *buffer = new_buffer();
                        Arc::get_mut(buffer).expect("nobody else has it yet")
                    }
                };
                let most = room.len().min(most as usize);
                match read_some(file, &mut room[..most])? {
                    // Ends the connection early, which tells the client that the rest of the
                    // announced length will not come.
                    0 => Err(io::Error::new(
                        io::ErrorKind::UnexpectedEof,
                        "the file shrank while it was sent",
                    )),
                    read => Ok(Buffer::from_owner(buffer.clone()).slice(..read)),
                }
            }
            BodySource::Text(text) => Ok(text.split_to(text.len().min(most as usize))),
        }
    }
}

fn new_buffer() -> Arc<[u8]> {
    Arc::from(vec![0; CHUNK as usize])
}

/// read(2), repeated after signals.
fn read_some(file: &mut File, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match file.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

impl Body for ResponseBody {
    type Data = Buffer;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Buffer>>>> {
        let body = self.get_mut();
        if body.left == 0 {
            return Poll::Ready(None);
        }
        let mut most = body.left.min(CHUNK);
        let is_free = body.free > 0;
        if is_free {
            most = most.min(body.free);
        } else if let Some(pacing) = &mut body.pacing {
            most = most.min(ready!(pacing.poll_allowance(cx)).get());
        }
        let chunk = match body.source.take(most) {
            Ok(chunk) => chunk,
            Err(error) => {
                body.left = 0;
                return Poll::Ready(Some(Err(error)));
            }
        };
        let length = chunk.len() as u64;
        body.left -= length;
        if is_free {
            body.free -= length;
        } else if let Some(pacing) = &mut body.pacing {
            pacing.spend(Bytes::new(length));
        }
        if let Some(sent) = &body.sent {
            sent.fetch_add(length, Ordering::Relaxed);
        }
        Poll::Ready(Some(Ok(Frame::data(chunk))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}
