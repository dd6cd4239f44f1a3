//! Building a kernel: source, patches, configuration, compiler; then into the cache, whole.
//!
//! What an interrupted build has done stays in `kernels/building/DIGEST`, and the next one goes on
//! from there: make compiles only what is missing. It is removed when the kernel is in the cache.

use super::error::BuildError;
use super::patch::{AGENT_SINCE, PATCHES, Patch, READS};
use super::source::KernelSource;
use super::tool::run;
use super::truth::TRUTH;
use super::{CacheError, Kernel, PROGRAM, RELEASE, TRUTH_MARK, digest, kernel_in, patch};
use fullpipe_kernel::file::folder::{Folder, check_path, make_own};
use fullpipe_model::law::KernelVersion;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

/// Every guest's configuration.
pub(super) const CONFIG: &str = include_str!("kernel.config");
/// What the window agent needs besides. It needs Linux 6.6, too: for an older guest the compiler's
/// debugging information, half of the time that a kernel takes, would be made for nobody.
pub(super) const TYPES: &str = include_str!("types.config");
/// Steps that make announces for this configuration, a little above Linux 6.12's: for the progress
/// bar.
const STEPS: usize = 1_440;

/// Programs that a build needs, and Debian's packages that have them.
const TOOLS: [(&str, &str); 9] = [
    ("make", "make"),
    ("gcc", "gcc"),
    ("ld", "binutils"),
    ("flex", "flex"),
    ("bison", "bison"),
    ("bc", "bc"),
    ("pahole", "dwarves"),
    ("xz", "xz-utils"),
    ("perl", "perl"),
];
/// Headers that its tools are compiled with.
const HEADERS: [(&str, &str); 2] =
    [("/usr/include/libelf.h", "libelf-dev"), ("/usr/include/stdlib.h", "libc6-dev")];

/// What to build.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelBuild {
    /// From what.
    pub source: KernelSource,
    /// Which of Debian's versions: `6.12`, `6.1`.
    pub version: String,
    /// Compilers at once.
    pub jobs: usize,
    /// Whether its sockets count why they do not send: another kernel, beside the plain one.
    pub truth: bool,
}

/// How far it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BuildStep {
    /// Another process builds the same kernel.
    Wait,
    /// The source is being fetched and unpacked.
    Unpack,
    /// The configuration is being made.
    Configure,
    /// The kernel is being compiled.
    Compile {
        /// Steps that are done.
        done: usize,
        /// Steps that there are, about.
        of: usize,
    },
}

impl KernelBuild {
    /// Debian's versions that experiments compare: today's, and the last long-term one before Linux
    /// 6.6, whose receive window is `tcp_adv_win_scale` of the buffer.
    pub const VERSIONS: [&str; 2] = ["6.12", "6.1"];

    /// Builds it into this user's cache, or finds it there.
    ///
    /// # Errors
    /// Missing tools all at once; a failed step with the end of what it printed.
    pub fn run(&self, observer: &mut dyn FnMut(BuildStep)) -> Result<Kernel, BuildError> {
        let is_version = self.version.split_once('.').is_some_and(|(major, minor)| {
            let mut numbers = [major, minor].into_iter();
            numbers.all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
        });
        if !is_version {
            return Err(BuildError::Version(self.version.clone()));
        }
        self.run_in(&Kernel::cache_folder().ok_or(BuildError::NoCache)?, observer)
    }

    fn run_in(
        &self,
        kernels: &Path,
        observer: &mut dyn FnMut(BuildStep),
    ) -> Result<Kernel, BuildError> {
        check_tools()?;
        make_own(kernels).map_err(|cause| CacheError::new(kernels, cause))?;
        check_path(kernels).map_err(|cause| CacheError::new(kernels, cause))?;
        let mark = format!("{:016x}", self.digest(kernels)?);
        if let Some(kernel) = find(kernels, &mark)? {
            return Ok(kernel);
        }
        let scratch = kernels.join("building").join(&mark);
        let held = make_own(&scratch).and_then(|folder| folder.hold(|| observer(BuildStep::Wait)));
        let _held = held.map_err(|cause| BuildError::file("hold", &scratch, cause))?;
        // Whoever held it may have finished.
        if let Some(kernel) = find(kernels, &mark)? {
            return Ok(kernel);
        }
        let (tree, objects) = (scratch.join("source"), scratch.join("objects"));
        // What is there of a build that was interrupted is gone on with: it must be ours.
        make_own(&objects).map_err(|cause| BuildError::file("make", &objects, cause))?;
        if !tree.is_dir() {
            observer(BuildStep::Unpack);
            self.source.unpack(&self.version, &scratch, &tree)?;
        }
        patch::apply(&tree, self.patches())?;
        let config = self.config();
        let make = Make { tree: &tree, objects: &objects, config: &config, jobs: self.jobs };
        if !objects.join(".config").is_file() {
            observer(BuildStep::Configure);
            make.configure(&scratch)?;
        }
        make.compile(observer)?;
        let release = make.release()?;
        let kind = if self.truth { TRUTH_MARK } else { "" };
        let key = format!("{release}-{kind}{mark}");
        let kernel = install(kernels, &key, &release, &objects.join(PROGRAM))?;
        // What is left is rubbish of ours; a kernel that works is no less there for it.
        let _ = fs::remove_dir_all(&scratch);
        Ok(kernel)
    }

    /// Whether the window agent may run on it.
    fn takes_agent(&self) -> bool {
        self.version.parse().is_ok_and(|version: KernelVersion| version >= AGENT_SINCE)
    }

    fn config(&self) -> String {
        [CONFIG, if self.takes_agent() { TYPES } else { "" }].concat()
    }

    fn patches(&self) -> impl Iterator<Item = Patch> {
        let reads = self.takes_agent();
        PATCHES
            .into_iter()
            .chain(READS.into_iter().filter(move |_| reads))
            .chain(TRUTH.into_iter().filter(|_| self.truth))
    }

    /// Of all that decides what comes out.
    fn digest(&self, folder: &Path) -> Result<u64, BuildError> {
        let mut compiler = String::new();
        run("ask version of", Command::new("gcc").arg("-dumpfullversion"), folder, &mut |line| {
            compiler += line
        })?;
        let source = self.source.identity(&self.version)?;
        let patches = format!("{:?}", self.patches().collect::<Vec<_>>());
        Ok(digest([
            source.as_bytes(),
            self.config().as_bytes(),
            patches.as_bytes(),
            compiler.trim().as_bytes(),
        ]))
    }
}

/// The kernel in the cache that was made of what `mark` says.
fn find(kernels: &Path, mark: &str) -> Result<Option<Kernel>, BuildError> {
    Ok(super::cached_in(kernels)?.into_iter().find(|kernel| kernel.key.ends_with(mark)))
}

fn check_tools() -> Result<(), BuildError> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found =
        |program: &str| std::env::split_paths(&path).any(|folder| folder.join(program).is_file());
    let tools = TOOLS.iter().filter(|(program, _)| !found(program));
    let headers = HEADERS.iter().filter(|(header, _)| !Path::new(header).is_file());
    let missing: Vec<_> = tools.chain(headers).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let names: Vec<_> = missing.iter().map(|(name, _)| *name).collect();
    Err(BuildError::Tools {
        missing: names.join(", "),
        packages: missing.iter().map(|(_, package)| *package).collect(),
    })
}

struct Make<'a> {
    tree: &'a Path,
    objects: &'a Path,
    config: &'a str,
    jobs: usize,
}

impl Make<'_> {
    fn command(&self) -> Command {
        // It may take all that nobody else wants.
        let mut command = Command::new("nice");
        command.args(["-n", "19", "make", "ARCH=um", &format!("-j{}", self.jobs)]);
        command.arg("-C").arg(self.tree).arg(format!("O={}", self.objects.display()));
        // The same kernel from the same source, whoever builds it and when; and no settings of a
        // make above us.
        command.args([
            "KBUILD_BUILD_TIMESTAMP=@0",
            "KBUILD_BUILD_USER=fullpipe",
            "KBUILD_BUILD_HOST=lab",
        ]);
        command.env_remove("MAKEFLAGS").env_remove("MFLAGS").env("LC_ALL", "C");
        command
    }

    fn configure(&self, scratch: &Path) -> Result<(), BuildError> {
        let asked = scratch.join("asked.config");
        fs::write(&asked, self.config).map_err(|cause| BuildError::file("write", &asked, cause))?;
        let mut all_config = std::ffi::OsString::from("KCONFIG_ALLCONFIG=");
        all_config.push(&asked);
        let made = run(
            "configure kernel",
            self.command().arg(all_config).arg("allnoconfig"),
            self.tree,
            &mut |_| {},
        );
        let path = self.objects.join(".config");
        let got = made.and_then(|()| {
            fs::read_to_string(&path).map_err(|cause| BuildError::file("read", &path, cause))
        });
        let refused = got.map(|got| refused(self.config, &got));
        match refused {
            Ok(None) => Ok(()),
            // No configuration is better than one to go on with next time.
            Ok(Some(line)) => {
                let _ = fs::remove_file(&path);
                Err(BuildError::Config(line))
            }
            Err(error) => Err(error),
        }
    }

    fn compile(&self, observer: &mut dyn FnMut(BuildStep)) -> Result<(), BuildError> {
        let mut done = 0;
        observer(BuildStep::Compile { done, of: STEPS });
        run("compile kernel", self.command().arg(PROGRAM), self.tree, &mut |line| {
            // `  CC      net/ipv4/tcp.o`
            if line.starts_with("  ") {
                done += 1;
                observer(BuildStep::Compile { done, of: STEPS.max(done) });
            }
        })
    }

    fn release(&self) -> Result<String, BuildError> {
        let path = self.objects.join("include/config/kernel.release");
        let text =
            fs::read_to_string(&path).map_err(|cause| BuildError::file("read", &path, cause))?;
        Ok(text.trim().into())
    }
}

/// The first line of ours that is not in the configuration `got`.
fn refused(asked: &str, got: &str) -> Option<String> {
    let asked = asked.lines().filter(|line| line.starts_with("CONFIG_"));
    asked.map(str::to_string).find(|line| !got.lines().any(|got| got == line))
}

/// Puts a built kernel into the cache, so that it is there completely or not at all.
fn install(kernels: &Path, key: &str, release: &str, built: &Path) -> Result<Kernel, BuildError> {
    let (part, whole) = (kernels.join(format!("{key}.part")), kernels.join(key));
    let _ = fs::remove_dir_all(&part);
    let folder = make_own(&part).map_err(|cause| BuildError::file("make", &part, cause))?;
    // What it was made of is of use to a debugger only, and some twenty times its size.
    let mut strip = Command::new("strip");
    strip.arg("--strip-debug").arg("-o").arg(part.join(PROGRAM)).arg(built);
    run("strip kernel", &mut strip, built, &mut |_| {})?;
    // A compiler's umask may let others write.
    let mode = fs::set_permissions(part.join(PROGRAM), fs::Permissions::from_mode(0o755));
    mode.map_err(|cause| BuildError::file("set rights of", &part, cause))?;
    let release = format!("{release}\n");
    folder
        .write_whole(RELEASE, release.as_bytes())
        .map_err(|cause| BuildError::file("write", &part, cause))?;
    fs::rename(&part, &whole).map_err(|cause| BuildError::file("complete", &whole, cause))?;
    let kernels =
        Folder::open(kernels).map_err(|cause| BuildError::file("open", kernels, cause))?;
    kernel_in(&kernels, key.as_ref()).map_err(|cause| BuildError::file("find", &whole, cause))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_kconfig_dropped_is_named() {
        assert_eq!(refused(CONFIG, CONFIG), None);
        let without =
            CONFIG.replace("CONFIG_NET_SCH_NETEM=y\n", "# CONFIG_NET_SCH_NETEM is not set\n");
        assert_eq!(refused(CONFIG, &without), Some("CONFIG_NET_SCH_NETEM=y".into()));
    }

    #[test]
    fn what_is_installed_is_found_whole_and_again_in_place_of_a_half() {
        let kernels =
            std::env::temp_dir().join(format!("fullpipe-test-install-{}", std::process::id()));
        let half = kernels.join("6.12.9-0123.part");
        fs::create_dir_all(&half).unwrap();
        fs::write(half.join("left-over"), "").unwrap();
        // Any program will do; strip looks at what it is given.
        let kernel = install(&kernels, "6.12.9-0123", "6.12.9", Path::new("/bin/true")).unwrap();
        assert_eq!(super::super::cached_in(&kernels).unwrap(), std::slice::from_ref(&kernel));
        assert_eq!(kernel.release, "6.12.9");
        assert!(Command::new(&kernel.path).status().unwrap().success());
        assert!(!half.exists() && fs::read_dir(kernels.join("6.12.9-0123")).unwrap().count() == 2);
        fs::remove_dir_all(&kernels).unwrap();
    }

    #[test]
    fn a_plain_kernel_has_no_change_for_counting() {
        let build = |version: &str, truth| {
            let (source, version) = (KernelSource::Debian, version.into());
            KernelBuild { source, version, jobs: 1, truth }.patches().collect::<Vec<_>>()
        };
        // The text is part of the digest, and so of a plain kernel's name in every cache there is.
        assert_eq!(format!("{:?}", build("6.1", false)), format!("{PATCHES:?}"));
        assert_eq!(build("6.12", false).len(), PATCHES.len() + READS.len());
        assert_eq!(build("6.12", true).len(), PATCHES.len() + READS.len() + TRUTH.len());
    }

    #[test]
    fn versions_are_two_numbers() {
        for version in ["", "6", "6.", "six.one", "6.12;rm", "../6.12"] {
            let build = KernelBuild {
                source: KernelSource::Debian,
                version: version.into(),
                jobs: 1,
                truth: false,
            };
            assert!(matches!(build.run(&mut |_| {}), Err(BuildError::Version(_))), "{version}");
        }
    }
}
