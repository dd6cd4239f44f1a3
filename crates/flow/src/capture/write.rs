//! Formats a pcap file with nanoseconds: the caller owns the file and its buffer.
//!
//! ```
//! use fullpipe_flow::capture::write;
//! use fullpipe_model::units::Instant;
//! let packet = [0x45, 0, 0, 20];
//! let mut file = Vec::new();
//! file.extend(write::file_header(65_535));
//! file.extend(write::record_header(Instant::from_nanos(1_500_000_000), packet.len() as u32, 20));
//! file.extend(packet);
//! assert_eq!(file.len(), write::FILE_HEADER + write::RECORD_HEADER + packet.len());
//! ```

use super::LinkType;
use fullpipe_model::units::Instant;

/// Bytes of a file's header.
pub const FILE_HEADER: usize = 24;
/// Bytes of the header before each packet.
pub const RECORD_HEADER: usize = 16;

/// The start of a little-endian file with nanoseconds whose packets begin with their IP header
/// (`LINKTYPE_RAW`).
///
/// `snaplen` is the most bytes that are kept of a packet.
pub fn file_header(snaplen: u32) -> [u8; FILE_HEADER] {
    let mut header = [0; FILE_HEADER];
    header[0..4].copy_from_slice(&0xa1b2_3c4d_u32.to_le_bytes());
    header[4..6].copy_from_slice(&2_u16.to_le_bytes());
    header[6..8].copy_from_slice(&4_u16.to_le_bytes());
    header[16..20].copy_from_slice(&snaplen.to_le_bytes());
    header[20..24].copy_from_slice(&u32::from(LinkType::RAW.0).to_le_bytes());
    header
}

/// The header of a packet of which `captured` bytes follow and `original` bytes were on the wire.
///
/// Seconds are modulo 2^32, as in the format.
pub fn record_header(at: Instant, captured: u32, original: u32) -> [u8; RECORD_HEADER] {
    let seconds = (at.as_nanos() / 1_000_000_000) as u32;
    let nanos = (at.as_nanos() % 1_000_000_000) as u32;
    let mut header = [0; RECORD_HEADER];
    header[0..4].copy_from_slice(&seconds.to_le_bytes());
    header[4..8].copy_from_slice(&nanos.to_le_bytes());
    header[8..12].copy_from_slice(&captured.to_le_bytes());
    header[12..16].copy_from_slice(&original.to_le_bytes());
    header
}
