//! The Python package with the program inside, so that `pip install` and `uv tool install` give
//! the command, too.

use super::tools::Tools;
use super::{Architecture, Release, files, fresh, program, run, write};
use anyhow::{Context, ensure};
use std::path::Path;
use std::process::Command;

/// What a wheel may have.
pub const LARGEST: u64 = 10_000_000;
/// Where the export is while a wheel is built. The package is a workspace of its own and takes the
/// crates from beside it, by their whole paths: at another place they are other crates to the
/// compiler, and give other bytes.
const PLACE: &str = "/media";
/// Puts the export there, for what it then starts and nothing else.
const AT_PLACE: &str = "mount --bind \"$0\" \"$1\"; cd \"$1\"; shift; exec \"$@\"";
/// Where maturin takes from what it puts beside the package; `scripts` are commands.
const DATA: &str = "data";
/// Rust's name of a C library, and the oldest systems with it that a wheel is for (PEP 600, 656).
const SYSTEMS: [(&str, &str); 2] = [("gnu", "manylinux2014"), ("musl", "musllinux_1_2")];

/// Builds the wheels for `target` into `out`, each with the program `command`.
pub fn build(
    release: &Release,
    tools: &Tools,
    target: Architecture,
    command: &Path,
    out: &Path,
) -> anyhow::Result<()> {
    with_program(release, command)?;
    for (libc, oldest) in SYSTEMS {
        let name = format!("{}-unknown-linux-{libc}", target.name());
        run(Command::new("rustup").args(["target", "add", &name]).current_dir(&release.source))?;
        let made = fresh(&release.folder.join("wheels"))?;
        run(tools
            .at_hand(Command::new("unshare"), release)?
            .args(["--map-root-user", "--mount", "sh", "-ec", AT_PLACE])
            .args([release.source.as_path(), Path::new(PLACE), &tools.python("maturin")])
            .args(["build", "--quiet", "--locked", "--zig", "--manifest-path", "python/Cargo.toml"])
            .args(["--profile", "release", "--compression-level", "9"])
            .args(["--target", &name, "--compatibility", oldest, "--out"])
            .arg(&made)
            .env("CARGO_TARGET_DIR", release.folder.join("build-python"))
            .env("CARGO_ENCODED_RUSTFLAGS", program::one_name(release, Path::new(PLACE))?)
            // The package is for any Python from its oldest on, so none has to be here.
            .env("PYO3_NO_PYTHON", "1"))?;
        for (wheel, bytes) in files(&made)? {
            ensure!(bytes <= LARGEST, "{wheel}: {bytes} bytes, more than {LARGEST}");
            std::fs::rename(made.join(&wheel), out.join(&wheel))
                .with_context(|| format!("keep {wheel}"))?;
        }
    }
    Ok(())
}

/// Puts the program where maturin finds it: in the export, whose manifest says so.
fn with_program(release: &Release, command: &Path) -> anyhow::Result<()> {
    let python = release.source.join("python");
    let scripts = fresh(&python.join(DATA).join("scripts"))?;
    std::fs::copy(command, scripts.join("fullpipe")).context("put the program into the wheel")?;
    let manifest = String::from_utf8(release.read("python/pyproject.toml")?)?;
    let said = format!("data = \"{DATA}\"\n");
    if manifest.contains(&said) {
        return Ok(());
    }
    let heading = "[tool.maturin]\n";
    ensure!(manifest.contains(heading), "pyproject.toml has no {heading}");
    let manifest = manifest.replacen(heading, &format!("{heading}{said}"), 1);
    write(&python.join("pyproject.toml"), manifest.as_bytes())
}
