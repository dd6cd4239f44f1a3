//! The guests' kernels: where they are, which is which, and how they are built.
//!
//! A kernel is a program, `$XDG_CACHE_HOME/fullpipe/kernels/KEY/linux`, and its directory is
//! complete or not there. The key says of what it was made: its release, and a digest of source,
//! configuration, patches and compiler; a change in any of them is another kernel beside it, never
//! another one under the same name.
//!
//! # A boundary
//! A kernel is executed, and `sudo -E` leaves root with another user's cache. So the cache, its
//! directories and the program must belong to whoever runs this, and nobody else may write to them;
//! each is opened once, is checked on its descriptor, and the program is executed through that
//! (`Kernel::executable`), not found by its name again. A build runs compilers that find things
//! by name: there every directory above the cache is checked as well.

mod build;
mod carry;
mod error;
mod patch;
mod source;
mod tool;
mod truth;

pub use build::{BuildStep, KernelBuild};
pub use carry::{InstallError, install, pack};
pub use error::BuildError;
pub use source::KernelSource;

use fullpipe_kernel::file::folder::{Folder, not_ours};
use fullpipe_model::law::KernelVersion;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

/// The kernel's program in its directory.
const PROGRAM: &str = "linux";
/// In the key of a kernel whose sockets count why they do not send.
const TRUTH_MARK: &str = "truth-";
/// Beside it, the release that it will tell.
const RELEASE: &str = "release";

/// A kernel that is built.
#[derive(Debug, Clone)]
pub struct Kernel {
    /// What it was made of: the name of its directory.
    pub key: String,
    /// As `uname -r` prints it in a guest.
    pub release: String,
    /// The program, by name.
    pub path: PathBuf,
    /// The program, as it was checked.
    pub(crate) program: Arc<File>,
}

impl PartialEq for Kernel {
    fn eq(&self, other: &Self) -> bool {
        (&self.key, &self.release, &self.path) == (&other.key, &other.release, &other.path)
    }
}

impl Eq for Kernel {}

impl Kernel {
    /// The kernels of this user's cache, newest release first.
    ///
    /// # Errors
    /// A cache, or a kernel in it, that is not this user's alone.
    pub fn cached() -> Result<Vec<Kernel>, CacheError> {
        let Some(folder) = Kernel::cache_folder() else { return Ok(Vec::new()) };
        let above = folder.parent().unwrap_or(&folder);
        match Folder::open(above) {
            Ok(above) => {
                above.check_ours_alone().map_err(|error| CacheError::new(&folder, error.into()))?
            }
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(cause) => return Err(CacheError::new(&folder, cause)),
        }
        cached_in(&folder)
    }

    /// Where this user's kernels are; `None` without a home.
    pub fn cache_folder() -> Option<PathBuf> {
        let absolute =
            |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let cache =
            absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
        // A link on the way is the user's own affair, whose directory it leads to is not.
        let cache = fs::canonicalize(&cache).unwrap_or(cache);
        Some(cache.join("fullpipe/kernels"))
    }

    /// The first of `kernels` whose release is, or begins with, the one asked for; the first of all
    /// where none is. One that counts reasons is found only where there is no plain one: whoever
    /// wants it leaves the others out.
    pub fn find<'a>(kernels: &'a [Kernel], asked: Option<&str>) -> Option<&'a Kernel> {
        let mut fitting = kernels
            .iter()
            .filter(|kernel| asked.is_none_or(|asked| Kernel::is_release(&kernel.release, asked)));
        let first = fitting.clone().next();
        fitting.find(|kernel| !kernel.counts_reasons()).or(first)
    }

    /// Whether `release` is the one `asked` for: `6.1` is `6.1.192` and `6.1.0-amd64`, and not
    /// `6.12`.
    pub fn is_release(release: &str, asked: &str) -> bool {
        release
            .strip_prefix(asked)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '-', '+', '~']))
    }

    /// Whether its sockets count why they do not send.
    pub fn counts_reasons(&self) -> bool {
        self.key.contains(TRUTH_MARK)
    }

    /// What decides which comes first: the release, when it was built, its key.
    fn rank(&self) -> (Option<KernelVersion>, Option<SystemTime>, String) {
        let built = self.program.metadata().and_then(|program| program.modified());
        (self.release.parse().ok(), built.ok(), self.key.clone())
    }

    /// A path to the very file that was checked, for this process.
    pub(crate) fn executable(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.program.as_raw_fd()))
    }
}

/// Why a cache is not used.
#[derive(Debug, thiserror::Error)]
#[error(
    "use cache {path}: {cause}; set XDG_CACHE_HOME to a directory of your own (with sudo: `sudo -H`)",
    path = path.display()
)]
pub struct CacheError {
    /// Which one.
    path: PathBuf,
    /// Whose it is, or what went wrong.
    cause: io::Error,
}

impl CacheError {
    pub(crate) fn new(path: &Path, cause: io::Error) -> Self {
        CacheError { path: path.into(), cause }
    }
}

/// The kernels in `folder`, newest release first, and of one release the one that was built last:
/// an older one has another configuration or other patches. What is no kernel is passed over.
///
/// # Errors
/// A directory, or a kernel in it, that is not this user's alone.
pub(crate) fn cached_in(folder: &Path) -> Result<Vec<Kernel>, CacheError> {
    let told = |cause| CacheError::new(folder, cause);
    let kernels = match Folder::open(folder) {
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        opened => opened.map_err(told)?,
    };
    kernels.check_ours_alone().map_err(|error| told(error.into()))?;
    let mut found = Vec::new();
    for name in kernels.names().map_err(told)? {
        match kernel_in(&kernels, &name) {
            Ok(kernel) => found.push(kernel),
            Err(cause) if not_ours(&cause).is_some() => return Err(told(cause)),
            Err(_) => {}
        }
    }
    found.sort_by_cached_key(|kernel| std::cmp::Reverse(kernel.rank()));
    Ok(found)
}

/// The kernel in the directory `name` of `kernels`.
fn kernel_in(kernels: &Folder, name: &OsStr) -> io::Result<Kernel> {
    let folder = kernels.folder(name)?;
    let key = name.to_str().ok_or(io::ErrorKind::InvalidData)?.to_string();
    let release = String::from_utf8_lossy(&folder.read(RELEASE)?).trim().to_string();
    let program = Arc::new(folder.open_own_file(PROGRAM)?);
    folder.check_ours_alone()?;
    Ok(Kernel { key, release, path: folder.path().join(PROGRAM), program })
}

/// FNV-1a, 64 bits: enough to tell apart what nobody forges, and the same on every machine and in
/// every release of Rust.
fn digest<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> u64 {
    const PRIME: u64 = 0x0100_0000_01b3;
    let mut hash = 0xcbf2_9ce4_8422_2325;
    for part in parts {
        // A part's end counts too: "ab", "c" is not "a", "bc".
        for &byte in part.iter().chain(&[0xff]) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(PRIME);
        }
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_release_is_asked_for_by_how_it_begins() {
        for (release, asked, is) in [
            ("6.1.192", "6.1", true),
            ("6.12.117", "6.1", false),
            ("6.12.117", "6.12.117", true),
            ("6.12.117", "6.12.11", false),
            ("6.1.0-amd64", "6.1.0", true),
            ("6.12.117", "6", true),
        ] {
            assert_eq!(Kernel::is_release(release, asked), is, "{asked} of {release}");
        }
    }

    #[test]
    fn the_newest_comes_first_by_number_and_halves_are_passed_over() {
        let folder =
            std::env::temp_dir().join(format!("fullpipe-test-kernels-{}", std::process::id()));
        for (key, release) in
            [("6.1.192-a", "6.1.192"), ("6.12.9-b", "6.12.9"), ("6.12.117-c", "6.12.117\n")]
        {
            fs::create_dir_all(folder.join(key)).unwrap();
            fs::write(folder.join(key).join(RELEASE), release).unwrap();
            fs::write(folder.join(key).join(PROGRAM), "").unwrap();
        }
        fs::create_dir_all(folder.join("7.0-half")).unwrap();
        let kernels = cached_in(&folder).unwrap();
        let releases: Vec<_> = kernels.iter().map(|kernel| kernel.release.as_str()).collect();
        assert_eq!(releases, ["6.12.117", "6.12.9", "6.1.192"]);
        assert_eq!(Kernel::find(&kernels, Some("6.1")).unwrap().key, "6.1.192-a");
        assert_eq!(
            (
                Kernel::find(&kernels, None).unwrap().key.as_str(),
                Kernel::find(&kernels, Some("5.10"))
            ),
            ("6.12.117-c", None)
        );
        // Others could replace what is in it; and the program itself.
        for writable in
            [folder.clone(), folder.join("6.12.9-b"), folder.join("6.12.9-b").join(PROGRAM)]
        {
            let before = fs::metadata(&writable).unwrap().permissions();
            fs::set_permissions(&writable, fs::Permissions::from_mode(0o777)).unwrap();
            let refused = cached_in(&folder).unwrap_err().to_string();
            assert!(
                refused.contains("others can write") && refused.contains("XDG_CACHE_HOME"),
                "{refused}"
            );
            fs::set_permissions(&writable, before).unwrap();
        }
        // A swap after the check changes nothing.
        let checked = Kernel::find(&kernels, Some("6.1")).unwrap();
        fs::rename(folder.join("6.1.192-a"), folder.join("gone")).unwrap();
        assert_eq!(fs::read(checked.executable()).unwrap(), b"");
        fs::remove_dir_all(&folder).unwrap();
        assert!(cached_in(&folder).unwrap().is_empty());
    }

    #[test]
    fn a_kernel_that_counts_reasons_is_found_only_where_the_others_are_left_out() {
        let folder = tempfile::tempdir().unwrap();
        // Built in this order: of one release the last comes first.
        for key in ["6.12.9-a", "6.12.9-truth-b"] {
            fs::create_dir(folder.path().join(key)).unwrap();
            fs::write(folder.path().join(key).join(RELEASE), "6.12.9\n").unwrap();
            fs::write(folder.path().join(key).join(PROGRAM), "").unwrap();
        }
        let mut kernels = cached_in(folder.path()).unwrap();
        for asked in [None, Some("6.12")] {
            assert_eq!(Kernel::find(&kernels, asked).unwrap().key, "6.12.9-a");
        }
        kernels.retain(Kernel::counts_reasons);
        assert_eq!(Kernel::find(&kernels, None).unwrap().key, "6.12.9-truth-b");
    }

    #[test]
    fn the_digest_is_fnvs() {
        // Landon Curt Noll's test vectors for FNV-1a, with our end mark as the last byte.
        assert_eq!(digest([]), 0xcbf2_9ce4_8422_2325);
        let by_hand = |bytes: &[u8]| {
            bytes.iter().fold(0xcbf2_9ce4_8422_2325u64, |hash, &byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
            })
        };
        assert_eq!(by_hand(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(digest([&b"a"[..]]), by_hand(b"a\xff"));
        assert_ne!(digest([&b"ab"[..], b"c"]), digest([&b"a"[..], b"bc"]));
    }
}
