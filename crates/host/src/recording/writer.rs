//! Writes packets as pcapng: an interface for each device, and at the end of a file what was
//! dropped.

use super::choice::link_type;
use super::{RecordError, RecordPlace};
use fullpipe_flow::capture::LinkType;
use fullpipe_flow::capture::write_ng;
use fullpipe_kernel::network::packet_ring::{SeenPacket, device_name};
use fullpipe_kernel::network::port::VNET_HDR_LEN;
use fullpipe_model::units::{Bytes, Instant};
use std::path::PathBuf;

/// So much is written at once.
const CHUNK: usize = 256 << 10;
/// What the end of a file takes for each interface: its statistics.
const STATISTICS: usize = 64;

/// A device whose packets are in the file.
#[derive(Debug)]
struct Interface {
    device: u32,
    name: String,
    link: LinkType,
    /// Packets in this file.
    packets: u64,
}

/// What writes.
pub(super) struct Writer {
    place: Box<dyn RecordPlace>,
    interfaces: Vec<Interface>,
    buffer: Vec<u8>,
    /// What the file has by now, without the buffer.
    in_file: u64,
    /// What was written in all files.
    written: u64,
    is_open: bool,
    dropped: u64,
    last: Instant,
}

impl Writer {
    pub(super) fn new(place: Box<dyn RecordPlace>) -> Writer {
        Writer {
            place,
            interfaces: Vec::new(),
            buffer: Vec::with_capacity(2 * CHUNK),
            in_file: 0,
            written: 0,
            is_open: false,
            dropped: 0,
            last: Instant::ZERO,
        }
    }

    /// What was written, and what will be.
    pub(super) fn size(&self) -> Bytes {
        Bytes::new(self.written + self.buffer.len() as u64)
    }

    /// The files that are complete.
    pub(super) fn files(&self) -> Vec<PathBuf> {
        self.place.files()
    }

    /// Packets that are missing in this file.
    pub(super) fn note_dropped(&mut self, count: u64) {
        self.dropped += count;
    }

    /// Writes a packet; false if there is no room for it.
    pub(super) fn packet(&mut self, seen: &SeenPacket<'_>) -> Result<bool, RecordError> {
        let data = seen.frame.get(VNET_HDR_LEN..).unwrap_or_default();
        let end = STATISTICS * (self.interfaces.len() + 1);
        let needs = self.buffer.len() + data.len() + 256 + end;
        if self.is_open && self.in_file + needs as u64 > self.place.file_max().get() {
            if !self.place.goes_on() {
                return Ok(false);
            }
            self.complete()?;
        }
        self.begin();
        let number = self.number(seen);
        self.interfaces[number].packets += 1;
        self.last = Instant::ZERO + seen.at;
        let length = seen.len.saturating_sub(VNET_HDR_LEN);
        write_ng::packet(number as u32, self.last, data, length as u32, "", &mut self.buffer);
        if self.buffer.len() >= CHUNK {
            self.flush()?;
        }
        Ok(true)
    }

    /// Begins the file where somebody waits for that.
    pub(super) fn begin_at_once(&mut self) -> Result<(), RecordError> {
        if self.place.begins_at_once() {
            self.begin();
        }
        self.flush()
    }

    /// Begins a file, with the interfaces that are known.
    fn begin(&mut self) {
        if self.is_open {
            return;
        }
        self.is_open = true;
        write_ng::section(&mut self.buffer);
        for interface in &self.interfaces {
            write_ng::interface(&interface.name, interface.link, &mut self.buffer);
        }
    }

    /// The number of the interface that a packet was seen on, which is described first.
    fn number(&mut self, seen: &SeenPacket<'_>) -> usize {
        let link = link_type(seen.hardware);
        let known =
            self.interfaces.iter().position(|one| (one.device, one.link) == (seen.device, link));
        known.unwrap_or_else(|| {
            let name = device_name(seen.device).unwrap_or_else(|| seen.device.to_string());
            write_ng::interface(&name, link, &mut self.buffer);
            self.interfaces.push(Interface { device: seen.device, name, link, packets: 0 });
            self.interfaces.len() - 1
        })
    }

    /// Passes on what is buffered.
    pub(super) fn flush(&mut self) -> Result<(), RecordError> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        self.place.write(&self.buffer)?;
        self.in_file += self.buffer.len() as u64;
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// Ends the file, if there is one.
    pub(super) fn complete(&mut self) -> Result<(), RecordError> {
        if !self.is_open {
            return Ok(());
        }
        // The drops of all devices were counted together.
        let dropped = std::mem::take(&mut self.dropped);
        for (number, interface) in (0_u32..).zip(&mut self.interfaces) {
            let dropped = if number == 0 { dropped } else { 0 };
            let received = std::mem::take(&mut interface.packets) + dropped;
            write_ng::statistics(number, self.last, received, dropped, &mut self.buffer);
        }
        let flushed = self.flush();
        (self.is_open, self.in_file) = (false, 0);
        // What could be written is kept in any case.
        let completed = self.place.complete();
        flushed.and(completed)
    }
}
