//! What the project does to itself. `cargo xtask` lists it; `cargo xtask ci` is what CI runs and
//! what to run before a commit.

#![allow(clippy::print_stderr, reason = "a chore talks to whoever started it")]

mod articles;
mod bpf;
mod build;
mod ci;
mod dist;
mod figures;
mod fuzz;
mod judge;
mod page;
mod pictures;
mod prediction;
mod recapture;
mod semver;
mod tidy;
mod truth;
mod unchanged;
mod wheel;

use clap::Parser;
use std::net::IpAddr;
use std::path::PathBuf;

/// The project's own chores.
#[derive(Parser)]
#[command(name = "cargo xtask", version, about)]
enum Chore {
    /// Everything that must hold on `main`: tidy, fmt, clippy, docs, purity, fuzz targets, tests.
    Ci(ci::Ci),
    /// Look for faults with new seeds: fuzz targets, then property tests.
    Hunt(fuzz::Hunt),
    /// The rules that no compiler knows: doors between crates, purity, sizes of files, leftovers.
    Tidy,
    /// Write the table of docs/src/articles.md from the rows of `fullpipe lab run articles --json`.
    ArticlesTable {
        /// What that command printed.
        #[arg(value_name = "FILE.json")]
        rows: PathBuf,
    },
    /// Write the tables of docs/src/analyze-figures.md: how right the analysis is.
    Figures {
        /// Results of `fullpipe lab run bench/limits.toml` (and the like)
        /// `--engine virtual --keep-captures --out DIR`.
        #[arg(long, value_name = "DIR")]
        lab: Vec<PathBuf>,
    },
    /// Score the analysis on random scenarios whose limit is known, in virtual time.
    Truth(truth::Truth),
    /// Train the judge of the analysis on the runs that `truth` kept.
    Judge(judge::Judge),
    /// Compare what the laws predict with what the lab measured, on the grid of bench/prediction.
    Prediction(prediction::Prediction),
    /// Build the page of the reports, and the analysis as WebAssembly for `fullpipe view`.
    Page(page::Page),
    /// Build the window agent's BPF object with clang.
    Bpf(bpf::Bpf),
    /// Draw the pictures of the guide, from transfers in virtual time.
    Pictures(pictures::Pictures),
    /// Build the Python package.
    Wheel(wheel::Wheel),
    /// Make what a release ships: static programs, packages, images, sums.
    Dist(dist::Dist),
    /// Compare the public API of the published crates with that of the last version.
    Semver(semver::Semver),
    /// Turn a capture of a wire into what a host, a mirror port or a cut capture would show.
    Recapture {
        /// The capture: pcap, pcapng or snoop, packed or not.
        input: PathBuf,
        /// Where to write the new one, as pcap.
        output: PathBuf,
        /// Changes, the first of them first: tso, gro, host (both), start=400, snap=96, sent,
        /// drop=1%, twice, clock=2s-500ms.
        #[arg(long = "as", value_name = "CHANGE", required = true, value_delimiter = ',')]
        changes: Vec<String>,
        /// The host that captures; in the lab's runs the server is 10.77.0.1, the client 10.77.0.2.
        #[arg(long, value_name = "ADDRESS")]
        host: Option<IpAddr>,
    },
}

fn main() -> anyhow::Result<()> {
    match Chore::parse() {
        Chore::Ci(ci) => ci.run(),
        Chore::Hunt(hunt) => hunt.run(),
        Chore::Tidy => tidy::run(),
        Chore::Wheel(wheel) => wheel.run(),
        Chore::Dist(dist) => dist.run(),
        Chore::Semver(semver) => semver.run(),
        Chore::ArticlesTable { rows } => articles::run(&rows),
        Chore::Figures { lab } => figures::run(&lab),
        Chore::Truth(truth) => truth.run(),
        Chore::Judge(judge) => judge.run(),
        Chore::Prediction(prediction) => prediction.run(),
        Chore::Page(page) => page.run(),
        Chore::Bpf(bpf) => bpf.run(),
        Chore::Pictures(pictures) => pictures.run(),
        Chore::Recapture { input, output, changes, host } => {
            recapture::run(&input, &output, &changes, host)
        }
    }
}
