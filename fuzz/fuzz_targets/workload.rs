//! Arbitrary text as the path of a control group: what is told of it stands in it.
#![no_main]

use fullpipe_model::observe::Workload;

libfuzzer_sys::fuzz_target!(|path: &str| {
    let told = Workload::of(path);
    assert!(told.unit.is_none_or(|unit| path.contains(unit)));
    assert!(told.container.is_none_or(|id| path.contains(id) && id.len() == 64));
    assert!(told.pod.is_some() || told.qos.is_none());
    assert!(serde_json::to_string(&told).is_ok() && !told.name().is_empty());
});
