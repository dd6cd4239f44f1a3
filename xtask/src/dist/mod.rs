//! `cargo xtask dist`: what a release ships, made from the commit that is checked out.
//!
//! A static program for each architecture, in a tarball, a .deb, an .rpm, a container's image and
//! wheels for Python, with man pages, completions, units, licences, a bill of materials, the guide
//! as a site and SHA256SUMS, in target/dist/out. Everything is built from an export of the commit
//! at one place, with the commit's time, so that the same commit gives the same bytes.

mod archive;
mod check;
mod guide;
mod image;
mod kubernetes;
mod licences;
mod packages;
mod program;
mod tools;
mod tree;
mod wheels;

use anyhow::{Context, ensure};
use clap::{Args, ValueEnum};
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use std::process::Command;

/// What to make.
#[derive(Args)]
pub struct Dist {
    /// Only this architecture; it can be given again. Without it: all.
    #[arg(long = "target", value_name = "ARCHITECTURE")]
    targets: Vec<Architecture>,
    /// Where the release's files will be, for the recipes of Arch, Homebrew, Nix and krew; they are
    /// not made without it.
    #[arg(long, value_name = "URL")]
    address: Option<String>,
    /// Without the wheels, which take longest.
    #[arg(long)]
    without_wheels: bool,
    /// Then install, use and remove it in bare systems, measure it, make everything again
    /// elsewhere, and compare: needs root, and `apt install debootstrap lintian rpm
    /// qemu-user-static qemu-utils ruby nix-bin`.
    #[arg(long)]
    check: bool,
    /// A bare root file system that is checked, too, as a tar: alpine=FILE, rocky=FILE.
    #[arg(long = "root", value_name = "SYSTEM=FILE", requires = "check")]
    roots: Vec<check::Given>,
}

/// For which machines there are releases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
enum Architecture {
    /// Intel and AMD, 64 bits.
    #[value(name = "x86_64")]
    X86_64,
    /// ARM, 64 bits.
    #[value(name = "aarch64")]
    Aarch64,
}

impl Architecture {
    const ALL: [Architecture; 2] = [Architecture::X86_64, Architecture::Aarch64];

    /// As the kernel (`uname -m`), Rust and RPM name it.
    const fn name(self) -> &'static str {
        match self {
            Architecture::X86_64 => "x86_64",
            Architecture::Aarch64 => "aarch64",
        }
    }

    /// As Debian and container images name it.
    const fn debian(self) -> &'static str {
        match self {
            Architecture::X86_64 => "amd64",
            Architecture::Aarch64 => "arm64",
        }
    }

    /// Rust's target.
    fn target(self) -> String {
        format!("{}-unknown-linux-musl", self.name())
    }

    /// Whether its programs run here.
    fn is_here(self) -> bool {
        self.name() == std::env::consts::ARCH
    }

    /// That of this machine.
    fn here() -> anyhow::Result<Architecture> {
        let found = Architecture::ALL.into_iter().find(|one| one.is_here());
        found.context("there is no release for this machine's architecture")
    }
}

/// The commit that is released.
struct Release {
    version: String,
    commit: String,
    /// When it was committed, in seconds since 1970: the time of every file.
    time: u64,
    /// Where it is made, absolute: target/dist.
    folder: PathBuf,
    /// The export of the commit.
    source: PathBuf,
}

impl Dist {
    /// Makes the release, and says what it made.
    pub fn run(&self) -> anyhow::Result<()> {
        let mut said = check::ClosingLines::new();
        let base = std::path::absolute(crate::build::target_folder().join("dist"))?;
        let release = Release::checked_out(&base)?;
        let tools = tools::Tools::install(&release)?;
        let mut targets = self.targets.clone();
        if targets.is_empty() {
            targets = Architecture::ALL.to_vec();
        }
        // The program writes its man pages and completions, so one that runs here comes first.
        targets.sort_by_key(|target| !target.is_here());
        ensure!(
            targets[0].is_here(),
            "the program writes its own man pages: add --target {}",
            std::env::consts::ARCH
        );
        let out = self.make(&release, &tools, &targets)?;
        eprintln!("{}:", out.display());
        for (name, bytes) in files(&out)? {
            eprintln!("  {bytes:>10} {name}");
        }
        if !self.check {
            return Ok(());
        }
        check::everything(&release, &tools, &out, &self.roots, &mut said)?;
        check::same_bytes_again(&release, &out, &mut said, |again| {
            self.make(again, &tools, &targets)
        })?;
        said.say();
        Ok(())
    }

    /// Makes everything that the release ships; returns the folder that has it.
    fn make(
        &self,
        release: &Release,
        tools: &tools::Tools,
        targets: &[Architecture],
    ) -> anyhow::Result<PathBuf> {
        let out = fresh(&release.folder.join("out"))?;
        let programs = program::build_all(release, tools, targets)?;
        let pages = tree::Pages::written_by(&programs[0], release)?;
        for (&target, program) in targets.iter().zip(&programs) {
            let licences = licences::of(release, target)?;
            let root = tree::lay_out(release, target, program, &pages, &licences)?;
            archive::tarball(release, target, &root, &out)?;
            packages::deb(release, tools, target, &root, &out)?;
            packages::rpm(release, tools, target, &root, &out)?;
            image::make(release, target, program, &out)?;
            if !self.without_wheels {
                wheels::build(release, tools, target, program, &out)?;
            }
        }
        guests(release, tools, &programs[0], &out)?;
        guide::build(release, tools, &out)?;
        tools.bill_of_materials(release, &out)?;
        release.fill_in("contrib/packaging/install.sh", &out.join("install.sh"), &[])?;
        kubernetes::make(release, &out)?;
        if let Some(address) = &self.address {
            recipes(release, &out, address, &out)?;
        }
        sums(&out)?;
        Ok(out)
    }
}

impl Release {
    /// The commit that is checked out. What is not committed is not released.
    fn checked_out(folder: &Path) -> anyhow::Result<Release> {
        let changed = output(Command::new("git").args(["status", "--porcelain"]))?;
        if !changed.is_empty() {
            eprintln!("NOTE: the work tree has changes that are not committed; they are left out");
        }
        Release::export(folder, "HEAD")
    }

    /// Exports a commit into `source` in `folder`.
    fn export(folder: &Path, revision: &str) -> anyhow::Result<Release> {
        let about = output(Command::new("git").args(["show", "-s", "--format=%H %ct", revision]))?;
        let (commit, time) = about.trim().split_once(' ').context("read the commit")?;
        let source = fresh(&folder.join("source"))?;
        let packed = folder.join("source.tar");
        let mut archive = Command::new("git");
        run(archive.args(["archive", "--format=tar", commit, "--output"]).arg(&packed))?;
        run(Command::new("tar").arg("-xf").arg(&packed).arg("-C").arg(&source))?;
        date_anew(&source, commit, &folder.join("exported"))?;
        let manifest = std::fs::read_to_string(source.join("Cargo.toml"))?;
        let manifest: toml::Table = manifest.parse().context("read Cargo.toml")?;
        let version = manifest["workspace"]["package"]["version"].as_str();
        Ok(Release {
            version: version.context("Cargo.toml has no version")?.to_owned(),
            commit: commit.to_owned(),
            time: time.parse().context("read the commit's time")?,
            folder: folder.to_owned(),
            source,
        })
    }

    /// What the files of `target` are called, without an ending.
    fn stem(&self, target: Architecture) -> String {
        format!("fullpipe-{}-{}-linux", self.version, target.name())
    }

    /// A file of the commit.
    fn read(&self, path: &str) -> anyhow::Result<Vec<u8>> {
        std::fs::read(self.source.join(path)).with_context(|| format!("read {path}"))
    }

    /// Writes a template of the commit with the version, and what `others` say, in its places.
    fn fill_in(&self, template: &str, to: &Path, others: &[(&str, &str)]) -> anyhow::Result<()> {
        let mut text = String::from_utf8(self.read(template)?)?;
        for (place, value) in [("@VERSION@", self.version.as_str())].iter().chain(others) {
            text = text.replace(place, value);
        }
        ensure!(!text.contains("@SHA256") && !text.contains("@ADDRESS"), "{template} is not full");
        write(to, text.as_bytes())
    }
}

/// Gives the files of `source` the time at which `commit` was exported first, which `note` keeps.
///
/// A commit's own time may be before the last build of another commit: cargo, which compares times,
/// would take that one's crates for this one's.
fn date_anew(source: &Path, commit: &str, note: &Path) -> anyhow::Result<()> {
    let is_known = std::fs::read_to_string(note).is_ok_and(|of| of == commit);
    if !is_known {
        write(note, commit.as_bytes())?;
    }
    let mut find = Command::new("find");
    find.arg(source).args(["-type", "f", "-exec", "touch", "--no-create", "--reference"]);
    run(find.arg(note).args(["{}", "+"]))
}

/// The guest kernels of this user's cache, as one file; they are built for this machine alone.
fn guests(
    release: &Release,
    tools: &tools::Tools,
    program: &Path,
    out: &Path,
) -> anyhow::Result<()> {
    let listed = output(Command::new(program).args(["lab", "kernel", "list", "--json"]))?;
    if listed.trim() == "[]" {
        eprintln!("NOTE: no guest kernels: `fullpipe lab kernel build` makes them");
        return Ok(());
    }
    let gzipped = release.folder.join("guests.tar.gz");
    run(Command::new(program).args(["lab", "kernel", "pack", "--output"]).arg(&gzipped))?;
    let name =
        format!("fullpipe-guests-{}-{}-linux.tar.zst", release.version, std::env::consts::ARCH);
    run(Command::new(tools.python("python"))
        .args(["-c", PACKED_AGAIN])
        .args([gzipped, out.join(name)]))
}

/// Packs a gzipped file with Zstandard, as tightly as it can, which the program has no code for; it
/// only unpacks. One thread, and the size at the front: the same bytes everywhere.
const PACKED_AGAIN: &str = "
import gzip, sys, zstandard
plain = gzip.open(sys.argv[1]).read()
open(sys.argv[2], 'wb').write(zstandard.ZstdCompressor(level=19, threads=0).compress(plain))
";

/// Recipes, into `to`, for package managers that build from the tarballs of `out` at `address`.
fn recipes(release: &Release, out: &Path, address: &str, to: &Path) -> anyhow::Result<()> {
    let sums = Architecture::ALL.map(|target| {
        let tarball = out.join(format!("{}.tar.gz", release.stem(target)));
        let bytes = std::fs::read(&tarball);
        bytes
            .map(|bytes| digest(&bytes))
            .with_context(|| format!("recipes need {}", tarball.display()))
    });
    let [x86_64, aarch64] = sums;
    let (x86_64, aarch64) = (x86_64?, aarch64?);
    let plugin = out.join(kubernetes::plugin_name(release));
    let plugin = std::fs::read(&plugin).with_context(|| format!("read {}", plugin.display()))?;
    let plugin = digest(&plugin);
    let places = [
        ("@ADDRESS@", address.trim_end_matches('/')),
        ("@SHA256_X86_64@", x86_64.as_str()),
        ("@SHA256_AARCH64@", aarch64.as_str()),
        ("@SHA256_KUBECTL@", plugin.as_str()),
    ];
    for recipe in RECIPES {
        release.fill_in(&format!("contrib/packaging/{recipe}"), &to.join(recipe), &places)?;
    }
    Ok(())
}

/// Arch's, Homebrew's, Nix's and that of kubectl's plugin.
const RECIPES: [&str; 4] = ["PKGBUILD", "fullpipe.rb", "fullpipe.nix", "krew.yaml"];

/// An empty folder.
fn fresh(folder: &Path) -> anyhow::Result<PathBuf> {
    if folder.exists() {
        std::fs::remove_dir_all(folder).with_context(|| format!("empty {}", folder.display()))?;
    }
    std::fs::create_dir_all(folder).with_context(|| format!("make {}", folder.display()))?;
    Ok(folder.to_owned())
}

fn write(to: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    if let Some(folder) = to.parent() {
        std::fs::create_dir_all(folder).with_context(|| format!("make {}", folder.display()))?;
    }
    std::fs::write(to, bytes).with_context(|| format!("write {}", to.display()))
}

/// Runs a program with its output on this terminal.
fn run(command: &mut Command) -> anyhow::Result<()> {
    let status = command.status().with_context(|| format!("start {command:?}"))?;
    ensure!(status.success(), "failed: {command:?}");
    Ok(())
}

/// What a program prints.
fn output(command: &mut Command) -> anyhow::Result<String> {
    let output = command.output().with_context(|| format!("start {command:?}"))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "failed: {command:?}: {}", errors.trim());
    String::from_utf8(output.stdout).with_context(|| format!("read what {command:?} prints"))
}

/// The files of a folder with their sizes, by name.
fn files(folder: &Path) -> anyhow::Result<Vec<(String, u64)>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(|| format!("read {}", folder.display()))? {
        let entry = entry?;
        files.push((entry.file_name().to_string_lossy().into_owned(), entry.metadata()?.len()));
    }
    files.sort();
    Ok(files)
}

/// SHA256SUMS, as `sha256sum -c` reads it.
fn sums(out: &Path) -> anyhow::Result<()> {
    let mut text = String::new();
    for (name, _) in files(out)? {
        text += &format!("{}  {name}\n", digest(&std::fs::read(out.join(&name))?));
    }
    write(&out.join("SHA256SUMS"), text.as_bytes())
}

/// SHA-256, in hexadecimal digits.
fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
