//! The tools that make a release, at fixed versions, below target/dist/tools.

use super::{Release, output, run, write};
use anyhow::Context;
use std::path::{Path, PathBuf};
use std::process::Command;

/// From crates.io: what makes a .deb, an .rpm, a bill of materials in CycloneDX's format, and the
/// guide's site.
const CRATES: [(&str, &str, &[&str]); 4] = [
    ("cargo-deb", "3.8.0", &[]),
    ("cargo-generate-rpm", "0.21.1", &[]),
    ("cargo-cyclonedx", "0.5.9", &[]),
    ("mdbook", "0.5.4", &["--no-default-features", "--features", "search"]),
];

/// Where the tools are.
pub struct Tools {
    /// Programs of the crates.
    crates: PathBuf,
    /// Zig's linker, and what cargo calls it by.
    python: PathBuf,
}

impl Tools {
    /// Installs what is not there.
    pub fn install(release: &Release) -> anyhow::Result<Tools> {
        let folder = release.folder.join("tools");
        let python = folder.join("python");
        if !python.join("bin/pip").exists() {
            run(Command::new("python3").args(["-m", "venv"]).arg(&python))?;
        }
        run(Command::new(python.join("bin/pip"))
            .args(["install", "--quiet", "--requirement"])
            .arg(release.source.join("contrib/packaging/tools.txt")))?;
        for (name, version, features) in CRATES {
            // A tool's cost is its build, so it is built without optimisation; cargo does nothing
            // where this version is there.
            run(Command::new(env!("CARGO"))
                .args(["install", "--locked", "--quiet", "--debug", "--root"])
                .arg(&folder)
                .arg(format!("{name}@{version}"))
                .args(features)
                .env("CARGO_TARGET_DIR", folder.join("build")))?;
        }
        Ok(Tools { crates: folder.join("bin"), python: python.join("bin") })
    }

    /// Cargo with the tools at hand, in the export.
    pub fn cargo(&self, release: &Release) -> anyhow::Result<Command> {
        self.at_hand(Command::new(env!("CARGO")), release)
    }

    /// A program of those in contrib/packaging/tools.txt.
    pub fn python(&self, name: &str) -> PathBuf {
        self.python.join(name)
    }

    /// What makes the guide's site, likewise.
    pub fn mdbook(&self, release: &Release) -> anyhow::Result<Command> {
        self.at_hand(Command::new(self.crates.join("mdbook")), release)
    }

    /// A program that has the tools at hand, in the export.
    pub fn at_hand(&self, mut program: Command, release: &Release) -> anyhow::Result<Command> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let ours = [self.crates.clone(), self.python.clone()];
        let path = std::env::join_paths(ours.into_iter().chain(std::env::split_paths(&path)))?;
        // What the cargo that started this says of xtask is none of the affairs of what is built:
        // ring's build script looks at it, and would build again what is there.
        for name in std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()) {
            if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") {
                program.env_remove(name);
            }
        }
        program
            .env("PATH", path)
            .env("SOURCE_DATE_EPOCH", release.time.to_string())
            .env_remove("RUSTFLAGS")
            .current_dir(&release.source);
        Ok(program)
    }

    /// What the program is made of, in CycloneDX's JSON.
    pub fn bill_of_materials(&self, release: &Release, out: &Path) -> anyhow::Result<()> {
        let name = "bill";
        output(self.cargo(release)?.args([
            "cyclonedx",
            "--quiet",
            "--manifest-path",
            "crates/cli/Cargo.toml",
            "--format",
            "json",
            "--target",
            "all",
            "--override-filename",
            name,
        ]))?;
        let made = release.source.join("crates/cli").join(format!("{name}.json"));
        let bill = std::fs::read_to_string(&made)
            .with_context(|| format!("read {}", made.display()))?
            // Where the export is says nothing to others, and differs from place to place.
            .replace(&format!("file://{}/", release.source.display()), "file:///");
        write(&out.join(format!("fullpipe-{}.cdx.json", release.version)), bill.as_bytes())
    }
}
