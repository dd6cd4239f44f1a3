//! `cargo xtask dist --check`: whether a release is what it says, in systems that have nothing.
//!
//! What a check needs and this machine lacks is said loudly, and is a failure where
//! `FULLPIPE_NO_SKIP` is set.

mod alpine;
mod closing;
mod cost;
mod namespaces;
mod recipes;
mod systems;

pub use closing::ClosingLines;
pub use systems::Given;

use super::tools::Tools;
use super::{Architecture, Release, digest, files, fresh, image, output, program, run, wheels};
use anyhow::{Context, ensure};
use closing::Unit;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Debian's packages that have the tools.
const NEEDED: &str = "debootstrap lintian rpm qemu-user-static qemu-utils ruby nix-bin";
/// What the bare systems analyse.
const CAPTURE: &str = "crates/flow/tests/lab/captures/limits/receive_window/server.pcap.gz";
/// The limit of that capture's connection.
const ANSWER: &str = "receive_window";

/// Runs every check on what is in `out`.
pub fn everything(
    release: &Release,
    tools: &Tools,
    out: &Path,
    roots: &[Given],
    said: &mut ClosingLines,
) -> anyhow::Result<()> {
    let work = fresh(&release.folder.join("check"))?;
    sums_hold(out, said)?;
    images_are_whole(out, &work, said)?;
    wheels_are_small(out, said)?;
    install_script(release, out, &work, said)?;
    needs_nothing(release, out, &work, said)?;
    wheel_installs(release, out, &work, said)?;
    with_tool("lintian", said, |said| lintian(out, said))?;
    with_tool("rpm", said, |said| rpm(release, out, &work, said))?;
    recipes::check(release, tools, out, &work, said)?;
    systems::check(release, tools, out, roots, said)?;
    let stem = release.stem(Architecture::here()?);
    let program = work.join(format!("{stem}.tar.gz")).join(stem).join("fullpipe");
    cost::check(release, tools, &program, &work, said)
}

/// Runs a check that needs a tool, or says that it does not run.
fn with_tool(
    tool: &str,
    said: &mut ClosingLines,
    check: impl FnOnce(&mut ClosingLines) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    if is_there(tool) {
        return check(said);
    }
    let advice = format!("what {tool} sees: it is missing: apt install {NEEDED}");
    ensure!(std::env::var_os("FULLPIPE_NO_SKIP").is_none(), "{advice}");
    said.missing(advice);
    Ok(())
}

fn is_there(tool: &str) -> bool {
    let found = Command::new("sh").args(["-c", &format!("command -v {tool}")]).output();
    found.is_ok_and(|output| output.status.success())
}

fn sums_hold(out: &Path, said: &mut ClosingLines) -> anyhow::Result<()> {
    run(Command::new("sha256sum").args(["--check", "--quiet", "SHA256SUMS"]).current_dir(out))?;
    said.checked("SHA256SUMS describes the files");
    Ok(())
}

/// Each part of an image is what its name says, and its program is the tarball's.
fn images_are_whole(out: &Path, work: &Path, said: &mut ClosingLines) -> anyhow::Result<()> {
    for (name, bytes) in files(out)?.iter().filter(|(name, _)| name.ends_with(".oci.tar")) {
        said.at_most(format!("image {name}"), Unit::Bytes, *bytes as f64, image::LARGEST as f64)?;
        let folder = unpack(&out.join(name), &work.join(name))?;
        for (blob, _) in files(&folder.join("blobs/sha256"))? {
            let bytes = std::fs::read(folder.join("blobs/sha256").join(&blob))?;
            ensure!(digest(&bytes) == blob, "{name}: {blob} is not what its name says");
        }
        let manifest = json(&blob(&folder, &json(&folder.join("index.json"))?["manifests"][0]))?;
        let layer = blob(&folder, &manifest["layers"][0]);
        let inside = unpack(&layer, &work.join(format!("{name}.layer")))?;
        let tarball = name.replace(".oci.tar", ".tar.gz");
        let plain = unpack(&out.join(&tarball), &work.join(&tarball))?;
        let stem = tarball.trim_end_matches(".tar.gz");
        let [of_image, of_tarball] =
            [inside.join("usr/bin/fullpipe"), plain.join(stem).join("fullpipe")].map(std::fs::read);
        let of_tarball = of_tarball?;
        ensure!(of_image? == of_tarball, "{name} has another program than {tarball}");
        let (bytes, most) = (of_tarball.len() as f64, program::LARGEST as f64);
        said.at_most(format!("static program of {tarball}"), Unit::Bytes, bytes, most)?;
    }
    said.checked("each image's parts have the digests of their names, and the tarball's program");
    Ok(())
}

fn wheels_are_small(out: &Path, said: &mut ClosingLines) -> anyhow::Result<()> {
    for (name, bytes) in files(out)?.iter().filter(|(name, _)| name.ends_with(".whl")) {
        let most = wheels::LARGEST as f64;
        said.at_most(format!("wheel {name}"), Unit::Bytes, *bytes as f64, most)?;
    }
    Ok(())
}

fn json(file: &Path) -> anyhow::Result<Value> {
    let bytes = std::fs::read(file).with_context(|| format!("read {}", file.display()))?;
    serde_json::from_slice(&bytes).with_context(|| format!("read {}", file.display()))
}

/// The file of an image that a description in it names.
fn blob(image: &Path, description: &Value) -> PathBuf {
    let digest = description["digest"].as_str().unwrap_or_default();
    image.join("blobs/sha256").join(digest.trim_start_matches("sha256:"))
}

fn unpack(archive: &Path, to: &Path) -> anyhow::Result<PathBuf> {
    let to = fresh(to)?;
    run(Command::new("tar").arg("-xf").arg(archive).arg("-C").arg(&to))?;
    Ok(to)
}

/// The script installs what the sums describe, and nothing else.
fn install_script(
    release: &Release,
    out: &Path,
    work: &Path,
    said: &mut ClosingLines,
) -> anyhow::Result<()> {
    let prefix = work.join("prefix");
    run(&mut install(out, out, &prefix))?;
    let installed = output(Command::new(prefix.join("bin/fullpipe")).arg("--version"))?;
    let is_it = installed.contains(&release.version) && installed.contains(&release.commit);
    ensure!(is_it, "install.sh installed {installed}");
    guests_install(&prefix.join("bin/fullpipe"), out, work, said)?;
    let changed = fresh(&work.join("changed"))?;
    let here = Architecture::here()?;
    let tarball = format!("{}.tar.gz", release.stem(here));
    let mut bytes = std::fs::read(out.join(&tarball))?;
    *bytes.last_mut().context("an empty tarball")? ^= 1;
    std::fs::write(changed.join(&tarball), bytes)?;
    std::fs::copy(out.join("SHA256SUMS"), changed.join("SHA256SUMS"))?;
    std::fs::remove_dir_all(&prefix)?;
    let refused = install(out, &changed, &prefix).output()?;
    let why = String::from_utf8_lossy(&refused.stderr);
    let is_clean = !prefix.exists();
    ensure!(
        !refused.status.success() && why.contains("fetch it again") && is_clean,
        "install.sh took a tarball that was changed on its way: {why}"
    );
    said.checked("install.sh installs this commit, and refuses a tarball with another byte");
    Ok(())
}

/// The guest kernels install by SHA256SUMS, where the release has some.
fn guests_install(
    program: &Path,
    out: &Path,
    work: &Path,
    said: &mut ClosingLines,
) -> anyhow::Result<()> {
    let all = files(out)?;
    let Some((name, _)) = all.iter().find(|(name, _)| name.starts_with("fullpipe-guests-")) else {
        said.missing("guest kernels: the release has none; `fullpipe lab kernel build` makes them");
        return Ok(());
    };
    let cache = fresh(&work.join("cache"))?;
    let mut install = Command::new(program);
    install.args(["lab", "kernel", "install"]).arg(out.join(name)).env("XDG_CACHE_HOME", &cache);
    let installed = output(&mut install)?;
    let kernels = installed.lines().count();
    ensure!(kernels >= 1, "{name} installed nothing");
    said.checked(format!("{name} installs by SHA256SUMS: {kernels} kernels"));
    Ok(())
}

/// install.sh, for files in another folder.
fn install(out: &Path, from: &Path, prefix: &Path) -> Command {
    let mut script = Command::new("sh");
    script.arg(out.join("install.sh")).arg("--from").arg(from).arg("--prefix").arg(prefix);
    script
}

/// Each program runs where nothing else is: from an empty folder, a foreign one by qemu.
fn needs_nothing(
    release: &Release,
    out: &Path,
    work: &Path,
    said: &mut ClosingLines,
) -> anyhow::Result<()> {
    for target in Architecture::ALL {
        let tarball = format!("{}.tar.gz", release.stem(target));
        if !out.join(&tarball).exists() {
            said.missing(format!("{}: it was not made", target.name()));
            continue;
        }
        let program = work.join(&tarball).join(release.stem(target)).join("fullpipe");
        let empty = fresh(&work.join("empty"))?;
        std::fs::copy(&program, empty.join("fullpipe"))?;
        std::fs::copy(release.source.join(CAPTURE), empty.join("capture"))?;
        if target.is_here() {
            runs(Command::new("chroot").arg(&empty).arg("/fullpipe"), "/capture")?;
        } else {
            let qemu = format!("qemu-{}-static", target.name());
            let capture = empty.join("capture");
            with_tool(&qemu, said, |_| {
                runs(Command::new(&qemu).arg(&program), &capture.to_string_lossy())
            })?;
        }
        said.checked(format!("the {} program runs where nothing else is", target.name()));
    }
    Ok(())
}

/// `command`, which starts the program, gives the capture's answer.
fn runs(command: &mut Command, capture: &str) -> anyhow::Result<()> {
    answers(&output(command.args(["analyze", "--jsonl", capture]))?)
}

/// The first line of `said` is the capture's connection, held by [`ANSWER`].
fn answers(said: &str) -> anyhow::Result<()> {
    let line = said.lines().next().unwrap_or_default();
    let connection: Value = serde_json::from_str(line).with_context(|| format!("read {line}"))?;
    let limit = &connection["findings"][0]["limit"];
    ensure!(limit == ANSWER, "the capture's answer is {limit}, not {ANSWER}");
    Ok(())
}

/// A wheel gives the command and the package, and takes both away.
fn wheel_installs(
    release: &Release,
    out: &Path,
    work: &Path,
    said: &mut ClosingLines,
) -> anyhow::Result<()> {
    let all = files(out)?;
    let ending = format!("manylinux2014_{0}.manylinux_2_17_{0}.whl", Architecture::here()?.name());
    let Some((wheel, _)) = all.iter().find(|(name, _)| name.ends_with(&ending)) else {
        said.missing("the wheel: the release has none for this machine");
        return Ok(());
    };
    let python = fresh(&work.join("python"))?;
    run(Command::new("python3").args(["-m", "venv"]).arg(&python))?;
    let pip = python.join("bin/pip");
    run(Command::new(&pip).args(["install", "--quiet", "--no-index"]).arg(out.join(wheel)))?;
    let program = python.join("bin/fullpipe");
    let capture = release.source.join(CAPTURE);
    runs(&mut Command::new(&program), &capture.to_string_lossy())?;
    let script = "import fullpipe; print(fullpipe.calc(rate='1gbit', rtt='100ms')['bdp_bytes'])";
    // Python by its whole path, as a service starts it: $PATH does not have the command.
    let path = "/usr/bin:/bin";
    let python_alone =
        output(Command::new(python.join("bin/python")).args(["-c", script]).env("PATH", path))?;
    ensure!(!python_alone.trim().is_empty(), "the package did not find its program");
    run(Command::new(&pip).args(["uninstall", "--quiet", "--yes", "fullpipe"]))?;
    ensure!(!program.exists(), "{wheel} left {}", program.display());
    said.checked(format!("{wheel} gives the command and the package, and takes both away"));
    Ok(())
}

fn lintian(out: &Path, said: &mut ClosingLines) -> anyhow::Result<()> {
    for (name, _) in files(out)?.iter().filter(|(name, _)| name.ends_with(".deb")) {
        run(Command::new("lintian")
            .args(["--fail-on", "error", "--allow-root"])
            .arg(out.join(name)))?;
        said.checked(format!("lintian finds no error in {name}"));
    }
    Ok(())
}

/// The .rpm installs into an empty root, and leaves nothing there but folders of other packages.
fn rpm(release: &Release, out: &Path, work: &Path, said: &mut ClosingLines) -> anyhow::Result<()> {
    /// What other packages have, such as Rocky's `filesystem` and `systemd`.
    const OF_OTHERS: [&str; 8] = [
        "usr/bin",
        "usr/lib/systemd/system",
        "usr/share/bash-completion/completions",
        "usr/share/doc",
        "usr/share/fish/vendor_completions.d",
        "usr/share/man/man1",
        "usr/share/man/zh_CN/man1",
        "usr/share/zsh/site-functions",
    ];
    let here = Architecture::here()?;
    let package = out.join(format!("fullpipe-{}-1.{}.rpm", release.version, here.name()));
    let root = fresh(&work.join("rpm"))?;
    run(rpm_in(&root).arg("--install").arg(&package))?;
    let program = root.join("usr/bin/fullpipe");
    output(Command::new(&program).arg("--version"))?;
    run(rpm_in(&root).args(["--erase", "fullpipe"]))?;
    let find = ["usr", "-printf", "%p\n"];
    let left = output(Command::new("find").args(find).current_dir(&root))?;
    let left: Vec<&str> = left
        .lines()
        .filter(|one| !OF_OTHERS.iter().any(|other| Path::new(other).starts_with(one)))
        .collect();
    ensure!(left.is_empty(), "the .rpm left {}", left.join(", "));
    said.checked(
        "the .rpm installs into an empty root, and leaves no file and no folder of its own",
    );
    Ok(())
}

fn rpm_in(root: &Path) -> Command {
    let mut rpm = Command::new("rpm");
    rpm.arg("--root").arg(root);
    rpm
}

/// The same commit, exported and made elsewhere, gives the same files: `make` makes everything.
pub fn same_bytes_again(
    release: &Release,
    out: &Path,
    said: &mut ClosingLines,
    make: impl FnOnce(&Release) -> anyhow::Result<PathBuf>,
) -> anyhow::Result<()> {
    // By its name: another may be checked out by now.
    let again = Release::export(&fresh(&release.folder.join("again"))?, &release.commit)?;
    let second = make(&again)?;
    let (first_files, second_files) = (files(out)?, files(&second)?);
    let mut differences = Vec::new();
    for (name, _) in &first_files {
        let [one, other] = [out, &second].map(|folder| std::fs::read(folder.join(name)));
        let one = one.with_context(|| format!("read {name}"))?;
        let Ok(other) = other else {
            differences.push(format!("{name} was not made again"));
            continue;
        };
        if let Some(at) = first_difference(&one, &other) {
            differences.push(format!("{name} from byte {at} on"));
        }
    }
    let is_same = differences.is_empty() && first_files.len() == second_files.len();
    ensure!(
        is_same,
        "{} and {} differ: {}",
        out.display(),
        second.display(),
        differences.join("; ")
    );
    let all = first_files.len();
    said.checked(format!("all {all} files are the same to the byte, made again elsewhere"));
    std::fs::remove_dir_all(&again.folder).context("remove what was made again")
}

/// Where two files part, if they do.
fn first_difference(one: &[u8], other: &[u8]) -> Option<usize> {
    let at = one.iter().zip(other).position(|(one, other)| one != other);
    at.or_else(|| (one.len() != other.len()).then(|| one.len().min(other.len())))
}
