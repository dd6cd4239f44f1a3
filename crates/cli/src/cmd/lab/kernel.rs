//! `fullpipe lab kernel`: the guest kernels of the virtual engine.

mod carry;

use crate::failure::{Failure, Kind};
use crate::sentence::either;
use crate::terminal::{answer_layout, print, print_json, remark};
use clap::{Args, Subcommand};
use fullpipe_lab::{BuildError, BuildStep, CacheError, GuestError, KernelBuild, KernelSource};
use fullpipe_report::{Column, Table};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use std::path::PathBuf;

/// Build and list the kernels for experiments in virtual time: user-mode Linux, each an ordinary
/// program.
#[derive(Subcommand)]
pub enum Kernel {
    Build(Build),
    List(List),
    Path(KernelPath),
    Pack(carry::Pack),
    Install(carry::Install),
}

impl Kernel {
    pub fn run(self) -> Result<u8, Failure> {
        match self {
            Kernel::Build(build) => build.run(),
            Kernel::List(list) => list.run(),
            Kernel::Path(path) => path.run(),
            Kernel::Pack(pack) => pack.run(),
            Kernel::Install(install) => install.run(),
        }
    }
}

/// Build the guest kernels into the cache, and print their paths.
///
/// Without options it builds two from Debian's sources: 6.12, and 6.1 to show what changed since.
/// Each takes some 10 minutes of CPU time, 4 GB of disk while it builds (12 MB afterwards), no
/// privilege, and a compiler; missing packages are named. An interrupted build continues where it
/// stopped. A kernel that is already built is not built again.
#[derive(Args)]
// --version means the kernel's version here.
#[command(disable_version_flag = true)]
#[command(after_help = "\
Examples:
  fullpipe lab kernel build
  fullpipe lab kernel build --version 6.1
  fullpipe lab kernel build --source linux-6.12.8.tar.xz")]
pub struct Build {
    /// `debian` (the package linux-source-VERSION, downloaded if it is not installed), a tar file,
    /// or a source tree.
    #[arg(long, value_name = "SOURCE", default_value = "debian")]
    source: KernelSource,
    /// Version of Debian's package; builds one kernel only [default: 6.12, then 6.1].
    #[arg(long, value_name = "VERSION")]
    version: Option<String>,
    /// Compilers at once [default: one for each CPU].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
    /// Build kernels whose sockets count why they do not send, beside the plain ones: for
    /// `lab run --truth`.
    #[arg(long)]
    truth: bool,
}

impl Build {
    fn run(self) -> Result<u8, Failure> {
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let jobs = self.jobs.map_or(cpus, usize::from);
        let versions = match (self.version, &self.source) {
            (Some(version), _) => vec![version],
            (None, KernelSource::Debian) => KernelBuild::VERSIONS.map(String::from).into(),
            // A source tree knows its own version.
            (None, _) => vec![KernelBuild::VERSIONS[0].into()],
        };
        for version in versions {
            let progress = BuildProgress::new(&version);
            let truth = self.truth;
            let build = KernelBuild { source: self.source.clone(), version, jobs, truth };
            let built = build.run(&mut |step| progress.show(&step));
            progress.bar.finish_and_clear();
            let kernel = built?;
            remark(&format!("Linux {}:", kernel.release));
            print(&format!("{}\n", kernel.path.display()))?;
        }
        Ok(0)
    }
}

impl From<CacheError> for Failure {
    fn from(error: CacheError) -> Self {
        Failure::new(Kind::Missing, &error)
    }
}

impl From<BuildError> for Failure {
    fn from(error: BuildError) -> Self {
        let kind = match &error {
            error if error.is_missing() => Kind::Missing,
            BuildError::NoCache => Kind::Missing,
            BuildError::Version(_) => Kind::Usage,
            BuildError::Patch(_) | BuildError::Config(_) => Kind::Input,
            _ => Kind::Run,
        };
        Failure::new(kind, &error)
    }
}

struct BuildProgress {
    bar: ProgressBar,
    version: String,
}

impl BuildProgress {
    fn new(version: &str) -> Self {
        let style = ProgressStyle::with_template(either(
            "{msg:24!} {wide_bar} {percent:>3} % {elapsed:>4}, {eta} left",
            "{msg:24!} {wide_bar} {percent:>3} % {elapsed:>4}，剩余 {eta}",
        ));
        let bar = ProgressBar::new(1);
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> "));
        BuildProgress { bar, version: version.into() }
    }

    fn show(&self, step: &BuildStep) {
        let at = match *step {
            BuildStep::Wait => either("waiting for another build of", "等待另一次构建："),
            BuildStep::Unpack => either("getting source", "取得源码："),
            BuildStep::Configure => either("configuring", "配置："),
            BuildStep::Compile { done, of } => {
                if done == 0 {
                    self.bar.reset();
                }
                self.bar.set_length(of as u64);
                self.bar.set_position(done as u64);
                either("compiling", "编译：")
            }
        };
        self.bar.set_message(format!("{at} Linux {}", self.version));
    }
}

/// List the kernels that are built, newest first: `lab run` takes the first that fits. It takes
/// those with `--truth` only where it is told to.
#[derive(Args)]
pub struct List {
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Listed {
    release: String,
    key: String,
    path: PathBuf,
    /// It counts why its sockets do not send.
    truth: bool,
}

impl List {
    fn run(self) -> Result<u8, Failure> {
        let kernels = fullpipe_lab::Kernel::cached()?;
        if self.json {
            let listed: Vec<_> = kernels
                .into_iter()
                .map(|kernel| Listed {
                    truth: kernel.counts_reasons(),
                    release: kernel.release,
                    key: kernel.key,
                    path: kernel.path,
                })
                .collect();
            print_json(&listed)?;
        } else if kernels.is_empty() {
            print(either(
                "No kernel is built: `fullpipe lab kernel build`.\n",
                "还没有构建内核：`fullpipe lab kernel build`。\n",
            ))?;
        } else {
            let headings = either(["release", "for", "path"], ["版本", "用途", "路径"]);
            let columns = headings.map(Column::text);
            let mut table = Table::new(columns);
            for kernel in kernels {
                let purpose = if kernel.counts_reasons() {
                    "--truth"
                } else {
                    either("every run", "所有运行")
                };
                table.row([kernel.release, purpose.into(), kernel.path.display().to_string()]);
            }
            print(&table.render(answer_layout()))?;
        }
        Ok(0)
    }
}

/// Print the path of a kernel, for other programs.
#[derive(Args)]
pub struct KernelPath {
    /// Its release, or the beginning of it [default: the newest].
    #[arg(value_name = "RELEASE")]
    release: Option<String>,
}

impl KernelPath {
    fn run(self) -> Result<u8, Failure> {
        let kernels = fullpipe_lab::Kernel::cached()?;
        let kernel =
            fullpipe_lab::Kernel::find(&kernels, self.release.as_deref()).ok_or_else(|| {
                let asked = self.release.as_deref().unwrap_or("6.12");
                Failure::from(GuestError::NoKernel(asked.into()))
            })?;
        print(&format!("{}\n", kernel.path.display()))?;
        Ok(0)
    }
}
