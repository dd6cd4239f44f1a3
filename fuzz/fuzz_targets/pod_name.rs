//! Arbitrary text as the name of a folder of a pod's logs: what is told puts it together again.
#![no_main]

use fullpipe_model::observe::PodName;

libfuzzer_sys::fuzz_target!(|folder: &str| {
    let Some((id, pod)) = PodName::of_log_folder(folder) else { return };
    assert_eq!(format!("{}_{}_{id}", pod.namespace, pod.name), folder);
    assert!(folder.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte)));
    assert!(pod.to_string().split('/').eq([pod.namespace.as_str(), pod.name.as_str()]));
});
