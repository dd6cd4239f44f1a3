//! Arbitrary bytes as packets that go through every change of a capture: each record is how much
//! later it came, a length, and the packet.
#![no_main]

use fullpipe_flow::capture::LinkType;
use fullpipe_flow::capture::recapture::{CaptureChange, CapturedRecord, Recapture};
use fullpipe_model::units::Instant;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let host = Some("10.77.0.1".parse().expect("an address"));
    let words = ["tso", "gro", "twice", "clock=1ms-1s", "snap=64", "drop=10%", "start=1"];
    let changes = words.map(|word| CaptureChange::parse(word, host).expect("a known word"));
    let (mut recapture, mut out, mut count) = (Recapture::new(&changes), Vec::new(), 0);
    let (mut rest, mut at) = (bytes, 0);
    while let [later, length, tail @ ..] = rest {
        let (packet, tail) = tail.split_at(usize::from(*length).min(tail.len()));
        at += u64::from(*later) * 1_000;
        let (data, original_length) = (packet.to_vec(), packet.len());
        let at = Instant::from_nanos(at);
        recapture
            .push(CapturedRecord { at, link_type: LinkType::RAW, data, original_length }, &mut out);
        count += 1;
        rest = tail;
    }
    recapture.finish(&mut out);
    assert!(out.len() <= 2 * count, "a mirror port repeats, nothing else adds");
});
