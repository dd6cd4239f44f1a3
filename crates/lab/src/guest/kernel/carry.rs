//! Kernels as one file, for machines without a compiler: packed on one, installed on others.
//!
//! The file is a tar, packed with gzip or, in a release, with Zstandard. It has a folder for each
//! kernel, as the cache has it, and a text that says what they are and how to make them again, with
//! every change of the source and the whole configuration, as their licence (GPL-2.0) asks for. A
//! kernel is executed, so a file is installed only where its digest is one that the user names or
//! finds beside it; nothing in it decides where anything is written.

use super::build::{CONFIG, TYPES};
use super::patch::{AGENT_SINCE, PATCHES, READS};
use super::{CacheError, Kernel, PROGRAM, RELEASE, cached_in, kernel_in};
use flate2::{Compression, write::GzEncoder};
use fullpipe_flow::capture::Unpack;
use fullpipe_kernel::file::folder::{Folder, make_own};
use fullpipe_kernel::file::named_file;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs::Permissions;
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// What the file is about, in it.
const RECIPE: &str = include_str!("recipe.txt");
const RECIPE_NAME: &str = "README.txt";
/// A kernel has some 12 MB.
const MOST_OF_ONE: u64 = 128 << 20;
/// What is read of a file, unpacked or not.
const MOST: u64 = 1 << 30;
/// ELF, 64 bits, little endian.
const ELF: [u8; 6] = *b"\x7fELF\x02\x01";
/// Where an ELF file names its machine, and what that is on x86-64: user-mode Linux is for no
/// other.
const MACHINE: std::ops::Range<usize> = 18..20;
const X86_64: [u8; 2] = [62, 0];

/// Why kernels were not installed.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// The file cannot be read.
    #[error("read kernels from {path}: {cause}; give a file that `fullpipe lab kernel pack` wrote", path = path.display())]
    Read {
        /// Which one.
        path: PathBuf,
        /// The system's answer.
        cause: io::Error,
    },
    /// It is another file than was meant.
    #[error(
        "install kernels from {path}: its SHA-256 is {found}, not {expected}: fetch it again, and the digest",
        path = path.display()
    )]
    Digest {
        /// Which one.
        path: PathBuf,
        /// What was asked for.
        expected: String,
        /// What it has.
        found: String,
    },
    /// It has something else in it than kernels.
    #[error("install kernels from {path}: {problem}; give a file that `fullpipe lab kernel pack` wrote", path = path.display())]
    Content {
        /// Which one.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// There is no place for them.
    #[error(
        "find cache directory: neither XDG_CACHE_HOME nor HOME is set to an absolute path; set one"
    )]
    NoCache,
    /// The place is not this user's alone.
    #[error(transparent)]
    Cache(#[from] CacheError),
}

/// `kernels` as one file, and its SHA-256; the same kernels give the same bytes.
pub fn pack(kernels: &[Kernel]) -> io::Result<(Vec<u8>, String)> {
    let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::best()));
    add(&mut archive, RECIPE_NAME, 0o644, recipe().as_bytes())?;
    for kernel in kernels {
        let release = format!("{}\n", kernel.release);
        add(&mut archive, &format!("{}/{RELEASE}", kernel.key), 0o644, release.as_bytes())?;
        let program = std::fs::read(kernel.executable())?;
        add(&mut archive, &format!("{}/{PROGRAM}", kernel.key), 0o755, &program)?;
    }
    let bytes = archive.into_inner()?.finish()?;
    let digest = sha256(&bytes);
    Ok((bytes, digest))
}

/// What the kernels are, and of what: whoever has the file needs nothing else to make them again.
fn recipe() -> String {
    let mut text = RECIPE.to_owned();
    for patch in PATCHES.iter().chain(&READS) {
        let of = if READS.iter().any(|one| one.file == patch.file) {
            format!(", from Linux {AGENT_SINCE} on")
        } else {
            String::new()
        };
        let (file, from, to) = (patch.file, patch.from, patch.to);
        text += &format!("\n==== in {file}{of}, this\n{from}\n==== becomes\n{to}\n");
    }
    text += &format!("\n==== the configuration\n{CONFIG}");
    text += &format!("\n==== and, from Linux {AGENT_SINCE} on\n{TYPES}");
    text
}

/// As `sha256sum` prints it.
fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn add(
    archive: &mut tar::Builder<impl Write>,
    name: &str,
    mode: u32,
    bytes: &[u8],
) -> io::Result<()> {
    let mut header = tar::Header::new_ustar();
    header.set_mode(mode);
    header.set_size(bytes.len() as u64);
    archive.append_data(&mut header, name, bytes)
}

/// Installs the kernels of `file`, whose SHA-256 must be `expected`, into this user's cache;
/// returns those that are there then, in the order of their names.
pub fn install(file: &Path, expected: &str) -> Result<Vec<Kernel>, InstallError> {
    install_in(&Kernel::cache_folder().ok_or(InstallError::NoCache)?, file, expected)
}

fn install_in(kernels: &Path, file: &Path, expected: &str) -> Result<Vec<Kernel>, InstallError> {
    let bytes = named_file::read(file, MOST)
        .map_err(|cause| InstallError::Read { path: file.into(), cause })?;
    let found = sha256(&bytes);
    if !found.eq_ignore_ascii_case(expected) {
        let expected = expected.to_ascii_lowercase();
        return Err(InstallError::Digest { path: file.into(), expected, found });
    }
    let packed =
        unpack(&bytes).map_err(|problem| InstallError::Content { path: file.into(), problem })?;
    let there = cached_in(kernels)?;
    write_all(kernels, &there, packed)
        .map_err(|cause| InstallError::Cache(CacheError::new(kernels, cause)))
}

/// Writes those that are not `there` yet; returns all of them.
fn write_all(
    kernels: &Path,
    there: &[Kernel],
    packed: BTreeMap<String, Packed>,
) -> io::Result<Vec<Kernel>> {
    let folder = make_own(kernels)?;
    let mut installed = Vec::new();
    for (key, Packed { release, program }) in packed {
        if !there.iter().any(|kernel| kernel.key == key) {
            write_kernel(&folder, &key, &release, &program)?;
        }
        installed.push(kernel_in(&folder, key.as_ref())?);
    }
    Ok(installed)
}

/// A kernel, as it is packed.
#[derive(Debug, Default)]
struct Packed {
    release: String,
    program: Vec<u8>,
}

/// The kernels in a file, by their keys, each whole.
fn unpack(bytes: &[u8]) -> Result<BTreeMap<String, Packed>, String> {
    let mut archive = tar::Archive::new(Unpack::new(bytes).map_err(damaged)?.take(MOST));
    let mut kernels = BTreeMap::<String, Packed>::new();
    for entry in archive.entries().map_err(damaged)? {
        let entry = entry.map_err(damaged)?;
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        let size = entry.size();
        if entry.header().entry_type() != tar::EntryType::Regular || size > MOST_OF_ONE {
            return Err(format!("it has {name:?}, which is no file of a kernel"));
        }
        let mut content = Vec::new();
        entry.take(MOST_OF_ONE).read_to_end(&mut content).map_err(damaged)?;
        match name.split_once('/') {
            None if name == RECIPE_NAME => {}
            Some((key, RELEASE)) if is_key(key) => {
                let release = String::from_utf8_lossy(&content).trim().to_owned();
                kernels.entry(key.to_owned()).or_default().release = release;
            }
            Some((key, PROGRAM)) if is_key(key) => {
                kernels.entry(key.to_owned()).or_default().program = content;
            }
            _ => return Err(format!("it has {name:?}, which is no file of a kernel")),
        }
    }
    for (key, Packed { release, program }) in &kernels {
        if release.is_empty() || !is_key(release) || !key.starts_with(release.as_str()) {
            return Err(format!("kernel {key} has release {release:?}"));
        }
        if !program.starts_with(&ELF) || program.get(MACHINE) != Some(&X86_64) {
            return Err(format!("kernel {key} has no program for x86-64"));
        }
    }
    if kernels.is_empty() {
        return Err("it has no kernel".into());
    }
    Ok(kernels)
}

fn damaged(cause: io::Error) -> String {
    format!("it is damaged, or no packed tar: {cause}")
}

/// Whether it may be the name of a kernel's folder: a release, and what it was made of.
fn is_key(name: &str) -> bool {
    name.len() <= 100
        && name.starts_with(|c: char| c.is_ascii_digit())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-+~_".contains(&byte))
}

/// Puts a kernel into the cache, so that it is there completely or not at all.
fn write_kernel(kernels: &Folder, key: &str, release: &str, program: &[u8]) -> io::Result<()> {
    let part = format!("{key}.part");
    // Of an install that was killed.
    let _ = kernels.remove_folder(&part);
    let folder = kernels.make_folder(&part, 0o700)?;
    let mut file = folder.create(PROGRAM)?;
    file.write_all(program)?;
    file.set_permissions(Permissions::from_mode(0o755))?;
    drop(file);
    folder.write_whole(RELEASE, format!("{release}\n").as_bytes())?;
    kernels.rename(&part, key)
}

#[cfg(test)]
mod tests;
