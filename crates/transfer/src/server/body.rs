//! Response bodies: generated, from a file, or a line of text; optionally paced.

use crate::content;
use crate::pacing::Pacing;
use bytes::Bytes as Buffer;
use fullpipe_model::units::{Bytes, Rate};
use hyper::body::{Body, Frame, SizeHint};
use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

/// Most that is handed to the socket at once. Larger gains no speed on loopback, and all of it is in L2 cache.
const CHUNK: u64 = 256 << 10;

/// Where the bytes come from.
#[derive(Debug)]
pub(super) enum Source {
    /// [`content`] from this offset on.
    Generated { next: Bytes },
    /// A file, positioned at the next byte.
    File(File),
    /// A text that is short, such as an error.
    Text(Buffer),
}

/// What hyper asks for the next piece.
#[derive(Debug)]
pub(super) struct ResponseBody {
    source: Source,
    left: u64,
    pacing: Option<Pacing>,
    sent: Option<Arc<AtomicU64>>,
}

impl ResponseBody {
    pub(super) fn empty() -> Self {
        ResponseBody { source: Source::Text(Buffer::new()), left: 0, pacing: None, sent: None }
    }

    pub(super) fn text(text: String) -> Self {
        ResponseBody { left: text.len() as u64, source: Source::Text(text.into()), pacing: None, sent: None }
    }

    /// `range` of the representation behind `source`, at most at `rate`; `sent` counts.
    pub(super) fn content(source: Source, range: &Range<u64>, rate: Option<Rate>, sent: Arc<AtomicU64>) -> Self {
        ResponseBody { source, left: range.end - range.start, pacing: rate.map(Pacing::new), sent: Some(sent) }
    }
}

impl Source {
    /// The next bytes, at least one and at most `most`.
    fn take(&mut self, most: u64) -> io::Result<Buffer> {
        match self {
            Source::Generated { next } => {
                let chunk = content::at(*next, Bytes::new(most));
                *next += Bytes::new(chunk.len() as u64);
                Ok(chunk)
            }
            Source::File(file) => {
                let mut chunk = Vec::with_capacity(most as usize);
                if file.by_ref().take(most).read_to_end(&mut chunk)? == 0 {
                    // Ends the connection early, which tells the client that the announced length is not coming.
                    return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the file shrank while it was sent"));
                }
                Ok(chunk.into())
            }
            Source::Text(text) => Ok(text.split_to(text.len().min(most as usize))),
        }
    }
}

impl Body for ResponseBody {
    type Data = Buffer;
    type Error = io::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Buffer>>>> {
        let body = self.get_mut();
        if body.left == 0 {
            return Poll::Ready(None);
        }
        let mut most = body.left.min(CHUNK);
        if let Some(pacing) = &mut body.pacing {
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
        if let Some(pacing) = &mut body.pacing {
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
