//! `cargo xtask ci`: one command for people and machines; each step is a plain command that a
//! person could type.

use anyhow::{Context, bail, ensure};
use std::process::{Command, Output};
use std::thread;
use std::time::{Duration, Instant};

/// How long each fuzz target runs.
const FUZZ_TIME: Duration = Duration::from_secs(20);
/// How much a trial of the relay carries in its soak.
const SOAK: &str = "7GB";
const PURE: [&str; 3] = ["fullpipe-model", "fullpipe-flow", "fullpipe-report"];
const WASM: &str = "wasm32-unknown-unknown";

/// A step: what the output calls it, and what it does.
type Step = (&'static str, fn() -> anyhow::Result<()>);

/// The steps in their order. The tests are last, so that the test runner's summary is at the end
/// of the output.
const STEPS: &[Step] = &[
    ("tidy: doors, purity, sizes, leftovers", crate::tidy::run),
    ("fmt", || cargo(&["fmt", "--all", "--check"], &[])),
    ("clippy", || cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"], &[])),
    ("docs", || {
        let strict = [("RUSTDOCFLAGS", "-D warnings")];
        cargo(&["doc", "--workspace", "--no-deps", "--quiet"], &strict)
    }),
    ("purity", purity),
    ("dependencies", dependencies),
    ("bpf: what is committed is what crates/agent/bpf builds", crate::bpf::check),
    ("oldest compiler", oldest_compiler),
    (FUZZ, fuzz_targets),
    ("truth: generated scenarios are judged right", truth),
    ("pictures: docs/src/pictures are what the product draws", pictures),
    ("page: what is committed is what web/ builds, and works in Chromium", || {
        crate::page::check(&target_folder())
    }),
    ("wheel: the Python package builds, and its tests pass", crate::wheel::Wheel::check),
    ("soak: 21 GB go through the relay", soak),
    ("tests", || cargo(&["test", "--workspace", "--no-fail-fast"], &[])),
];
const FUZZ: &str = "fuzz targets";

/// Runs the steps whose name begins with `only`, and says how long each took; the first that fails
/// ends it.
pub fn run(fuzz: bool, only: &str) -> anyhow::Result<()> {
    let chosen = |name: &str| name.starts_with(only) && (fuzz || name != FUZZ);
    let names = || STEPS.iter().map(|(name, _)| short(name)).collect::<Vec<_>>().join(", ");
    ensure!(STEPS.iter().any(|(name, _)| chosen(name)), "no such step: there are {}", names());
    let mut took = Vec::new();
    for &(name, run) in STEPS.iter().filter(|(name, _)| chosen(name)) {
        if name == STEPS[STEPS.len() - 1].0 {
            eprintln!("\nSeconds of each step: {}", took.join(", "));
        }
        eprintln!("\n=== {name}");
        let began = now();
        run().with_context(|| format!("{name} failed"))?;
        took.push(format!("{} {}", short(name), began.elapsed().as_secs()));
    }
    Ok(())
}

/// What stands before the colon of a step's name.
fn short(name: &str) -> &str {
    name.split_once(':').map_or(name, |(short, _)| short)
}

#[allow(clippy::disallowed_methods, reason = "a chore times its steps")]
fn now() -> Instant {
    Instant::now()
}

fn cargo(arguments: &[&str], environment: &[(&str, &str)]) -> anyhow::Result<()> {
    eprintln!("cargo {}", arguments.join(" "));
    let status = Command::new(env!("CARGO"))
        .args(arguments)
        .envs(environment.iter().copied())
        .status()
        .with_context(|| format!("start cargo {}", arguments.join(" ")))?;
    if !status.success() {
        bail!("failed: cargo {}", arguments.join(" "));
    }
    Ok(())
}

/// The relay under load, with its carriers cut and its ends killed: 21 GB in all, as the streamed
/// trial carries [`SOAK`] each way. The trials compare every byte.
fn soak() -> anyhow::Result<()> {
    for trial in ["relay_carriers::a_long_stream", "relay_killed"] {
        cargo(
            &["test", "--quiet", "-p", "fullpipe-cli", "--test", "e2e", "--", trial],
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
    crate::pictures::Pictures::check(&target_folder())
}

/// The folder of what cargo builds.
pub fn target_folder() -> std::path::PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), Into::into)
}

/// A few generated scenarios, if there is a guest kernel.
fn truth() -> anyhow::Result<()> {
    if std::env::var_os("FULLPIPE_KERNEL_BUILT").is_none() {
        eprintln!(
            "SKIPPED: truth: set FULLPIPE_KERNEL_BUILT=1 where `fullpipe lab kernel build` has been run"
        );
        return Ok(());
    }
    cargo(&["build", "--quiet", "--package", "fullpipe-cli"], &[])?;
    crate::truth::Truth::smoke(&target_folder())
}

/// Builds the pure crates for a target without sockets, files, threads and clocks.
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
            "SKIPPED: purity build: the target {WASM} cannot be installed here; clippy's lint and tidy check instead"
        );
        return Ok(());
    }
    let mut arguments = vec!["build", "--target", WASM];
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
    cargo(&["deny", "check", "licenses", "bans", "sources"], &[])?;
    let python = ["deny", "--manifest-path", "python/Cargo.toml", "--config", "deny.toml"];
    let python = [&python[..], &["check", "licenses", "bans", "sources"]].concat();
    cargo(&python, &[])?;
    let fetched = Command::new(env!("CARGO")).args(["deny", "fetch", "db"]).output();
    if !fetched.is_ok_and(|output| output.status.success()) {
        eprintln!("SKIPPED: advisories: their database cannot be downloaded here");
        return Ok(());
    }
    cargo(&["deny", "check", "advisories"], &[])
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
        .args([&toolchain, "check", "--workspace", "--target-dir", "target/msrv"])
        .status()
        .context("start cargo check")?;
    ensure!(status.success(), "the workspace does not build with Rust {version}");
    Ok(())
}

/// Runs every target of `fuzz/` for a while, from its committed corpus.
fn fuzz_targets() -> anyhow::Result<()> {
    let listed =
        Command::new(env!("CARGO")).args(["fuzz", "list"]).output().context("start cargo fuzz")?;
    if !listed.status.success() {
        let advice = "cargo fuzz is missing: install it with `cargo install cargo-fuzz --locked`";
        ensure!(std::env::var_os("FULLPIPE_NO_SKIP").is_none(), "{advice}");
        eprintln!("SKIPPED: fuzz targets: {advice}");
        return Ok(());
    }
    let targets = String::from_utf8_lossy(&listed.stdout).into_owned();
    ensure!(targets.split_whitespace().next().is_some(), "cargo fuzz lists no targets");
    let targets: Vec<&str> = targets.split_whitespace().collect();
    // A target uses one core, so that there is room for as many as there are cores. The first one
    // goes alone: it builds what all need.
    let cores = thread::available_parallelism().map_or(1, |cores| cores.get());
    let (first, others) = targets.split_at(1);
    for together in std::iter::once(first).chain(others.chunks(cores)) {
        let ended: Vec<(&str, anyhow::Result<Output>)> = thread::scope(|scope| {
            let running: Vec<_> = together
                .iter()
                .map(|target| (*target, scope.spawn(|| fuzz_target(target))))
                .collect();
            let ended = running.into_iter().map(|(target, thread)| {
                (target, thread.join().expect("a thread that starts a command does not panic"))
            });
            ended.collect()
        });
        for (target, output) in ended {
            let output = output?;
            let said = String::from_utf8_lossy(&output.stderr);
            let lines: Vec<&str> = said.lines().collect();
            let shown = if output.status.success() { 1 } else { 80 };
            eprintln!("{target}: {}", lines[lines.len().saturating_sub(shown)..].join("\n"));
            ensure!(output.status.success(), "fuzz target {target} failed");
        }
    }
    Ok(())
}

/// Runs one target; what it finds goes to the build's folder, and its corpus is only read.
fn fuzz_target(target: &str) -> anyhow::Result<Output> {
    let time = format!("-max_total_time={}", FUZZ_TIME.as_secs());
    let found = format!("target/fuzz/{target}");
    std::fs::create_dir_all(&found).with_context(|| format!("make {found}"))?;
    let corpus = format!("fuzz/corpus/{target}");
    let mut arguments = vec!["fuzz", "run", "--sanitizer", "none", target, &found];
    if std::path::Path::new(&corpus).is_dir() {
        arguments.push(&corpus);
    }
    arguments.extend(["--", &time, "-rss_limit_mb=2048", "-timeout=10"]);
    // RUSTC_BOOTSTRAP lets stable take cargo-fuzz's flags: no nightly toolchain is needed, at the
    // price of the address sanitizer, which the pure crates, free of unsafe code, have little use
    // for.
    Command::new(env!("CARGO"))
        .args(&arguments)
        .env("RUSTC_BOOTSTRAP", "1")
        .output()
        .with_context(|| format!("start cargo {}", arguments.join(" ")))
}
