//! Steps of CI that need not run again: their inputs are those of a run that passed here.
//!
//! A step's key is a digest of the tracked files that it reads (their contents, not their times)
//! and of the compiler's version. A key that passed is kept in the user's cache, so a fresh clone
//! on the same machine profits, too, and a fresh machine runs everything. `cargo xtask ci --all`
//! runs everything anywhere.

use anyhow::{Context, ensure};
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// What a step was run with.
pub struct Inputs {
    key: String,
    record: Option<PathBuf>,
}

impl Inputs {
    /// Reads the inputs of `step`: tracked files below `paths`, as they are in the work tree.
    pub fn read(step: &str, paths: &[&str]) -> anyhow::Result<Inputs> {
        let listed = git(&[&["ls-files", "-z", "--"], paths].concat(), None)?;
        let files: Vec<&str> = listed.split('\0').filter(|file| !file.is_empty()).collect();
        ensure!(!files.is_empty(), "{step}: no tracked file below {}", paths.join(", "));
        let there: Vec<&str> =
            files.into_iter().filter(|file| std::path::Path::new(file).exists()).collect();
        let hashes = git(&["hash-object", "--stdin-paths"], Some(&there.join("\n")))?;
        let compiler = Command::new("rustc").arg("-V").output().context("start rustc")?;
        let all =
            format!("{}{hashes}{}", String::from_utf8_lossy(&compiler.stdout), there.join("\n"));
        let key = git(&["hash-object", "--stdin"], Some(&all))?.trim().to_owned();
        Ok(Inputs { key, record: record_of(step) })
    }

    /// Whether a run with these inputs has passed here.
    pub fn have_passed(&self) -> bool {
        let record = self.record.as_ref().and_then(|path| std::fs::read_to_string(path).ok());
        record.is_some_and(|text| text.trim() == self.key)
    }

    /// Remembers that a run with these inputs passed. Without a cache nothing is remembered.
    pub fn keep(&self) -> anyhow::Result<()> {
        let Some(record) = &self.record else { return Ok(()) };
        let folder = record.parent().context("the record has no folder")?;
        std::fs::create_dir_all(folder).with_context(|| format!("make {}", folder.display()))?;
        std::fs::write(record, &self.key).with_context(|| format!("write {}", record.display()))
    }
}

/// Where the key of `step` is kept, beside what fullpipe itself caches.
fn record_of(step: &str) -> Option<PathBuf> {
    let base = std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")))?;
    Some(base.join("fullpipe/ci").join(step.replace(' ', "-")))
}

/// What git prints for `arguments`, with `input` on its standard input.
fn git(arguments: &[&str], input: Option<&str>) -> anyhow::Result<String> {
    let mut git = Command::new("git")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("start git")?;
    let mut stdin = git.stdin.take().context("git has no standard input")?;
    let input = input.unwrap_or_default().to_owned();
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = git.wait_with_output().context("wait for git")?;
    writer.join().expect("a thread that writes does not panic").context("write to git")?;
    ensure!(output.status.success(), "git {} failed", arguments.join(" "));
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
