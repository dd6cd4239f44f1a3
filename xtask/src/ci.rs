//! `cargo xtask ci`: one command for people and machines; each step is a plain command that a
//! person could type.

use crate::build::cargo;
use crate::unchanged::Inputs;
use anyhow::{Context, ensure};
use clap::Args;
use std::process::Command;
use std::time::Instant;

/// How much a trial of the relay carries in its soak.
const SOAK: &str = "7GB";
/// What the steps of a whole run leave in an empty target folder, without incremental builds:
/// 10 GB, and a guest's image and the caches of a package manager beside it.
const BUILD_GB: u64 = 12;
const PURE: [&str; 3] = ["fullpipe-model", "fullpipe-flow", "fullpipe-report"];
const WASM: &str = "wasm32-unknown-unknown";

/// A step of CI.
struct CiStep {
    /// What the output calls it.
    name: &'static str,
    run: fn() -> anyhow::Result<()>,
    /// What it reads, where it is left out if that passed here before; empty: it always runs.
    inputs: &'static [&'static str],
}

/// A step that always runs.
const fn always(name: &'static str, run: fn() -> anyhow::Result<()>) -> CiStep {
    CiStep { name, run, inputs: &[] }
}

/// The steps in their order. The tests are last, so that the test runner's summary is at the end
/// of the output.
const STEPS: &[CiStep] = &[
    always("room: the disk holds what is built", room),
    always("tidy: doors, purity, sizes, leftovers", crate::tidy::run),
    always("fmt", || cargo(&["fmt", "--all", "--check"], &[])),
    always("clippy", || {
        cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"], &[])
    }),
    always("docs", || {
        let strict = [("RUSTDOCFLAGS", "-D warnings")];
        cargo(&["doc", "--workspace", "--no-deps", "--quiet"], &strict)
    }),
    always("purity", purity),
    always("dependencies", dependencies),
    always("bpf: what is committed is what crates/agent/bpf builds", crate::bpf::check),
    CiStep {
        name: "crates: what can be published builds by itself",
        run: published,
        inputs: &["Cargo.toml", "crates/model", "crates/flow", "crates/analyze"],
    },
    CiStep {
        name: "oldest compiler",
        run: oldest_compiler,
        inputs: &["Cargo.toml", "Cargo.lock", "crates", "xtask"],
    },
    always(FUZZ, crate::fuzz::replay),
    always("truth: generated scenarios are judged right", truth),
    CiStep {
        name: "pictures: docs/src/pictures are what the product draws",
        run: pictures,
        inputs: &["Cargo.lock", "crates", "scenarios", "docs", "xtask/src/pictures.rs"],
    },
    CiStep {
        name: "page: what is committed is what web/ builds, and works in Chromium",
        run: || crate::page::check(&crate::build::target_folder()),
        inputs: &["Cargo.toml", "Cargo.lock", "crates", "web", "xtask/src/page.rs"],
    },
    CiStep {
        name: "wheel: the Python package builds, and its tests pass",
        run: crate::wheel::Wheel::check,
        inputs: &["Cargo.lock", "crates", "python", "docs", "bench/fleet.py", "xtask/src/wheel.rs"],
    },
    CiStep {
        name: "soak: 21 GB go through the relay",
        run: soak,
        inputs: &["Cargo.lock", "crates/transfer", "crates/peer", "crates/kernel", "crates/cli"],
    },
    always("tests", tests),
];
/// The crates that others can use.
pub const PUBLISHED: [&str; 3] = ["fullpipe-model", "fullpipe-flow", "fullpipe-analyze"];
const FUZZ: &str = "fuzz targets";

/// Options of `cargo xtask ci`.
#[derive(Args)]
pub struct Ci {
    /// Leave out the fuzz targets.
    #[arg(long)]
    no_fuzz: bool,
    /// Only the steps whose name begins with this: `page`, for example.
    #[arg(long, value_name = "NAME", default_value = "")]
    only: String,
    /// Run the steps, too, whose inputs are those of a run that passed on this machine.
    #[arg(long)]
    all: bool,
}

impl Ci {
    /// Runs the chosen steps, and says how long each took and which were left out; the first that
    /// fails ends it.
    pub fn run(&self) -> anyhow::Result<()> {
        let names = || STEPS.iter().map(|step| short(step.name)).collect::<Vec<_>>().join(", ");
        ensure!(STEPS.iter().any(|step| self.has(step)), "no such step: there are {}", names());
        let mut took = Vec::new();
        for step in STEPS.iter().filter(|step| self.has(step)) {
            if step.name == STEPS[STEPS.len() - 1].name {
                eprintln!("\nSeconds of each step: {}", took.join(", "));
            }
            let began = now();
            let seconds = match self.run_step(step)? {
                StepOutcome::Passed => began.elapsed().as_secs().to_string(),
                StepOutcome::LeftOut => "left out".to_owned(),
            };
            took.push(format!("{} {seconds}", short(step.name)));
        }
        Ok(())
    }

    fn has(&self, step: &CiStep) -> bool {
        step.name.starts_with(&self.only) && !(self.no_fuzz && step.name == FUZZ)
    }

    fn run_step(&self, step: &CiStep) -> anyhow::Result<StepOutcome> {
        let name = step.name;
        eprintln!("\n=== {name}");
        if step.inputs.is_empty() {
            (step.run)().with_context(|| format!("{name} failed"))?;
            return Ok(StepOutcome::Passed);
        }
        let inputs = Inputs::read(short(name), step.inputs)?;
        // A step that was asked for by its name is run.
        if !self.all && self.only.is_empty() && inputs.have_passed() {
            eprintln!(
                "LEFT OUT: {name}: {} are as they were when it passed on this machine; \
                 `cargo xtask ci --all` runs it",
                step.inputs.join(", ")
            );
            return Ok(StepOutcome::LeftOut);
        }
        (step.run)().with_context(|| format!("{name} failed"))?;
        inputs.keep()?;
        Ok(StepOutcome::Passed)
    }
}

/// How a step ended that did not fail.
enum StepOutcome {
    Passed,
    LeftOut,
}

/// What stands before the colon of a step's name.
fn short(name: &str) -> &str {
    name.split_once(':').map_or(name, |(short, _)| short)
}

#[allow(clippy::disallowed_methods, reason = "a chore times its steps")]
pub fn now() -> Instant {
    Instant::now()
}

/// A disk that fills up ends some later step with a message that is about something else.
fn room() -> anyhow::Result<()> {
    let target = crate::build::target_folder();
    std::fs::create_dir_all(&target)
        .with_context(|| format!("make the folder {}", target.display()))?;
    let shown = Command::new("df").args(["-B1", "--output=avail"]).arg(&target).output();
    let text = String::from_utf8(shown.context("start df")?.stdout)?;
    let free: u64 = text.lines().last().unwrap_or_default().trim().parse().context("read df")?;
    let free = free / 1_000_000_000;
    eprintln!("{free} GB are free where {} is", target.display());
    ensure!(
        free >= BUILD_GB || target.join("doc").exists(),
        "a build in an empty folder takes some {BUILD_GB} GB: remove older builds, or set \
         CARGO_TARGET_DIR to a folder on another disk"
    );
    Ok(())
}

/// All tests, the property tests with the same cases each time: a commit that passed passes again.
/// `cargo xtask hunt` tries new ones.
fn tests() -> anyhow::Result<()> {
    cargo(&["test", "--workspace", "--no-fail-fast"], &[("PROPTEST_RNG_SEED", "1")])
}

/// The relay under load, with its carriers cut and its ends killed: 21 GB in all, as the streamed
/// trial carries [`SOAK`] each way. The trials compare every byte.
fn soak() -> anyhow::Result<()> {
    for trial in ["relay_carriers::a_long_stream", "relay_killed"] {
        cargo(
            &["test", "--quiet", "--workspace", "--test", "e2e", "--", trial],
            &[("FULLPIPE_RELAY_SOAK", SOAK)],
        )?;
    }
    Ok(())
}

/// The guide's pictures are what the product draws, if there is a guest kernel.
fn pictures() -> anyhow::Result<()> {
    if std::env::var_os("FULLPIPE_KERNEL_BUILT").is_none() {
        eprintln!("SKIPPED: pictures: they need a guest kernel, as the truth does");
        return Ok(());
    }
    crate::pictures::Pictures::check(&crate::build::target_folder())
}

/// A few generated scenarios, if there is a guest kernel.
fn truth() -> anyhow::Result<()> {
    if std::env::var_os("FULLPIPE_KERNEL_BUILT").is_none() {
        eprintln!(
            "SKIPPED: truth: set FULLPIPE_KERNEL_BUILT=1 where `fullpipe lab kernel build` has been run"
        );
        return Ok(());
    }
    crate::build::program_and_tests()?;
    crate::truth::Truth::smoke(&crate::build::target_folder())
}

/// Checks the pure crates for a target without sockets, files, threads and clocks.
fn purity() -> anyhow::Result<()> {
    let sysroot =
        Command::new("rustc").args(["--print", "target-libdir", "--target", WASM]).output();
    let installed = sysroot.is_ok_and(|output| {
        output.status.success()
            && std::path::Path::new(String::from_utf8_lossy(&output.stdout).trim()).is_dir()
    });
    if !installed
        && !Command::new("rustup").args(["target", "add", WASM]).status().is_ok_and(|s| s.success())
    {
        eprintln!(
            "SKIPPED: purity: the target {WASM} cannot be installed here; clippy's lint and tidy check instead"
        );
        return Ok(());
    }
    // What no such target has is missing when types are checked; `page` makes code of them.
    let mut arguments = vec!["check", "--target", WASM];
    for package in PURE {
        arguments.extend(["--package", package]);
    }
    cargo(&arguments, &[])
}

/// Checks licences, sources and duplicates of dependencies, and known advisories if their database
/// can be downloaded.
fn dependencies() -> anyhow::Result<()> {
    let installed = Command::new(env!("CARGO")).args(["deny", "--version"]).output();
    if !installed.is_ok_and(|output| output.status.success()) {
        let advice = "cargo deny is missing: install it with `cargo install cargo-deny --locked`";
        ensure!(std::env::var_os("FULLPIPE_NO_SKIP").is_none(), "{advice}");
        eprintln!("SKIPPED: dependencies: {advice}");
        return Ok(());
    }
    // An exception that matches nothing is a failure: it would hide the next one.
    const CHECK: [&str; 10] = [
        "check",
        "-D",
        "unmatched-skip",
        "-D",
        "unnecessary-skip",
        "-D",
        "license-exception-not-encountered",
        "licenses",
        "bans",
        "sources",
    ];
    cargo(&[&["deny"][..], &CHECK].concat(), &[])?;
    let python = ["deny", "--manifest-path", "python/Cargo.toml", "--config", "python/deny.toml"];
    cargo(&[&python[..], &CHECK].concat(), &[])?;
    let fetched = Command::new(env!("CARGO")).args(["deny", "fetch", "db"]).output();
    if !fetched.is_ok_and(|output| output.status.success()) {
        eprintln!("SKIPPED: advisories: their database cannot be downloaded here");
        return Ok(());
    }
    cargo(&["deny", "check", "advisories"], &[])
}

/// The crates that others can use, as a registry would get them: with the files that they name,
/// and nothing of the workspace.
///
/// Cargo's own check of a package takes the crates beside it from the unpacked ones of an earlier
/// check in `CARGO_HOME`, where they have the same version: a name that is new in one of them is
/// missing, and one that was removed is there. So they are unpacked and built together here.
fn published() -> anyhow::Result<()> {
    let crates = PUBLISHED.iter().flat_map(|name| ["--package", name]);
    let arguments = ["package", "--quiet", "--allow-dirty", "--no-verify"].into_iter();
    cargo(&arguments.chain(crates).collect::<Vec<_>>(), &[])?;
    let packages = crate::build::target_folder().join("package");
    let alone = packages.join("alone");
    let emptied = std::fs::remove_dir_all(&alone);
    ensure!(!alone.exists(), "cannot empty {}: {emptied:?}", alone.display());
    std::fs::create_dir_all(&alone).with_context(|| format!("make {}", alone.display()))?;
    let version = format!("-{}", env!("CARGO_PKG_VERSION"));
    let mut workspace =
        String::from("[workspace]\nresolver = \"3\"\nmembers = [\"*\"]\n[patch.crates-io]\n");
    for name in PUBLISHED {
        let folder = format!("{name}{version}");
        // Times as of now: those within a package are the same for all of them.
        let status = Command::new("tar")
            .arg("-xzmf")
            .arg(packages.join(format!("{folder}.crate")))
            .arg("-C")
            .arg(&alone)
            .status()
            .context("start tar")?;
        ensure!(status.success(), "the package of {name} cannot be unpacked");
        workspace += &format!("{name} = {{ path = \"{folder}\" }}\n");
    }
    let manifest = alone.join("Cargo.toml");
    std::fs::write(&manifest, workspace).context("write the packages' workspace")?;
    std::fs::copy("Cargo.lock", alone.join("Cargo.lock")).context("copy Cargo.lock")?;
    let target = crate::build::target_folder().join("published");
    let status = Command::new(env!("CARGO"))
        .args(["check", "--quiet", "--workspace", "--manifest-path"])
        .arg(&manifest)
        .arg("--target-dir")
        .arg(target)
        .status()
        .context("start cargo check")?;
    ensure!(status.success(), "the packages do not build by themselves");
    Ok(())
}

/// Builds the workspace with the oldest compiler that Cargo.toml promises.
fn oldest_compiler() -> anyhow::Result<()> {
    let manifest = std::fs::read_to_string("Cargo.toml").context("read Cargo.toml")?;
    let promised = manifest.lines().find_map(|line| line.strip_prefix("rust-version = "));
    let version = promised.context("Cargo.toml promises no rust-version")?.trim_matches('"');
    let toolchain = format!("+{version}");
    let there = Command::new("cargo").args([&toolchain, "--version"]).output();
    if !there.is_ok_and(|output| output.status.success()) {
        eprintln!(
            "SKIPPED: oldest compiler: Rust {version} cannot be had here (`rustup toolchain install {version}`); \
             clippy's incompatible_msrv stands in for it"
        );
        return Ok(());
    }
    // A separate folder, because two compilers in one would discard each other's work.
    let status = Command::new("cargo")
        .args([&toolchain, "check", "--workspace", "--target-dir"])
        .arg(crate::build::target_folder().join("msrv"))
        .status()
        .context("start cargo check")?;
    ensure!(status.success(), "the workspace does not build with Rust {version}");
    Ok(())
}
