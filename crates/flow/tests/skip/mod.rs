//! A test that lacks what it needs says so, and is a failure where nothing may be lacking.

/// Says loudly that `test` cannot be run here, and why; with `FULLPIPE_NO_SKIP=1`, as in CI, fails
/// instead.
#[allow(clippy::print_stderr, reason = "a skipped test says so")]
pub fn skip(test: &str, why: &str) {
    let strict = std::env::var_os("FULLPIPE_NO_SKIP").is_some_and(|value| value == "1");
    assert!(!strict, "{test} must not be skipped with FULLPIPE_NO_SKIP=1: {why}");
    eprintln!("SKIPPED: {test}: {why}");
}
