//! `cargo xtask figures [--lab DIR]..`: the tables of docs/src/analyze-figures.md.
//!
//! The test suites write their own tables and check that the page matches. The lab's tables are
//! made from results folders of `fullpipe lab run --keep-captures`, because runs take minutes and a
//! guest kernel; a table without runs in any folder stays as it is.

use anyhow::{Context, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;

const PAGE: &str = "docs/src/analyze-figures.md";
/// Tables that `score_lab` prints, and their parts of the page.
const TABLES: [(&str, &str); 2] = [("limits", "lab"), ("log", "log")];

/// Writes the tables.
pub fn run(lab: &[PathBuf]) -> anyhow::Result<()> {
    let tests = [
        "test",
        "--quiet",
        "-p",
        "fullpipe-flow",
        "--test",
        "truth",
        "--test",
        "sack",
        "--test",
        "schema",
        "--test",
        "languages",
    ];
    let ended = Command::new(env!("CARGO")).args(tests).env("FULLPIPE_FIGURES", "1").status();
    ensure!(ended.context("run cargo test")?.success(), "the suites fail: mend them first");
    if lab.is_empty() {
        return Ok(());
    }
    for (what, part) in TABLES {
        let example =
            ["run", "--quiet", "-p", "fullpipe-flow", "--example", "score_lab", "--", what];
        let ended = Command::new(env!("CARGO"))
            .args(example)
            .args(lab)
            .output()
            .context("run score_lab")?;
        ensure!(ended.status.success(), "score_lab: {}", String::from_utf8_lossy(&ended.stderr));
        let table = String::from_utf8(ended.stdout).context("read what score_lab prints")?;
        if !table.is_empty() {
            write(part, &table)?;
        }
    }
    Ok(())
}

/// Replaces a table in its part of the page.
fn write(part: &str, table: &str) -> anyhow::Result<()> {
    let page =
        Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("find the workspace")?.join(PAGE);
    let (begin, end) = (format!("<!-- {part} -->\n"), format!("<!-- /{part} -->"));
    let before = std::fs::read_to_string(&page).with_context(|| format!("read {PAGE}"))?;
    let (head, rest) =
        before.split_once(&begin).with_context(|| format!("{PAGE} has no line {begin}"))?;
    let (_, tail) = rest.split_once(&end).with_context(|| format!("{PAGE} has no line {end}"))?;
    std::fs::write(&page, format!("{head}{begin}{table}{end}{tail}"))
        .with_context(|| format!("write {PAGE}"))
}
