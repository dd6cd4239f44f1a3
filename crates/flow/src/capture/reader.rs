//! From bytes in any pieces to packets.

use super::step::Step;
use super::{LinkType, MAX_RECORD, Packet, pcap, pcapng, snoop};
use std::io::Read;
use std::ops::Range;

/// Reads one capture file. [`fill`](Reader::fill) from a source (or [`feed`](Reader::feed) bytes),
/// take packets until `None`, fill again; [`finish`](Reader::finish) when the bytes end.
///
/// Bytes go from the source into one buffer, and packets are slices of it. Each fill copies only
/// the part of a record that is at the buffer's end.
#[derive(Debug, Default)]
pub struct Reader {
    buffer: Vec<u8>,
    /// The part of `buffer` that is not consumed: from `start` to before `end`.
    start: usize,
    end: usize,
    /// Bytes of the file before `buffer`.
    offset: u64,
    /// Bytes of the current record that are still to be skipped.
    skip: usize,
    packets: u64,
    format: Format,
}

/// Bytes that are read at once: enough for few system calls, and few enough to be still in the
/// cache when they are parsed.
const CHUNK: usize = 1 << 18;

#[derive(Debug, Default)]
enum Format {
    #[default]
    Undecided,
    Pcap(pcap::Header),
    Pcapng(Box<pcapng::State>),
    Snoop(snoop::Header),
    /// An error was returned; nothing after it can be framed.
    Broken,
}

/// The interfaces that a file has described up to a packet: those of all sections of a pcapng are
/// counted, other formats have one.
#[derive(Debug, Clone, Copy)]
pub struct Interfaces<'a>(&'a Format);

impl Interfaces<'_> {
    /// The number of the packet's own.
    pub fn of_packet(&self) -> usize {
        match self.0 {
            Format::Pcapng(state) => state.last_interface(),
            _ => 0,
        }
    }

    /// How many are described.
    pub fn count(&self) -> usize {
        match self.0 {
            Format::Pcapng(state) => state.interface_count(),
            _ => 1,
        }
    }

    /// What the packets of one begin with, if it is of this section.
    pub fn link_type(&self, number: usize) -> Option<LinkType> {
        match self.0 {
            Format::Pcapng(state) => state.link_type(number),
            _ => None,
        }
    }
}

/// A record as its bytes stand in the file.
#[derive(Debug, Clone, Copy)]
pub struct FileRecord<'a> {
    /// All of it: its header, and a block of pcapng to the length that it repeats.
    pub bytes: &'a [u8],
    /// The packet in it.
    pub packet: Option<Packet<'a>>,
    /// The byte order of a block of pcapng; `None` in the other formats.
    pub block_is_big_endian: Option<bool>,
}

/// What a file has for an analysis.
#[derive(Debug, Clone, Copy)]
pub enum FileItem<'a> {
    /// A packet.
    Packet(Packet<'a>),
    /// A key log of TLS (pcapng's decryption secrets block), for packets behind it.
    Secrets(&'a [u8]),
}

/// The same by its place in the buffer.
enum FileItemAt {
    Packet(PacketAt),
    Secrets(Range<usize>),
}

struct PacketAt {
    data: Range<usize>,
    at: u64,
    link_type: LinkType,
    original_length: usize,
}

/// What a reader has read in total.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// Packets returned.
    pub packets: u64,
    /// Bytes after the last complete record: not zero if the file was cut.
    pub cut: usize,
    /// Whether the format was recognised.
    pub recognised: bool,
    /// Packets that the capture dropped, by its own counters; `None` where it has none.
    pub dropped: Option<u64>,
}

/// Why a capture cannot be read further. The packets before the error are valid.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The first bytes belong to no known format.
    #[error(
        "reading a capture: the file begins with '{text}', which is neither pcap, pcapng nor snoop \
         (nor gzip, zstd, xz or lz4 of one); unpack what is packed otherwise and name `-` \
         (`bzcat FILE | fullpipe analyze -`), convert others with `editcap -F pcapng IN OUT`",
        text = magic.escape_ascii()
    )]
    Format {
        /// The first four bytes.
        magic: [u8; 4],
    },
    /// A record's header contradicts itself.
    #[error(
        "reading a capture: the record at byte {offset} {problem}; packets before it were read, {packets} in all"
    )]
    Record {
        /// Where the record starts in the file.
        offset: u64,
        /// What is wrong with it.
        problem: &'static str,
        /// Packets before it.
        packets: u64,
    },
    /// The source of bytes failed.
    #[error("reading a capture: {0}; packets before it were read")]
    Source(#[from] std::io::Error),
}

impl Reader {
    /// A reader at the start of a file.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads the next bytes of the file from `source` and returns how many; 0 at its end. Memory
    /// stays bounded if packets are taken between calls.
    ///
    /// # Errors
    /// Those of `source`.
    pub fn fill(&mut self, source: &mut impl Read) -> std::io::Result<usize> {
        self.make_room(CHUNK);
        loop {
            match source.read(&mut self.buffer[self.end..]) {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
                Ok(length) => {
                    self.added(length);
                    return Ok(length);
                }
            }
        }
    }

    /// Takes the next bytes of the file, if there is no source to read.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.make_room(bytes.len());
        self.buffer[self.end..self.end + bytes.len()].copy_from_slice(bytes);
        self.added(bytes.len());
    }

    /// Makes at least `least` bytes of the buffer free behind its end.
    fn make_room(&mut self, least: usize) {
        if self.buffer.len() - self.end >= least {
            return;
        }
        self.buffer.copy_within(self.start..self.end, 0);
        self.offset += self.start as u64;
        self.end -= self.start;
        self.start = 0;
        if self.buffer.len() - self.end < least {
            self.buffer.resize((self.end + least).max(self.end * 2), 0);
        }
    }

    fn added(&mut self, length: usize) {
        self.end += length;
        let skipped = self.skip.min(self.end - self.start);
        self.skip -= skipped;
        self.start += skipped;
    }

    /// The next whole packet; `None` when more bytes are needed.
    #[inline]
    pub fn next_packet(&mut self) -> Result<Option<Packet<'_>>, ReadError> {
        Ok(self.next_with_interfaces()?.map(|(packet, _)| packet))
    }

    /// The same with what the file says of its interfaces.
    #[inline]
    pub fn next_with_interfaces(
        &mut self,
    ) -> Result<Option<(Packet<'_>, Interfaces<'_>)>, ReadError> {
        let found = loop {
            match self.found()? {
                Some(FileItemAt::Packet(found)) => break found,
                Some(FileItemAt::Secrets(_)) => {}
                None => return Ok(None),
            }
        };
        Ok(Some((self.packet(found), Interfaces(&self.format))))
    }

    /// The next packet or key log; `None` when more bytes are needed.
    ///
    /// # Errors
    /// Those of [`next_packet`](Reader::next_packet).
    #[inline]
    pub fn next_found(&mut self) -> Result<Option<FileItem<'_>>, ReadError> {
        Ok(match self.found()? {
            Some(FileItemAt::Packet(found)) => Some(FileItem::Packet(self.packet(found))),
            Some(FileItemAt::Secrets(log)) => Some(FileItem::Secrets(&self.buffer[log])),
            None => None,
        })
    }

    #[inline]
    fn packet(&self, found: PacketAt) -> Packet<'_> {
        let PacketAt { data, at, link_type, original_length } = found;
        let at = fullpipe_model::units::Instant::from_nanos(at);
        Packet { at, link_type, data: &self.buffer[data], original_length }
    }

    /// Where in the buffer the next packet or key log is.
    #[inline]
    fn found(&mut self) -> Result<Option<FileItemAt>, ReadError> {
        loop {
            match self.step()? {
                None => return Ok(None),
                Some(Step::Packet { record, data, at, link_type, original }) => {
                    let data = self.start + data.start..self.start + data.end;
                    self.start += record;
                    self.packets += 1;
                    let original_length = original;
                    return Ok(Some(FileItemAt::Packet(PacketAt {
                        data,
                        at,
                        link_type,
                        original_length,
                    })));
                }
                Some(Step::Secrets { record, data }) => {
                    let log = self.start + data.start..self.start + data.end;
                    self.start += record;
                    return Ok(Some(FileItemAt::Secrets(log)));
                }
                Some(Step::Other { record }) => self.pass(record),
                Some(Step::Need(length)) if length <= MAX_RECORD => return Ok(None),
                Some(Step::Need(_)) => {
                    return Err(self.broken("claims to be longer than 256 MiB"));
                }
                Some(Step::Bad(problem)) => return Err(self.broken(problem)),
            }
        }
    }

    /// The next whole record as its bytes stand in the file, with the packet in it, if there is
    /// one; `None` when more bytes are needed. The file's own header is no record.
    ///
    /// # Errors
    /// Those of [`next_packet`](Reader::next_packet).
    pub fn next_record(&mut self) -> Result<Option<FileRecord<'_>>, ReadError> {
        let (length, found) = match self.step()? {
            None => return Ok(None),
            Some(Step::Packet { record, data, at, link_type, original }) => {
                self.packets += 1;
                (record, Some((data, at, link_type, original)))
            }
            // What is not a packet is wanted whole here.
            Some(Step::Other { record }) if record > self.end - self.start => return Ok(None),
            Some(Step::Secrets { record, .. } | Step::Other { record }) => (record, None),
            Some(Step::Need(length)) if length <= MAX_RECORD => return Ok(None),
            Some(Step::Need(_)) => return Err(self.broken("claims to be longer than 256 MiB")),
            Some(Step::Bad(problem)) => return Err(self.broken(problem)),
        };
        let bytes = &self.buffer[self.start..self.start + length];
        self.start += length;
        let packet = found.map(|(data, at, link_type, original_length)| {
            let at = fullpipe_model::units::Instant::from_nanos(at);
            Packet { at, link_type, data: &bytes[data], original_length }
        });
        let block_is_big_endian = match &self.format {
            Format::Pcapng(state) => Some(state.is_big_endian()),
            _ => None,
        };
        Ok(Some(FileRecord { bytes, packet, block_is_big_endian }))
    }

    /// What the format makes of the bytes that are there; `None` where they do not say which
    /// format it is, or no more can be framed.
    #[inline]
    fn step(&mut self) -> Result<Option<Step>, ReadError> {
        loop {
            let rest = &self.buffer[self.start..self.end];
            return Ok(Some(match &mut self.format {
                Format::Broken => return Ok(None),
                Format::Undecided => match decide(rest) {
                    Decision::More => return Ok(None),
                    Decision::Is(format, consumed) => {
                        self.format = format;
                        self.start += consumed;
                        continue;
                    }
                    Decision::No(magic) => {
                        self.format = Format::Broken;
                        return Err(ReadError::Format { magic });
                    }
                },
                Format::Pcap(header) => header.step(rest),
                Format::Pcapng(state) => state.step(rest),
                Format::Snoop(header) => header.step(rest),
            }));
        }
    }

    /// Whether packets come from more than one interface so far. Such a file need not be in the
    /// order of time.
    pub fn has_several_interfaces(&self) -> bool {
        matches!(&self.format, Format::Pcapng(state) if state.has_several_interfaces())
    }

    /// Ends the file and returns what was read.
    pub fn finish(self) -> Summary {
        let recognised =
            matches!(self.format, Format::Pcap(_) | Format::Pcapng(_) | Format::Snoop(_));
        let cut = match &self.format {
            Format::Broken => 0,
            _ => (self.end - self.start).max(usize::from(self.skip > 0)),
        };
        let dropped = match &self.format {
            Format::Pcapng(state) => state.dropped(),
            _ => None,
        };
        Summary { packets: self.packets, cut, recognised, dropped }
    }

    /// Skips a record, of which some bytes may not have been read yet.
    fn pass(&mut self, record: usize) {
        let here = record.min(self.end - self.start);
        self.start += here;
        self.skip = record - here;
    }

    fn broken(&mut self, problem: &'static str) -> ReadError {
        self.format = Format::Broken;
        ReadError::Record {
            offset: self.offset + self.start as u64,
            problem,
            packets: self.packets,
        }
    }
}

/// Reads `source` to its end and passes each packet to `packet`.
///
/// # Errors
/// [`ReadError`]; the packets before it were passed on.
pub fn read(
    mut source: impl Read,
    mut packet: impl FnMut(Packet<'_>),
) -> Result<Summary, ReadError> {
    let mut reader = Reader::new();
    while reader.fill(&mut source)? > 0 {
        while let Some(found) = reader.next_packet()? {
            packet(found);
        }
    }
    Ok(reader.finish())
}

enum Decision {
    More,
    Is(Format, usize),
    No([u8; 4]),
}

fn decide(bytes: &[u8]) -> Decision {
    let Some(magic) = bytes.first_chunk::<4>() else { return Decision::More };
    if *magic == pcapng::MAGIC {
        return Decision::Is(Format::Pcapng(Box::default()), 0);
    }
    if snoop::MAGIC.starts_with(magic) {
        return match snoop::Header::parse(bytes).filter(|_| bytes.starts_with(&snoop::MAGIC)) {
            Some(header) => Decision::Is(Format::Snoop(header), snoop::FILE_HEADER),
            None if bytes.len() < snoop::FILE_HEADER => Decision::More,
            None => Decision::No(*magic),
        };
    }
    if !pcap::Header::has_magic(*magic) {
        return Decision::No(*magic);
    }
    match pcap::Header::parse(bytes) {
        Some(header) => Decision::Is(Format::Pcap(header), super::write::FILE_HEADER),
        None if bytes.len() < super::write::FILE_HEADER => Decision::More,
        None => Decision::No(*magic),
    }
}
