//! The static program.

use super::tools::Tools;
use super::{Architecture, Release, run};
use anyhow::ensure;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What the program may have: fetched and started in a moment, and fit for a container's image.
pub const LARGEST: u64 = 15_000_000;

/// Nothing unwinds in what is shipped, so it needs no tables for that. The compiler makes some all
/// the same: its library brings line numbers into the whole program, which is one module at the
/// end, and where there are line numbers every function gets a table. So the linker drops them.
const WITHOUT_TABLES: &str = "contrib/packaging/without-unwinding.ld";

/// Builds the programs for `targets`, all at once: the end of each build has one thread.
pub fn build_all(
    release: &Release,
    tools: &Tools,
    targets: &[Architecture],
) -> anyhow::Result<Vec<PathBuf>> {
    std::thread::scope(|scope| {
        let builds: Vec<_> = targets
            .iter()
            .map(|&target| scope.spawn(move || build(release, tools, target)))
            .collect();
        let built = builds.into_iter().map(|build| build.join().expect("a build does not panic"));
        built.collect()
    })
}

/// Builds the program for `target`; returns where it is.
fn build(release: &Release, tools: &Tools, target: Architecture) -> anyhow::Result<PathBuf> {
    // Two builds in one folder would wait for each other.
    let folder = release.folder.join("build").join(target.name());
    let name = target.target();
    run(Command::new("rustup").args(["target", "add", &name]).current_dir(&release.source))?;
    // The linker runs in the export: the flags are the same wherever that is.
    let tables = format!("-Cforce-unwind-tables=no\u{1f}-Clink-arg=-Wl,-T,{WITHOUT_TABLES}");
    run(tools
        .cargo(release)?
        .args(["zigbuild", "--locked", "--quiet", "--package", "fullpipe-cli"])
        .args(["--profile", "dist", "--target", &name])
        .env("CARGO_TARGET_DIR", &folder)
        .env("FULLPIPE_COMMIT", &release.commit)
        .env(
            "CARGO_ENCODED_RUSTFLAGS",
            format!("{}\u{1f}{}", one_name(release, &release.source)?, tables),
        ))?;
    let program = folder.join(name).join("dist/fullpipe");
    let bytes = std::fs::metadata(&program)?.len();
    ensure!(bytes <= LARGEST, "{}: {bytes} bytes, more than {LARGEST}", program.display());
    Ok(program)
}

/// Flags of the compiler: panics name files, by one name wherever `source`, what is made of it and
/// cargo's own folder are.
pub fn one_name(release: &Release, source: &Path) -> anyhow::Result<String> {
    let home = std::env::var("CARGO_HOME").or_else(|_| {
        let home = std::env::var("HOME")?;
        Ok::<_, std::env::VarError>(format!("{home}/.cargo"))
    })?;
    let made = release.folder.display().to_string();
    let source = source.display().to_string();
    // The last that fits counts, and the source is in the folder of what is made.
    let renamed = [(made, "made"), (source, "fullpipe"), (home, "cargo")];
    let renamed = renamed.map(|(from, to)| format!("--remap-path-prefix={from}=/{to}"));
    Ok(renamed.join("\u{1f}"))
}
