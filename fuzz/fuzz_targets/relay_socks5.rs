//! What a user of a relay's proxy sends, in two pieces: it is read or refused, and nothing panics.
#![no_main]

use fullpipe_peer::relay::{ProxyHandshake, ProxyKind, ProxyStep};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let (first, second) = bytes.split_at(bytes.len() / 2);
    let mut handshake = ProxyHandshake::new(ProxyKind::Socks5);
    for piece in [first, second] {
        handshake.push(piece);
        while let ProxyStep::Send(_) = handshake.poll() {}
    }
    assert!(handshake.into_rest().len() <= bytes.len());
});
