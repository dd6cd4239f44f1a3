//! The static program.

use super::tools::Tools;
use super::{Architecture, Release, run};
use anyhow::ensure;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What the program may have: fetched and started in a moment, and fit for a container's image.
pub const LARGEST: u64 = 16_000_000;

/// Nothing unwinds in what is shipped, so it needs no tables for that.
const NO_TABLES: &str = "-Cforce-unwind-tables=no";

/// Builds the programs for `targets`, all at once: the end of each build has one thread.
pub fn build_all(
    release: &Release,
    tools: &Tools,
    targets: &[Architecture],
) -> anyhow::Result<Vec<PathBuf>> {
    std::thread::scope(|scope| {
        let builds: Vec<_> = targets
            .iter()
            .map(|&target| {
                scope.spawn(move || build(release, tools, target, &folder_of(release, target)))
            })
            .collect();
        let built = builds.into_iter().map(|build| build.join().expect("a build does not panic"));
        built.collect()
    })
}

/// Where the program for `target` is built: two builds in one folder would wait for each other.
pub fn folder_of(release: &Release, target: Architecture) -> PathBuf {
    release.folder.join("build").join(target.name())
}

/// Builds the program for `target` below `folder`; returns where it is.
pub fn build(
    release: &Release,
    tools: &Tools,
    target: Architecture,
    folder: &Path,
) -> anyhow::Result<PathBuf> {
    let name = target.target();
    run(Command::new("rustup").args(["target", "add", &name]).current_dir(&release.source))?;
    run(tools
        .cargo(release)?
        .args(["zigbuild", "--locked", "--quiet", "--package", "fullpipe-cli"])
        .args(["--profile", "dist", "--target", &name])
        .env("CARGO_TARGET_DIR", folder)
        .env("FULLPIPE_COMMIT", &release.commit)
        .env("CARGO_ENCODED_RUSTFLAGS", format!("{}\u{1f}{NO_TABLES}", one_name(release)?)))?;
    let program = folder.join(name).join("dist/fullpipe");
    let bytes = std::fs::metadata(&program)?.len();
    ensure!(bytes <= LARGEST, "{}: {bytes} bytes, more than {LARGEST}", program.display());
    Ok(program)
}

/// Flags of the compiler: panics name files, by one name wherever the source and cargo's own folder
/// are.
pub fn one_name(release: &Release) -> anyhow::Result<String> {
    let home = std::env::var("CARGO_HOME").or_else(|_| {
        let home = std::env::var("HOME")?;
        Ok::<_, std::env::VarError>(format!("{home}/.cargo"))
    })?;
    let renamed = [(release.source.display().to_string(), "fullpipe"), (home, "cargo")];
    let renamed = renamed.map(|(from, to)| format!("--remap-path-prefix={from}=/{to}"));
    Ok(renamed.join("\u{1f}"))
}
