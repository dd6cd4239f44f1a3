//! `cargo xtask pictures`: the pictures of the guide, drawn by the product from transfers in
//! virtual time. The same kernel gives the same bytes, so `--check` compares; the same
//! curl, wget and pv, where those are the client.

use anyhow::{Context, bail, ensure};
use clap::Args;
use std::path::{Path, PathBuf};
use std::process::Command;

const SCENARIOS: [&str; 2] = ["docs/pictures.toml", "docs/limiters.toml"];
const PICTURES: &str = "docs/src/pictures";
/// The pictures that the guide shows: the run, and its graph.
const SHOWN: [(&str, &str); 8] = [
    ("receive-window", "sequence"),
    ("receive-window", "throughput"),
    ("send-buffer", "window"),
    ("link", "rtt"),
    ("limit-get", "throughput"),
    ("limit-curl", "throughput"),
    ("limit-wget", "throughput"),
    ("limit-pv", "throughput"),
];

/// Options of `cargo xtask pictures`.
#[derive(Args)]
pub struct Pictures {
    /// Compare with the committed pictures in place of writing them.
    #[arg(long)]
    check: bool,
    /// The program.
    #[arg(long, value_name = "FILE", default_value = "target/debug/fullpipe")]
    program: PathBuf,
}

impl Pictures {
    /// Compares with the program in the folder of what cargo builds.
    pub fn check(target: &Path) -> anyhow::Result<()> {
        Pictures { check: true, program: target.join("debug/fullpipe") }.run()
    }

    pub fn run(&self) -> anyhow::Result<()> {
        let folder = tempfile::tempdir().context("make a folder for the runs")?;
        let results = folder.path().join("results");
        self.fullpipe(&[
            "lab".as_ref(),
            "run".as_ref(),
            SCENARIOS[0].as_ref(),
            SCENARIOS[1].as_ref(),
            "--engine".as_ref(),
            "virtual".as_ref(),
            "--keep-captures".as_ref(),
            "--out".as_ref(),
            &results,
        ])?;
        for entry in std::fs::read_dir(&results).context("read the results")? {
            let run = entry?.path();
            if run.join("row.json").is_file() {
                self.fullpipe(&["report".as_ref(), &run, "--svg".as_ref(), &run])?;
            }
        }
        for (run, graph) in SHOWN {
            let drawn = find(&results, run)?.join(format!("{graph}.svg"));
            let picture = std::fs::read(&drawn).with_context(|| format!("read {drawn:?}"))?;
            self.keep(&format!("{run}-{graph}.svg"), &picture)?;
        }
        Ok(())
    }

    fn keep(&self, name: &str, picture: &[u8]) -> anyhow::Result<()> {
        let kept = Path::new(PICTURES).join(name);
        if !self.check {
            return std::fs::write(&kept, picture).with_context(|| format!("write {kept:?}"));
        }
        let committed = std::fs::read(&kept).with_context(|| format!("read {kept:?}"))?;
        if committed != picture {
            bail!(
                "{} is not what the product draws: run `cargo xtask pictures` (with Debian 12's \
                 curl, wget and pv, which docs/limiters.toml names)",
                kept.display()
            );
        }
        Ok(())
    }

    fn fullpipe(&self, arguments: &[&Path]) -> anyhow::Result<()> {
        let output = Command::new(&self.program)
            .args(arguments)
            .output()
            .with_context(|| format!("start {:?}", self.program))?;
        let told = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "fullpipe {arguments:?} failed: {told}");
        Ok(())
    }
}

/// The folder of the run with this name: `001-pictures-NAME`.
fn find(results: &Path, name: &str) -> anyhow::Result<PathBuf> {
    let folders = std::fs::read_dir(results)?.filter_map(Result::ok).map(|entry| entry.path());
    let is_it = |path: &PathBuf| {
        path.file_name().is_some_and(|file| file.to_string_lossy().ends_with(&format!("-{name}")))
    };
    folders.into_iter().find(is_it).with_context(|| format!("there is no run {name}"))
}
