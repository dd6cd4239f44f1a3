//! `cargo xtask figures [--lab DIR]..`: the tables of docs/src/analyze-figures.md.
//!
//! Those of the suites are written by the suites themselves, which also hold the page to them. That of the lab is made
//! from results folders of `fullpipe lab run --keep-captures`, since runs take minutes and a guest kernel; without one it
//! stays as it is.

use anyhow::{Context, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;

const PAGE: &str = "docs/src/analyze-figures.md";
const BEGIN: &str = "<!-- lab -->\n";
const END: &str = "<!-- /lab -->";

/// Writes the tables.
pub fn run(lab: &[PathBuf]) -> anyhow::Result<()> {
    let tests = ["test", "--quiet", "-p", "fullpipe-flow", "--test", "truth", "--test", "sack"];
    let ended = Command::new(env!("CARGO")).args(tests).env("FULLPIPE_FIGURES", "1").status();
    ensure!(ended.context("run cargo test")?.success(), "the suites fail: mend them first");
    if lab.is_empty() {
        return Ok(());
    }
    let example = ["run", "--quiet", "-p", "fullpipe-flow", "--example", "score_lab", "--"];
    let ended = Command::new(env!("CARGO")).args(example).args(lab).output().context("run score_lab")?;
    ensure!(ended.status.success(), "score_lab: {}", String::from_utf8_lossy(&ended.stderr));
    let table = String::from_utf8(ended.stdout).context("read what score_lab prints")?;
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("find the workspace")?.join(PAGE);
    let before = std::fs::read_to_string(&page).with_context(|| format!("read {PAGE}"))?;
    let (head, rest) = before.split_once(BEGIN).with_context(|| format!("{PAGE} has no line {BEGIN}"))?;
    let (_, tail) = rest.split_once(END).with_context(|| format!("{PAGE} has no line {END}"))?;
    std::fs::write(&page, format!("{head}{BEGIN}{table}{END}{tail}")).with_context(|| format!("write {PAGE}"))
}
