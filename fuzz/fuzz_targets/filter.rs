//! Arbitrary text as a filter; what can be read must not care which end of a connection comes
//! first.
#![no_main]

use fullpipe_flow::connection::filter::Filter;
use std::net::SocketAddr;

libfuzzer_sys::fuzz_target!(|text: &str| {
    let Ok(filter) = text.parse::<Filter>() else { return };
    let ends: [SocketAddr; 3] =
        ["10.0.0.1:443", "[2001:db8::1]:40000", "192.0.2.9:22"].map(|end| end.parse().unwrap());
    for a in ends {
        for b in ends {
            assert!(a.is_ipv4() != b.is_ipv4() || filter.matches(a, b) == filter.matches(b, a));
        }
    }
});
