//! `fullpipe lab kernel pack` and `install`: guest kernels for machines without a compiler.

use crate::cmd::report::not_written;
use crate::failure::{Failure, Kind};
use crate::sentence::{Sentence, either};
use crate::terminal::{print, print_json, remark};
use clap::Args;
use fullpipe_kernel::file::folder::write_into;
use fullpipe_lab::{InstallError, install_kernels, pack_kernels};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// What `sha256sum` writes, and a release has.
const SUMS: &str = "SHA256SUMS";

/// Write the kernels of the cache into one file, for other machines, and print its SHA-256.
///
/// Of each release the one that was built last. Kernels with --truth are left out.
#[derive(Args)]
#[command(after_help = "\
Examples:
  fullpipe lab kernel pack
  fullpipe lab kernel pack -o guests.tar.gz        then, elsewhere:
  fullpipe lab kernel install guests.tar.gz --sha256 DIGEST")]
pub struct Pack {
    /// The file to write; one that exists is replaced.
    #[arg(short, long, value_name = "FILE", default_value = "fullpipe-guests.tar.gz")]
    output: PathBuf,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// The JSON of `lab kernel pack`.
#[derive(Serialize)]
struct PackDocument {
    file: PathBuf,
    sha256: String,
    releases: Vec<String>,
}

impl Pack {
    pub fn run(self) -> Result<u8, Failure> {
        let mut kernels = fullpipe_lab::Kernel::cached()?;
        kernels.retain(|kernel| !kernel.counts_reasons());
        // The first of a release is the one that runs here; the others had another configuration.
        kernels.dedup_by(|next, first| next.release == first.release);
        if kernels.is_empty() {
            let problem = Sentence::new(
                "pack kernels: none is built; build them: fullpipe lab kernel build",
                "打包内核：还没有构建；请构建：fullpipe lab kernel build",
            );
            return Err(Failure::new(Kind::Missing, problem));
        }
        let file = self.output;
        let (bytes, sha256) = pack_kernels(&kernels).map_err(|cause| {
            let what = Sentence::new("read the kernels of the cache", "读取缓存中的内核");
            Failure::new(Kind::Run, what.with(cause))
        })?;
        write_into(&file, &bytes)
            .map_err(|cause| Failure::new(Kind::Run, not_written(&file, &cause)))?;
        let releases: Vec<String> = kernels.into_iter().map(|kernel| kernel.release).collect();
        if self.json {
            print_json(&PackDocument { file, sha256, releases })?;
            return Ok(0);
        }
        let length = bytes.len();
        remark(&either(
            format!("Linux {}, {length} bytes:", releases.join(" and ")),
            format!("Linux {}，{length} 字节：", releases.join("、")),
        ));
        print(&format!("{sha256}  {}\n", file.display()))?;
        Ok(0)
    }
}

/// Put the kernels of a packed file into the cache: no compiler is needed.
///
/// A kernel is a program that will run here, so the file's SHA-256 must be known: from --sha256, or
/// from SHA256SUMS beside the file. Kernels that are there already stay.
#[derive(Args)]
#[command(after_help = "\
Examples:
  fullpipe lab kernel install fullpipe-guests-0.1.0-x86_64-linux.tar.zst     beside SHA256SUMS
  fullpipe lab kernel install guests.tar.gz --sha256 DIGEST")]
pub struct Install {
    /// What `fullpipe lab kernel pack` wrote.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Its SHA-256, as `lab kernel pack` and `sha256sum` print it.
    #[arg(long, value_name = "DIGEST")]
    sha256: Option<String>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// The JSON of `lab kernel install`.
#[derive(Serialize)]
struct InstallDocument {
    installed: Vec<Installed>,
}

#[derive(Serialize)]
struct Installed {
    release: String,
    key: String,
    path: PathBuf,
}

impl Install {
    pub fn run(self) -> Result<u8, Failure> {
        let expected = match self.sha256 {
            Some(digest) if digest.len() == 64 && digest.bytes().all(|b| b.is_ascii_hexdigit()) => {
                digest
            }
            Some(digest) => {
                let problem = Sentence::new(
                    format!(
                        "--sha256 '{digest}': must have 64 hexadecimal digits, as sha256sum prints them"
                    ),
                    format!("--sha256 '{digest}'：须为 64 位十六进制数，如 sha256sum 所示"),
                );
                return Err(Failure::new(Kind::Usage, problem));
            }
            None => digest_beside(&self.file)?,
        };
        let kernels = install_kernels(&self.file, &expected)?;
        if self.json {
            let installed = kernels.into_iter().map(|kernel| Installed {
                release: kernel.release,
                key: kernel.key,
                path: kernel.path,
            });
            print_json(&InstallDocument { installed: installed.collect() })?;
            return Ok(0);
        }
        for kernel in kernels {
            remark(&format!("Linux {}:", kernel.release));
            print(&format!("{}\n", kernel.path.display()))?;
        }
        Ok(0)
    }
}

/// The digest that SHA256SUMS in the same folder has for `file`.
fn digest_beside(file: &Path) -> Result<String, Failure> {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let sums = file.with_file_name(SUMS);
    let text = std::fs::read_to_string(&sums).unwrap_or_default();
    // `-b` puts a star before the name.
    let found = text.lines().find_map(|line| {
        let (digest, of) = line.split_once(' ')?;
        (of.trim_start_matches([' ', '*']) == name).then(|| digest.to_owned())
    });
    found.ok_or_else(|| {
        let file = file.display();
        let problem = Sentence::new(
            format!(
                "install kernels from {file}: nobody says what its digest is, and kernels are programs that \
                 would run here; give --sha256 DIGEST, or put the release's {SUMS} beside it"
            ),
            format!(
                "从 {file} 安装内核：不知道它的摘要，而内核是会在这里运行的程序；请给出 --sha256 DIGEST，或把发布版的 \
                 {SUMS} 放在旁边"
            ),
        );
        Failure::new(Kind::Input, problem)
    })
}

impl From<InstallError> for Failure {
    fn from(error: InstallError) -> Self {
        let kind = match &error {
            InstallError::Read { .. }
            | InstallError::Digest { .. }
            | InstallError::Content { .. } => Kind::Input,
            InstallError::NoCache | InstallError::Cache(_) => Kind::Missing,
        };
        Failure::new(kind, &error)
    }
}
