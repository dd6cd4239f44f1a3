//! The classic format: a file header, then records, each with a header and a packet.

use super::step::Step;
use super::write::{FILE_HEADER, RECORD_HEADER};
use super::{LinkType, MAX_RECORD};

/// What the file's header says of all its records.
#[derive(Debug)]
pub(super) struct Header {
    big_endian: bool,
    /// Nanoseconds of one unit in the fraction of a second.
    fraction: u64,
    /// Bytes between a record's header and its packet: 8 in A. Kuznetzov's modified format.
    extra: usize,
    link_type: LinkType,
}

impl Header {
    pub fn has_magic(magic: [u8; 4]) -> bool {
        const MAGICS: [u32; 3] = [0xa1b2_c3d4, 0xa1b2_3c4d, 0xa1b2_cd34];
        MAGICS.contains(&u32::from_le_bytes(magic)) || MAGICS.contains(&u32::from_be_bytes(magic))
    }

    /// Reads the file's header; `None` if it is incomplete or no such header.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let (_, header) = pcap_parser::parse_pcap_header(bytes.get(..FILE_HEADER)?).ok()?;
        Some(Header {
            big_endian: header.is_bigendian(),
            fraction: if header.is_nanosecond_precision() { 1 } else { 1_000 },
            extra: if header.is_modified_format() { 8 } else { 0 },
            // The upper half of the field holds the length of the frame check sequence.
            link_type: LinkType(header.network.0 as u16),
        })
    }

    pub fn step(&self, bytes: &[u8]) -> Step {
        let Some(header) = bytes.first_chunk::<RECORD_HEADER>() else {
            return Step::Need(RECORD_HEADER);
        };
        let [seconds, fraction, captured, original] = [0, 4, 8, 12].map(|at| {
            let word = [header[at], header[at + 1], header[at + 2], header[at + 3]];
            if self.big_endian { u32::from_be_bytes(word) } else { u32::from_le_bytes(word) }
        });
        let captured = captured as usize;
        if captured > MAX_RECORD {
            return Step::Bad("claims to be longer than 256 MiB");
        }
        let start = RECORD_HEADER + self.extra;
        let record = start + captured;
        if bytes.len() < record {
            return Step::Need(record);
        }
        let at = u64::from(seconds) * 1_000_000_000 + u64::from(fraction) * self.fraction;
        let original = (original as usize).max(captured);
        Step::Packet { record, data: start..record, at, link_type: self.link_type, original }
    }
}
