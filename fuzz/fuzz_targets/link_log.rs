//! The link's truth log: any bytes are read or refused, and what is read is written and read again
//! the same.
#![no_main]

use fullpipe_model::link::log::{Decoder, Encoder};
use fullpipe_model::units::Duration;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut decoder = Decoder::new();
    let mut records = Vec::new();
    for piece in bytes.chunks(61) {
        decoder.push(piece);
        while let Ok(Some(record)) = decoder.poll() {
            records.push(record);
        }
    }
    let (mut encoder, header) = Encoder::new(Duration::ZERO);
    let mut written = header.to_vec();
    for record in &records {
        encoder.encode(record, &mut written);
    }
    let mut again = Decoder::new();
    again.push(&written);
    for record in records {
        assert_eq!(again.poll(), Ok(Some(record)));
    }
    assert_eq!(again.poll(), Ok(None));
    again.finish().unwrap();
});
