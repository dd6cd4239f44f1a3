//! Arbitrary text as a recording: each line is a sample, a note or refused, and whatever is taken is
//! diagnosed, drawn and written.
#![no_main]

use fullpipe_flow::diagnosis::live::{Note, connections};
use fullpipe_model::observe::Sample;
use fullpipe_flow::trace::TraceBounds;

libfuzzer_sys::fuzz_target!(|text: &str| {
    let samples: Vec<Sample> = text.lines().filter_map(|line| line.parse().ok()).collect();
    let notes: Vec<Note> = text.lines().filter_map(|line| line.parse().ok()).collect();
    let trace = Some(TraceBounds { points: 8, rate_bins: 8, marks: 8, ..TraceBounds::default() });
    for found in connections(samples, &notes, trace) {
        assert!(serde_json::to_string(&found).is_ok());
        assert!(serde_json::to_string(&found.trace()).is_ok());
        let _ = found.measured_path(found.connection.bulk());
    }
});
