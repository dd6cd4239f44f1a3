//! The guests' kernels: where they are, which is which, and how they are built.
//!
//! A kernel is a program, `$XDG_CACHE_HOME/fullpipe/kernels/KEY/linux`, and its directory is complete or not there. The
//! key says of what it was made: its release, and a digest of source, configuration, patches and compiler; a change in
//! any of them is another kernel beside it, never another one under the same name.

pub mod build;
mod patch;
mod source;

pub use patch::PatchError;
pub use source::Source;

use fullpipe_model::law::KernelVersion;
use std::fs;
use std::path::{Path, PathBuf};

/// The kernel's program in its directory.
const PROGRAM: &str = "linux";
/// Beside it, the release that it will tell.
const RELEASE: &str = "release";

/// A kernel that is built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kernel {
    /// What it was made of: the name of its directory.
    pub key: String,
    /// As `uname -r` prints it in a guest.
    pub release: String,
    /// The program.
    pub path: PathBuf,
}

/// Where this user's kernels are; `None` without a home.
pub fn cache() -> Option<PathBuf> {
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
    Some(cache.join("fullpipe/kernels"))
}

/// The kernels of this user's cache, newest release first.
pub fn cached() -> Vec<Kernel> {
    cache().map(|folder| cached_in(&folder)).unwrap_or_default()
}

/// The kernels in `folder`, newest release first. What is no kernel is passed over.
pub fn cached_in(folder: &Path) -> Vec<Kernel> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut kernels: Vec<Kernel> = entries.filter_map(|entry| kernel_in(&entry.path())).collect();
    let version = |kernel: &Kernel| kernel.release.parse::<KernelVersion>().ok();
    kernels.sort_by(|a, b| version(b).cmp(&version(a)).then_with(|| b.key.cmp(&a.key)));
    kernels
}

fn kernel_in(folder: &Path) -> Option<Kernel> {
    let key = folder.file_name()?.to_str()?.to_string();
    let release = fs::read_to_string(folder.join(RELEASE)).ok()?.trim().to_string();
    let path = folder.join(PROGRAM);
    path.is_file().then_some(Kernel { key, release, path })
}

/// The first of `kernels` whose release is, or begins with, the one asked for; the first of all where none is.
pub fn find<'a>(kernels: &'a [Kernel], asked: Option<&str>) -> Option<&'a Kernel> {
    kernels.iter().find(|kernel| asked.is_none_or(|asked| is_release(&kernel.release, asked)))
}

/// Whether `release` is the one `asked` for: `6.1` is `6.1.192` and `6.1.0-amd64`, and not `6.12`.
pub fn is_release(release: &str, asked: &str) -> bool {
    release.strip_prefix(asked).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '-', '+', '~']))
}

/// FNV-1a, 64 bits: enough to tell apart what nobody forges, and the same on every machine and in every release of Rust.
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
            assert_eq!(is_release(release, asked), is, "{asked} of {release}");
        }
    }

    #[test]
    fn the_newest_comes_first_by_number_and_halves_are_passed_over() {
        let folder = std::env::temp_dir().join(format!("fullpipe-test-kernels-{}", std::process::id()));
        for (key, release) in [("6.1.192-a", "6.1.192"), ("6.12.9-b", "6.12.9"), ("6.12.117-c", "6.12.117\n")] {
            fs::create_dir_all(folder.join(key)).unwrap();
            fs::write(folder.join(key).join(RELEASE), release).unwrap();
            fs::write(folder.join(key).join(PROGRAM), "").unwrap();
        }
        fs::create_dir_all(folder.join("7.0-half")).unwrap();
        let kernels = cached_in(&folder);
        let releases: Vec<_> = kernels.iter().map(|kernel| kernel.release.as_str()).collect();
        assert_eq!(releases, ["6.12.117", "6.12.9", "6.1.192"]);
        assert_eq!(find(&kernels, Some("6.1")).unwrap().key, "6.1.192-a");
        assert_eq!((find(&kernels, None).unwrap().key.as_str(), find(&kernels, Some("5.10"))), ("6.12.117-c", None));
        fs::remove_dir_all(&folder).unwrap();
        assert!(cached_in(&folder).is_empty());
    }

    #[test]
    fn the_digest_is_fnvs() {
        // Landon Curt Noll's test vectors for FNV-1a, with our end mark as the last byte.
        assert_eq!(digest([]), 0xcbf2_9ce4_8422_2325);
        let by_hand = |bytes: &[u8]| {
            bytes
                .iter()
                .fold(0xcbf2_9ce4_8422_2325u64, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
        };
        assert_eq!(by_hand(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(digest([&b"a"[..]]), by_hand(b"a\xff"));
        assert_ne!(digest([&b"ab"[..], b"c"]), digest([&b"a"[..], b"bc"]));
    }
}
