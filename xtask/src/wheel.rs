//! `cargo xtask wheel`: the Python package of `python/`, and its tests.
//!
//! Everything that is not Python's own comes from PyPI into an environment of its own,
//! `target/python`, at the versions of `python/tests/requirements.txt`.

use anyhow::{Context, bail, ensure};
use clap::Args;
use std::path::{Path, PathBuf};
use std::process::Command;

const REQUIREMENTS: &str = "python/tests/requirements.txt";
/// What the tests of `fullpipe.spark` need beside Java.
const SPARK: &str = "python/tests/requirements-spark.txt";
/// What a wheel may have.
const LARGEST: u64 = 8_000_000;

/// What to do with the package.
#[derive(Args)]
pub struct Wheel {
    /// Install the wheel into target/python and run python/tests.
    #[arg(long)]
    test: bool,
}

impl Wheel {
    /// Builds the wheel into target/wheels.
    pub fn run(&self) -> anyhow::Result<()> {
        let python = environment()?;
        let wheel = build(&python, "release")?;
        let bytes = std::fs::metadata(&wheel).context("look at the wheel")?.len();
        eprintln!("wheel: {}, {bytes} bytes", wheel.display());
        ensure!(bytes <= LARGEST, "the wheel has more than {LARGEST} bytes");
        if !self.test {
            return Ok(());
        }
        crate::build::cargo(&["build", "--quiet", "--package", "fullpipe-cli"], &[])?;
        test(&python, &wheel)
    }

    /// For `ci`: format, lints, and tests of a wheel that is built sooner than the shipped one,
    /// where Python can make environments.
    pub fn check() -> anyhow::Result<()> {
        let can = Command::new("python3").args(["-c", "import ensurepip, venv"]).output();
        if !can.is_ok_and(|output| output.status.success()) {
            let advice = "python3 makes no environments here: install python3-venv";
            ensure!(std::env::var_os("FULLPIPE_NO_SKIP").is_none(), "{advice}");
            eprintln!("SKIPPED: wheel: {advice}");
            return Ok(());
        }
        let cargo = |arguments: &[&str]| {
            run(Command::new(env!("CARGO")).args(arguments).current_dir("python"))
        };
        cargo(&["fmt", "--check"])?;
        cargo(&["clippy", "--locked", "--all-targets", "--", "-D", "warnings"])?;
        let python = environment()?;
        let wheel = build(&python, "quick")?;
        crate::build::program_and_tests()?;
        test(&python, &wheel)
    }
}

fn run(command: &mut Command) -> anyhow::Result<()> {
    let status = command.status().with_context(|| format!("start {command:?}"))?;
    if !status.success() {
        bail!("failed: {command:?}");
    }
    Ok(())
}

/// The environment's folder of programs, made or brought up to date.
fn environment() -> anyhow::Result<PathBuf> {
    let root = crate::build::target_folder();
    let environment = root.join("python");
    let programs = std::path::absolute(environment.join("bin"))?;
    if !programs.join("pip").exists() {
        run(Command::new("python3").args(["-m", "venv"]).arg(&environment))?;
    }
    install(&programs, REQUIREMENTS)?;
    Ok(programs)
}

fn install(programs: &Path, requirements: &str) -> anyhow::Result<()> {
    let pip = programs.join("pip");
    run(Command::new(pip).args(["install", "--quiet", "--requirement", requirements]))
}

/// Builds the wheel with a profile of `python/Cargo.toml`; returns where it is. With Zig's linker
/// it runs where glibc is 2.17 or later, otherwise where it is as new as here.
fn build(programs: &Path, profile: &str) -> anyhow::Result<PathBuf> {
    let wheels = crate::build::target_folder().join("wheels");
    let _ = std::fs::remove_dir_all(&wheels);
    let zig = Command::new(programs.join("python")).args(["-m", "ziglang", "version"]).output();
    let linker: &[&str] = match zig {
        Ok(output) if output.status.success() => &["--zig", "--compatibility", "manylinux2014"],
        _ => &[],
    };
    // maturin starts Zig by the `python3` that it finds.
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths(
        std::iter::once(programs.to_owned()).chain(std::env::split_paths(&path)),
    )?;
    run(Command::new(programs.join("maturin"))
        .args(["build", "--quiet", "--profile", profile, "--locked"])
        .args(linker)
        .env("PATH", path)
        .args(["--manifest-path", "python/Cargo.toml", "--out"])
        .arg(&wheels))?;
    let mut files = std::fs::read_dir(&wheels).context("read target/wheels")?;
    let wheel = files.next().context("maturin made no wheel")??;
    Ok(wheel.path())
}

/// Runs the tests against the installed wheel and the command line.
fn test(programs: &Path, wheel: &Path) -> anyhow::Result<()> {
    // Without Java its tests are skipped, so nobody has to wait for it.
    if Command::new("java").arg("-version").output().is_ok() {
        install(programs, SPARK)?;
    }
    let pip = ["install", "--quiet", "--force-reinstall", "--no-deps"];
    run(Command::new(programs.join("pip")).args(pip).arg(wheel))?;
    let binary = std::path::absolute(crate::build::debug_program())?;
    run(Command::new(programs.join("python"))
        .args(["-m", "pytest", "--quiet", "-p", "no:cacheprovider", "tests"])
        .env("FULLPIPE_BINARY", binary)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .current_dir("python"))
}
