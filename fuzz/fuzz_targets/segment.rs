//! Arbitrary bytes as packets of one connection: the first two bytes of each record are its length
//! and its time.
#![no_main]

use fullpipe_flow::capture::LinkType;
use fullpipe_flow::capture::segment::Segment;
use fullpipe_flow::{Analyzer, Config};
use fullpipe_model::units::{Duration, Instant};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let mut analyzer = Analyzer::new(Config::default());
    let mut at = Instant::ZERO;
    let mut rest = bytes;
    while let [length, step, tail @ ..] = rest {
        let (packet, tail) = tail.split_at(usize::from(*length).min(tail.len()));
        // From a microsecond to years: clocks in captures jump.
        at = at + Duration::from_nanos(1000 << (step % 48));
        let _ = Segment::from_ip(packet, packet.len());
        analyzer.push(at, LinkType::RAW, packet, packet.len());
        rest = tail;
    }
    analyzer.finish();
});
