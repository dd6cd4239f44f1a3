//! `cargo xtask tidy`: rules that no compiler checks. Each message says what to do instead.

mod answers;
mod circles;
mod closures;
mod columns;
mod functions;
mod homes;
mod levels;
mod public;
mod source;
mod table_of_contents;

use anyhow::{Context, bail};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Which crate may use which: ARCHITECTURE.md, "Doors". Every other use is forbidden.
const DOORS: &[(&str, &[&str])] = &[
    ("model", &[]),
    ("flow", &["model"]),
    ("report", &["flow", "model"]),
    ("analyze", &["flow", "model"]),
    ("kernel", &["model"]),
    ("transfer", &["model"]),
    ("peer", &["transfer", "kernel", "flow", "model"]),
    ("agent", &["model"]),
    ("host", &["kernel", "agent", "flow", "model"]),
    ("link", &["kernel", "flow", "model"]),
    ("columnar", &["flow", "model"]),
    ("archive", &["analyze", "columnar", "flow", "model"]),
    ("view", &["report", "analyze", "flow", "model"]),
    ("python", &["archive", "analyze", "columnar", "flow"]),
    ("lab", &["link", "transfer", "peer", "analyze", "kernel", "flow", "model"]),
    (
        "cli",
        &[
            "lab", "link", "host", "report", "analyze", "archive", "columnar", "agent", "transfer",
            "peer", "kernel", "flow", "model",
        ],
    ),
];

const PURE: &[&str] = &["model", "flow", "report"];
/// The only crates with unsafe code.
const UNSAFE: &[&str] = &["kernel", "agent"];

/// What a pure crate never names outside its tests, with what to do instead.
const IMPURE: &[(&str, &str)] = &[
    ("std::fs", "take bytes as an argument"),
    ("std::net::Tcp", "take bytes as an argument"),
    ("std::net::Udp", "take bytes as an argument"),
    ("std::thread", "let the shell drive it"),
    ("std::env", "take the value as an argument"),
    ("std::process", "return an error"),
    ("std::time::Instant", "take model::units::Instant as an argument"),
    ("std::time::SystemTime", "take model::units::Instant as an argument"),
    ("println!", "return text"),
    ("print!", "return text"),
    ("rand::rng", "take a seed as an argument"),
    ("thread_rng", "take a seed as an argument"),
];

/// Marks of unfinished work.
const LEFTOVERS: &[&str] = &["dbg!(", "todo!(", "unimplemented!(", "FIXME", "XXX:"];

/// Breaches that existed when their rule was added. No new ones may be added.
const KNOWN: &str = include_str!("known.txt");

/// A file with more lines of code than this has more than one subject. Tests at the end of a file
/// do not count.
const LINES_MAX: usize = 600;

/// Checks everything and reports every breach at once.
pub fn run() -> anyhow::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("find the workspace")?;
    let mut breaches = doors(root)?;
    let mut sources = Vec::new();
    for file in tracked(root)? {
        let Ok(text) = std::fs::read_to_string(root.join(&file)) else { continue };
        if file.extension().is_some_and(|extension| extension == "md") {
            breaches.extend(links(root, &file, &text));
        }
        if file.extension().is_some_and(|extension| extension == "rs") {
            breaches.extend(source_file(&file, &text));
            breaches.extend(answers::breaches(&file, &text));
            sources.push((file, text));
        }
    }
    let rooms = DOORS.iter().map(|(room, _)| Path::new("crates").join(room).join("src"));
    for source in rooms.chain(["xtask/src", "python/src"].map(PathBuf::from)) {
        breaches.extend(circles::breaches(&source, &sources));
    }
    breaches.extend(public::breaches(&sources));
    breaches.extend(homes::breaches(&sources));
    breaches.extend(closures::breaches(&sources));
    breaches.extend(unsafe_forbidden(root));
    breaches.extend(levels::breaches(root, "dev")?);
    breaches.extend(levels::breaches(&root.join("python"), "quick")?);
    let breaches = beyond_known(&breaches);
    if breaches.is_empty() {
        eprintln!("tidy: fine");
        return Ok(());
    }
    for breach in &breaches {
        eprintln!("tidy: {breach}");
    }
    bail!("tidy: {} breaches", breaches.len());
}

/// Breaches that are not in [`KNOWN`], and entries of it that have been fixed: the list only
/// shrinks.
fn beyond_known(breaches: &[String]) -> Vec<String> {
    let known: Vec<&str> =
        KNOWN.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
    let new = breaches.iter().filter(|breach| !known.contains(&breach.as_str())).cloned();
    let mended = known
        .iter()
        .filter(|line| !breaches.iter().any(|breach| breach == *line))
        .map(|line| format!("mended, so take it out of xtask/src/tidy/known.txt: {line}"));
    new.chain(mended).collect()
}

/// Compares the workspace's own dependencies with [`DOORS`]. Tests may use any crate.
fn doors(root: &Path) -> anyhow::Result<Vec<String>> {
    let mut breaches = doors_of(root)?;
    // The Python package is a workspace of its own.
    breaches.extend(doors_of(&root.join("python"))?);
    Ok(breaches)
}

fn doors_of(root: &Path) -> anyhow::Result<Vec<String>> {
    let metadata = metadata(root, &["--no-deps"])?;
    let mut breaches = Vec::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let Some(room) = package["name"].as_str().and_then(|name| name.strip_prefix("fullpipe-"))
        else {
            continue;
        };
        let Some((_, allowed)) = DOORS.iter().find(|(name, _)| *name == room) else {
            breaches.push(format!(
                "crate {room} is no room of ARCHITECTURE.md: add it there and to xtask's DOORS"
            ));
            continue;
        };
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let own = dependency["name"].as_str().and_then(|name| name.strip_prefix("fullpipe-"));
            let test_only = dependency["kind"].as_str() == Some("dev");
            if let Some(other) = own.filter(|other| !test_only && !allowed.contains(other)) {
                breaches.push(format!("{room} -> {other} is no door of ARCHITECTURE.md"));
            }
        }
    }
    Ok(breaches)
}

/// What cargo knows of the workspace at `root`.
fn metadata(root: &Path, options: &[&str]) -> anyhow::Result<Value> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1"])
        .args(options)
        .current_dir(root)
        .output()
        .context("start cargo metadata")?;
    anyhow::ensure!(
        output.status.success(),
        "cargo metadata: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).context("read cargo metadata")
}

fn tracked(root: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let output = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .context("start git ls-files")?;
    anyhow::ensure!(
        output.status.success(),
        "git ls-files: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(String::from_utf8_lossy(&output.stdout).lines().map(PathBuf::from).collect())
}

fn source_file(file: &Path, text: &str) -> Vec<String> {
    let mut breaches = Vec::new();
    let shown = file.display();
    // This file contains the names that it forbids.
    if file.ends_with("xtask/src/tidy/mod.rs") {
        return breaches;
    }
    let is_test = file.components().any(|part| {
        matches!(part.as_os_str().to_str(), Some("tests" | "benches" | "fuzz_targets" | "examples"))
    }) || file.file_stem().is_some_and(|stem| stem == "tests");
    let code = if is_test { "" } else { text.split("#[cfg(test)]\nmod ").next().unwrap_or(text) };
    let lines = code.lines().count();
    if lines > LINES_MAX {
        breaches.push(format!(
            "{shown}: more than {LINES_MAX} lines without tests: split it by subject"
        ));
    }
    if !is_test {
        breaches.extend(columns::breach(file, text));
        breaches.extend(functions::breaches(file, text));
        breaches.extend(table_of_contents::breaches(file, text));
    }
    let room =
        file.iter().nth(1).and_then(|name| name.to_str()).filter(|_| file.starts_with("crates"));
    for (number, line) in text.lines().enumerate() {
        for leftover in LEFTOVERS.iter().filter(|leftover| line.contains(*leftover)) {
            breaches.push(format!("{shown}:{}: leftover {leftover}", number + 1));
        }
    }
    if room.is_some_and(|room| PURE.contains(&room)) {
        for (number, line) in
            code.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with("//"))
        {
            for (name, instead) in IMPURE.iter().filter(|(name, _)| line.contains(name)) {
                breaches.push(format!("{shown}:{}: {name} in a pure crate: {instead}", number + 1));
            }
        }
    }
    breaches
}

/// Checks that links in our own pages lead somewhere.
fn links(root: &Path, file: &Path, text: &str) -> Vec<String> {
    let folder = root.join(file).parent().map(Path::to_path_buf).unwrap_or_default();
    text.split("](")
        .skip(1)
        .filter_map(|rest| rest.split([')', '#', ' ']).next())
        .filter(|target| {
            !target.is_empty() && !target.contains("://") && !target.starts_with("mailto:")
        })
        .filter(|target| !folder.join(target).exists())
        .map(|target| format!("{}: link to {target}, which is not there", file.display()))
        .collect()
}

fn unsafe_forbidden(root: &Path) -> Vec<String> {
    DOORS
        .iter()
        .filter(|(room, _)| !UNSAFE.contains(room))
        .filter_map(|(room, _)| {
            let source = root.join("crates").join(room).join("src");
            let top = ["lib.rs", "main.rs"].map(|name| source.join(name)).into_iter().find(|path| path.exists())?;
            let text = std::fs::read_to_string(&top).ok()?;
            (!text.contains("#![forbid(unsafe_code)]"))
                .then(|| format!("crates/{room}: unsafe code belongs to kernel and agent: add #![forbid(unsafe_code)]"))
        })
        .collect()
}
