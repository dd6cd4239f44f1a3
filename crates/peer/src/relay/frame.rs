//! The relay's frames on a carrier: how they are written and read.
//!
//! A frame is a header of [`HEADER`] bytes and a body: kind (1 byte), length of the body (3),
//! stream (4, zero where the frame is about no stream), all big-endian. Every kind bounds its body,
//! and [`decode`] refuses a header whose length is out of these bounds before the body has arrived,
//! so that a carrier holds at most [`FRAME_MAX`] bytes of a frame that is not yet whole. The frames
//! and their meaning are in the guide, `docs/src/relay-protocol.md`.
//!
//! Reading never panics: what is no frame is a [`FrameError`], and the carrier is cut with it.

use bytes::{Buf, BufMut, Bytes as Buffer, BytesMut};
use fullpipe_model::units::Bytes;

/// The version of the protocol that this program speaks. Both ends must speak the same.
pub const VERSION: u16 = 1;

/// Bytes of a frame before its body.
pub const HEADER: usize = 8;

/// The most payload of one DATA frame, as sent and as accepted: one TLS record's worth, so that a
/// slow carrier holds back little.
pub const CHUNK: usize = 16 * 1024;

/// The largest frame.
pub const FRAME_MAX: usize = HEADER + 8 + CHUNK;

/// The longest destination or text.
const TEXT_MAX: usize = 512;

/// A piece of payload smaller than this is copied out of the buffer that was read, because it would
/// keep the whole of that buffer alive.
const COPY_BELOW: usize = 4096;

/// One user connection's number in a session. The initiator counts from 1; no number is used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(pub u32);

/// A session's name: random, chosen by the initiator.
pub type SessionId = [u8; 16];

/// Why a far end did not connect to a destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The destination answered with a reset (`ECONNREFUSED`).
    Refused,
    /// No route to the destination's host or network.
    Unreachable,
    /// The destination did not answer in time.
    TimedOut,
    /// The destination's name could not be resolved.
    UnknownHost,
    /// The far end's allow list does not have the destination.
    NotAllowed,
    /// The far end has as many streams as it accepts.
    TooMany,
    /// Anything else.
    Failed,
}

/// Why a stream ended before its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResetReason {
    /// The user's connection at the sender of this frame was reset.
    Reset,
    /// The user's connection failed otherwise, for example by a timeout.
    Failed,
    /// The relay stops.
    Stopped,
    /// All carriers were gone for longer than the session is kept, or the far end lost it.
    SessionLost,
}

/// Why a carrier or a whole session is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CloseReason {
    /// This carrier is no longer needed.
    Retired,
    /// The sender stops.
    Stopped,
    /// The other end sent what the protocol does not allow; the text says what.
    Violation,
    /// The carrier wanted to join a session that the far end does not have.
    UnknownSession,
    /// The versions differ.
    Version,
    /// The far end has as many sessions or carriers as it accepts.
    TooMany,
}

/// What an end says first on a carrier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hello {
    /// The protocol's version.
    pub version: u16,
    /// The session that the carrier belongs to.
    pub session: SessionId,
    /// Whether the session must exist already at the far end. False only on its first carrier.
    pub joins: bool,
}

/// One frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// The first frame of each end.
    Hello(Hello),
    /// The last frame of an end.
    Close {
        /// Why.
        reason: CloseReason,
        /// The same for a person; at most 512 bytes.
        text: String,
    },
    /// So many frames that ask for an acknowledgement arrived on this carrier since its start.
    Ack {
        /// How many.
        frames: u64,
    },
    /// Asks for an acknowledgement and says nothing.
    Ping,
    /// The sender accepts no new streams.
    Drain,
    /// The initiator asks for a connection to a destination.
    Open {
        /// The new stream.
        stream: StreamId,
        /// How much the initiator accepts at first.
        credit: Bytes,
        /// `HOST:PORT`; empty for the far end's own choice.
        destination: String,
    },
    /// The far end is connected.
    Opened {
        /// The stream.
        stream: StreamId,
        /// How much the far end accepts at first.
        credit: Bytes,
    },
    /// The far end could not connect.
    Refused {
        /// The stream, which is no more.
        stream: StreamId,
        /// Why.
        reason: Refusal,
    },
    /// A chunk of a stream.
    Data {
        /// The stream.
        stream: StreamId,
        /// Where in the stream the chunk begins.
        offset: Bytes,
        /// The chunk: 1 to [`CHUNK`] bytes.
        data: Buffer,
    },
    /// The sender's direction of a stream ends at `length`.
    Fin {
        /// The stream.
        stream: StreamId,
        /// The length of the whole direction.
        length: Bytes,
    },
    /// Both directions of a stream end now; what was not delivered is lost.
    Reset {
        /// The stream, which is no more.
        stream: StreamId,
        /// Why.
        reason: ResetReason,
    },
    /// The sender accepts the stream's bytes below `limit`.
    Credit {
        /// The stream.
        stream: StreamId,
        /// The first offset that is not accepted. It never falls.
        limit: Bytes,
    },
}

/// What is not a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// No such kind.
    #[error("read frame: kind {0} does not exist in version {VERSION}")]
    Kind(u8),
    /// The body cannot have this length.
    #[error("read frame: a body of {length} bytes does not fit kind {kind}")]
    Length {
        /// The kind.
        kind: u8,
        /// The length in the header.
        length: usize,
    },
    /// A stream where none belongs, or none where one does.
    #[error("read frame: stream {stream} does not fit kind {kind}")]
    Stream {
        /// The kind.
        kind: u8,
        /// The stream in the header.
        stream: u32,
    },
    /// A code or a text that does not exist.
    #[error("read frame: kind {0} with an unknown code or a text that is not UTF-8")]
    Value(u8),
}

const HELLO: u8 = 0;
const CLOSE: u8 = 1;
const ACK: u8 = 2;
const PING: u8 = 3;
const DRAIN: u8 = 4;
const OPEN: u8 = 5;
const OPENED: u8 = 6;
const REFUSED: u8 = 7;
const DATA: u8 = 8;
const FIN: u8 = 9;
const RESET: u8 = 10;
const CREDIT: u8 = 11;

/// Codes on the wire: a value's place in its table.
const REFUSALS: [Refusal; 7] = [
    Refusal::Refused,
    Refusal::Unreachable,
    Refusal::TimedOut,
    Refusal::UnknownHost,
    Refusal::NotAllowed,
    Refusal::TooMany,
    Refusal::Failed,
];
const RESETS: [ResetReason; 4] =
    [ResetReason::Reset, ResetReason::Failed, ResetReason::Stopped, ResetReason::SessionLost];
const CLOSES: [CloseReason; 6] = [
    CloseReason::Retired,
    CloseReason::Stopped,
    CloseReason::Violation,
    CloseReason::UnknownSession,
    CloseReason::Version,
    CloseReason::TooMany,
];

fn code<T: PartialEq>(table: &[T], value: &T) -> u8 {
    table.iter().position(|entry| entry == value).unwrap_or(table.len()) as u8
}

impl Frame {
    /// Whether the frame asks for an acknowledgement, and goes again when its carrier dies first.
    pub(crate) fn is_acknowledged(&self) -> bool {
        !matches!(self, Frame::Hello(_) | Frame::Close { .. } | Frame::Ack { .. })
    }

    /// Appends the frame as its bytes. A text longer than 512 bytes is cut.
    pub fn encode(&self, out: &mut BytesMut) {
        let (kind, stream) = self.kind_and_stream();
        let start = out.len();
        out.put_u8(kind);
        out.put_uint(0, 3);
        out.put_u32(stream.map_or(0, |stream| stream.0));
        match self {
            Frame::Hello(hello) => {
                out.put_u16(hello.version);
                out.put_slice(&hello.session);
                out.put_u8(u8::from(hello.joins));
            }
            Frame::Close { reason, text } => {
                out.put_u8(code(&CLOSES, reason));
                put_text(out, text);
            }
            Frame::Ack { frames } => out.put_u64(*frames),
            Frame::Ping | Frame::Drain => {}
            Frame::Open { credit, destination, .. } => {
                out.put_u64(credit.get());
                put_text(out, destination);
            }
            Frame::Opened { credit, .. } => out.put_u64(credit.get()),
            Frame::Refused { reason, .. } => out.put_u8(code(&REFUSALS, reason)),
            Frame::Data { offset, data, .. } => {
                out.put_u64(offset.get());
                out.put_slice(data);
            }
            Frame::Fin { length, .. } => out.put_u64(length.get()),
            Frame::Reset { reason, .. } => out.put_u8(code(&RESETS, reason)),
            Frame::Credit { limit, .. } => out.put_u64(limit.get()),
        }
        let body = (out.len() - start - HEADER) as u32;
        out[start + 1..start + 4].copy_from_slice(&body.to_be_bytes()[1..]);
    }

    fn kind_and_stream(&self) -> (u8, Option<StreamId>) {
        match self {
            Frame::Hello(_) => (HELLO, None),
            Frame::Close { .. } => (CLOSE, None),
            Frame::Ack { .. } => (ACK, None),
            Frame::Ping => (PING, None),
            Frame::Drain => (DRAIN, None),
            Frame::Open { stream, .. } => (OPEN, Some(*stream)),
            Frame::Opened { stream, .. } => (OPENED, Some(*stream)),
            Frame::Refused { stream, .. } => (REFUSED, Some(*stream)),
            Frame::Data { stream, .. } => (DATA, Some(*stream)),
            Frame::Fin { stream, .. } => (FIN, Some(*stream)),
            Frame::Reset { stream, .. } => (RESET, Some(*stream)),
            Frame::Credit { stream, .. } => (CREDIT, Some(*stream)),
        }
    }
}

/// Appends at most [`TEXT_MAX`] bytes of a text, cut between characters.
fn put_text(out: &mut BytesMut, text: &str) {
    let mut end = text.len().min(TEXT_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    out.put_slice(&text.as_bytes()[..end]);
}

/// The shortest and the longest body of a kind.
fn body_bounds(kind: u8) -> Result<(usize, usize), FrameError> {
    Ok(match kind {
        HELLO => (19, 19),
        CLOSE => (1, 1 + TEXT_MAX),
        ACK | OPENED | FIN | CREDIT => (8, 8),
        PING | DRAIN => (0, 0),
        OPEN => (8, 8 + TEXT_MAX),
        REFUSED | RESET => (1, 1),
        DATA => (9, 8 + CHUNK),
        _ => return Err(FrameError::Kind(kind)),
    })
}

/// Takes the first whole frame from what a carrier received; `None` while it is not whole.
pub fn decode(received: &mut BytesMut) -> Result<Option<Frame>, FrameError> {
    if received.len() < HEADER {
        return Ok(None);
    }
    let mut header = &received[..HEADER];
    let kind = header.get_u8();
    let length = header.get_uint(3) as usize;
    let stream = header.get_u32();
    let (least, most) = body_bounds(kind)?;
    if length < least || length > most {
        return Err(FrameError::Length { kind, length });
    }
    if (stream == 0) != matches!(kind, HELLO | CLOSE | ACK | PING | DRAIN) {
        return Err(FrameError::Stream { kind, stream });
    }
    if received.len() < HEADER + length {
        return Ok(None);
    }
    received.advance(HEADER);
    let body = received.split_to(length);
    let body = if length < COPY_BELOW { Buffer::copy_from_slice(&body) } else { body.freeze() };
    read_body(kind, StreamId(stream), body).map(Some).ok_or(FrameError::Value(kind))
}

/// The frame of a body whose length fits its kind.
fn read_body(kind: u8, stream: StreamId, mut body: Buffer) -> Option<Frame> {
    Some(match kind {
        HELLO => {
            let version = body.get_u16();
            let mut session = SessionId::default();
            body.copy_to_slice(&mut session);
            let joins = match body.get_u8() {
                0 => false,
                1 => true,
                _ => return None,
            };
            Frame::Hello(Hello { version, session, joins })
        }
        CLOSE => {
            let reason = *CLOSES.get(usize::from(body.get_u8()))?;
            Frame::Close { reason, text: text(&body)? }
        }
        ACK => Frame::Ack { frames: body.get_u64() },
        PING => Frame::Ping,
        DRAIN => Frame::Drain,
        OPEN => {
            let credit = Bytes::new(body.get_u64());
            Frame::Open { stream, credit, destination: text(&body)? }
        }
        OPENED => Frame::Opened { stream, credit: Bytes::new(body.get_u64()) },
        REFUSED => Frame::Refused { stream, reason: *REFUSALS.get(usize::from(body.get_u8()))? },
        DATA => Frame::Data { stream, offset: Bytes::new(body.get_u64()), data: body },
        FIN => Frame::Fin { stream, length: Bytes::new(body.get_u64()) },
        RESET => Frame::Reset { stream, reason: *RESETS.get(usize::from(body.get_u8()))? },
        CREDIT => Frame::Credit { stream, limit: Bytes::new(body.get_u64()) },
        _ => return None,
    })
}

fn text(body: &[u8]) -> Option<String> {
    std::str::from_utf8(body).ok().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn frames() -> impl Strategy<Value = Frame> {
        let stream = (1u32..).prop_map(StreamId);
        let amount = any::<u64>().prop_map(Bytes::new);
        let word = "[a-z0-9.:é]{0,60}";
        (0u8..12, stream, amount, word, prop::collection::vec(any::<u8>(), 1..9000)).prop_map(
            |(kind, stream, amount, word, data)| {
                let at = data.len();
                match kind {
                    HELLO => Frame::Hello(Hello {
                        version: at as u16,
                        session: [data[0]; 16],
                        joins: at % 2 == 0,
                    }),
                    CLOSE => Frame::Close { reason: CLOSES[at % 6], text: word },
                    ACK => Frame::Ack { frames: amount.get() },
                    PING => Frame::Ping,
                    DRAIN => Frame::Drain,
                    OPEN => Frame::Open { stream, credit: amount, destination: word },
                    OPENED => Frame::Opened { stream, credit: amount },
                    REFUSED => Frame::Refused { stream, reason: REFUSALS[at % 7] },
                    DATA => Frame::Data { stream, offset: amount, data: data.into() },
                    FIN => Frame::Fin { stream, length: amount },
                    RESET => Frame::Reset { stream, reason: RESETS[at % 4] },
                    _ => Frame::Credit { stream, limit: amount },
                }
            },
        )
    }

    /// What is read from `bytes` that arrive in pieces of `step`.
    fn read_in_steps(bytes: &[u8], step: usize) -> Result<Vec<Frame>, FrameError> {
        let mut received = BytesMut::new();
        let mut read = Vec::new();
        for piece in bytes.chunks(step) {
            received.extend_from_slice(piece);
            while let Some(frame) = decode(&mut received)? {
                read.push(frame);
            }
            assert!(received.len() < FRAME_MAX);
        }
        Ok(read)
    }

    proptest! {
        #[test]
        fn frames_are_read_as_they_were_written(
            frames in prop::collection::vec(frames(), 1..6),
            step in 1usize..5000,
        ) {
            let mut bytes = BytesMut::new();
            frames.iter().for_each(|frame| frame.encode(&mut bytes));
            prop_assert_eq!(read_in_steps(&bytes, step).unwrap(), frames);
        }

        #[test]
        fn any_bytes_are_frames_or_an_error(
            bytes in prop::collection::vec(any::<u8>(), 0..200),
            step in 1usize..50,
        ) {
            let _ = read_in_steps(&bytes, step);
        }
    }

    #[test]
    fn a_length_out_of_bounds_is_refused_by_its_header_alone() {
        let mut received = BytesMut::from(&[DATA, 0xff, 0xff, 0xff, 0, 0, 0, 1][..]);
        let length = 0xff_ffff;
        assert_eq!(decode(&mut received), Err(FrameError::Length { kind: DATA, length }));
    }

    #[test]
    fn a_stream_belongs_to_its_kinds_only() {
        for (bytes, stream) in [([FIN, 0, 0, 8, 0, 0, 0, 0], 0), ([PING, 0, 0, 0, 0, 0, 0, 7], 7)] {
            let error = decode(&mut BytesMut::from(&bytes[..])).unwrap_err();
            assert_eq!(error, FrameError::Stream { kind: bytes[0], stream });
        }
    }
}
