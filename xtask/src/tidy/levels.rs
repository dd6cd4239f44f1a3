//! Levels: a package that a profile leaves unoptimised is used by such packages only.
//!
//! At level 1 the compiler shares generic functions: what a package below has compiled is called,
//! not compiled again. So one unoptimised package makes those above it slow, whatever their own
//! level is.

use anyhow::Context;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

const PLATFORM: &str = "x86_64-unknown-linux-gnu";

/// What breaks the rule in the workspace at `root`, for its `profile`.
pub fn breaches(root: &Path, profile: &str) -> anyhow::Result<Vec<String>> {
    let manifest = root.join("Cargo.toml");
    let text = std::fs::read_to_string(&manifest)
        .with_context(|| format!("read {}", manifest.display()))?;
    let unoptimised = unoptimised(&text.parse().context("read Cargo.toml")?, profile);
    anyhow::ensure!(!unoptimised.is_empty(), "{}: no profile {profile}", manifest.display());
    let metadata = super::metadata(root, &["--locked", "--filter-platform", PLATFORM])?;
    Ok(users(&metadata, &unoptimised)
        .into_iter()
        .map(|(user, used)| {
            format!(
                "{}: profile.{profile} optimises {user}, which would call unoptimised code of \
                 {used}: give both one level",
                manifest.display()
            )
        })
        .collect())
}

/// The packages that `profile` names with level 0.
fn unoptimised(manifest: &toml::Table, profile: &str) -> BTreeSet<String> {
    let packages =
        manifest.get("profile").and_then(|all| all.get(profile)?.get("package")?.as_table());
    let levels = packages.into_iter().flatten();
    let none =
        levels.filter(|(_, one)| one.get("opt-level").and_then(toml::Value::as_integer) == Some(0));
    none.map(|(name, _)| name.clone()).collect()
}

/// Each use of an unoptimised package by one that is optimised.
fn users(metadata: &Value, unoptimised: &BTreeSet<String>) -> Vec<(String, String)> {
    let packages: BTreeMap<&str, &Value> = list(&metadata["packages"])
        .filter(|package| {
            !list(&package["targets"]).any(|target| target["kind"][0] == "proc-macro")
        })
        .filter_map(|package| Some((package["id"].as_str()?, &package["name"])))
        .collect();
    let mut found = Vec::new();
    for node in list(&metadata["resolve"]["nodes"]) {
        let Some(user) = name(&packages, &node["id"]).filter(|user| !unoptimised.contains(user))
        else {
            continue;
        };
        let linked = list(&node["deps"])
            .filter(|one| list(&one["dep_kinds"]).any(|kind| kind["kind"].is_null()));
        let used = linked
            .filter_map(|one| name(&packages, &one["pkg"]))
            .filter(|used| unoptimised.contains(used));
        found.extend(used.map(|used| (user.clone(), used)));
    }
    found
}

fn name(packages: &BTreeMap<&str, &Value>, id: &Value) -> Option<String> {
    packages.get(id.as_str()?)?.as_str().map(str::to_owned)
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_use_that_slows_its_user_is_found_and_others_are_not() {
        let profiles = "[profile.dev]\nopt-level = 1\n[profile.dev.package]\nslow.opt-level = 0\nfast.opt-level = 3";
        let slow = unoptimised(&profiles.parse().unwrap(), "dev");
        assert_eq!(slow.iter().collect::<Vec<_>>(), ["slow"]);
        let package = |name: &str, kind: &str| json!({"id": name, "name": name, "targets": [{"kind": [kind]}]});
        let uses = |name: &str, kind: Value| json!({"pkg": name, "dep_kinds": [{"kind": kind}]});
        let metadata = json!({
            "packages": [package("slow", "lib"), package("fast", "lib"), package("derive", "proc-macro")],
            "resolve": {"nodes": [
                {"id": "slow", "deps": [uses("fast", Value::Null)]},
                {"id": "fast", "deps": [uses("slow", json!("dev")), uses("derive", Value::Null)]},
                {"id": "derive", "deps": [uses("slow", Value::Null)]},
            ]}
        });
        assert_eq!(users(&metadata, &slow), []);
        let mut linked = metadata.clone();
        linked["resolve"]["nodes"][1]["deps"][0] = uses("slow", Value::Null);
        assert_eq!(users(&linked, &slow), [("fast".to_owned(), "slow".to_owned())]);
    }
}
