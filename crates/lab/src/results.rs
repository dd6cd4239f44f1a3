//! The results directory: everything a run showed, in files that other programs read.
//!
//! ```text
//! DIR/
//!   rows.jsonl          one row a run
//!   environment.json    machine, kernel, privilege, program
//!   001-NAME/
//!     scenario.json     what was run
//!     transfer.json     how the client saw it, byte counts by interval
//!     link.json         what the link carried, dropped, and how late it was
//!     verdict.json      what limited it, interval by interval, by capture and by sockets
//!     server.samples.jsonl, client.samples.jsonl
//!     server.pcap, client.pcap      with --keep-captures
//! ```
//!
//! Nothing is there half: a run's folder has a temporary name until it is complete, and `rows.jsonl` is replaced whole.

use crate::experiment::Outcome;
use crate::link::driver::DirectionReport;
use fullpipe_flow::row::Row;
use fullpipe_flow::sample::Sample;
use fullpipe_kernel::host::Host;
use fullpipe_kernel::sandbox::Privilege;
use fullpipe_model::scenario::Scenario;
use serde::Serialize;
use std::fs;
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
}

/// Where results go.
#[derive(Debug)]
pub struct Results {
    folder: PathBuf,
    rows: Vec<u8>,
    count: usize,
}

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
    /// Results in `folder`, which must be empty or not there yet.
    pub fn create(folder: &Path, environment: &Environment) -> Result<Results, ResultsError> {
        check_empty(folder)?;
        fs::create_dir_all(folder).map_err(|cause| wrong("make results directory", folder, cause))?;
        let results = Results { folder: folder.into(), rows: Vec::new(), count: 0 };
        write_json(&results.folder.join("environment.json"), environment)?;
        Ok(results)
    }

    /// The directory.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// A new folder for the next run, under its temporary name.
    pub fn begin(&mut self, name: &str) -> Result<PathBuf, ResultsError> {
        self.count += 1;
        let part = self.folder.join(format!("{:03}-{}.part", self.count, name.replace('/', "-")));
        fs::create_dir(&part).map_err(|cause| wrong("make results directory", &part, cause))?;
        Ok(part)
    }

    /// Takes over the folder `run` of a run that was made elsewhere on this machine, and adds its row.
    pub fn adopt(&mut self, run: &Path, name: &str, row: &Row) -> Result<(), ResultsError> {
        let part = self.begin(name)?;
        let entries = fs::read_dir(run).map_err(|cause| wrong("read results", run, cause))?;
        for entry in entries {
            let from = entry.map_err(|cause| wrong("read results", run, cause))?.path();
            let to = part.join(from.file_name().unwrap_or_default());
            // Renaming does not cross file systems; copying does.
            let taken = fs::rename(&from, &to).or_else(|_| fs::copy(&from, &to).map(drop));
            taken.map_err(|cause| wrong("take over results", &to, cause))?;
        }
        self.seal(&part, row)
    }

    /// Writes a run's files into its folder, gives the folder its name, and adds the row.
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

    /// Gives a complete folder its name and adds its row.
    fn seal(&mut self, part: &Path, row: &Row) -> Result<(), ResultsError> {
        let named = part.with_extension("");
        fs::rename(part, &named).map_err(|cause| wrong("complete results", &named, cause))?;
        let mut line = serde_json::to_vec(row).map_err(|cause| wrong("write row to", &named, cause.into()))?;
        line.push(b'\n');
        self.rows.extend(line);
        replace(&self.folder.join("rows.jsonl"), &self.rows)
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
            port_drops: link.port_drops,
            coalesce_us: link.coalesce.as_micros(),
            memory_bytes: link.memory.get(),
            ports: link.port_kind.clone(),
        }
    }
}

fn wrong(operation: &'static str, path: &Path, cause: std::io::Error) -> ResultsError {
    ResultsError::File { operation, path: path.into(), cause }
}

fn write_json(path: &Path, value: &impl Serialize) -> Result<(), ResultsError> {
    let mut text = serde_json::to_vec_pretty(value).map_err(|cause| wrong("write", path, cause.into()))?;
    text.push(b'\n');
    replace(path, &text)
}

fn write_lines(path: &Path, samples: &[Sample]) -> Result<(), ResultsError> {
    let write = || -> std::io::Result<()> {
        let mut file = BufWriter::new(fs::File::create(path)?);
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
