//! Arbitrary bytes as a packet that came over the link: what is a SYN has answers whose lengths and
//! addresses are right, and is still the same SYN when it is read again.
#![no_main]

use fullpipe_kernel::socket::connection_request::{ConnectionRequest, Refusal};
use libfuzzer_sys::fuzz_target;

const REFUSALS: [Refusal; 4] =
    [Refusal::Reset, Refusal::NetworkUnreachable, Refusal::HostUnreachable, Refusal::Prohibited];

fuzz_target!(|bytes: &[u8]| {
    let Some(request) = ConnectionRequest::parse(bytes) else { return };
    assert_eq!(request.from.is_ipv4(), request.to.is_ipv4());
    for refusal in REFUSALS {
        let answer = request.refusal(refusal);
        let be16 = |at: usize| usize::from(u16::from_be_bytes([answer[at], answer[at + 1]]));
        if request.to.is_ipv4() {
            assert_eq!(be16(2), answer.len());
        } else {
            assert_eq!(be16(4) + 40, answer.len());
        }
        assert!(
            answer.len() <= 40 + 8 + 40 + 60 + 20,
            "an answer is short whatever the SYN carries"
        );
        // A reset is no request, so that answers are never answered.
        assert!(ConnectionRequest::parse(&answer).is_none());
    }
});
