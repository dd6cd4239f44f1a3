//! `fullpipe lab kernel pack` and `install`: a machine without a compiler gets its guest kernels.

use std::fs;

use crate::Case;
use crate::need::Need;
use crate::program::{Finished, Program};

pub const CASES: &[Case] = &[
    ("a_packed_kernel_runs_from_another_cache", &[Need::GuestKernel], a_packed_kernel_runs),
    ("a_file_of_unknown_digest_is_refused", &[], a_file_of_unknown_digest_is_refused),
];

/// `arguments` with a cache of its own, which has nothing at first.
fn with_cache(program: &Program, arguments: &[&str]) -> Finished {
    let cache = program.work().join("cache");
    program.start(program.command(arguments).env("XDG_CACHE_HOME", cache)).end()
}

fn a_packed_kernel_runs() {
    let program = Program::new();
    let packed = program.run(&["lab", "kernel", "pack", "-o", "guests.tar.gz", "--json"]).json();
    let digest = packed["sha256"].as_str().unwrap();
    let install = ["lab", "kernel", "install", "guests.tar.gz"];
    // As a release has them; a digest of another file beside it is none of this one's.
    let sums = format!("{}  other.tar.gz\n{digest}  guests.tar.gz\n", "0".repeat(64));
    program.file("SHA256SUMS", sums);
    let installed = with_cache(&program, &install);
    assert_eq!(installed.code, Some(0), "{installed:?}");
    let listed = with_cache(&program, &["lab", "kernel", "list", "--json"]).json();
    let releases: Vec<&str> =
        listed.as_array().unwrap().iter().map(|one| one["release"].as_str().unwrap()).collect();
    assert_eq!(packed["releases"], serde_json::json!(releases), "newest first");
    let run = with_cache(
        &program,
        &["lab", "run", "quick", "--engine", "virtual", "--output", "results", "--json"],
    );
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(run.json()["rows"].as_array().unwrap().len(), 3);
    // The file changes on its way.
    let file = program.work().join("guests.tar.gz");
    let mut bytes = fs::read(&file).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&file, bytes).unwrap();
    let refused = with_cache(&program, &install);
    assert_eq!(refused.code, Some(4), "{refused:?}");
    assert!(refused.err.contains(digest) && refused.err.contains("fetch it again"), "{refused:?}");
}

/// It would be executed: whose it is has to be said.
fn a_file_of_unknown_digest_is_refused() {
    let program = Program::new();
    program.file("guests.tar.gz", "whatever");
    for (arguments, code, told) in [
        (&["guests.tar.gz"][..], 4, "--sha256 DIGEST"),
        (&["guests.tar.gz", "--sha256", "12"], 2, "64 hexadecimal digits"),
        (&["none.tar.gz", "--sha256", &"0".repeat(64)], 4, "No such file"),
    ] {
        let refused = with_cache(&program, &[&["lab", "kernel", "install"], arguments].concat());
        assert_eq!(refused.code, Some(code), "{arguments:?}: {refused:?}");
        assert!(refused.err.contains(told), "{arguments:?}: {refused:?}");
    }
    // Of the right digest, but no kernels.
    let digest = "85738f8f9a7f1b04b5329c590ebcb9e425925c6d0984089c43a022de4f19c281";
    let refused =
        with_cache(&program, &["lab", "kernel", "install", "guests.tar.gz", "--sha256", digest]);
    assert_eq!(refused.code, Some(4), "{refused:?}");
    assert!(refused.err.contains("no packed tar"), "{refused:?}");
    assert!(!program.work().join("cache").exists(), "nothing was made");
}
