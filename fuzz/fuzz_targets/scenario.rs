//! Scenario files: any text is read or refused with a reason, and what is read can be written.
#![no_main]

use fullpipe_model::scenario::File;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let Ok(file) = File::parse(text) else { return };
    if let Ok(rows) = file.scenarios("fuzz") {
        for row in rows.iter().take(3) {
            assert!(row.transfer.duration.as_nanos() > 0 && row.repeat > 0);
        }
    }
});
