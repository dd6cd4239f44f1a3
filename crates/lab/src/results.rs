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
//!     truth.jsonl       what limited it as its kernel knew it, with --truth
//!     server.pcap, client.pcap      with --keep-captures
//!     link.log                      likewise: each packet and its fate, see `fullpipe_model::link::log`
//! ```
//!
//! Nothing is there half: a run's folder is called `part-001-NAME` until it is complete, row and
//! all. No complete one is ever called so, as those begin with a number, whatever the scenario's
//! name is. So the folders say which runs are done, whatever order they ended in; `rows.jsonl`
//! grows by one write a row as soon as all before it are done, and is made anew from the folders
//! when a sweep is resumed.
//!
//! # A boundary
//! Root runs experiments, and the directory may be one that another user can reach. Whoever could
//! swap a file in it for a symbolic link would have root write wherever the link leads. So:
//! * The directory is opened once ([`Folder`]), its last name not being a link, and must belong to
//!   this user: another user's is refused. Everything is found, made and renamed relative to that
//!   descriptor.
//! * A run's folder is made by us, with rights to write for us alone, and its descriptor is checked
//!   to be that of ours. What writes into it by a path (captures, logs) gets one through the
//!   descriptor, so no name above it matters.
//! * No file is opened for writing that was there before (`O_EXCL`); what is replaced is replaced
//!   by renaming.
//! * A directory that is made where others can write has mode 0700.
//! * Names from scenarios are names of one file each: no `/`, no control character, not too long
//!   for a file system.

mod manifest;

pub use manifest::{Manifest, ManifestError, Planned};

use crate::experiment::Outcome;
use fullpipe_flow::row::Row;
use fullpipe_flow::schema::Versioned;
use fullpipe_kernel::folder::{self, Folder, NotOurs};
use fullpipe_kernel::host::Host;
use fullpipe_kernel::sandbox::Privilege;
use fullpipe_link::DirectionReport;
use fullpipe_model::scenario::Scenario;
use serde::Serialize;
use std::ffi::OsString;
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
    /// The directory is another user's, who could have root write anywhere.
    #[error("use results directory {0}; choose another place with --out")]
    NotOurs(#[from] NotOurs),
    /// What is there cannot be gone on with.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
}

impl ResultsError {
    /// Whether the place was ill chosen, rather than bad.
    pub fn is_choice(&self) -> bool {
        !matches!(self, ResultsError::File { .. })
    }
}

/// Where results go.
#[derive(Debug)]
pub struct Results {
    folder: Folder,
    rows: File,
    /// Digits of a run's number in its folder's name.
    digits: usize,
}

/// Its row in a run's folder.
pub(crate) const ROW: &str = "row.json";
const ROWS: &str = "rows.jsonl";
const ENVIRONMENT: &str = "environment.json";
/// How the name of a run's folder begins that is not complete; complete ones begin with a digit.
const PART: &str = "part-";
/// Bytes of a scenario's name that its folder's name has at most: file systems take 255 in all.
const NAME_MAX: usize = 200;
/// Rights of a run's folder: others may look, as far as they can look into the directory.
const RUN_MODE: u32 = 0o755;

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

/// Makes a directory `name`, or `name-2`, `name-3` and so on where that is taken, in `parent`,
/// which is made where it is missing; its path. Two runs that begin at the same moment have two
/// directories.
///
/// # Errors
/// Where it cannot be made, and where `parent` is another user's.
pub fn claim(parent: &Path, name: &str) -> Result<PathBuf, ResultsError> {
    let above = make(parent)?;
    let mut number = 1;
    loop {
        let name = if number == 1 { name.into() } else { format!("{name}-{number}") };
        match above.make_folder(&name, mode_in(&above)) {
            Ok(_) => return Ok(parent.join(name)),
            Err(cause) if cause.kind() == std::io::ErrorKind::AlreadyExists => number += 1,
            Err(cause) => return Err(wrong("make results directory", &parent.join(name), cause)),
        }
    }
}

/// The directory at `path`, made where it is missing, and checked to be this user's.
fn make(path: &Path) -> Result<Folder, ResultsError> {
    let told = |cause| wrong("make results directory", path, cause);
    let plain: PathBuf = path.components().collect();
    if let (Some(name), Err(_)) = (plain.file_name(), fs::symlink_metadata(&plain)) {
        let above =
            plain.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
        fs::create_dir_all(above).map_err(told)?;
        // A person may name a directory by way of a link; what is made in it is checked.
        let above = Folder::open(&fs::canonicalize(above).map_err(told)?).map_err(told)?;
        match above.make_folder(name, mode_in(&above)) {
            Err(cause) if cause.kind() != std::io::ErrorKind::AlreadyExists => {
                return Err(told(cause));
            }
            _ => {}
        }
    }
    let folder = Folder::open(path).map_err(told)?;
    folder.check_owner()?;
    Ok(folder)
}

/// Rights of a directory made in `above`: for us alone where others can write, less the process's
/// `umask` elsewhere.
fn mode_in(above: &Folder) -> u32 {
    if above.is_shared() { 0o700 } else { 0o777 }
}

/// A run's folder under its temporary name.
#[derive(Debug)]
pub struct Part {
    folder: Folder,
    name: OsString,
}

impl Part {
    /// A path for those that write into it: through its descriptor, as long as this value lives.
    pub fn path(&self) -> PathBuf {
        self.folder.by_descriptor()
    }
}

impl Results {
    /// Results of the runs of `manifest` in `folder`, which must be empty or not there yet.
    ///
    /// # Errors
    /// Where something is there already, [`ResultsError::Resumable`] where that is an unfinished
    /// sweep of the same runs; where the directory is another user's.
    pub fn create(
        path: &Path,
        environment: &Environment,
        manifest: &Manifest,
    ) -> Result<Results, ResultsError> {
        let folder = make(path)?;
        if let Err(error) = is_empty(&folder) {
            let here = Manifest::read(&folder).is_ok_and(|there| there == *manifest);
            let done = if here { manifest.finished(&folder)?.iter().flatten().count() } else { 0 };
            return Err(match (here, manifest.runs.len()) {
                (true, total) => ResultsError::Resumable { folder: path.into(), done, total },
                _ => error,
            });
        }
        manifest.write(&folder)?;
        Results::open(folder, environment, manifest)
    }

    /// Results that go on where those in `folder` stopped, and the rows that are done, each at its
    /// run's place. What an interrupted run left there half is taken away. A folder with nothing in
    /// it is a beginning.
    ///
    /// # Errors
    /// Where `folder` holds something else than runs of `manifest`, or is another user's.
    pub fn resume(
        path: &Path,
        environment: &Environment,
        manifest: &Manifest,
    ) -> Result<(Results, Vec<Option<Row>>), ResultsError> {
        let folder = make(path)?;
        if is_empty(&folder).is_ok() {
            let results = Results::create(path, environment, manifest)?;
            return Ok((results, vec![None; manifest.runs.len()]));
        }
        manifest.check_same(&folder)?;
        let done = manifest.finished(&folder)?;
        for name in folder.names().map_err(|cause| wrong("read results", path, cause))? {
            let half = if is_part(&name) {
                folder.remove_folder(&name)
            } else if folder::is_left_over(&name) {
                folder.remove_file(&name)
            } else {
                Ok(())
            };
            half.map_err(|cause| wrong("remove half a run", &path.join(name), cause))?;
        }
        Ok((Results::open(folder, environment, manifest)?, done))
    }

    fn open(
        folder: Folder,
        environment: &Environment,
        manifest: &Manifest,
    ) -> Result<Results, ResultsError> {
        write_json(&folder, ENVIRONMENT, environment)?;
        let told = |cause| wrong("write", &folder.path().join(ROWS), cause);
        match folder.remove_file(ROWS) {
            Err(cause) if cause.kind() != std::io::ErrorKind::NotFound => return Err(told(cause)),
            _ => {}
        }
        let rows = folder.create(ROWS).map_err(told)?;
        Ok(Results { folder, rows, digits: manifest.digits() })
    }

    /// The directory.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// A new folder for run `index`, counted from 0, under its temporary name.
    pub fn begin(&mut self, index: usize, name: &str) -> Result<Part, ResultsError> {
        let name = OsString::from(format!("{PART}{}", folder_name(index, name, self.digits)));
        let folder = self.folder.make_folder(&name, RUN_MODE);
        let folder = folder
            .map_err(|cause| wrong("make results directory", &self.folder().join(&name), cause))?;
        Ok(Part { folder, name })
    }

    /// Takes away what a failed run has of its folder: there is no half of a result, and where the
    /// disk is full, its room is what is missing.
    pub(crate) fn discard(&self, part: &Part) {
        // The run's own error is the one to tell; what stays keeps its temporary name.
        let _ = self.folder.remove_folder(&part.name);
    }

    /// Takes over the files of run `index` that were made in `run`, elsewhere on this machine:
    /// moved, or copied where `run` is to `stay`.
    pub(crate) fn adopt(
        &mut self,
        index: usize,
        run: &Path,
        stay: bool,
        row: &Row,
    ) -> Result<(), ResultsError> {
        let part = self.begin(index, &row.name)?;
        let taken = take(run, &part, stay).and_then(|()| self.seal(&part, row));
        taken.inspect_err(|_| self.discard(&part))
    }

    /// Writes a run's files into its folder, and gives the folder its name.
    pub fn complete(
        &mut self,
        part: &Part,
        scenario: &Scenario,
        outcome: &Outcome,
        row: &Row,
    ) -> Result<(), ResultsError> {
        let Part { folder, .. } = part;
        write_json(folder, "scenario.json", scenario)?;
        write_json(folder, "transfer.json", &outcome.received)?;
        write_json(folder, "link.json", &LinkFile::new(outcome))?;
        let verdict = VerdictFile {
            capture: outcome.by_capture().map(|diagnosis| &diagnosis.verdict),
            sockets: outcome.by_sockets.as_ref().map(|diagnosis| &diagnosis.verdict),
        };
        write_json(folder, "verdict.json", &verdict)?;
        write_lines(folder, "server.samples.jsonl", &outcome.server_samples)?;
        write_lines(folder, "client.samples.jsonl", &outcome.client_samples)?;
        if !outcome.truth.is_empty() {
            write_lines(folder, "truth.jsonl", &outcome.truth)?;
        }
        self.seal(part, row)
    }

    /// Puts its row into a folder and gives the folder its name: from then on the run is done.
    fn seal(&self, part: &Part, row: &Row) -> Result<(), ResultsError> {
        write_json(&part.folder, ROW, row)?;
        let name = part.name.to_str().and_then(|name| name.strip_prefix(PART)).unwrap_or_default();
        let told = |cause| wrong("complete results", &self.folder().join(name), cause);
        self.folder.rename(&part.name, name).map_err(told)
    }

    /// Adds the next row, in the scenarios' order, to `rows.jsonl`.
    pub fn append(&mut self, row: &Row) -> Result<(), ResultsError> {
        let told = |cause| wrong("write row to", &self.folder.path().join(ROWS), cause);
        let mut line = serde_json::to_vec(row).map_err(|cause| told(cause.into()))?;
        line.push(b'\n');
        self.rows.write_all(&line).map_err(told)
    }
}

fn is_empty(folder: &Folder) -> Result<(), ResultsError> {
    let names = folder.names().map_err(|cause| wrong("read results", folder.path(), cause))?;
    if names.is_empty() { Ok(()) } else { Err(ResultsError::NotEmpty(folder.path().into())) }
}

/// Whether `name` is that of a run's folder that is not complete.
fn is_part(name: &std::ffi::OsStr) -> bool {
    let number = name
        .to_str()
        .and_then(|name| name.strip_prefix(PART))
        .and_then(|name| name.split_once('-'));
    number.is_some_and(|(number, _)| {
        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    })
}

fn take(run: &Path, part: &Part, stay: bool) -> Result<(), ResultsError> {
    let entries = fs::read_dir(run).map_err(|cause| wrong("read results", run, cause))?;
    for entry in entries {
        let from = entry.map_err(|cause| wrong("read results", run, cause))?.path();
        let name = from.file_name().unwrap_or_default();
        let copy =
            || std::io::copy(&mut File::open(&from)?, &mut part.folder.create(name)?).map(drop);
        // Renaming does not cross file systems; copying does.
        let taken = if stay {
            copy()
        } else {
            fs::rename(&from, part.path().join(name)).or_else(|_| copy())
        };
        taken.map_err(|cause| wrong("take over results", &part.folder.path().join(name), cause))?;
    }
    Ok(())
}

/// `007-b2-rtt=10ms`: sorted by name, folders are in the scenarios' order.
pub(crate) fn folder_name(index: usize, name: &str, digits: usize) -> String {
    let plain = name.replace(|c: char| c == '/' || c.is_control(), "-");
    let mut end = plain.len().min(NAME_MAX);
    while !plain.is_char_boundary(end) {
        end -= 1;
    }
    format!("{:0digits$}-{}", index + 1, &plain[..end])
}

/// The row of the complete run whose folder is `run`; `None` where there is none.
///
/// # Errors
/// A row that is there and cannot be read.
pub fn row(run: &Folder) -> Result<Option<Row>, ResultsError> {
    let told = |cause| wrong("read row", &run.path().join(ROW), cause);
    match run.read(ROW) {
        Ok(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(|cause| told(cause.into())),
        Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(cause) => Err(told(cause)),
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
    driver: fullpipe_link::DriverCounters,
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

/// Writes a value as the file `name` of `folder`: whole, or not at all.
pub(crate) fn write_json(
    folder: &Folder,
    name: &str,
    value: &impl Serialize,
) -> Result<(), ResultsError> {
    let written =
        serde_json::to_vec_pretty(value).map_err(std::io::Error::from).and_then(|mut text| {
            text.push(b'\n');
            folder.write_whole(name, &text)
        });
    written.map_err(|cause| wrong("write", &folder.path().join(name), cause))
}

fn write_lines(folder: &Folder, name: &str, lines: &[impl Serialize]) -> Result<(), ResultsError> {
    let write = || -> std::io::Result<()> {
        let mut file = BufWriter::new(folder.create(name)?);
        for line in lines {
            serde_json::to_writer(&mut file, &Versioned::new(line))?;
            file.write_all(b"\n")?;
        }
        file.flush()
    };
    write().map_err(|cause| wrong("write", &folder.path().join(name), cause))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

    fn manifest(names: &[&str]) -> Manifest {
        let planned =
            |name: &&str| Planned { name: name.to_string(), repetition: 1, key: "k".into() };
        Manifest { runs: names.iter().map(planned).collect() }
    }

    fn environment() -> Environment {
        Environment::read(Privilege::Root)
    }

    fn row_named(name: &str) -> Row {
        Row { name: name.into(), ..Row::default() }
    }

    fn run(results: &mut Results, index: usize, name: &str) {
        let part = results.begin(index, name).unwrap();
        results.seal(&part, &row_named(name)).unwrap();
    }

    #[test]
    fn whatever_a_scenario_is_called_its_results_outlive_a_resume() {
        let place = tempfile::tempdir().unwrap();
        let out = place.path().join("out");
        let long = "ä".repeat(300);
        let names = ["x.part", "part-1-x", ".a.1-2.part", "a\nb/c", "..", &long, "waiting"];
        let manifest = manifest(&names);
        let mut results = Results::create(&out, &environment(), &manifest).unwrap();
        for (index, name) in names[..6].iter().enumerate() {
            run(&mut results, index, name);
        }
        let half = results.begin(6, "waiting").unwrap();
        fs::write(half.path().join("row.json.1"), "half").unwrap();
        fs::write(out.join(".sweep.json.1-1.part"), "half").unwrap();
        let (_, done) = Results::resume(&out, &environment(), &manifest).unwrap();
        let told: Vec<_> =
            done.iter().map(|row| row.as_ref().map(|row| row.name.as_str())).collect();
        let expected: Vec<_> =
            names.iter().map(|&name| (name != "waiting").then_some(name)).collect();
        assert_eq!(told, expected);
        assert!(
            !out.join("part-007-waiting").exists() && !out.join(".sweep.json.1-1.part").exists()
        );
    }

    #[test]
    fn links_in_the_directory_lead_nowhere() {
        let place = tempfile::tempdir().unwrap();
        let (out, victim) = (place.path().join("out"), place.path().join("victim"));
        fs::write(&victim, "kept").unwrap();
        let manifest = manifest(&["a", "b"]);
        let mut results = Results::create(&out, &environment(), &manifest).unwrap();
        run(&mut results, 0, "a");
        for name in [ROWS, ENVIRONMENT] {
            fs::remove_file(out.join(name)).unwrap();
            symlink(&victim, out.join(name)).unwrap();
        }
        symlink(place.path(), out.join("part-002-b")).unwrap();
        let (mut results, _) = Results::resume(&out, &environment(), &manifest).unwrap();
        results.append(&row_named("a")).unwrap();
        run(&mut results, 1, "b");
        assert_eq!(fs::read_to_string(&victim).unwrap(), "kept");
        symlink(&out, place.path().join("link")).unwrap();
        let refused =
            Results::resume(&place.path().join("link"), &environment(), &manifest).unwrap_err();
        assert!(refused.to_string().contains("symbolic link"), "{refused}");
    }

    #[test]
    fn a_directory_where_others_can_write_is_made_for_us_alone_and_names_are_free() {
        let place = tempfile::tempdir().unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o7777;
        fs::set_permissions(place.path(), fs::Permissions::from_mode(0o1777)).unwrap();
        let parent = place.path().join("fullpipe-results");
        let claimed: Vec<_> = (0..3).map(|_| claim(&parent, "now").unwrap()).collect();
        assert_eq!(claimed, ["now", "now-2", "now-3"].map(|name| parent.join(name)));
        assert_eq!(mode(&parent), 0o700);
        Results::create(&place.path().join("out"), &environment(), &manifest(&["a"])).unwrap();
        assert_eq!(mode(&place.path().join("out")), 0o700);
    }

    #[test]
    #[allow(clippy::print_stderr, reason = "a skip is told to whoever reads the test's output")]
    fn another_users_directory_is_refused() {
        let place = tempfile::tempdir().unwrap();
        let out = place.path().join("out");
        fs::create_dir(&out).unwrap();
        if std::os::unix::fs::chown(&out, Some(1000), Some(1000)).is_err() {
            eprintln!("SKIPPED: giving a directory to another user takes root");
            return;
        }
        for error in [
            Results::create(&out, &environment(), &manifest(&["a"])).unwrap_err(),
            Results::resume(&out, &environment(), &manifest(&["a"])).unwrap_err(),
            claim(&out, "now").unwrap_err(),
        ] {
            assert!(error.is_choice() && error.to_string().contains("another user"), "{error}");
        }
        assert_eq!(fs::read_dir(&out).unwrap().count(), 0);
    }
}
