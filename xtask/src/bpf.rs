//! `cargo xtask bpf`: builds the window agent's BPF object, which the repository keeps, so that
//! cargo alone builds the product.

use anyhow::{Context, bail, ensure};
use clap::Args;
use std::path::Path;
use std::process::{Command, Stdio};

const SOURCE: &str = "crates/agent/bpf/window.bpf.c";
const OBJECT: &str = "crates/agent/bpf/window.bpf.o";
/// The major version that built what is committed: Debian 12's. Others choose other instructions.
const CLANG: &str = "14";

/// Options of `cargo xtask bpf`.
#[derive(Args)]
pub struct Bpf {
    /// Prove that what is committed is current, in place of building.
    #[arg(long)]
    check: bool,
}

impl Bpf {
    pub fn run(&self) -> anyhow::Result<()> {
        if self.check { check() } else { build(Path::new(OBJECT)) }
    }
}

/// What CI runs. Without clang it says so; in CI that is a failure.
pub fn check() -> anyhow::Result<()> {
    let found = Command::new("clang").arg("-dumpversion").stderr(Stdio::null()).output();
    let version = found.ok().filter(|output| output.status.success());
    let version = version.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_string());
    let major = version.as_deref().and_then(|version| version.split('.').next());
    if major != Some(CLANG) {
        let found = version.as_deref().unwrap_or("none");
        let advice = format!("clang {CLANG} is missing (found: {found}): install clang and llvm");
        // Another Debian has another clang; only none at all is CI's own fault.
        let is_fault = version.is_none() && std::env::var_os("FULLPIPE_NO_SKIP").is_some();
        ensure!(!is_fault, "{advice}");
        eprintln!("SKIPPED: bpf: {advice}");
        return Ok(());
    }
    let built = crate::build::target_folder().join("window.bpf.o");
    build(&built)?;
    let read = |path: &Path| std::fs::read(path).with_context(|| format!("read {path:?}"));
    if read(&built)? != read(Path::new(OBJECT))? {
        bail!("{OBJECT} is not what {SOURCE} builds: run `cargo xtask bpf` and commit it");
    }
    Ok(())
}

fn build(object: &Path) -> anyhow::Result<()> {
    let include = format!("-I/usr/include/{}-linux-gnu", std::env::consts::ARCH);
    // The BTF stays; DWARF, which names this machine's folders, goes.
    let here = std::env::current_dir()?;
    let map = format!("-ffile-prefix-map={}=.", here.display());
    let compile = ["-O2", "-g", "-target", "bpf", "-mcpu=v3", "-Wall", "-Werror", "-c"];
    run(Command::new("clang").args(compile).args([&include, &map, SOURCE, "-o"]).arg(object))?;
    run(Command::new("llvm-strip").arg("-g").arg(object))
}

fn run(command: &mut Command) -> anyhow::Result<()> {
    let advice = "install clang, llvm and libbpf-dev";
    let status = command.status().with_context(|| format!("start {command:?}; {advice}"))?;
    ensure!(status.success(), "{command:?} failed; {advice}");
    Ok(())
}
