//! The packets of a capture: from one file, or from several, merged by time.
//!
//! Several files are merged by the time of their next packets; among packets of the same time that
//! of the file named first comes first. A file is opened when its first packet is due. So of files
//! that follow one another, such as rotated captures, one is open at a time, and nothing is copied.

use crate::error::Error;
use crate::origin::{Open, Origin};
use fullpipe_flow::capture::{LinkType, Packet, ReadError, Reader, Unpack};
use fullpipe_model::units::Instant;
use std::io::Read;
use std::path::Path;

type Bytes = Unpack<Box<dyn Read + Send>>;

/// When a packet is due: its time, and the position of its file among those named.
type Turn = (Instant, usize);

/// The packets of a capture, a piece of a file at a time: call [`Stream::read`] until nothing is
/// left.
pub struct Stream {
    open: Open,
    /// Files that are not opened yet, the next one last.
    waiting: Vec<(Turn, Origin)>,
    files: Vec<File>,
    /// The index in `files` of the file being read.
    current: Option<usize>,
    errors: Vec<Error>,
}

impl Stream {
    /// The packets of `origins`, in the order in which they were named.
    pub fn new(origins: Vec<Origin>, open: Open) -> Self {
        let is_one = origins.len() == 1;
        let turn = |(place, origin): (usize, Origin)| {
            // Files without a packet come last, and report their problem there.
            let first = match &origin {
                Origin::File(path) if !is_one => first_packet(path, &open),
                _ => None,
            };
            ((first.unwrap_or(Instant::from_nanos(u64::MAX)), place), origin)
        };
        let mut waiting: Vec<_> = origins.into_iter().enumerate().map(turn).collect();
        waiting.sort_by_key(|(turn, _)| std::cmp::Reverse(*turn));
        Stream { open, waiting, files: Vec::new(), current: None, errors: Vec::new() }
    }

    /// Reads on and passes complete packets to `packet`; false if nothing is left.
    pub fn read(&mut self, packet: impl FnMut(&Packet<'_>)) -> bool {
        let Some(current) = self.current.take().or_else(|| self.choose()) else {
            return !self.waiting.is_empty();
        };
        let until = self.next_turn(current);
        match self.files[current].read(until, packet) {
            Ok(Progress::GoesOn) => self.current = Some(current),
            Ok(Progress::Waits) => {}
            Ok(Progress::Ended) => {
                let file = self.files.swap_remove(current);
                self.errors.extend(file.end().err());
            }
            Err(cause) => {
                let name = self.files.swap_remove(current).name;
                self.errors.push(Error::Read { name, cause });
            }
        }
        true
    }

    /// Why files were not read to their ends. Packets before that, and those of the other files,
    /// were read.
    pub fn into_errors(self) -> Vec<Error> {
        self.errors
    }

    /// The file with the next packet, opened if necessary; `None` if there is none, or it cannot be
    /// opened.
    fn choose(&mut self) -> Option<usize> {
        let next = (0..self.files.len()).min_by_key(|&file| self.files[file].turn());
        let is_due = |(turn, _): &mut (Turn, Origin)| {
            next.is_none_or(|next| *turn < self.files[next].turn())
        };
        let Some((turn, origin)) = self.waiting.pop_if(is_due) else { return next };
        match File::open(origin, turn.1, &self.open) {
            Ok(file) => {
                self.files.push(file);
                Some(self.files.len() - 1)
            }
            Err(error) => {
                self.errors.push(error);
                next
            }
        }
    }

    /// When a file other than `current` is due.
    fn next_turn(&self, current: usize) -> Option<Turn> {
        let others = self.files.iter().enumerate().filter(|(file, _)| *file != current);
        others.map(|(_, file)| file.turn()).chain(self.waiting.last().map(|(turn, _)| *turn)).min()
    }
}

/// The time of the first packet of a file.
pub fn first_packet(path: &Path, open: &Open) -> Option<Instant> {
    // Anything but a regular file may be readable only once.
    std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?;
    let mut source = Unpack::new(open(path).ok()?).ok()?;
    let mut reader = Reader::new();
    while reader.fill(&mut source).ok()? > 0 {
        if let Some(packet) = reader.next_packet().ok()? {
            return Some(packet.at);
        }
    }
    None
}

/// A file that is being read.
struct File {
    name: String,
    /// Its position among those named.
    place: usize,
    source: Bytes,
    reader: Reader,
    /// Whether a packet waits until it is due.
    is_held: bool,
    held: Held,
}

/// A packet that waits until it is due; its memory is reused.
struct Held {
    at: Instant,
    link_type: LinkType,
    data: Vec<u8>,
    original_length: usize,
}

enum Progress {
    /// More of this file may be due.
    GoesOn,
    /// Another file is due.
    Waits,
    Ended,
}

impl File {
    fn open(origin: Origin, place: usize, open: &Open) -> Result<Self, Error> {
        let (name, opened) = match origin {
            Origin::File(path) => match open(&path) {
                Ok(opened) => (path.display().to_string(), opened),
                Err(cause) => return Err(Error::Open { path, cause }),
            },
            Origin::Reader(name, source) => (name, source),
        };
        let source = match Unpack::new(opened) {
            Ok(source) => source,
            Err(cause) => return Err(Error::Read { name, cause: cause.into() }),
        };
        let held = Held {
            at: Instant::ZERO,
            link_type: LinkType::RAW,
            data: Vec::new(),
            original_length: 0,
        };
        Ok(File { name, place, source, reader: Reader::new(), is_held: false, held })
    }

    /// When the waiting packet is due.
    fn turn(&self) -> Turn {
        (self.held.at, self.place)
    }

    /// Passes on packets that come before `until`, and reads once.
    fn read(
        &mut self,
        until: Option<Turn>,
        mut packet: impl FnMut(&Packet<'_>),
    ) -> Result<Progress, ReadError> {
        if std::mem::take(&mut self.is_held) {
            packet(&self.held.packet());
        }
        if self.give(until, &mut packet)? {
            return Ok(Progress::Waits);
        }
        if self.reader.fill(&mut self.source)? == 0 {
            return Ok(Progress::Ended);
        }
        Ok(if self.give(until, &mut packet)? { Progress::Waits } else { Progress::GoesOn })
    }

    /// Passes on complete packets that come before `until`; returns whether one waits.
    fn give(
        &mut self,
        until: Option<Turn>,
        packet: &mut impl FnMut(&Packet<'_>),
    ) -> Result<bool, ReadError> {
        while let Some(found) = self.reader.next_packet()? {
            if until.is_some_and(|until| until < (found.at, self.place)) {
                self.held.keep(&found);
                self.is_held = true;
                return Ok(true);
            }
            packet(&found);
        }
        Ok(false)
    }

    /// Ends the file, or reports what is missing.
    fn end(self) -> Result<(), Error> {
        let (name, summary) = (self.name, self.reader.finish());
        match summary.cut {
            0 if summary.recognised => Ok(()),
            0 => Err(Error::Empty { name }),
            bytes => Err(Error::Cut { name, bytes, packets: summary.packets }),
        }
    }
}

impl Held {
    fn keep(&mut self, packet: &Packet<'_>) {
        let Packet { at, link_type, data, original_length } = *packet;
        self.data.clear();
        self.data.extend_from_slice(data);
        (self.at, self.link_type, self.original_length) = (at, link_type, original_length);
    }

    fn packet(&self) -> Packet<'_> {
        let Held { at, link_type, ref data, original_length } = *self;
        Packet { at, link_type, data, original_length }
    }
}

#[cfg(test)]
mod tests;
