//! The packets of a capture: from one file, or from several, merged by time.
//!
//! Several files are merged by the time of their next packets; among packets of the same time that
//! of the file named first comes first. A file is opened when its first packet is due. So of files
//! that follow one another, such as rotated captures, one is open at a time, and nothing is copied.

use crate::error::Error;
use crate::in_order::{InOrder, Waiting};
use crate::origin::{Open, Origin};
use fullpipe_flow::Counts;
use fullpipe_flow::capture::{FileItem, ReadError, Reader, Unpack};
use fullpipe_model::units::Instant;
use std::io::Read;
use std::path::Path;

type Bytes = Unpack<Box<dyn Read + Send>>;

/// When a packet is due: its time, and the position of its file among those named.
type Turn = (Instant, usize);

/// The packets of a capture, a piece of a file at a time: call [`PacketStream::read`] until nothing
/// is left.
pub struct PacketStream {
    open: Open,
    /// Files that are not opened yet, the next one last.
    waiting: Vec<(Turn, Origin)>,
    files: Vec<File>,
    /// The index in `files` of the file being read.
    current: Option<usize>,
    /// Whether packets are put into the order of time.
    sorts: bool,
    /// What files that were read tell of themselves.
    counts: Counts,
    errors: Vec<Error>,
}

impl PacketStream {
    /// The packets of `origins`, in the order in which they were named. Where `sorts`, those of a
    /// file whose times go back are put into the order of time.
    pub fn new(origins: Vec<Origin>, open: Open, sorts: bool) -> Self {
        let is_one = origins.len() == 1;
        let turns = origins.into_iter().enumerate().map(|(place, origin)| {
            // Files without a packet come last, and report their problem there.
            let first = match &origin {
                Origin::File(path) if !is_one => first_packet(path, &open),
                _ => None,
            };
            ((first.unwrap_or(Instant::from_nanos(u64::MAX)), place), origin)
        });
        let mut waiting: Vec<_> = turns.collect();
        waiting.sort_by_key(|(turn, _)| std::cmp::Reverse(*turn));
        let (files, counts, errors) = (Vec::new(), Counts::default(), Vec::new());
        PacketStream { open, waiting, files, current: None, sorts, counts, errors }
    }

    /// Reads on and passes complete packets to `packet`, and key logs before the packets that they
    /// are for; false if nothing is left.
    pub fn read(&mut self, packet: impl FnMut(&FileItem<'_>)) -> bool {
        let Some(current) = self.current.take().or_else(|| self.choose()) else {
            return !self.waiting.is_empty();
        };
        let until = self.next_turn(current);
        match self.files[current].read(until, packet) {
            Ok(ReadProgress::GoesOn) => self.current = Some(current),
            Ok(ReadProgress::Waits) => {}
            Ok(ReadProgress::Ended) => {
                let file = self.files.swap_remove(current);
                self.errors.extend(file.end(&mut self.counts).err());
            }
            Err(cause) => {
                let file = self.files.swap_remove(current);
                let name = file.name.clone();
                // Why it ends here is the cause; what is missing behind it says no more.
                let _ = file.end(&mut self.counts);
                self.errors.push(Error::Read { name, cause });
            }
        }
        true
    }

    /// What the files tell of themselves, and why they were not read to their ends. Packets before
    /// that, and those of the other files, were read.
    pub fn finish(self) -> (Counts, Vec<Error>) {
        (self.counts, self.errors)
    }

    /// The file with the next packet, opened if necessary; `None` if there is none, or it cannot be
    /// opened.
    fn choose(&mut self) -> Option<usize> {
        let next = (0..self.files.len()).min_by_key(|&file| self.files[file].turn());
        let due = self
            .waiting
            .pop_if(|(turn, _)| next.is_none_or(|next| *turn < self.files[next].turn()));
        let Some((turn, origin)) = due else { return next };
        match File::open(origin, turn.1, &self.open, self.sorts) {
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
    order: InOrder,
    sorts: bool,
    /// A packet that waits until it is due.
    held: Option<Waiting>,
}

enum ReadProgress {
    /// More of this file may be due.
    GoesOn,
    /// Another file is due.
    Waits,
    Ended,
}

impl File {
    fn open(origin: Origin, place: usize, open: &Open, sorts: bool) -> Result<Self, Error> {
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
        let (reader, mut order) = (Reader::new(), InOrder::default());
        if sorts {
            // Until the first packet has told how many interfaces there are.
            order.wait();
        }
        Ok(File { name, place, source, reader, order, sorts, held: None })
    }

    /// When the waiting packet is due.
    fn turn(&self) -> Turn {
        (self.held.as_ref().map_or(Instant::ZERO, Waiting::at), self.place)
    }

    /// Passes on packets that come before `until`, and reads once.
    fn read(
        &mut self,
        until: Option<Turn>,
        mut packet: impl FnMut(&FileItem<'_>),
    ) -> Result<ReadProgress, ReadError> {
        if let Some(held) = self.held.take() {
            packet(&FileItem::Packet(held.packet()));
        }
        let read = self.read_on(until, &mut packet);
        if read.is_err() {
            // What was read before the error still counts.
            self.order.end();
            self.give_waiting(None, &mut packet);
        }
        read
    }

    fn read_on(
        &mut self,
        until: Option<Turn>,
        packet: &mut impl FnMut(&FileItem<'_>),
    ) -> Result<ReadProgress, ReadError> {
        if self.give(until, packet)? {
            return Ok(ReadProgress::Waits);
        }
        let has_ended = self.reader.fill(&mut self.source)? == 0;
        if has_ended {
            self.order.end();
        }
        Ok(match self.give(until, packet)? {
            true => ReadProgress::Waits,
            false if has_ended => ReadProgress::Ended,
            false => ReadProgress::GoesOn,
        })
    }

    /// Passes on complete packets that come before `until`; returns whether one waits.
    fn give(
        &mut self,
        until: Option<Turn>,
        packet: &mut impl FnMut(&FileItem<'_>),
    ) -> Result<bool, ReadError> {
        loop {
            if self.give_waiting(until, packet) {
                return Ok(true);
            }
            let found = match self.reader.next_found()? {
                Some(FileItem::Packet(found)) => found,
                Some(secrets) => {
                    packet(&secrets);
                    continue;
                }
                None => return Ok(false),
            };
            if self.order.waits() {
                let is_first = self.order.push(&found);
                if is_first && !self.reader.has_several_interfaces() {
                    self.order.end();
                }
                continue;
            }
            if until.is_some_and(|until| until < (found.at, self.place)) {
                self.held = Some(self.order.keep(&found));
                return Ok(true);
            }
            if self.order.passes(found.at) && self.sorts {
                self.order.wait();
            }
            packet(&FileItem::Packet(found));
        }
    }

    /// Passes on packets that need not wait for others and come before `until`; returns whether one
    /// waits for that.
    fn give_waiting(
        &mut self,
        until: Option<Turn>,
        packet: &mut impl FnMut(&FileItem<'_>),
    ) -> bool {
        while let Some(next) = self.order.pop() {
            if until.is_some_and(|until| until < (next.at(), self.place)) {
                self.held = Some(next);
                return true;
            }
            packet(&FileItem::Packet(next.packet()));
        }
        false
    }

    /// Ends the file, adds what it tells of itself, and reports what is missing.
    fn end(self, counts: &mut Counts) -> Result<(), Error> {
        let (name, summary) = (self.name, self.reader.finish());
        *counts += Counts {
            dropped: summary.dropped,
            backwards: self.order.backwards,
            unsorted: self.order.unsorted,
            ..Counts::default()
        };
        match summary.cut {
            0 if summary.recognised => Ok(()),
            0 => Err(Error::Empty { name }),
            bytes => Err(Error::Cut { name, bytes, packets: summary.packets }),
        }
    }
}

#[cfg(test)]
mod tests;
