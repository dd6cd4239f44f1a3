//! What the shipped program costs: as little as the one that a newcomer builds, and on a narrow
//! machine.

use super::super::tools::Tools;
use super::super::{Release, output, run};
use super::ClosingLines;
use super::closing::Unit;
use anyhow::{Context, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;

/// What the narrow machine has.
const MEMORY: u64 = 256 << 20;
/// What it analyses, at least.
const CAPTURE_BYTES: u64 = 1_000_000_000;
/// Whole packets that are more than that.
const PACKETS_OF_CAPTURE: &str = "1100000";
/// Packets, cut behind their headers, that both programs are timed with.
const PACKETS_TIMED: &str = "1000000";
/// How often, by turns.
const TURNS: usize = 21;
/// The CPU time of the shipped program over that of the ordinary one, at most.
const SLOWEST: f64 = 1.03;

/// Both checks of `program`, as it is shipped.
pub fn check(
    release: &Release,
    tools: &Tools,
    program: &Path,
    work: &Path,
    said: &mut ClosingLines,
) -> anyhow::Result<()> {
    let built = ordinary(release, tools)?;
    as_fast_as_ordinary(&built, program, work, said)?;
    on_a_narrow_machine(&built, program, work, said)
}

/// What a newcomer builds of the same commit: the folder that has it.
fn ordinary(release: &Release, tools: &Tools) -> anyhow::Result<PathBuf> {
    let folder = release.folder.join("build/ordinary");
    let what: [&[&str]; 2] = [
        &["--package", "fullpipe-cli"],
        &["--package", "fullpipe-flow", "--example", "mixed_capture"],
    ];
    for what in what {
        run(tools
            .cargo(release)?
            .args(["build", "--release", "--locked", "--quiet"])
            .args(what)
            .env("CARGO_TARGET_DIR", &folder))?;
    }
    Ok(folder.join("release"))
}

/// Writes a capture: connections with loss, reordering and duplicates, interleaved.
fn capture(built: &Path, to: &Path, how: &[&str]) -> anyhow::Result<()> {
    run(Command::new(built.join("examples/mixed_capture")).arg(to).args(how))
}

/// `analyze` by both, by turns. The least of each counts: whatever else runs here only adds.
fn as_fast_as_ordinary(
    built: &Path,
    program: &Path,
    work: &Path,
    said: &mut ClosingLines,
) -> anyhow::Result<()> {
    let file = work.join("cut.pcap");
    capture(built, &file, &[PACKETS_TIMED])?;
    let programs = [program.to_owned(), built.join("fullpipe")];
    let mut least = [f64::INFINITY; 2];
    for turn in 0..TURNS {
        for next in 0..programs.len() {
            // Neither is always the first of a turn.
            let which = (turn + next) % programs.len();
            least[which] = least[which].min(seconds_of_cpu(&programs[which], &file)?);
        }
    }
    let [shipped, ordinary] = least;
    let ratio = shipped / ordinary;
    let what = format!(
        "analyze of {PACKETS_TIMED} packets: {shipped:.3} s of CPU time, by an ordinary build \
         {ordinary:.3} s (the least of {TURNS} by turns)"
    );
    said.at_most(what, Unit::Times, ratio, SLOWEST)
}

/// User and system time of one analysis by one thread.
fn seconds_of_cpu(program: &Path, file: &Path) -> anyhow::Result<f64> {
    let script = "TIMEFORMAT='%U %S'; { time \"$0\" analyze --threads 1 \"$1\" \
        >/dev/null 2>&1; } 2>&1";
    let times = output(Command::new("bash").args(["-ec", script]).arg(program).arg(file))?;
    let times = times.split_whitespace().map(str::parse::<f64>);
    times.sum::<Result<f64, _>>().context("read the times that bash prints")
}

/// `analyze` of a large capture answers as anywhere, and `why` runs.
fn on_a_narrow_machine(
    built: &Path,
    program: &Path,
    work: &Path,
    said: &mut ClosingLines,
) -> anyhow::Result<()> {
    let Some(group) = NarrowMachine::make()? else {
        let problem = "no control group for memory could be made";
        ensure!(std::env::var_os("FULLPIPE_NO_SKIP").is_none(), "{problem}");
        said.missing(format!("the narrow machine: {problem}"));
        return Ok(());
    };
    let file = work.join("large.pcap");
    capture(built, &file, &[PACKETS_OF_CAPTURE, "whole"])?;
    let bytes = std::fs::metadata(&file)?.len();
    ensure!(bytes >= CAPTURE_BYTES, "the capture has {bytes} bytes only");
    let began = crate::ci::now();
    let narrow = output(group.command(program).args(["analyze", "--json"]).arg(&file))?;
    let took = began.elapsed().as_secs_f64();
    let wide = output(Command::new(program).args(["analyze", "--json"]).arg(&file))?;
    ensure!(narrow == wide, "analyze answers otherwise with {MEMORY} bytes of memory");
    let why = group.command(program).args(["why", "--for", "1s"]).output()?;
    // 1 is an answer, too: something limits a connection.
    let is_answer = why.status.code().is_some_and(|code| code <= 1);
    ensure!(
        is_answer,
        "why with {MEMORY} bytes of memory: {}",
        String::from_utf8_lossy(&why.stderr)
    );
    std::fs::remove_file(&file).context("remove the large capture")?;
    said.checked(format!(
        "with {} MiB of memory ({}) analyze answers the same in {took:.1} s for {bytes} bytes, and \
         why runs",
        MEMORY >> 20,
        group.folder.display()
    ));
    Ok(())
}

/// A control group with the memory of a narrow machine, and no swap.
struct NarrowMachine {
    folder: PathBuf,
}

impl NarrowMachine {
    /// Where the hierarchies of version 2 and of version 1 are, and their limits.
    const KINDS: [(&str, &[(&str, u64)]); 2] = [
        ("/sys/fs/cgroup", &[("memory.max", MEMORY), ("memory.swap.max", 0)]),
        (
            "/sys/fs/cgroup/memory",
            &[("memory.limit_in_bytes", MEMORY), ("memory.memsw.limit_in_bytes", MEMORY)],
        ),
    ];

    /// Makes one, where the kernel and the caller's privileges let it.
    fn make() -> anyhow::Result<Option<NarrowMachine>> {
        for (hierarchy, limits) in NarrowMachine::KINDS {
            let folder =
                Path::new(hierarchy).join(format!("fullpipe-dist-check-{}", std::process::id()));
            if std::fs::create_dir(&folder).is_err() {
                continue;
            }
            let group = NarrowMachine { folder };
            let (size, swap) = (limits[0], limits[1]);
            if !group.folder.join(size.0).exists() {
                continue;
            }
            group.limit(size)?;
            // A kernel that does not count swap has no file for it.
            if group.folder.join(swap.0).exists() {
                group.limit(swap)?;
            }
            return Ok(Some(group));
        }
        Ok(None)
    }

    fn limit(&self, (file, bytes): (&str, u64)) -> anyhow::Result<()> {
        let file = self.folder.join(file);
        std::fs::write(&file, bytes.to_string())
            .with_context(|| format!("write {}", file.display()))
    }

    /// Starts `program` in it.
    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new("sh");
        command
            .args(["-ec", "echo $$ >\"$0/cgroup.procs\"; exec \"$@\""])
            .arg(&self.folder)
            .arg(program);
        command
    }
}

impl Drop for NarrowMachine {
    fn drop(&mut self) {
        // It is empty: what was started in it has ended.
        let _ = std::fs::remove_dir(&self.folder);
    }
}
