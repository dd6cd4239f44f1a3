//! `cargo xtask semver`: what others build on is still there, or the version says that it is not.
//!
//! `cargo-semver-checks` compares the crates that are published with those of the last version,
//! which git's tag names. It takes minutes and is a large program to build, so CI does not run it:
//! a release does (contrib/packaging/release.yml).

use crate::ci::PUBLISHED;
use anyhow::{Context, ensure};
use clap::Args;
use std::process::Command;

/// What compares.
const TOOL: &str = "cargo-semver-checks";
/// How the tags of versions look.
const TAGS: &str = "v[0-9]*";

/// Options of `cargo xtask semver`.
#[derive(Args)]
pub struct Semver {
    /// Compare with this commit or tag; without it: with the last tag of a version before this
    /// commit.
    #[arg(long, value_name = "REVISION")]
    since: Option<String>,
}

impl Semver {
    /// Compares, or says why there is nothing to compare, or nothing to compare with.
    pub fn run(self) -> anyhow::Result<()> {
        let Some(since) = self.since.map_or_else(last_version, |since| Ok(Some(since)))? else {
            eprintln!(
                "semver: NOTHING IS COMPARED: no tag of a version (v0.1.0) is before this commit; \
                 from the first on, {} must keep what they have",
                PUBLISHED.join(", ")
            );
            return Ok(());
        };
        let version = Command::new("cargo").args(["semver-checks", "--version"]).output();
        if !version.is_ok_and(|output| output.status.success()) {
            let advice = format!("{TOOL} is missing: cargo install --locked {TOOL}");
            ensure!(std::env::var_os("FULLPIPE_NO_SKIP").is_none(), "{advice}");
            eprintln!("SKIPPED: semver: NOTHING IS COMPARED: {advice}");
            return Ok(());
        }
        let packages = PUBLISHED.iter().flat_map(|name| ["--package", name]);
        // By the name of cargo and not by this one's path: the tool starts other toolchains' by it.
        let status = Command::new("cargo")
            .args(["semver-checks", "--baseline-rev", &since])
            .args(packages)
            .status()
            .with_context(|| format!("start {TOOL}"))?;
        ensure!(
            status.success(),
            "something that others build on was removed or changed since {since}: put it back, or \
             raise the version in Cargo.toml"
        );
        eprintln!("semver: {} have what they had at {since}", PUBLISHED.join(", "));
        Ok(())
    }
}

/// The newest tag of a version before this commit, which may have a tag itself.
fn last_version() -> anyhow::Result<Option<String>> {
    let mut describe = Command::new("git");
    describe.args(["describe", "--tags", "--abbrev=0", "--match", TAGS, "HEAD^"]);
    let described = describe.output().context("start git")?;
    let tag = String::from_utf8_lossy(&described.stdout).trim().to_owned();
    Ok((described.status.success() && !tag.is_empty()).then_some(tag))
}
