//! The open benchmark (`bench/limits-open`): its scorer, its reader of captures and the rules of
//! others pass their own tests, and its answers of this program are the program's.

use crate::Case;
use crate::need::Need;
use std::path::Path;
use std::process::Command;

pub const CASES: &[Case] = &[(
    "its_own_tests_pass",
    &[Need::Program("python3"), Need::Program("tshark"), Need::Program("editcap")],
    its_own_tests_pass,
)];

fn its_own_tests_pass() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/limits-open");
    // Nothing is left in the tree.
    let done = Command::new("python3")
        .args(["-B", "-m", "unittest"])
        .current_dir(&folder)
        .env("FULLPIPE", env!("CARGO_BIN_EXE_fullpipe"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{said}");
    // Python before 3.12 is content where it found no test.
    let ran = said.lines().find_map(|line| line.strip_prefix("Ran ")?.split(' ').next());
    assert!(ran.and_then(|ran| ran.parse().ok()) >= Some(20), "{said}");
}
