//! A capture with comments, and otherwise as it is.
//!
//! Of a pcapng, every block is copied, and comments are added to the options of packets and of the
//! first section: interfaces, names, secrets, statistics and other programs' comments stay. The
//! other formats have no room for comments; their packets are written as a pcapng with nanoseconds.
//! Comments that begin as [`PACKET_MARK`] or [`SECTION_MARK`] says are an earlier run's, and make
//! room for the new ones.

use super::write_ng::{self, COMMENT, END_OF_OPTIONS, ENHANCED_PACKET, SECTION_HEADER};
use super::{FileRecord, Packet};

/// How all comments begin that are written here: of packets, behind it the connection's number, and
/// of sections.
pub const PACKET_MARK: &str = "fullpipe #";
/// See [`PACKET_MARK`].
pub const SECTION_MARK: &str = "fullpipe: ";

const OBSOLETE_PACKET: u32 = 2;
/// Where the options begin of a section header, and the bytes of a packet.
const SECTION_OPTIONS: usize = 24;
const PACKET_BYTES: usize = 28;
/// What an option's length can say, down to a multiple of four.
const COMMENT_MAX: usize = 65_532;

/// Writes a capture with comments. **Order**: [`CommentedFile::record`] for each
/// [record of the reader](super::Reader::next_record), [`CommentedFile::end`]; each appends to the
/// bytes that the caller writes.
#[derive(Debug)]
pub struct CommentedFile {
    /// The comment of the section, until it is written.
    about: Option<String>,
    has_interface: bool,
    block: Vec<u8>,
}

impl CommentedFile {
    /// A file whose section has this comment.
    pub fn new(about: String) -> CommentedFile {
        CommentedFile { about: Some(about), has_interface: false, block: Vec::new() }
    }

    /// Appends a record. Comments of one that has no packet, or no place for comments (a simple
    /// packet block has none), are left out; gives whether they were written.
    pub fn record(
        &mut self,
        record: &FileRecord<'_>,
        comments: &[impl AsRef<str>],
        out: &mut Vec<u8>,
    ) -> bool {
        let Some(is_big_endian) = record.block_is_big_endian else {
            return match &record.packet {
                Some(packet) => self.packet(packet, comments, out),
                None => false,
            };
        };
        let block = Block { bytes: record.bytes, is_big_endian };
        match block.word(0) {
            SECTION_HEADER => {
                let about = self.about.take();
                block.write(SECTION_OPTIONS, about.as_slice(), out);
                false
            }
            ENHANCED_PACKET | OBSOLETE_PACKET => {
                let captured = block.word(20) as usize;
                let options = PACKET_BYTES + captured.next_multiple_of(4);
                block.write(options, comments, out);
                true
            }
            _ => {
                out.extend(record.bytes);
                false
            }
        }
    }

    /// Appends what a file has that had no record.
    pub fn end(&mut self, out: &mut Vec<u8>) {
        self.section(out);
    }

    /// Appends the start of a file, where it is not there yet.
    fn section(&mut self, out: &mut Vec<u8>) {
        let Some(about) = self.about.take() else { return };
        self.block.clear();
        write_ng::section(&mut self.block);
        Block { bytes: &self.block, is_big_endian: false }.write(SECTION_OPTIONS, &[about], out);
    }

    /// Appends a packet of a file that has no blocks.
    fn packet(
        &mut self,
        packet: &Packet<'_>,
        comments: &[impl AsRef<str>],
        out: &mut Vec<u8>,
    ) -> bool {
        self.section(out);
        if !self.has_interface {
            write_ng::interface("", packet.link_type, out);
            self.has_interface = true;
        }
        let original = u32::try_from(packet.original_length).unwrap_or(u32::MAX);
        self.block.clear();
        write_ng::packet(0, packet.at, packet.data, original, "", &mut self.block);
        let options = PACKET_BYTES + packet.data.len().next_multiple_of(4);
        Block { bytes: &self.block, is_big_endian: false }.write(options, comments, out);
        true
    }
}

/// A block of pcapng.
#[derive(Debug, Clone, Copy)]
struct Block<'a> {
    bytes: &'a [u8],
    is_big_endian: bool,
}

impl Block<'_> {
    /// The number at a place; 0 behind the end.
    fn word(self, at: usize) -> u32 {
        let bytes = self.bytes.get(at..).and_then(|rest| rest.first_chunk::<4>());
        bytes.map_or(0, |bytes| match self.is_big_endian {
            true => u32::from_be_bytes(*bytes),
            false => u32::from_le_bytes(*bytes),
        })
    }

    fn half(self, number: u16) -> [u8; 2] {
        if self.is_big_endian { number.to_be_bytes() } else { number.to_le_bytes() }
    }

    /// Appends it with `comments` in front of its options, which begin at `options`.
    fn write(self, options: usize, comments: &[impl AsRef<str>], out: &mut Vec<u8>) {
        let end = self.bytes.len().saturating_sub(4);
        if options > end {
            // No block that our reader accepts, but for a section header that is too short.
            out.extend(self.bytes);
            return;
        }
        let (head, before) = (&self.bytes[..options], &self.bytes[options..end]);
        let kept = self.without_marked(before);
        let start = out.len();
        out.extend(head);
        for comment in comments {
            let comment = comment.as_ref();
            let comment = &comment.as_bytes()[..cut(comment)];
            out.extend(self.half(COMMENT));
            out.extend(self.half(comment.len() as u16));
            out.extend(comment);
            out.extend(std::iter::repeat_n(0, comment.len().next_multiple_of(4) - comment.len()));
        }
        out.extend(&kept);
        if kept.is_empty() && !comments.is_empty() {
            out.extend(self.half(END_OF_OPTIONS));
            out.extend([0; 2]);
        }
        let length = (out.len() - start + 4) as u32;
        let length = if self.is_big_endian { length.to_be_bytes() } else { length.to_le_bytes() };
        out[start + 4..start + 8].copy_from_slice(&length);
        out.extend(length);
        if self.word(0) == SECTION_HEADER {
            // The section's own length is another one now: it is not given.
            out[start + 16..start + SECTION_OPTIONS].fill(0xff);
        }
    }

    /// Its options without comments of an earlier run. What cannot be read stays as it is.
    fn without_marked(self, mut options: &[u8]) -> Vec<u8> {
        let mut kept = Vec::with_capacity(options.len());
        while let Some(head) = options.first_chunk::<4>() {
            let [code, length] = [[head[0], head[1]], [head[2], head[3]]].map(|half| {
                if self.is_big_endian { u16::from_be_bytes(half) } else { u16::from_le_bytes(half) }
            });
            let whole = 4 + usize::from(length).next_multiple_of(4);
            if code == END_OF_OPTIONS || whole > options.len() {
                break;
            }
            let is_marked = code == COMMENT
                && [PACKET_MARK, SECTION_MARK]
                    .iter()
                    .any(|mark| options[4..].starts_with(mark.as_bytes()));
            if !is_marked {
                kept.extend(&options[..whole]);
            }
            options = &options[whole..];
        }
        kept.extend(options);
        kept
    }
}

/// How much of a comment fits.
fn cut(comment: &str) -> usize {
    let mut end = comment.len().min(COMMENT_MAX);
    while !comment.is_char_boundary(end) {
        end -= 1;
    }
    end
}

#[cfg(test)]
mod tests;
