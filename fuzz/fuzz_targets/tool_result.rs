//! Arbitrary bytes as the JSON of another program's test: it is read or refused, and whatever is
//! taken is diagnosed, drawn and written.
#![no_main]

use fullpipe_flow::diagnosis::live::connections_of_results;
use fullpipe_flow::trace::TraceBounds;
use fullpipe_model::observe::tool_result;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Ok(sockets) = tool_result::read(&String::from_utf8_lossy(bytes)) else { return };
    assert!(!sockets.is_empty());
    let trace = TraceBounds { points: 8, rate_bins: 8, marks: 8, ..TraceBounds::default() };
    for found in connections_of_results(sockets, Some(trace)) {
        assert!(serde_json::to_string(&found).is_ok());
        assert!(serde_json::to_string(&found.trace()).is_ok());
        let _ = found.measured_path(found.connection.bulk());
    }
});
