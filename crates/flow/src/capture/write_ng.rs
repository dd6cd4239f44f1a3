//! Formats a pcapng file, for packets that carry a comment, come from several devices, or were
//! dropped: the caller owns the file and its buffer.
//!
//! One section, little endian, nanoseconds since 1970. Blocks are those of
//! draft-ietf-opsawg-pcapng: section header, interface description, enhanced packet, interface
//! statistics. **Order**: [`section`]; each [`interface`] before its first packet; [`packet`];
//! [`statistics`] at the end. [`file_header`] is the first two for packets that begin with their IP
//! header.

use super::LinkType;
use fullpipe_model::units::Instant;

pub(super) const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const STATISTICS: u32 = 5;
pub(super) const ENHANCED_PACKET: u32 = 6;
pub(super) const END_OF_OPTIONS: u16 = 0;
pub(super) const COMMENT: u16 = 1;
const IF_NAME: u16 = 2;
const IF_TSRESOL: u16 = 9;
const ISB_IFRECV: u16 = 4;
const ISB_OSDROP: u16 = 7;

/// The longest comment that is written, in bytes; a longer one is cut.
const COMMENT_MAX: usize = 4096;

/// Appends the start of a file with an interface for each name, whose packets begin with their IP
/// header; packets refer to them by index.
pub fn file_header(interfaces: &[&str], out: &mut Vec<u8>) {
    section(out);
    interfaces.iter().for_each(|name| interface(name, LinkType::RAW, out));
}

/// Appends the start of a file.
pub fn section(out: &mut Vec<u8>) {
    block(SECTION_HEADER, out, |out| {
        out.extend(0x1a2b_3c4d_u32.to_le_bytes());
        out.extend([1, 0, 0, 0]);
        // The section's length is not given.
        out.extend(u64::MAX.to_le_bytes());
    });
}

/// Appends an interface; packets refer to it by how many were before it. It may have no name.
pub fn interface(name: &str, link: LinkType, out: &mut Vec<u8>) {
    block(INTERFACE, out, |out| {
        out.extend(link.0.to_le_bytes());
        out.extend([0; 6]);
        if !name.is_empty() {
            option(IF_NAME, name.as_bytes(), out);
        }
        option(IF_TSRESOL, &[9], out);
        option(END_OF_OPTIONS, &[], out);
    });
}

/// Appends what was counted on `interface` until `at`: packets that it `received`, and those of
/// them that were `dropped` on the way to this file.
pub fn statistics(interface: u32, at: Instant, received: u64, dropped: u64, out: &mut Vec<u8>) {
    block(STATISTICS, out, |out| {
        out.extend(interface.to_le_bytes());
        out.extend(((at.as_nanos() >> 32) as u32).to_le_bytes());
        out.extend((at.as_nanos() as u32).to_le_bytes());
        option(ISB_IFRECV, &received.to_le_bytes(), out);
        option(ISB_OSDROP, &dropped.to_le_bytes(), out);
        option(END_OF_OPTIONS, &[], out);
    });
}

/// Appends a packet on `interface`: `captured` has its captured bytes, and `original` bytes were on
/// the wire.
pub fn packet(
    interface: u32,
    at: Instant,
    captured: &[u8],
    original: u32,
    comment: &str,
    out: &mut Vec<u8>,
) {
    let mut end = comment.len().min(COMMENT_MAX);
    while !comment.is_char_boundary(end) {
        end -= 1;
    }
    block(ENHANCED_PACKET, out, |out| {
        out.extend(interface.to_le_bytes());
        out.extend(((at.as_nanos() >> 32) as u32).to_le_bytes());
        out.extend((at.as_nanos() as u32).to_le_bytes());
        out.extend((captured.len() as u32).to_le_bytes());
        out.extend(original.to_le_bytes());
        padded(captured, out);
        if end > 0 {
            option(COMMENT, &comment.as_bytes()[..end], out);
            option(END_OF_OPTIONS, &[], out);
        }
    });
}

/// A block: its type, its length, what `body` appends, its length again.
fn block(kind: u32, out: &mut Vec<u8>, body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend(kind.to_le_bytes());
    out.extend([0; 4]);
    body(out);
    let length = ((out.len() - start + 4) as u32).to_le_bytes();
    out[start + 4..start + 8].copy_from_slice(&length);
    out.extend(length);
}

fn option(code: u16, value: &[u8], out: &mut Vec<u8>) {
    out.extend(code.to_le_bytes());
    out.extend((value.len() as u16).to_le_bytes());
    padded(value, out);
}

/// Appends `bytes`, and zeros up to a multiple of four.
fn padded(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend(bytes);
    out.extend(std::iter::repeat_n(0, bytes.len().next_multiple_of(4) - bytes.len()));
}

#[cfg(test)]
mod tests {
    use super::super::Reader;
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn our_reader_reads_what_is_written(
            packets in prop::collection::vec((0u32..2, 0u64..1 << 62, prop::collection::vec(any::<u8>(), 0..70), 0u32..2000, "\\PC*"), 0..20)
        ) {
            let mut file = Vec::new();
            file_header(&["to-client", "to-server"], &mut file);
            for (interface, at, data, more, comment) in &packets {
                packet(*interface, Instant::from_nanos(*at), data, data.len() as u32 + more, comment, &mut file);
            }
            let mut reader = Reader::new();
            reader.feed(&file);
            for (_, at, data, more, _) in &packets {
                let read = reader.next_packet().unwrap().unwrap();
                prop_assert_eq!(read.at, Instant::from_nanos(*at));
                prop_assert_eq!(read.data, &data[..]);
                prop_assert_eq!(read.original_length, data.len() + *more as usize);
                prop_assert_eq!(read.link_type, LinkType::RAW);
            }
            prop_assert!(reader.next_packet().unwrap().is_none());
        }

        #[test]
        fn our_reader_counts_what_is_said_to_be_dropped(dropped in any::<u32>(), more in any::<u32>()) {
            let mut file = Vec::new();
            section(&mut file);
            interface("eth0", LinkType::ETHERNET, &mut file);
            packet(0, Instant::from_nanos(7), b"frame", 60, "", &mut file);
            interface("tun0", LinkType::RAW, &mut file);
            packet(1, Instant::from_nanos(8), b"packet", 6, "", &mut file);
            for (number, dropped) in [dropped, more].into_iter().enumerate() {
                statistics(number as u32, Instant::from_nanos(9), 1, dropped.into(), &mut file);
            }
            let mut reader = Reader::new();
            reader.feed(&file);
            for (link, data) in [(LinkType::ETHERNET, &b"frame"[..]), (LinkType::RAW, b"packet")] {
                let read = reader.next_packet().unwrap().unwrap();
                prop_assert_eq!((read.link_type, read.data), (link, data));
            }
            prop_assert!(reader.next_packet().unwrap().is_none());
            let summary = reader.finish();
            prop_assert_eq!(summary.dropped, Some(u64::from(dropped) + u64::from(more)));
        }
    }
}
