use super::*;
use crate::capture::{Reader, Summary, write};
use fullpipe_model::units::Instant;
use proptest::prelude::*;

/// The capture with a comment at each packet that `has_comment` names, and what was read of it.
fn commented(capture: &[u8], about: &str, has_comment: impl Fn(u64) -> bool) -> (Vec<u8>, Summary) {
    let (mut reader, mut out) = (Reader::new(), Vec::new());
    reader.feed(capture);
    let (mut file, mut number) = (CommentedFile::new(format!("{SECTION_MARK}{about}")), 0);
    while let Ok(Some(record)) = reader.next_record() {
        number += u64::from(record.packet.is_some());
        let comment = format!("{PACKET_MARK}0: packet {number}");
        let is_meant = record.packet.is_some() && has_comment(number);
        file.record(&record, if is_meant { std::slice::from_ref(&comment) } else { &[] }, &mut out);
    }
    file.end(&mut out);
    (out, reader.finish())
}

type ReadPacket = (Instant, u16, Vec<u8>, usize);

fn packets(capture: &[u8]) -> (Vec<ReadPacket>, bool, Summary) {
    let (mut reader, mut all) = (Reader::new(), Vec::new());
    reader.feed(capture);
    let is_whole = loop {
        match reader.next_packet() {
            Ok(Some(packet)) => {
                let Packet { at, link_type, data, original_length } = packet;
                all.push((at, link_type.0, data.to_vec(), original_length));
            }
            Ok(None) => break true,
            Err(_) => break false,
        }
    };
    (all, is_whole, reader.finish())
}

/// Big endian, with a comment of somebody else, a name, an unknown block and a section's length.
fn big_endian() -> Vec<u8> {
    let mut file = Vec::new();
    let mut block = |kind: u32, body: &[u8]| {
        let length = (body.len() as u32 + 12).to_be_bytes();
        for part in [&kind.to_be_bytes()[..], &length, body, &length] {
            file.extend(part);
        }
    };
    block(SECTION_HEADER, &[&[0x1a, 0x2b, 0x3c, 0x4d, 0, 1, 0, 0][..], &[0; 7], &[96]].concat());
    block(1, &[0, 101, 0, 0, 0, 0, 0, 0, 0, 2, 0, 2, b'e', b'n', 0, 0, 0, 0, 0, 0]);
    block(0xbad, b"anything");
    let head = [0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 5, 0, 0, 0, 9];
    block(6, &[&head[..], b"bytes\0\0\0", &[0, 1, 0, 3], b"own\0", &[0; 4]].concat());
    block(6, &[&head[..], b"later\0\0\0"].concat());
    file
}

#[test]
fn blocks_and_comments_of_others_stay() {
    let before = big_endian();
    let (file, _) = commented(&before, "about", |_| true);
    assert_eq!(packets(&file), packets(&before));
    assert_eq!(packets(&file).0.len(), 2);
    for text in ["en", "anything", "own", "fullpipe: about", "fullpipe #0: packet 2"] {
        assert!(file.windows(text.len()).any(|part| part == text.as_bytes()), "{text}");
    }
    // Once more: the same file, and without comments what was there before but for the section's
    // own length.
    assert_eq!(commented(&file, "about", |_| true).0, file);
    let (other, _) = commented(&file, "other", |number| number == 1);
    assert!(!other.windows(8).any(|part| part == b"packet 2"));
    assert!(other.windows(8).any(|part| part == b"packet 1"));
}

#[test]
fn a_capture_without_packets_is_a_capture() {
    let pcap = write::file_header(65_535);
    let (file, _) = commented(&pcap, "nothing", |_| true);
    let (read, is_whole, summary) = packets(&file);
    assert!(read.is_empty() && is_whole && summary.recognised && summary.cut == 0);
}

#[test]
fn a_comment_is_cut_between_characters() {
    assert_eq!(cut(&"é".repeat(COMMENT_MAX)), COMMENT_MAX);
    assert_eq!(cut(&format!("a{}", "é".repeat(COMMENT_MAX))), COMMENT_MAX - 1);
}

proptest! {
    /// Whatever bytes are read: the output has the packets that our reader finds in them.
    #[test]
    fn the_packets_are_the_same(
        noise in prop::collection::vec(any::<u8>(), 0..60),
        at in 0usize..400,
        cut in 0usize..400,
        is_pcap in any::<bool>(),
        data in prop::collection::vec((0u64..1 << 40, prop::collection::vec(any::<u8>(), 0..40)), 0..6)
    ) {
        let mut file = if is_pcap { Vec::new() } else { big_endian() };
        if is_pcap {
            file.extend(write::file_header(65_535));
            for (time, bytes) in &data {
                let length = bytes.len() as u32;
                file.extend(write::record_header(Instant::from_nanos(*time), length, length));
                file.extend(bytes);
            }
        }
        let at = at.min(file.len());
        for (place, byte) in file[at..].iter_mut().zip(&noise) {
            *place = *byte;
        }
        file.truncate(file.len().saturating_sub(cut / 4));
        let (before, _, _) = packets(&file);
        let (out, summary) = commented(&file, "noise", |number| number % 2 == 0);
        let (after, is_whole, read) = packets(&out);
        prop_assert_eq!(&after, &before);
        prop_assert_eq!(summary.packets as usize, before.len());
        prop_assert!(is_whole && read.cut == 0);
    }
}
