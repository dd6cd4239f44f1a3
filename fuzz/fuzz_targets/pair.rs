//! Arbitrary bytes as a capture file, each packet of which one place, the other or both saw.
#![no_main]

use fullpipe_flow::capture::Reader;
use fullpipe_flow::connection::pair::{Pairing, Tap};
use fullpipe_flow::{Config, Intake};
use fullpipe_model::units::Duration;

/// The first byte says how far apart the clocks are, the next 16 which places see which packets;
/// the rest is the file.
fn paired(bytes: &[u8]) {
    let Some((head, file)) = bytes.split_first_chunk::<17>() else { return };
    let apart = Duration::from_millis(1 << (head[0] % 50));
    let mut pairing = Pairing::new();
    let mut intake = Intake::new(&Config::default());
    let mut reader = Reader::new();
    reader.feed(file);
    let mut number = 0_usize;
    while let Ok(Some(packet)) = reader.next_packet() {
        let seen = head[1 + number / 4 % 16] >> (number % 4 * 2);
        number += 1;
        let segment = intake.open(&packet).map(|(arrival, _)| arrival.segment);
        if seen & 1 == 0 {
            pairing.push(Tap::A, packet.at, segment.as_ref());
        }
        if seen & 2 == 0 {
            pairing.push(Tap::B, packet.at + apart, segment.as_ref());
        }
    }
    for connection in &pairing.finish().connections {
        for way in connection.to_client.iter().chain(&connection.to_server) {
            assert!(way.lost.bytes <= way.sent.bytes, "no more is lost than was sent");
            assert!(way.acknowledgements_lost <= way.acknowledgements);
            assert!(way.longest_run <= way.lost.segments && way.runs <= way.lost.segments);
        }
    }
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    paired(bytes);
});
