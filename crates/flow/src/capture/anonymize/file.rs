//! From a capture's packets to the bytes of a pcapng that says nothing else.
//!
//! The output has a section, its interfaces with their link types, packets with nanoseconds, and at
//! the end how many packets the capture itself had dropped. No name, comment, secret, filter,
//! description or block of another kind is ever written.

use super::{Anonymizer, SharedPacket};
use crate::capture::{Interfaces, Packet, Summary, write_ng};
use fullpipe_model::units::Instant;

/// Writes a capture anew. **Order**: [`SharedFile::begin`], [`SharedFile::packet`] for each packet
/// that [the reader gives](crate::capture::Reader::next_with_interfaces), [`SharedFile::end`]; each
/// appends to the bytes that the caller writes.
#[derive(Debug, Default)]
pub struct SharedFile {
    interfaces: usize,
    packets: u64,
    last: Instant,
}

impl SharedFile {
    /// The start of the file.
    pub fn begin(out: &mut Vec<u8>) -> SharedFile {
        write_ng::section(out);
        SharedFile::default()
    }

    /// Appends a packet. All interfaces that are described before it are in front of it here, too:
    /// a file of several is read in another way.
    pub fn packet<'a>(
        &mut self,
        packet: &Packet<'_>,
        interfaces: Interfaces<'_>,
        anonymizer: &'a mut Anonymizer,
        out: &mut Vec<u8>,
    ) -> SharedPacket<'a> {
        let interface = interfaces.of_packet();
        while self.interfaces < interfaces.count() {
            let link = interfaces.link_type(self.interfaces).unwrap_or(packet.link_type);
            write_ng::interface("", link, out);
            self.interfaces += 1;
        }
        let shared = anonymizer.packet(packet);
        let original = u32::try_from(shared.original_length).unwrap_or(u32::MAX);
        write_ng::packet(interface as u32, shared.at, shared.data, original, "", out);
        (self.packets, self.last) = (self.packets + 1, shared.at);
        shared
    }

    /// Appends what the capture counted itself.
    pub fn end(self, summary: &Summary, out: &mut Vec<u8>) {
        if let Some(dropped) = summary.dropped.filter(|_| self.interfaces > 0) {
            write_ng::statistics(0, self.last, self.packets, dropped, out);
        }
    }
}
