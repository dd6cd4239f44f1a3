//! Arbitrary text as a part of what `record --sockets` keeps: each line is taken or refused, and
//! whatever is taken is answered, and summed for a fleet.
#![no_main]

use fullpipe_flow::diagnosis::live::{History, WorkloadHours};
use fullpipe_model::units::Instant;

libfuzzer_sys::fuzz_target!(|text: &str| {
    let (first, last) = (Instant::ZERO, Instant::from_nanos(u64::MAX));
    let mut history = History::new(first, last);
    for line in text.lines() {
        if line.is_empty() {
            history.end_part();
        }
        let _ = history.line(line);
    }
    history.end_part();
    for found in history.answers_between(first, last, &mut |_| true) {
        assert!(serde_json::to_string(&found.connection).is_ok());
        assert_eq!(found.note.to_string().parse(), Ok(found.note));
    }
    let mut hours = WorkloadHours::default();
    assert_eq!(hours.add(&history), hours.len() as u64);
});
