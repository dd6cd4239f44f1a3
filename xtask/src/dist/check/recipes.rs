//! The recipes for other package managers and the forge's workflow: each is read by the program, or
//! by the schema, of those who use it.

use super::super::tools::Tools;
use super::super::{RECIPES, Release, fresh, recipes, run};
use super::{ClosingLines, with_tool};
use std::path::Path;
use std::process::Command;

/// Who reads a recipe, and how; in the order of [`RECIPES`].
const READERS: [&[&str]; RECIPES.len()] = [
    &["bash", "-n"],
    &["ruby", "-c"],
    &["nix-instantiate", "--parse"],
    &["python3", "-c", READ_YAML],
];

const READ_YAML: &str = "import sys, yaml; yaml.safe_load(open(sys.argv[1]))";

/// Fills the recipes with this release, and has each read.
pub fn check(
    release: &Release,
    tools: &Tools,
    out: &Path,
    work: &Path,
    said: &mut ClosingLines,
) -> anyhow::Result<()> {
    run(Command::new(tools.python("check-jsonschema"))
        .args(["--quiet", "--builtin-schema", "vendor.github-workflows"])
        .arg(release.source.join("contrib/packaging/release.yml")))?;
    let filled = fresh(&work.join("recipes"))?;
    for file in ["x86_64", "aarch64"].map(|name| format!("fullpipe-{}-{name}", release.version)) {
        let tarball = out.join(format!("{file}-linux.tar.gz"));
        if !tarball.exists() {
            said.missing(format!("the recipes: they need {}", tarball.display()));
            return Ok(());
        }
    }
    recipes(release, out, &format!("file://{}", out.display()), &filled)?;
    for (recipe, reader) in RECIPES.into_iter().zip(READERS) {
        with_tool(reader[0], said, |_| {
            let mut read = Command::new(reader[0]);
            run(read
                .args(&reader[1..])
                .arg(filled.join(recipe))
                .stdout(std::process::Stdio::null()))
        })?;
    }
    let recipes = RECIPES.join(", ");
    said.checked(format!(
        "the recipes {recipes} and the forge's workflow are read by their readers"
    ));
    said.missing("the recipes in use: Arch's, Homebrew's and Nix's package managers are not here");
    Ok(())
}
