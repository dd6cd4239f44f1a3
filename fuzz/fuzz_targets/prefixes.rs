//! Arbitrary text as a table of prefixes: it is read or refused, with a line that it has.
#![no_main]

use fullpipe_model::observe::{Prefixes, PrefixesError};

libfuzzer_sys::fuzz_target!(|text: &str| {
    match Prefixes::parse(text) {
        Ok(prefixes) => {
            assert!(!prefixes.is_empty());
            for address in ["10.0.0.1", "::ffff:10.0.0.1", "2001:db8::1", "::"] {
                let site = prefixes.site(address.parse().expect("an address"));
                assert!(site.is_none_or(|site| !site.site.is_empty()));
            }
        }
        Err(PrefixesError::Twice { line, first, .. }) => assert!(first < line),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
