//! A line of a link's control socket: it is a request or refused with a reason; a request is
//! written and read again the same; its words are a path or refused with a reason, alone and in
//! place of others.
#![no_main]

use fullpipe_link::{Request, Words};
use libfuzzer_sys::fuzz_target;

/// The files that words name: none of the machine's.
fn read(name: &str) -> Result<Vec<u8>, String> {
    match name {
        "trace" => Ok(b"0\n5\n7\n".to_vec()),
        _ => Err("no such file".into()),
    }
}

fn path(words: &Words) {
    if let Err(error) = words.path_with(&mut read) {
        assert!(!error.to_string().is_empty());
    }
}

fuzz_target!(|line: &[u8]| {
    let request = match Request::parse(line) {
        Ok(request) => request,
        Err(error) => return assert!(error.to_string().starts_with("read request: ")),
    };
    let written = serde_json::to_vec(&request).unwrap();
    assert!(!written.contains(&b'\n'), "a line is one line");
    assert_eq!(Request::parse(&written).unwrap(), request);
    let Request::Set(words) = request else { return };
    assert!(!words.to_string().is_empty());
    path(&words);
    let once = Words::default().with(&words);
    path(&once);
    assert_eq!(once.with(&words), once, "said twice, they change nothing more");
});
