//! Arbitrary bytes as a packed capture. What comes out is bounded here, as it is by the disk
//! elsewhere: a bomb is not an error, but must come in pieces.
#![no_main]

use fullpipe_flow::capture::{Reader, Unpack};
use std::io::Read;

/// Bytes of a bomb that are looked at.
const ENOUGH: u64 = 1 << 22;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Ok(unpacked) = Unpack::new(bytes) else { return };
    let mut unpacked = unpacked.take(ENOUGH);
    let mut reader = Reader::new();
    let mut packets = 0;
    while matches!(reader.fill(&mut unpacked), Ok(1..)) {
        while let Ok(Some(packet)) = reader.next_packet() {
            assert!(packet.original_length >= packet.data.len());
            packets += 1;
        }
    }
    assert_eq!(reader.finish().packets, packets);
});
