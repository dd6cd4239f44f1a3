//! Arbitrary text as the JSON of a measured path: it is read or refused, and what is read is written
//! and read again the same.
#![no_main]

use fullpipe_model::tune::MeasuredPath;

libfuzzer_sys::fuzz_target!(|text: &str| {
    let Ok(path) = text.parse::<MeasuredPath>() else { return };
    let written = serde_json::to_string(&path).unwrap();
    assert_eq!(written.parse(), Ok(path));
});
