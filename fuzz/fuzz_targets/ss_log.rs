//! Arbitrary bytes as a log of `ss -tin`: each line is read or refused, and whatever is taken is
//! diagnosed, drawn and written.
#![no_main]

use fullpipe_flow::diagnosis::live::connections_of_looks;
use fullpipe_flow::trace::TraceBounds;
use fullpipe_model::observe::ss::{SsLogReader, could_be_log, is_log};
use fullpipe_model::units::Duration;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    assert!(could_be_log(bytes) || !is_log(bytes) || bytes.len() > 4096);
    let text = String::from_utf8_lossy(bytes);
    for every in [None, Some(Duration::from_secs(1))] {
        let mut reader = SsLogReader::new(every);
        // What stands before a bad line is taken.
        let _ = text.lines().try_for_each(|line| reader.line(line));
        let count = reader.samples();
        let Ok(log) = reader.finish() else { continue };
        assert!(log.samples.len() <= count);
        let trace = TraceBounds { points: 8, rate_bins: 8, marks: 8, ..TraceBounds::default() };
        for found in connections_of_looks(log.samples, Some(trace)) {
            assert!(serde_json::to_string(&found).is_ok());
            assert!(serde_json::to_string(&found.trace()).is_ok());
            let _ = found.measured_path(found.connection.bulk());
        }
    }
});
