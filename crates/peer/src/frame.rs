//! Messages in a stream of bytes: a length of four bytes (big endian), a kind of one, and a
//! payload.
//!
//! [`FrameReader`] is pure: the shell passes the bytes that arrived to [`FrameReader::push`] and
//! asks [`FrameReader::poll`] for whole frames until there is none. It keeps at most one frame of
//! the largest length that it was made for, and refuses a longer one when it has seen its header.

/// Bytes of length and kind.
const HEADER: usize = 5;

/// What a frame holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A message as JSON.
    Message,
    /// Samples of sockets: JSON lines, deflated (RFC 1951).
    Samples,
    /// A piece of a recording of packets.
    Recording,
}

/// A frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// What it holds.
    pub kind: Kind,
    /// The bytes after the header.
    pub payload: Vec<u8>,
}

/// Why bytes are not a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// It is longer than what the reader accepts.
    #[error(
        "a message of {length} bytes, at most {most} expected: the peer is no fullpipe, or another version"
    )]
    TooLong {
        /// The length that its header has.
        length: usize,
        /// The longest that the reader accepts.
        most: usize,
    },
    /// Its kind is not known.
    #[error("a message of the unknown kind {0}: the peer is no fullpipe, or a newer version")]
    Kind(u8),
}

impl Frame {
    /// The bytes to send; `None` for a payload of 4 GiB or more.
    pub fn encode(kind: Kind, payload: &[u8]) -> Option<Vec<u8>> {
        let length = u32::try_from(payload.len()).ok()?;
        let mut bytes = Vec::with_capacity(HEADER + payload.len());
        bytes.extend(length.to_be_bytes());
        bytes.push(match kind {
            Kind::Message => 0,
            Kind::Samples => 1,
            Kind::Recording => 2,
        });
        bytes.extend(payload);
        Some(bytes)
    }
}

/// Finds frames in the bytes of a stream.
#[derive(Debug)]
pub struct FrameReader {
    bytes: Vec<u8>,
    most: usize,
}

impl FrameReader {
    /// A reader that accepts payloads of up to `most` bytes.
    pub fn new(most: usize) -> FrameReader {
        FrameReader { bytes: Vec::new(), most }
    }

    /// Adds bytes that arrived.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
    }

    /// The next whole frame; `None` if more bytes are needed. After an error the stream cannot be
    /// read further.
    pub fn poll(&mut self) -> Result<Option<Frame>, FrameError> {
        let Some((header, rest)) = self.bytes.split_at_checked(HEADER) else { return Ok(None) };
        let &[a, b, c, d, kind] = header else { return Ok(None) };
        let length = u32::from_be_bytes([a, b, c, d]) as usize;
        if length > self.most {
            return Err(FrameError::TooLong { length, most: self.most });
        }
        let kind = match kind {
            0 => Kind::Message,
            1 => Kind::Samples,
            2 => Kind::Recording,
            other => return Err(FrameError::Kind(other)),
        };
        let Some(payload) = rest.get(..length) else { return Ok(None) };
        let frame = Frame { kind, payload: payload.to_vec() };
        self.bytes.drain(..HEADER + length);
        Ok(Some(frame))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_frame_that_is_too_long_is_refused_by_its_header() {
        let mut reader = FrameReader::new(10);
        reader.push(&[0, 0, 0, 11, 0]);
        assert_eq!(reader.poll(), Err(FrameError::TooLong { length: 11, most: 10 }));
        let mut reader = FrameReader::new(10);
        reader.push(b"\0\0\0\x01\x07x");
        assert_eq!(reader.poll(), Err(FrameError::Kind(7)));
    }

    proptest! {
        #[test]
        fn frames_come_out_as_they_went_in_however_the_stream_is_cut(
            payloads in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..50), 0..8),
            cut in 1usize..40,
        ) {
            let kinds = [Kind::Message, Kind::Samples, Kind::Recording];
            let frames: Vec<Frame> = payloads.into_iter().enumerate()
                .map(|(at, payload)| Frame { kind: kinds[at % 3], payload }).collect();
            let stream: Vec<u8> = frames.iter()
                .flat_map(|frame| Frame::encode(frame.kind, &frame.payload).unwrap()).collect();
            let (mut reader, mut found) = (FrameReader::new(50), Vec::new());
            for piece in stream.chunks(cut) {
                reader.push(piece);
                while let Some(frame) = reader.poll().unwrap() {
                    found.push(frame);
                }
            }
            prop_assert_eq!(found, frames);
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>, most in 0usize..100) {
            let mut reader = FrameReader::new(most);
            reader.push(&bytes);
            while let Ok(Some(frame)) = reader.poll() {
                prop_assert!(frame.payload.len() <= most);
            }
        }
    }
}
