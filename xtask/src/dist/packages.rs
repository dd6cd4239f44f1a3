//! The .deb and the .rpm, from contrib/packaging/package.toml.

use super::tools::Tools;
use super::{Architecture, Release, run, write};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Makes the .deb of the files below `root`.
pub fn deb(
    release: &Release,
    tools: &Tools,
    target: Architecture,
    root: &Path,
    out: &Path,
) -> anyhow::Result<()> {
    let package = package(release, root)?;
    let file = out.join(format!("fullpipe_{}-1_{}.deb", release.version, target.debian()));
    run(tool(release, tools, &package)?
        .args(["deb", "--no-build", "--no-strip", "--quiet", "--target", &target.target()])
        .arg("--output")
        .arg(file))
}

/// Makes the .rpm of the files below `root`.
pub fn rpm(
    release: &Release,
    tools: &Tools,
    target: Architecture,
    root: &Path,
    out: &Path,
) -> anyhow::Result<()> {
    let package = package(release, root)?;
    let file = out.join(format!("fullpipe-{}-1.{}.rpm", release.version, target.name()));
    run(tool(release, tools, &package)?
        .args(["generate-rpm", "--target", &target.target(), "--source-date"])
        .arg(release.time.to_string())
        .arg("--output")
        .arg(file))
}

/// The folder beside `root`, as a package of cargo's: both tools read one.
fn package(release: &Release, root: &Path) -> anyhow::Result<PathBuf> {
    let folder = root.with_file_name("");
    release.fill_in("contrib/packaging/package.toml", &folder.join("Cargo.toml"), &[])?;
    write(&folder.join("src/main.rs"), b"fn main() {}\n")?;
    Ok(folder)
}

fn tool(release: &Release, tools: &Tools, folder: &Path) -> anyhow::Result<Command> {
    let mut cargo = tools.cargo(release)?;
    cargo.current_dir(folder).env("CARGO_TARGET_DIR", folder.join("target"));
    Ok(cargo)
}
