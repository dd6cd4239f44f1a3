//! Solaris' format (RFC 1761): a file header, then records of a header, a packet and padding,
//! big-endian.

use super::step::Step;
use super::{LinkType, MAX_RECORD, word};

/// What the file begins with.
pub(super) const MAGIC: [u8; 8] = *b"snoop\0\0\0";
/// Bytes of the file's header: the magic, the version and the datalink type.
pub(super) const FILE_HEADER: usize = 16;
const RECORD_HEADER: usize = 24;

#[derive(Debug)]
pub(super) struct Header {
    link_type: LinkType,
}

impl Header {
    /// Reads the file's header; `None` if it is incomplete or its version is not 2.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let header = bytes.first_chunk::<FILE_HEADER>()?;
        let link_type = match word(header, 12)? {
            0 | 4 => LinkType::ETHERNET,
            8 => LinkType::FDDI,
            // It is none of ours; the packets are only counted.
            _ => LinkType(u16::MAX),
        };
        (word(header, 8)? == 2).then_some(Header { link_type })
    }

    pub fn step(&self, bytes: &[u8]) -> Step {
        let Some(header) = bytes.first_chunk::<RECORD_HEADER>() else {
            return Step::Need(RECORD_HEADER);
        };
        let [original, captured, record, seconds, micros] = [0, 4, 8, 16, 20].map(|at| {
            u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
        });
        let [original, captured, record] = [original, captured, record].map(|word| word as usize);
        if record > MAX_RECORD {
            return Step::Bad("claims to be longer than 256 MiB");
        }
        // Reading records shorter than their header would never end.
        if record < RECORD_HEADER || captured > record - RECORD_HEADER {
            return Step::Bad("holds less than the packet that it claims");
        }
        if bytes.len() < record {
            return Step::Need(record);
        }
        let at = u64::from(seconds) * 1_000_000_000 + u64::from(micros) * 1_000;
        let data = RECORD_HEADER..RECORD_HEADER + captured;
        Step::Packet {
            record,
            data,
            at,
            link_type: self.link_type,
            original: original.max(captured),
        }
    }
}
