//! The results directory: everything a run showed, in files that other programs read.
//!
//! ```text
//! DIR/
//!   rows.jsonl          one row a run, in the scenarios' order
//!   environment.json    machine, kernel, privilege, program
//!   sweep.json          every run that was asked for: what a later `--resume` compares with
//!   001-NAME/
//!     row.json          its row
//!     scenario.json     what was run
//!     transfer.json     how the client saw it, byte counts by interval
//!     link.json         what the link carried, dropped, and how late it was
//!     verdict.json      what limited it, interval by interval, by capture and by sockets
//!     server.samples.jsonl, client.samples.jsonl
//!     server.pcap, client.pcap      with --keep-captures
//!     link.log                      likewise: each packet and its fate, see `fullpipe_model::link::log`
//! ```
//!
//! Nothing is there half: a run's folder has a temporary name until it is complete, row and all. So the folders say which
//! runs are done, whatever order they ended in; `rows.jsonl` grows by one write a row as soon as all before it are
//! done, and is made anew from the folders when a sweep is resumed.

use crate::experiment::Outcome;
use crate::link::DirectionReport;
use crate::sweep::manifest::{Manifest, ManifestError};
use fullpipe_flow::row::Row;
use fullpipe_flow::sample::Sample;
use fullpipe_kernel::host::Host;
use fullpipe_kernel::sandbox::Privilege;
use fullpipe_model::scenario::Scenario;
use serde::Serialize;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// Why results could not be kept.
#[derive(Debug, thiserror::Error)]
pub enum ResultsError {
    /// A file or folder.
    #[error("{operation} {path}: {cause}; free some space, or choose another place with --out", path = path.display())]
    File {
        /// What was tried.
        operation: &'static str,
        /// With what.
        path: PathBuf,
        /// The kernel's answer.
        cause: std::io::Error,
    },
    /// Results of an earlier run are in the way.
    #[error("write results to {path}: there is something in it already; choose another place with --out", path = .0.display())]
    NotEmpty(PathBuf),
    /// An interrupted sweep is in the way, and it is this one.
    #[error(
        "write results to {path}: {done} of {total} runs of these scenarios are there; go on with --resume, or choose \
         another place with --out",
        path = folder.display()
    )]
    Resumable {
        /// The results directory.
        folder: PathBuf,
        /// Runs that are done.
        done: usize,
        /// Runs that were asked for.
        total: usize,
    },
    /// What is there cannot be gone on with.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
}

impl ResultsError {
    /// Whether the place was ill chosen, rather than bad.
    pub fn is_choice(&self) -> bool {
        matches!(self, ResultsError::NotEmpty(_) | ResultsError::Resumable { .. } | ResultsError::Manifest(_))
    }
}

/// Where results go.
#[derive(Debug)]
pub struct Results {
    folder: PathBuf,
    rows: File,
    /// Digits of a run's number in its folder's name.
    digits: usize,
}

/// Its row in a run's folder.
pub(crate) const ROW: &str = "row.json";
const ROWS: &str = "rows.jsonl";
const ENVIRONMENT: &str = "environment.json";
/// The ending of what is not complete.
const PART: &str = "part";

/// What stands beside every result.
#[derive(Debug, Clone, Serialize)]
pub struct Environment {
    /// The program's version.
    pub fullpipe: &'static str,
    /// The machine.
    #[serde(flatten)]
    pub host: Host,
    /// `root` or `user_namespace`.
    pub privilege: &'static str,
}

impl Environment {
    /// This machine, now.
    pub fn read(privilege: Privilege) -> Self {
        let privilege = match privilege {
            Privilege::Root => "root",
            Privilege::UserNamespace => "user_namespace",
        };
        Environment { fullpipe: env!("CARGO_PKG_VERSION"), host: Host::read(), privilege }
    }
}

/// Refuses a folder that has something in it.
pub fn check_empty(folder: &Path) -> Result<(), ResultsError> {
    if fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some()) {
        return Err(ResultsError::NotEmpty(folder.into()));
    }
    Ok(())
}

impl Results {
    /// Results of the runs of `manifest` in `folder`, which must be empty or not there yet.
    ///
    /// # Errors
    /// Where something is there already; [`ResultsError::Resumable`] where that is an unfinished sweep of the same runs.
    pub fn create(folder: &Path, environment: &Environment, manifest: &Manifest) -> Result<Results, ResultsError> {
        if let Err(error) = check_empty(folder) {
            let here = Manifest::read(folder).is_ok_and(|there| there == *manifest);
            let done = if here { manifest.finished(folder)?.iter().flatten().count() } else { 0 };
            return Err(match (here, manifest.runs.len()) {
                (true, total) => ResultsError::Resumable { folder: folder.into(), done, total },
                _ => error,
            });
        }
        fs::create_dir_all(folder).map_err(|cause| wrong("make results directory", folder, cause))?;
        manifest.write(folder)?;
        Results::open(folder, environment, manifest)
    }

    /// Results that go on where those in `folder` stopped, and the rows that are done, each at its run's place. What an
    /// interrupted run left there half is taken away. A folder with nothing in it is a beginning.
    ///
    /// # Errors
    /// Where `folder` holds something else than runs of `manifest`.
    pub fn resume(
        folder: &Path,
        environment: &Environment,
        manifest: &Manifest,
    ) -> Result<(Results, Vec<Option<Row>>), ResultsError> {
        if check_empty(folder).is_ok() {
            let results = Results::create(folder, environment, manifest)?;
            return Ok((results, vec![None; manifest.runs.len()]));
        }
        manifest.check_same(folder)?;
        let done = manifest.finished(folder)?;
        for entry in fs::read_dir(folder).map_err(|cause| wrong("read results", folder, cause))?.flatten() {
            let path = entry.path();
            if path.is_dir() && path.extension().is_some_and(|extension| extension == PART) {
                fs::remove_dir_all(&path).map_err(|cause| wrong("remove half a run", &path, cause))?;
            }
        }
        Ok((Results::open(folder, environment, manifest)?, done))
    }

    fn open(folder: &Path, environment: &Environment, manifest: &Manifest) -> Result<Results, ResultsError> {
        write_json(&folder.join(ENVIRONMENT), environment)?;
        let path = folder.join(ROWS);
        let rows = File::create(&path).map_err(|cause| wrong("write", &path, cause))?;
        Ok(Results { folder: folder.into(), rows, digits: manifest.digits() })
    }

    /// The directory.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// A new folder for run `index`, counted from 0, under its temporary name.
    pub fn begin(&mut self, index: usize, name: &str) -> Result<PathBuf, ResultsError> {
        let part = self.folder.join(format!("{}.{PART}", folder_name(index, name, self.digits)));
        fs::create_dir(&part).map_err(|cause| wrong("make results directory", &part, cause))?;
        Ok(part)
    }

    /// Takes over the files of run `index` that were made in `run`, elsewhere on this machine: moved, or copied where
    /// `run` is to `stay`.
    pub fn adopt(&mut self, index: usize, run: &Path, stay: bool, row: &Row) -> Result<(), ResultsError> {
        let part = self.begin(index, &row.name)?;
        let taken = self.take(run, &part, stay).and_then(|()| self.seal(&part, row));
        taken.inspect_err(|_| crate::discard(Some(&part)))
    }

    fn take(&self, run: &Path, part: &Path, stay: bool) -> Result<(), ResultsError> {
        let entries = fs::read_dir(run).map_err(|cause| wrong("read results", run, cause))?;
        for entry in entries {
            let from = entry.map_err(|cause| wrong("read results", run, cause))?.path();
            let to = part.join(from.file_name().unwrap_or_default());
            let copy = || fs::copy(&from, &to).map(drop);
            // Renaming does not cross file systems; copying does.
            let taken = if stay { copy() } else { fs::rename(&from, &to).or_else(|_| copy()) };
            taken.map_err(|cause| wrong("take over results", &to, cause))?;
        }
        Ok(())
    }

    /// Writes a run's files into its folder, and gives the folder its name.
    pub fn complete(
        &mut self,
        part: &Path,
        scenario: &Scenario,
        outcome: &Outcome,
        row: &Row,
    ) -> Result<(), ResultsError> {
        write_json(&part.join("scenario.json"), scenario)?;
        write_json(&part.join("transfer.json"), &outcome.received)?;
        write_json(&part.join("link.json"), &LinkFile::new(outcome))?;
        write_json(
            &part.join("verdict.json"),
            &VerdictFile {
                capture: outcome.at_server.server_to_client.verdict.as_ref(),
                sockets: outcome.by_sockets.as_ref(),
            },
        )?;
        write_lines(&part.join("server.samples.jsonl"), &outcome.server_samples)?;
        write_lines(&part.join("client.samples.jsonl"), &outcome.client_samples)?;
        self.seal(part, row)
    }

    /// Puts its row into a folder and gives the folder its name: from then on the run is done.
    fn seal(&self, part: &Path, row: &Row) -> Result<(), ResultsError> {
        write_json(&part.join(ROW), row)?;
        let named = part.with_extension("");
        fs::rename(part, &named).map_err(|cause| wrong("complete results", &named, cause))
    }

    /// Adds the next row, in the scenarios' order, to `rows.jsonl`.
    pub fn append(&mut self, row: &Row) -> Result<(), ResultsError> {
        let told = |cause| wrong("write row to", &self.folder.join(ROWS), cause);
        let mut line = serde_json::to_vec(row).map_err(|cause| told(cause.into()))?;
        line.push(b'\n');
        self.rows.write_all(&line).map_err(told)
    }
}

/// `007-b2-rtt=10ms`: sorted by name, folders are in the scenarios' order.
pub(crate) fn folder_name(index: usize, name: &str, digits: usize) -> String {
    format!("{:0digits$}-{}", index + 1, name.replace('/', "-"))
}

/// The row of the complete run whose folder is `run`; `None` where there is none.
///
/// # Errors
/// A row that is there and cannot be read.
pub fn row(run: &Path) -> Result<Option<Row>, ResultsError> {
    let path = run.join(ROW);
    match fs::read(&path) {
        Ok(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(|cause| wrong("read row", &path, cause.into())),
        Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(cause) => Err(wrong("read row", &path, cause)),
    }
}

#[derive(Serialize)]
struct VerdictFile<'a> {
    capture: Option<&'a fullpipe_flow::limit::Verdict>,
    sockets: Option<&'a fullpipe_flow::limit::Verdict>,
}

#[derive(Serialize)]
struct LinkFile {
    to_client: DirectionFile,
    to_server: DirectionFile,
    capture_dropped: u64,
    log_dropped: u64,
    port_drops: u64,
    coalesce_us: u64,
    memory_bytes: u64,
    ports: String,
}

#[derive(Serialize)]
struct DirectionFile {
    #[serde(flatten)]
    link: fullpipe_model::link::Counters,
    #[serde(flatten)]
    driver: crate::link::direction::DriverCounters,
    late_p50_us: u64,
    late_p99_us: u64,
    late_max_us: u64,
    real_time: bool,
}

impl LinkFile {
    fn new(outcome: &Outcome) -> Self {
        let direction = |report: &DirectionReport| DirectionFile {
            link: report.link,
            driver: report.driver,
            late_p50_us: report.lateness.quantile(0.5).as_micros(),
            late_p99_us: report.lateness.quantile(0.99).as_micros(),
            late_max_us: report.lateness.max().as_micros(),
            real_time: report.real_time,
        };
        let link = &outcome.link;
        LinkFile {
            to_client: direction(&link.to_client),
            to_server: direction(&link.to_server),
            capture_dropped: link.capture_dropped,
            log_dropped: link.log_dropped,
            port_drops: link.port_drops,
            coalesce_us: link.coalesce.as_micros(),
            memory_bytes: link.memory.get(),
            ports: link.port_kind.clone(),
        }
    }
}

pub(crate) fn wrong(operation: &'static str, path: &Path, cause: std::io::Error) -> ResultsError {
    ResultsError::File { operation, path: path.into(), cause }
}

pub(crate) fn write_json(path: &Path, value: &impl Serialize) -> Result<(), ResultsError> {
    let mut text = serde_json::to_vec_pretty(value).map_err(|cause| wrong("write", path, cause.into()))?;
    text.push(b'\n');
    replace(path, &text)
}

fn write_lines(path: &Path, samples: &[Sample]) -> Result<(), ResultsError> {
    let write = || -> std::io::Result<()> {
        let mut file = BufWriter::new(File::create(path)?);
        for sample in samples {
            serde_json::to_writer(&mut file, sample)?;
            file.write_all(b"\n")?;
        }
        file.flush()
    };
    write().map_err(|cause| wrong("write", path, cause))
}

/// Writes under a temporary name and renames: a reader never sees half a file.
fn replace(path: &Path, bytes: &[u8]) -> Result<(), ResultsError> {
    let mut part = path.as_os_str().to_owned();
    part.push(".part");
    let part = PathBuf::from(part);
    fs::write(&part, bytes).and_then(|()| fs::rename(&part, path)).map_err(|cause| wrong("write", path, cause))
}
