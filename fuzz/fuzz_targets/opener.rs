//! Arbitrary bytes as packets of arbitrary link types: each record is a link type, a length, and
//! the packet.
#![no_main]

use fullpipe_flow::capture::{Layer, LinkType, Opened, Opener};
use fullpipe_flow::capture::segment::Segment;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let mut openers = [Opener::new(Layer::Inner), Opener::new(Layer::Outer)];
    let mut rest = bytes;
    while let [high, low, length, tail @ ..] = rest {
        let (packet, tail) = tail.split_at(usize::from(*length).min(tail.len()));
        let link = LinkType(u16::from_be_bytes([*high, *low]));
        for opener in &mut openers {
            if let Opened::Ip(ip) = opener.open(link, packet) {
                assert!(matches!(ip[0] >> 4, 4 | 6), "what is called IP begins like IP");
                let _ = Segment::from_ip(ip, ip.len());
            }
        }
        rest = tail;
    }
});
