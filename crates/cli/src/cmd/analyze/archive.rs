//! `fullpipe analyze --parquet FOLDER`: an archive of captures becomes a folder of rows, by
//! [`fullpipe_archive`].

mod progress;

use super::Analyze;
use crate::cmd::stored::Stored;
use crate::failure::{Failure, Kind};
use crate::terminal::remark;
use clap::{Args, ValueEnum};
use fullpipe_archive::{
    Archive, ArchiveError, CaptureOpener, Finished, FolderError, ManifestError, Observer,
    RowSettings, Sources, TableError, Totals,
};
use fullpipe_columnar::{Layout, RowSource};
use fullpipe_flow::schema::{CAPTURE_PROBLEMS, CaptureProblem, SCHEMA_VERSION};
use fullpipe_kernel::run::sandbox::Interrupt;
use progress::ArchiveProgress;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What concerns an archive only.
#[derive(Args)]
pub struct ArchiveOptions {
    /// Analyse the captures and folders that FILE names, one a line; `-` is standard input. The
    /// rows go into the folder of --parquet.
    #[arg(long, value_name = "FILE", requires = "parquet")]
    files_from: Option<PathBuf>,
    /// Go on with the rows in the folder of --parquet: what is done there is not done again.
    #[arg(long, requires = "parquet")]
    resume: bool,
    /// Write a row for each capture that was not read to its end to the Parquet file FILE, in place
    /// of a line on standard error.
    #[arg(long, value_name = "FILE", requires = "parquet")]
    problems: Option<PathBuf>,
}

impl ArchiveOptions {
    /// Whether `target` of --parquet is a folder of rows, and no file.
    pub fn wants_folder(&self, target: &Path) -> bool {
        let is_asked = self.files_from.is_some() || self.resume || self.problems.is_some();
        is_asked || target.as_os_str().as_encoded_bytes().ends_with(b"/") || target.is_dir()
    }
}

/// Analyses an archive into `folder`.
pub fn run(analyze: &Analyze, folder: &Path) -> Result<u8, Failure> {
    check(analyze, folder)?;
    let options = &analyze.archive;
    let sources = Sources { named: analyze.files.clone(), listed: options.files_from.clone() };
    // A list that is not there must not leave a folder behind.
    let list = sources.list().map_err(|error| not_listed(analyze, &error))?;
    let archive = Archive::open(folder, &settings(analyze), options.resume)
        .map_err(|error| of_folder(folder, &error))?;
    let watch = Watch {
        interrupt: Interrupt::on_first_ctrl_c().map_err(|error| Failure::new(Kind::Run, error))?,
        progress: ArchiveProgress::new(|| archive.bytes_left(&sources)),
        tells_problems: options.problems.is_none(),
    };
    let kind = kind_of(analyze);
    let threads = analyze.reading.threads;
    let finished = archive.run(list, kind, &analyze.options(), threads, &watch);
    watch.progress.finish();
    end(analyze, folder, finished.map_err(|error| failure(analyze, folder, error))?)
}

/// Refuses options that mean one capture.
fn check(analyze: &Analyze, folder: &Path) -> Result<(), Failure> {
    let usage = |what: &str| {
        let folder = folder.display();
        Err(Failure::new(Kind::Usage, format!("analyze --parquet {folder}: {what}")))
    };
    if analyze.as_one || analyze.connection.is_some() || analyze.top.is_some() {
        return usage(
            "a folder takes all rows of many captures, so --as-one, --connection and --top do not apply; \
             give --parquet a file",
        );
    }
    if analyze.files.iter().any(|file| file.as_os_str() == "-") {
        return usage(
            "a folder does not take a capture from standard input; --files-from - takes a list of names",
        );
    }
    if folder.exists() && !folder.is_dir() {
        return usage("it is a file; --files-from, --resume and --problems need a folder");
    }
    Ok(())
}

/// How the rows are made, for the manifest.
fn settings(analyze: &Analyze) -> RowSettings {
    let labels = analyze.labels.to_possible_value();
    let labels = labels.as_ref().map_or("", |labels| labels.get_name());
    RowSettings {
        fullpipe: env!("CARGO_PKG_VERSION").into(),
        schema: SCHEMA_VERSION,
        rows: kind_of(analyze).name().into(),
        options: format!("--labels {labels} {}", analyze.reading.words()),
    }
}

fn kind_of(analyze: &Analyze) -> RowSource {
    if analyze.packets { RowSource::Packets } else { RowSource::Connection(analyze.rows.into()) }
}

/// The terminal's side of a run: Ctrl-C ends it, a bar shows it.
struct Watch {
    interrupt: Interrupt,
    progress: ArchiveProgress,
    /// Whether problems are lines on standard error.
    tells_problems: bool,
}

impl Observer for Watch {
    fn is_to_end(&self) -> bool {
        self.interrupt.is_set()
    }

    fn opener(&self) -> CaptureOpener {
        self.progress.opener()
    }

    fn analysed(&self) {
        self.progress.count();
    }

    fn problem(&self, problem: &str) {
        if self.tells_problems {
            self.progress.with_bar_hidden(|| remark(&format!("fullpipe: {problem}")));
        }
    }
}

/// What is to be said when all threads have ended.
fn end(analyze: &Analyze, folder: &Path, mut finished: Finished) -> Result<u8, Failure> {
    let shown = folder.display();
    if finished.was_ended {
        let problem = format!(
            "analyze --parquet {shown}: interrupted; every capture is done with all its rows or not begun; \
             the same with --resume goes on"
        );
        return Err(Failure::new(Kind::Interrupted, problem));
    }
    let failed = |error: ManifestError| of_folder(folder, &error.into());
    let totals = finished.close().map_err(failed)?;
    if totals.captures == 0 {
        let problem = format!("analyze --parquet {shown}: nothing that was named has a file");
        return Err(Failure::new(Kind::Input, problem));
    }
    let changed = std::mem::take(&mut finished.changed);
    if let Some(file) = &analyze.archive.problems {
        store_problems(file, finished.problems().map_err(failed)?, &changed)?;
    } else {
        changed.keys().for_each(|name| remark(&format!("fullpipe: {}", has_changed(name))));
    }
    remark(&format!("fullpipe: {shown}: {}", in_words(totals, changed.len())));
    let is_whole = totals.problems == 0 && changed.is_empty();
    Ok(Analyze::code(is_whole))
}

fn has_changed(name: &str) -> String {
    format!("{name}: it changed after it was analysed; its rows are of what it was")
}

/// Writes a row for each problem.
fn store_problems(
    file: &Path,
    mut problems: BTreeMap<String, (String, u64)>,
    changed: &BTreeMap<String, u64>,
) -> Result<(), Failure> {
    problems.extend(changed.iter().map(|(name, rows)| (name.clone(), (has_changed(name), *rows))));
    let mut stored = Stored::new(file, &Layout::of(CAPTURE_PROBLEMS))?;
    for (name, (problem, rows)) in &problems {
        let row = CaptureProblem { file: name, problem, rows: *rows };
        stored.row(Layout::cells(CAPTURE_PROBLEMS, &row))?;
    }
    stored.finish()
}

fn in_words(totals: Totals, changed: usize) -> String {
    let Totals { captures, problems, rows } = totals;
    let mut words = format!("{rows} rows of {captures} captures");
    if problems > 0 {
        words += &format!("; {problems} of them were not read to their ends");
    }
    if changed > 0 {
        words += &format!("; {changed} changed after they were analysed");
    }
    words
}

fn failure(analyze: &Analyze, folder: &Path, error: ArchiveError) -> Failure {
    match error {
        ArchiveError::List(cause) => not_listed(analyze, &cause),
        ArchiveError::Folder(error) => of_folder(folder, &error),
        ArchiveError::Table(error) => not_written(&error),
    }
}

/// A problem of the folder as a failure.
fn of_folder(folder: &Path, error: &FolderError) -> Failure {
    let shown = folder.display();
    let (kind, problem) = match error {
        FolderError::HoldsSomethingElse => (
            Kind::Usage,
            format!(
                "write rows into {shown}: it holds something else; --parquet takes a new or empty folder, or with \
                 --resume one of earlier rows"
            ),
        ),
        FolderError::PartMissing(_) => {
            (Kind::Input, format!("resume the rows in {shown}: {error}"))
        }
        FolderError::Folder(_) | FolderError::Manifest(ManifestError::File(_)) => (
            Kind::Run,
            format!(
                "write rows into {shown}: {error}; give --parquet a folder that can be written, on a disk with free \
                 space; --resume goes on"
            ),
        ),
        FolderError::Manifest(ManifestError::Damaged { .. }) => {
            (Kind::Input, format!("write rows into {shown}: {error}"))
        }
        FolderError::Manifest(ManifestError::Exists) => (
            Kind::Usage,
            format!("write rows into {shown}: {error}; --resume goes on with that run"),
        ),
        FolderError::Manifest(ManifestError::Busy | ManifestError::Other(_)) => {
            (Kind::Usage, format!("write rows into {shown}: {error}"))
        }
    };
    Failure::new(kind, problem)
}

fn not_written(error: &TableError) -> Failure {
    let problem = format!(
        "write {error}; give --parquet a folder that can be written, on a disk with free space; --resume goes on"
    );
    Failure::new(Kind::Run, problem)
}

fn not_listed(analyze: &Analyze, error: &std::io::Error) -> Failure {
    let list = analyze.archive.files_from.as_deref().unwrap_or(Path::new("-")).display();
    let problem = format!("read the list of --files-from {list}: {error}; it has a name a line");
    Failure::new(Kind::Input, problem)
}
