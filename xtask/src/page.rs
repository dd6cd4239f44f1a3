//! `cargo xtask page`: builds what the reports embed and the repository keeps, so that cargo alone
//! builds the product: the page of `web/`, and the analysis as WebAssembly for `fullpipe view`.

use crate::build::target_folder;
use anyhow::{Context, bail, ensure};
use clap::Args;
use std::path::Path;
use std::process::{Command, Stdio};

/// The target of the program in the page.
const TARGET: &str = "wasm32-wasip1";
/// The page, and the program, as they are committed; what the product has is compressed.
const PAGE: &str = "crates/report/assets/page.html";
const PAGE_PACKED: &str = "crates/report/assets/page.html.gz";
const PROGRAM: &str = "crates/cli/assets/view.wasm.gz";
/// Captures whose limit is known, and what the reports on them show.
const CAPTURES: &str = "crates/flow/tests/lab/captures/limits";
const REPORTS: &str = "target/report-data";
/// What has the tools that make both small.
const TOOLS: &str = "`apt install binaryen zopfli`";
/// The page, program and all, is at most this large.
const PROGRAM_MAX: u64 = 2_000_000;

/// Options of `cargo xtask page`.
#[derive(Args)]
pub struct Page {
    /// Prove that what is committed is current, and try the page in Chromium, in place of building.
    #[arg(long)]
    check: bool,
}

impl Page {
    pub fn run(&self) -> anyhow::Result<()> {
        if self.check { check(&target_folder()) } else { build() }
    }
}

fn build() -> anyhow::Result<()> {
    install()?;
    npm(&["run", "build"])?;
    let page = zopfli(Path::new(PAGE))?;
    std::fs::write(PAGE_PACKED, page).with_context(|| format!("write {PAGE_PACKED}"))?;
    let program = compile()?;
    let packed = pack(&program)?;
    std::fs::create_dir_all("crates/cli/assets")?;
    std::fs::write(PROGRAM, &packed).with_context(|| format!("write {PROGRAM}"))?;
    // As in the page: five letters for four bytes.
    let size = packed.len() as u64 * 5 / 4 + std::fs::metadata(PAGE)?.len();
    eprintln!("the page with the program: {size} bytes");
    ensure!(size <= PROGRAM_MAX, "that is more than {PROGRAM_MAX}");
    Ok(())
}

/// What CI runs, with the binary in the folder `target`. Without Node.js it says so; in CI that is
/// a failure.
pub fn check(target: &Path) -> anyhow::Result<()> {
    let node = Command::new("npm").arg("--version").stdout(Stdio::null()).status();
    if !node.is_ok_and(|status| status.success()) {
        let advice = "npm is missing: install nodejs and npm (20 or later)";
        ensure!(std::env::var_os("FULLPIPE_NO_SKIP").is_none(), "{advice}");
        eprintln!("SKIPPED: page: {advice}");
        return Ok(());
    }
    install()?;
    let before = std::fs::read(PAGE).with_context(|| format!("read {PAGE}"))?;
    npm(&["run", "build"])?;
    let after = std::fs::read(PAGE).with_context(|| format!("read {PAGE}"))?;
    if before != after {
        // What is committed stays; the newly built one is there to be looked at.
        std::fs::write(PAGE, before)?;
        bail!("{PAGE} is not what web/ builds: run `cargo xtask page` and commit it");
    }
    // Both tests compare with the binary, or show what it wrote; without it they say SKIPPED.
    let program = target.join("debug/fullpipe");
    let is_built = program.is_file();
    let strict = std::env::var_os("FULLPIPE_NO_SKIP").is_some();
    ensure!(is_built || !strict, "{} is missing: run `cargo build`", program.display());
    npm(&["run", "test"])?;
    if is_built {
        write_reports(&program)?;
    }
    npm(&["run", "browser"])
}

/// Writes what the binary's reports show of the captures whose limit is known, for the tests in
/// Chromium.
fn write_reports(program: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(REPORTS).with_context(|| format!("make {REPORTS}"))?;
    for entry in std::fs::read_dir(CAPTURES).with_context(|| format!("read {CAPTURES}"))? {
        let case = entry?;
        let capture = case.path().join("server.pcap.gz");
        let output = Command::new(program).arg("report").arg(&capture).arg("--data").output();
        let output = output.with_context(|| format!("start {}", program.display()))?;
        ensure!(output.status.success(), "no report of {}", capture.display());
        let file = Path::new(REPORTS).join(case.file_name()).with_extension("json");
        std::fs::write(&file, output.stdout).with_context(|| format!("write {file:?}"))?;
    }
    Ok(())
}

fn install() -> anyhow::Result<()> {
    // The browser is Debian's: none is downloaded.
    npm(&["ci", "--no-audit", "--no-fund", "--silent"])
}

fn npm(arguments: &[&str]) -> anyhow::Result<()> {
    let status = Command::new("npm")
        .args(arguments)
        .current_dir("web")
        .env("PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD", "1")
        .env("FULLPIPE_REPORTS", Path::new("..").join(REPORTS))
        .status()
        .with_context(|| format!("start npm {}", arguments.join(" ")))?;
    ensure!(status.success(), "npm {} failed in web/", arguments.join(" "));
    Ok(())
}

/// Compiles the program of the page. The bytes depend on the compiler, not on this machine's
/// folders.
fn compile() -> anyhow::Result<std::path::PathBuf> {
    let added = Command::new("rustup").args(["target", "add", TARGET]).status();
    ensure!(added.is_ok_and(|status| status.success()), "rustup cannot add the target {TARGET}");
    let home = std::env::var("CARGO_HOME")
        .or_else(|_| std::env::var("HOME").map(|home| format!("{home}/.cargo")))?;
    let here = std::env::current_dir()?;
    let flags =
        format!("--remap-path-prefix={home}=cargo --remap-path-prefix={}=.", here.display());
    let status = Command::new(env!("CARGO"))
        .args(["build", "--package", "fullpipe-view", "--profile", "page", "--target", TARGET])
        .env("RUSTFLAGS", flags)
        .status()
        .context("start cargo build")?;
    ensure!(status.success(), "the program of the page does not build");
    Ok(target_folder().join(TARGET).join("page/fullpipe-view.wasm"))
}

/// Makes the program smaller: Debian's `binaryen` and `zopfli`. Only who changes it needs them.
fn pack(program: &Path) -> anyhow::Result<Vec<u8>> {
    let shorter = program.with_extension("short.wasm");
    let features = ["bulk-memory", "sign-ext", "mutable-globals", "nontrapping-float-to-int"];
    let mut shorten = Command::new("wasm-opt");
    shorten.arg("-Os").args(features.map(|feature| format!("--enable-{feature}")));
    shorten.args(["--enable-multivalue", "--enable-reference-types", "-o"]);
    let status = shorten.arg(&shorter).arg(program).status();
    ensure!(status.is_ok_and(|status| status.success()), "wasm-opt failed: {TOOLS}");
    zopfli(&shorter)
}

fn zopfli(file: &Path) -> anyhow::Result<Vec<u8>> {
    let output = Command::new("zopfli").args(["--gzip", "--i100", "-c"]).arg(file).output();
    let output = output.context(TOOLS)?;
    ensure!(output.status.success(), "zopfli failed: {TOOLS}");
    Ok(output.stdout)
}
