//! An arbitrary capture with comments: the output is read to its end, with the packets that our
//! reader finds in the input, and with the same comments again it is the same file. The first byte
//! says which packets have one.
#![no_main]

use fullpipe_flow::capture::commented::{CommentedFile, PACKET_MARK, SECTION_MARK};
use fullpipe_flow::capture::{Packet, Reader};

fn commented(capture: &[u8], one_of: u64) -> Vec<u8> {
    let (mut reader, mut out, mut number) = (Reader::new(), Vec::new(), 0);
    reader.feed(capture);
    let mut file = CommentedFile::new(format!("{SECTION_MARK}about"));
    while let Ok(Some(record)) = reader.next_record() {
        number += u64::from(record.packet.is_some());
        let comment = [format!("{PACKET_MARK}0: packet {number}")];
        let is_meant = record.packet.is_some() && number % one_of == 0;
        file.record(&record, if is_meant { &comment } else { &[] }, &mut out);
    }
    file.end(&mut out);
    out
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((one_of, capture)) = bytes.split_first() else { return };
    let one_of = u64::from(*one_of).max(1);
    let out = commented(capture, one_of);
    let (mut before, mut after) = (Reader::new(), Reader::new());
    before.feed(capture);
    after.feed(&out);
    while let Ok(Some(packet)) = before.next_packet() {
        let Packet { at, link_type, data, original_length } = packet;
        let written = after.next_packet().expect("what we write is read").expect("no packet is lost");
        assert_eq!((written.at, written.link_type), (at, link_type));
        assert_eq!((written.data, written.original_length), (data, original_length));
    }
    assert!(after.next_packet().expect("what we write is read").is_none());
    assert_eq!(after.finish().cut, 0);
    assert!(commented(&out, one_of) == out);
});
