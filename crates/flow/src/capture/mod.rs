//! Capture files as bytes: pcap, pcapng and snoop in, pcap out. No file is opened here.
//!
//! [`Reader`] takes bytes in whatever pieces they arrive ([`Reader::fill`]) and returns packets
//! ([`Reader::next_packet`]) until it needs more; If a file may be compressed, [`Unpack`] comes
//! before it; [`Opener`] comes after it and removes link headers and tunnels. A file that ends
//! inside a record is not an error: the packets before the cut were returned, and
//! [`Reader::finish`] says what is missing. [`read`] drives a reader from any [`std::io::Read`].
//!
//! Formats: pcap in both byte orders with micro- and nanoseconds (`draft-ietf-opsawg-pcap`), and
//! pcapng (`draft-ietf-opsawg-pcapng`) with several sections and interfaces, enhanced, simple and
//! obsolete packet blocks, and the timestamps' resolution and offset; snoop (RFC 1761). Section
//! headers, interface descriptions and statistics, which carry options, are parsed by
//! `pcap-parser`; records are framed here, because framing must be resumable at any byte and
//! bounded in memory.

pub mod anonymize;
pub mod commented;
mod fragments;
pub(crate) mod greeting;
mod layer;
mod link;
mod opener;
mod pcap;
mod pcapng;
mod reader;
pub mod recapture;
pub mod segment;
mod snoop;
mod step;
mod tunnel;
mod unpack;
pub mod write;
pub mod write_ng;

pub(crate) use layer::{half, word};
pub use link::{LinkType, ip_packet};
pub use opener::{Layer, Opened, Opener};
pub use reader::{FileItem, FileRecord, Interfaces, ReadError, Reader, Summary, read};
pub use unpack::{Packing, Unpack};

use fullpipe_model::units::Instant;

/// A packet as it was captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet<'a> {
    /// When it was captured, since 1970 or whatever epoch the file's writer chose. The epoch itself
    /// if the file does not say (simple packet blocks).
    pub at: Instant,
    /// What the bytes begin with.
    pub link_type: LinkType,
    /// The captured bytes.
    pub data: &'a [u8],
    /// Bytes that it had on the wire, link header included.
    pub original_length: usize,
}

/// A larger record is taken for a damaged file; tshark's limit for its largest link type is the
/// same 256 MiB.
const MAX_RECORD: usize = 256 << 20;

#[cfg(test)]
mod tests;
