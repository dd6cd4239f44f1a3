//! Unpacks compressed captures as they are read: gzip (RFC 1952), Zstandard (RFC 8878), xz
//! (<https://tukaani.org/xz/xz-file-format.txt>) and LZ4's frames
//! (<https://github.com/lz4/lz4/blob/dev/doc/lz4_Frame_format.md>).
//!
//! The first bytes decide which it is, not the file's name. A file of several members, streams or
//! frames, as rotating and appending programs write it, counts as one. Memory is bounded however
//! much a file unpacks to: gzip needs 32 KiB, LZ4 some blocks of 4 MiB at most, Zstandard its
//! window and xz its dictionary, of which more than 128 MiB (`zstd --long=27`, what `zstd -d`
//! accepts too, and twice that of `xz -9`) is refused.

mod lz4;

use flate2::bufread::MultiGzDecoder;
use lz4::Lz4Frames;
use lzma_rust2::XzReader;
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
use std::io::{BufRead, BufReader, Chain, Cursor, Error, ErrorKind, Read, Result};

/// How a file is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Packing {
    /// Not at all.
    Plain,
    /// gzip.
    Gzip,
    /// Zstandard.
    Zstd,
    /// xz.
    Xz,
    /// LZ4's frames.
    Lz4,
}

/// The bytes of a file, unpacked if it is compressed.
///
/// ```
/// use fullpipe_flow::capture::{Packing, Unpack};
/// use std::io::Read;
/// let mut plain = Unpack::new(&b"as it is"[..])?;
/// let mut text = String::new();
/// plain.read_to_string(&mut text)?;
/// assert_eq!((plain.packing(), text.as_str()), (Packing::Plain, "as it is"));
/// # std::io::Result::Ok(())
/// ```
pub struct Unpack<R: Read>(PackedSource<R>);

type Begun<R> = Chain<Cursor<Vec<u8>>, R>;

enum PackedSource<R: Read> {
    Plain(Begun<R>),
    Gzip(MultiGzDecoder<BufReader<Begun<R>>>),
    Zstd(Box<Frames<BufReader<Begun<R>>>>),
    Xz(Box<XzReader<BufReader<Begun<R>>>>),
    Lz4(Box<Lz4Frames<BufReader<Begun<R>>>>),
}

/// Bytes of compressed data that are read at once.
const CHUNK: usize = 1 << 17;
const GZIP: [u8; 3] = [0x1f, 0x8b, 8];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
const XZ: [u8; 6] = [0xfd, b'7', b'z', b'X', b'Z', 0];
/// The largest window of a Zstandard frame, the largest dictionary of xz.
const MAX_WINDOW: u64 = 128 << 20;
/// What xz needs beside its dictionary, in KiB: `lzma_rust2` counts 104.
const XZ_BESIDE: u32 = 128;

impl<R: Read> Unpack<R> {
    /// Reads the first bytes of `source` to see what it is.
    ///
    /// # Errors
    /// Those of `source`.
    pub fn new(mut source: R) -> Result<Self> {
        let mut magic = Vec::with_capacity(ZSTD.len());
        (&mut source).take(ZSTD.len() as u64).read_to_end(&mut magic)?;
        let packing = if magic.starts_with(&GZIP) {
            Packing::Gzip
        } else if magic == ZSTD || is_skippable(&magic) {
            Packing::Zstd
        } else if magic == XZ[..4] {
            Packing::Xz
        } else if magic == lz4::MAGIC {
            Packing::Lz4
        } else {
            Packing::Plain
        };
        let begun = Cursor::new(magic).chain(source);
        Ok(Unpack(match packing {
            Packing::Plain => PackedSource::Plain(begun),
            Packing::Gzip => {
                PackedSource::Gzip(MultiGzDecoder::new(BufReader::with_capacity(CHUNK, begun)))
            }
            Packing::Zstd => {
                PackedSource::Zstd(Box::new(Frames::new(BufReader::with_capacity(CHUNK, begun))))
            }
            Packing::Xz => {
                let most = (MAX_WINDOW >> 10) as u32 + XZ_BESIDE;
                let source = BufReader::with_capacity(CHUNK, begun);
                PackedSource::Xz(Box::new(XzReader::new_mem_limit(source, true, most)))
            }
            Packing::Lz4 => {
                PackedSource::Lz4(Box::new(Lz4Frames::new(BufReader::with_capacity(CHUNK, begun))))
            }
        }))
    }

    /// How the file was packed.
    pub fn packing(&self) -> Packing {
        match self.0 {
            PackedSource::Plain(_) => Packing::Plain,
            PackedSource::Gzip(_) => Packing::Gzip,
            PackedSource::Zstd(_) => Packing::Zstd,
            PackedSource::Xz(_) => Packing::Xz,
            PackedSource::Lz4(_) => Packing::Lz4,
        }
    }
}

impl<R: Read> Read for Unpack<R> {
    fn read(&mut self, into: &mut [u8]) -> Result<usize> {
        match &mut self.0 {
            PackedSource::Plain(source) => source.read(into),
            PackedSource::Gzip(source) => source.read(into),
            PackedSource::Zstd(source) => source.read(into),
            PackedSource::Xz(source) => source.read(into).map_err(|error| unreadable("xz", error)),
            PackedSource::Lz4(source) => {
                source.read(into).map_err(|error| unreadable("lz4", error))
            }
        }
    }
}

/// Frames one after another; the decoder itself ends with its first.
struct Frames<R: BufRead> {
    source: R,
    decoder: FrameDecoder,
    in_frame: bool,
}

impl<R: BufRead> Frames<R> {
    fn new(source: R) -> Self {
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(MAX_WINDOW);
        Frames { source, decoder, in_frame: false }
    }

    /// Starts the next frame; false at the end of the file.
    fn start(&mut self) -> Result<bool> {
        loop {
            let mut magic = Vec::with_capacity(4);
            (&mut self.source).take(4).read_to_end(&mut magic)?;
            if magic.is_empty() {
                return Ok(false);
            }
            if is_skippable(&magic) {
                skip(&mut self.source)?;
                continue;
            }
            self.decoder
                .reset(Cursor::new(magic).chain(&mut self.source))
                .map_err(unreadable_zstd)?;
            self.in_frame = true;
            return Ok(true);
        }
    }
}

impl<R: BufRead> Read for Frames<R> {
    fn read(&mut self, into: &mut [u8]) -> Result<usize> {
        if into.is_empty() {
            return Ok(0);
        }
        loop {
            if self.in_frame {
                if self.decoder.can_collect() > 0 {
                    return self.decoder.read(into);
                }
                if !self.decoder.is_finished() {
                    self.decoder
                        .decode_blocks(&mut self.source, BlockDecodingStrategy::UptoBlocks(1))
                        .map_err(unreadable_zstd)?;
                    continue;
                }
                self.in_frame = false;
            }
            if !self.start()? {
                return Ok(0);
            }
        }
    }
}

fn unreadable_zstd(error: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::InvalidData, format!("unpacking zstd: {error}"))
}

/// An unpacker's error with its name; the end of the file and interruptions stay as they are.
fn unreadable(packing: &str, error: Error) -> Error {
    match error.kind() {
        ErrorKind::Interrupted => error,
        kind => Error::new(kind, format!("unpacking {packing}: {error}")),
    }
}

/// Skips a skippable frame, whose first bytes were read. LZ4 has such frames too.
fn skip(source: &mut impl Read) -> Result<()> {
    let mut length = [0; 4];
    source.read_exact(&mut length)?;
    let length = u64::from(u32::from_le_bytes(length));
    let skipped = std::io::copy(&mut source.take(length), &mut std::io::sink())?;
    if skipped < length { Err(ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
}

/// RFC 8878 section 3.1.2: 0x184D2A50 to 0x184D2A5F.
fn is_skippable(magic: &[u8]) -> bool {
    matches!(magic, [low, 0x2a, 0x4d, 0x18] if low >> 4 == 5)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use proptest::prelude::*;
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};
    use std::io::Write;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn zstd(bytes: &[u8]) -> Vec<u8> {
        compress_to_vec(bytes, CompressionLevel::Fastest)
    }

    fn xz(bytes: &[u8]) -> Vec<u8> {
        let options = lzma_rust2::XzOptions::with_preset(0);
        let mut encoder = lzma_rust2::XzWriter::new(Vec::new(), options).unwrap();
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn lz4(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = lz4_flex::frame::FrameEncoder::new(Vec::new());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    type Pack = fn(&[u8]) -> Vec<u8>;
    const PACKERS: [Pack; 4] = [gzip, zstd, xz, lz4];

    /// What comes out, and whether it ended well.
    fn unpacked(bytes: &[u8]) -> (Vec<u8>, Result<usize>) {
        let mut found = Vec::new();
        let result = Unpack::new(bytes).and_then(|mut source| source.read_to_end(&mut found));
        (found, result)
    }

    #[test]
    fn what_was_packed_comes_out_and_parts_are_joined() {
        let bytes: Vec<u8> = (0..300_000_u32).map(|n| (n.wrapping_mul(n) >> 7) as u8).collect();
        for pack in PACKERS.into_iter().chain([<[u8]>::to_vec as Pack]) {
            assert_eq!(unpacked(&pack(&bytes)).0, bytes);
            let (one, two) = bytes.split_at(1000);
            assert_eq!(unpacked(&[pack(one), pack(two)].concat()).0, bytes);
        }
        let skipped =
            [&[0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3][..], &zstd(b"behind")].concat();
        assert_eq!(unpacked(&skipped).0, b"behind");
    }

    #[test]
    fn a_bomb_is_read_in_pieces() {
        // A thousand times larger than the file; the buffer is ours, so nothing else can have grown
        // with it.
        for pack in PACKERS {
            let bomb = pack(&vec![0; 64 << 20]);
            assert!(bomb.len() < 1 << 20, "{}", bomb.len());
            let mut source = Unpack::new(&bomb[..]).unwrap();
            let (mut piece, mut all) = (vec![1; 4096], 0);
            loop {
                match source.read(&mut piece).unwrap() {
                    0 => break,
                    length => all += length,
                }
            }
            assert_eq!(all, 64 << 20);
        }
    }

    #[test]
    fn a_window_beyond_the_limit_is_refused() {
        // A frame header with a window descriptor of 2^31 bytes and no content size.
        let frame = [&ZSTD[..], &[0, (31 - 10) << 3, 1, 0, 0]].concat();
        let error = unpacked(&frame).1.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData);
    }

    #[test]
    fn a_dictionary_beyond_the_limit_is_refused() {
        let options = |size| {
            let mut options = lzma_rust2::XzOptions::with_preset(0);
            options.lzma_options.dict_size = size;
            options
        };
        for (size, is_read) in [(128 << 20, true), (192 << 20, false)] {
            let mut encoder = lzma_rust2::XzWriter::new(Vec::new(), options(size)).unwrap();
            encoder.write_all(b"small").unwrap();
            let packed = encoder.finish().unwrap();
            assert_eq!(unpacked(&packed).1.is_ok(), is_read, "{size}");
        }
    }

    proptest! {
        #[test]
        fn a_cut_gives_a_prefix_and_an_error(which in 0..4_usize, bytes: Vec<u8>, cut: prop::sample::Index) {
            let packed = PACKERS[which](&bytes);
            let end = cut.index(packed.len());
            let (found, result) = unpacked(&packed[..end]);
            prop_assert!(bytes.starts_with(&found) || end < 4);
            // Less than the magic bytes are plain bytes.
            prop_assert!(result.is_err() || end < 4);
        }

        #[test]
        fn what_was_changed_is_read_or_refused(
            which in 0..4_usize,
            bytes in prop::collection::vec(0_u8..4, 0..2_000),
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        ) {
            let mut packed = PACKERS[which](&bytes);
            for (at, byte) in changes {
                let at = at.index(packed.len());
                packed[at] = byte;
            }
            let _ = Unpack::new(&packed[..]).and_then(|source| source.take(1 << 20).read_to_end(&mut Vec::new()));
        }

        #[test]
        fn any_bytes_are_read_or_refused(which in 0..5_usize, bytes: Vec<u8>) {
            let start = [&GZIP[..], &ZSTD[..], &XZ[..], &lz4::MAGIC[..], &[]][which];
            let _ = unpacked(&[start, &bytes].concat());
        }
    }
}
