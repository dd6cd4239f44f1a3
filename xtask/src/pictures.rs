//! `cargo xtask pictures`: the pictures of the guide, drawn by the product from transfers in
//! virtual time. The same kernel gives the same bytes, so `--check` compares; the same
//! curl, wget and pv, where those are the client. The curve of `fullpipe get` is another with each
//! build of it, in the detail: of that picture `--check` compares the scales and labels.

use anyhow::{Context, bail, ensure};
use clap::Args;
use std::path::{Path, PathBuf};
use std::process::Command;

const SCENARIOS: [&str; 2] = ["docs/pictures.toml", "docs/limiters.toml"];
const PICTURES: &str = "docs/src/pictures";
/// The run whose client is of this checkout: each build takes its own time between two reads.
const OWN_CLIENT: &str = "limit-get";
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
    #[arg(long, value_name = "FILE", default_value_os_t = crate::build::debug_program())]
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
            let picture = String::from_utf8(picture).with_context(|| format!("read {drawn:?}"))?;
            let compared = if run == OWN_CLIENT { words } else { whole };
            self.keep(&format!("{run}-{graph}.svg"), &picture, compared)?;
        }
        Ok(())
    }

    /// Writes the picture, or compares what `compared` takes of it with the committed one.
    fn keep(&self, name: &str, picture: &str, compared: fn(&str) -> String) -> anyhow::Result<()> {
        let kept = Path::new(PICTURES).join(name);
        if !self.check {
            return std::fs::write(&kept, picture).with_context(|| format!("write {kept:?}"));
        }
        let committed = std::fs::read_to_string(&kept).with_context(|| format!("read {kept:?}"))?;
        if compared(&committed) != compared(picture) {
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

fn whole(picture: &str) -> String {
    picture.to_owned()
}

/// What the picture says in words: its title, scales and legend, without places and curves.
fn words(picture: &str) -> String {
    let texts = picture.split("<text ").skip(1).filter_map(|text| text.split_once('>'));
    texts.map(|(_, text)| text.split("</text>").next().unwrap_or_default()).collect()
}

/// The folder of the run with this name: `001-pictures-NAME`.
fn find(results: &Path, name: &str) -> anyhow::Result<PathBuf> {
    let folders = std::fs::read_dir(results)?.filter_map(Result::ok).map(|entry| entry.path());
    let is_it = |path: &PathBuf| {
        path.file_name().is_some_and(|file| file.to_string_lossy().ends_with(&format!("-{name}")))
    };
    folders.into_iter().find(is_it).with_context(|| format!("there is no run {name}"))
}
