//! Where a kernel's source comes from.

use super::error::BuildError;
use super::tool::run;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::str::FromStr;

/// A source of Linux.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KernelSource {
    /// Debian's package `linux-source-VERSION`: as installed, or else downloaded by apt-get, which
    /// needs no privilege.
    Debian,
    /// A tar file, as kernel.org and Debian have them.
    Tarball(PathBuf),
    /// A source tree; it is copied, not touched.
    Tree(PathBuf),
}

impl FromStr for KernelSource {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let path = PathBuf::from(text);
        match text {
            "debian" => Ok(KernelSource::Debian),
            _ if path.is_dir() => Ok(KernelSource::Tree(path)),
            _ if path.is_file() => Ok(KernelSource::Tarball(path)),
            _ => Err("neither 'debian' nor a source tree nor a tar file".into()),
        }
    }
}

impl KernelSource {
    /// What it is called in the digest: another file, or another state of it, is another source.
    pub(super) fn identity(&self, version: &str) -> Result<String, BuildError> {
        match self {
            KernelSource::Debian => Ok(format!("debian {version}")),
            KernelSource::Tarball(path) | KernelSource::Tree(path) => state_of(path),
        }
    }

    /// Puts the source into `tree`, which is not there yet; `scratch` is a folder to do it in.
    pub(super) fn unpack(
        &self,
        version: &str,
        scratch: &Path,
        tree: &Path,
    ) -> Result<(), BuildError> {
        let part = scratch.join("source.part");
        let _ = fs::remove_dir_all(&part);
        fs::create_dir_all(&part).map_err(|cause| BuildError::file("make", &part, cause))?;
        match self {
            KernelSource::Debian => untar(&debian(version, scratch)?, &part)?,
            KernelSource::Tarball(path) => untar(path, &part)?,
            KernelSource::Tree(path) => {
                let mut copy = Command::new("cp");
                copy.args(["-a", "--reflink=auto", "--"]).arg(path.join(".")).arg(&part);
                run("copy source", &mut copy, scratch, &mut |_| {})?;
            }
        }
        fs::rename(&part, tree).map_err(|cause| BuildError::file("complete", tree, cause))
    }
}

/// Its whole path and when it was changed last.
fn state_of(path: &Path) -> Result<String, BuildError> {
    let path = fs::canonicalize(path).map_err(|cause| BuildError::file("find", path, cause))?;
    let modified = fs::metadata(&path)
        .and_then(|metadata| metadata.modified())
        .map_err(|cause| BuildError::file("look at", &path, cause))?;
    Ok(format!("{} {modified:?}", path.display()))
}

fn untar(tarball: &Path, into: &Path) -> Result<(), BuildError> {
    let mut tar = Command::new("tar");
    // What stands above the tree in the archive is its name, which nobody needs.
    tar.args(["--extract", "--strip-components=1", "--file"])
        .arg(tarball)
        .arg("--directory")
        .arg(into);
    run("unpack source", &mut tar, into, &mut |_| {})
}

/// The tar file of Debian's package.
fn debian(version: &str, scratch: &Path) -> Result<PathBuf, BuildError> {
    let package = format!("linux-source-{version}");
    let file = format!("usr/src/{package}.tar.xz");
    let installed = Path::new("/").join(&file);
    if installed.is_file() {
        return Ok(installed);
    }
    let unpacked = scratch.join("package");
    if !unpacked.join(&file).is_file() {
        let mut download = Command::new("apt-get");
        download.args(["--quiet", "download", &package]).current_dir(scratch);
        run("download source", &mut download, scratch, &mut |_| {}).map_err(|error| {
            BuildError::NoSource { package: package.clone(), cause: Box::new(error) }
        })?;
        let mut unpack = Command::new("sh");
        unpack
            .args(["-c", r#"exec dpkg-deb --extract "$0"_*.deb package"#, &package])
            .current_dir(scratch);
        run("unpack package", &mut unpack, scratch, &mut |_| {})?;
    }
    Ok(unpacked.join(file))
}
