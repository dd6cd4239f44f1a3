//! The licences of the crates that are in the program: most ask to be shown with it.

use super::{Architecture, Release, output};
use anyhow::{Context, ensure};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

/// The texts, each once, with the crates that it stands for.
pub fn of(release: &Release, target: Architecture) -> anyhow::Result<String> {
    let metadata = output(
        Command::new(env!("CARGO"))
            .args(["metadata", "--format-version", "1", "--locked", "--filter-platform"])
            .arg(target.target())
            .current_dir(&release.source),
    )?;
    let metadata: Value = serde_json::from_str(&metadata).context("read cargo metadata")?;
    let ids = linked(&metadata)?;
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut without = Vec::new();
    for package in metadata["packages"].as_array().context("no packages")? {
        let id = package["id"].as_str().unwrap_or_default();
        // Ours have no source: their licence is the package's.
        if !ids.contains(id) || package["source"].is_null() {
            continue;
        }
        let [name, version, licence, manifest] = ["name", "version", "license", "manifest_path"]
            .map(|key| package[key].as_str().unwrap_or("?"));
        let name = format!("{name} {version} ({licence})");
        let found = texts_beside(Path::new(manifest))?;
        if found.is_empty() {
            without.push(name.clone());
        }
        for text in found {
            texts.entry(text).or_default().push(name.clone());
        }
    }
    ensure!(!texts.is_empty(), "cargo metadata names no crate with a licence");
    let mut all = String::from("The crates in this program, and their licences.\n");
    for (text, crates) in &texts {
        all += &format!("\n{}\n{}\n\n{text}\n", "=".repeat(76), crates.join("\n"));
    }
    if !without.is_empty() {
        let rule = "=".repeat(76);
        all += &format!("\n{rule}\nWithout a text of their own:\n{}\n", without.join("\n"));
    }
    Ok(all)
}

/// The packages that the program is linked of: what its own dependencies need to run.
fn linked(metadata: &Value) -> anyhow::Result<BTreeSet<String>> {
    let nodes = metadata["resolve"]["nodes"].as_array().context("no graph of dependencies")?;
    let of: BTreeMap<&str, &Value> =
        nodes.iter().filter_map(|node| Some((node["id"].as_str()?, node))).collect();
    let packages = metadata["packages"].as_array().context("no packages")?;
    let program = packages.iter().find(|package| package["name"] == "fullpipe-cli");
    let program = program.context("no package fullpipe-cli")?;
    let mut next = vec![program["id"].as_str().context("a package without id")?];
    let mut seen = BTreeSet::new();
    while let Some(id) = next.pop() {
        if !seen.insert(id.to_owned()) {
            continue;
        }
        let dependencies = of[id]["deps"].as_array().into_iter().flatten();
        next.extend(dependencies.filter(is_linked).filter_map(|one| one["pkg"].as_str()));
    }
    Ok(seen)
}

/// Whether a dependency is not for builds and tests alone.
fn is_linked(dependency: &&Value) -> bool {
    let kinds = dependency["dep_kinds"].as_array();
    kinds.is_some_and(|kinds| kinds.iter().any(|kind| kind["kind"].is_null()))
}

/// The licence files beside a manifest.
fn texts_beside(manifest: &Path) -> anyhow::Result<Vec<String>> {
    const NAMES: [&str; 5] = ["LICENSE", "LICENCE", "COPYING", "NOTICE", "UNLICENSE"];
    let folder = manifest.parent().context("a manifest without a folder")?;
    let mut texts = Vec::new();
    for (name, _) in super::files(folder)? {
        let path = folder.join(&name);
        if NAMES.iter().any(|known| name.to_uppercase().starts_with(known)) && path.is_file() {
            let text = String::from_utf8_lossy(&std::fs::read(path)?).into_owned();
            texts.push(text.replace('\r', "").trim().to_owned());
        }
    }
    Ok(texts)
}
