//! What the chores share: cargo, and the folder that it builds into.

use anyhow::{Context, bail};
use std::path::PathBuf;
use std::process::Command;

/// The folder of what cargo builds: `CARGO_TARGET_DIR`, or `target`.
pub fn target_folder() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), Into::into)
}

/// The program as a test builds it.
pub fn debug_program() -> PathBuf {
    target_folder().join("debug/fullpipe")
}

/// Builds the program and all tests, as CI does for each step that needs some of them: built by
/// itself the program has fewer features of its dependencies, and most crates would be built twice.
pub fn program_and_tests() -> anyhow::Result<()> {
    cargo(&["test", "--quiet", "--workspace", "--no-run"], &[])
}

/// Where `cargo xtask truth` keeps its runs.
pub fn truth_runs() -> PathBuf {
    target_folder().join("truth")
}

/// Runs cargo with its output on this terminal.
pub fn cargo(arguments: &[&str], environment: &[(&str, &str)]) -> anyhow::Result<()> {
    eprintln!("cargo {}", arguments.join(" "));
    let status = Command::new(env!("CARGO"))
        .args(arguments)
        .envs(environment.iter().copied())
        .status()
        .with_context(|| format!("start cargo {}", arguments.join(" ")))?;
    if !status.success() {
        bail!("failed: cargo {}", arguments.join(" "));
    }
    Ok(())
}
