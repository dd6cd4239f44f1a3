//! The sandbox, the hosts and the ports with a real kernel, as root and as an ordinary user.
//!
//! This binary is three programs. Started by `cargo test` it is the harness: each trial starts the
//! binary again as `--inside CASE JOURNALS`, which calls `sandbox::run` as a program's main would,
//! and looks at it from outside. `--clean JOURNALS` is the next start after a crash. When the
//! harness is root, each trial runs twice, the second time through `setpriv` as user 1000.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "programs under test talk to their harness by these"
)]

mod inside;
mod outside;

use std::path::PathBuf;
use std::process::ExitCode;

use fullpipe_kernel::run::{journal, sandbox};
use libtest_mimic::{Arguments, Trial};

/// Says loudly that a part cannot be tried here; with `FULLPIPE_NO_SKIP=1`, as in CI, fails
/// instead.
fn skipped(what: &str, why: impl std::fmt::Display) {
    let strict = std::env::var_os("FULLPIPE_NO_SKIP").is_some_and(|value| value == "1");
    assert!(!strict, "{what} is not to be skipped here, but: {why}");
    eprintln!("SKIPPED: {what}: {why}");
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["--inside", case, journals] => inside(case, journals.into()),
        ["--clean", journals] => clean(journals.into()),
        _ => harness(),
    }
}

fn inside(case: &str, journals: PathBuf) -> ExitCode {
    let case = inside::case(case).expect("the harness knows the cases");
    match sandbox::run(
        &sandbox::SandboxOptions { journals: Some(journals), ..Default::default() },
        case,
    ) {
        Ok(exit) => ExitCode::from(exit.code() as u8),
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(if matches!(error, sandbox::SandboxError::NoPrivilege { .. }) {
                3
            } else {
                99
            })
        }
    }
}

fn clean(journals: PathBuf) -> ExitCode {
    for cleaned in journal::clean_stale_in(&journals).expect("journals can be cleaned") {
        for action in &cleaned.actions {
            println!("{action}");
        }
        assert!(cleaned.complete());
    }
    ExitCode::SUCCESS
}

fn harness() -> ExitCode {
    let arguments = Arguments::from_args();
    let mut trials = Vec::new();
    for user in outside::User::available() {
        for (name, trial) in outside::TRIALS {
            trials.push(Trial::test(format!("{user}::{name}"), move || {
                trial(&outside::Program::new(user, name));
                Ok(())
            }));
        }
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}
