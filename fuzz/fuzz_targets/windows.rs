//! Arbitrary text as a user's table of windows above TCP.
#![no_main]

use fullpipe_flow::OwnWindows;

libfuzzer_sys::fuzz_target!(|text: &str| {
    if let Ok(own) = OwnWindows::parse(text) {
        for known in own.entries() {
            assert!(known.is_own && known.is_as_large_as(known.window));
            let _ = (known.named(), known.is_of(known.program));
        }
    }
});
