//! LZ4 frames one after another.
//!
//! `lz4_flex` decodes a frame. It does not notice that a file ends between two blocks, and knows no
//! skippable frames; this module handles both.

use super::is_skippable;
use lz4_flex::frame::FrameDecoder;
use std::io::{BufRead, ErrorKind, Read, Result};

/// How a frame begins.
pub(super) const MAGIC: [u8; 4] = [0x04, 0x22, 0x4d, 0x18];

/// The unpacked bytes of a file's frames.
pub(super) struct Lz4Frames<R: BufRead> {
    decoder: FrameDecoder<Watched<R>>,
    in_frame: bool,
}

/// A source that knows whether it was read beyond its end, and that returns a frame's first bytes a
/// second time.
struct Watched<R> {
    source: R,
    /// First bytes of a frame that the decoder has not seen yet.
    magic: Vec<u8>,
    has_ended: bool,
}

impl<R: Read> Read for Watched<R> {
    fn read(&mut self, into: &mut [u8]) -> Result<usize> {
        if !self.magic.is_empty() {
            let length = self.magic.len().min(into.len());
            self.magic.drain(..length).zip(into).for_each(|(byte, into)| *into = byte);
            return Ok(length);
        }
        let length = self.source.read(into)?;
        self.has_ended |= length == 0 && !into.is_empty();
        Ok(length)
    }
}

impl<R: BufRead> Lz4Frames<R> {
    pub fn new(source: R) -> Self {
        let watched = Watched { source, magic: Vec::new(), has_ended: false };
        Lz4Frames { decoder: FrameDecoder::new(watched), in_frame: false }
    }

    /// Starts the next frame; false at the end of the file.
    fn start(&mut self) -> Result<bool> {
        loop {
            let watched = self.decoder.get_mut();
            let mut magic = Vec::with_capacity(4);
            (&mut watched.source).take(4).read_to_end(&mut magic)?;
            if magic.is_empty() {
                return Ok(false);
            }
            if is_skippable(&magic) {
                super::skip(&mut watched.source)?;
                continue;
            }
            if magic != MAGIC {
                return Err(ErrorKind::InvalidData.into());
            }
            watched.magic = magic;
            self.in_frame = true;
            return Ok(true);
        }
    }
}

impl<R: BufRead> Read for Lz4Frames<R> {
    fn read(&mut self, into: &mut [u8]) -> Result<usize> {
        if into.is_empty() {
            return Ok(0);
        }
        loop {
            if self.in_frame {
                match self.decoder.read(into)? {
                    // The decoder reads no further than a frame's end.
                    0 if self.decoder.get_ref().has_ended => {
                        return Err(ErrorKind::UnexpectedEof.into());
                    }
                    0 => self.in_frame = false,
                    length => return Ok(length),
                }
            }
            if !self.start()? {
                return Ok(0);
            }
        }
    }
}
