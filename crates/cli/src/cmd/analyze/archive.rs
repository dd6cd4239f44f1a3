//! `fullpipe analyze --parquet FOLDER`: an archive of captures becomes a folder of rows.
//!
//! [`list`] finds the captures, [`groups`] puts them into groups, and each thread takes a group
//! after another: it analyses the captures one by one, writes their rows into the group's own
//! [`parts`], and commits the group in the [`manifest`]. A capture that cannot be read is a line of
//! the manifest and never the end of the run. Whenever a run ends, by a signal or a full disk, each
//! capture is in the manifest with all its rows, or not at all; `--resume` goes on.
//!
//! Each capture is read by one thread, however large it is.

mod folder;
mod groups;
mod list;
mod manifest;
mod parts;
mod progress;

use super::Analyze;
use crate::cmd::stored::Stored;
use crate::failure::{Failure, Kind};
use crate::terminal::remark;
use clap::{Args, ValueEnum};
use folder::of_folder;
use fullpipe_analyze::{Error, Options, what_is_missing};
use fullpipe_columnar::{Layout, RowKind};
use fullpipe_flow::Counts;
use fullpipe_flow::schema::{CAPTURE_PROBLEMS, CaptureProblem, PACKETS, SCHEMA_VERSION};
use fullpipe_kernel::sandbox::Interrupt;
use groups::{Group, Groups, text_of};
use list::{Found, Sources, Unusable};
use manifest::{Capture, Commit, Manifest, Settings, Totals};
use parts::{PartError, Parts};
use progress::Progress;
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

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
    let list = sources.list().map_err(|error| not_listed(analyze, &error))?;
    let (manifest, done) = folder::open(folder, &settings(analyze), options.resume)?;
    let interrupt = Interrupt::on_first_ctrl_c().map_err(|error| Failure::new(Kind::Run, error))?;
    let progress = Progress::new(&sources, folder, &done);
    let job = Job {
        analyze,
        folder,
        layout: if analyze.packets { Layout::of(PACKETS) } else { kind_of(analyze).layout() },
        options: Options { threads: NonZeroUsize::MIN, ..analyze.options() },
        groups: Mutex::new(Groups::new(list.without(folder), done)),
        manifest: Mutex::new(manifest),
        progress,
        interrupt,
        failure: Mutex::new(None),
    };
    std::thread::scope(|scope| {
        for _ in 0..analyze.reading.threads.get() {
            scope.spawn(|| job.work());
        }
    });
    job.progress.finish();
    folder::leave(folder);
    job.end()
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
fn settings(analyze: &Analyze) -> Settings {
    let labels = analyze.labels.to_possible_value();
    let labels = labels.as_ref().map_or("", |labels| labels.get_name());
    Settings {
        fullpipe: env!("CARGO_PKG_VERSION").into(),
        schema: SCHEMA_VERSION,
        rows: if analyze.packets { "packets" } else { kind_of(analyze).name() }.into(),
        options: format!("--labels {labels} {}", analyze.reading.words()),
    }
}

fn kind_of(analyze: &Analyze) -> RowKind {
    analyze.rows.into()
}

/// What all threads share.
struct Job<'a> {
    analyze: &'a Analyze,
    folder: &'a Path,
    layout: Layout,
    options: Options,
    groups: Mutex<Groups>,
    manifest: Mutex<Manifest>,
    progress: Progress,
    interrupt: Interrupt,
    /// The first failure, which ends all threads.
    failure: Mutex<Option<Failure>>,
}

/// What a thread holds is consistent between any two statements, so a panic elsewhere is no reason
/// to panic here.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Job<'_> {
    /// Analyses groups until none is left, or the run ends early.
    fn work(&self) {
        while !self.ends() {
            let group = lock(&self.groups).next_group();
            let group = group.map_err(|error| not_listed(self.analyze, &error));
            let done = match group {
                Ok(Some(group)) => self.group(group),
                Ok(None) => return,
                Err(failure) => Err(failure),
            };
            if let Err(failure) = done {
                lock(&self.failure).get_or_insert(failure);
            }
        }
    }

    /// Whether the run ends before its time.
    fn ends(&self) -> bool {
        self.interrupt.is_set() || lock(&self.failure).is_some()
    }

    /// Analyses a group and commits it; does neither if the run ends meanwhile.
    fn group(&self, group: Group) -> Result<(), Failure> {
        let word = group.word();
        let mut parts = Parts::new(self.folder, &self.layout, &word);
        let mut captures: Vec<_> = group.unusable.into_iter().map(unusable).collect();
        for found in group.captures {
            let Some(capture) = self.capture(found, &mut parts)? else { return Ok(()) };
            captures.push(capture);
            self.progress.count();
        }
        if self.analyze.archive.problems.is_none() {
            for problem in captures.iter().filter_map(|capture| capture.problem.as_ref()) {
                self.progress.with_bar_hidden(|| remark(&format!("fullpipe: {problem}")));
            }
        }
        let parts = parts.finish().map_err(not_written)?;
        lock(&self.manifest)
            .commit(Commit { captures, parts })
            .map_err(|cause| of_folder(self.folder, &cause.into()))
    }

    /// Analyses a capture; `None` if the run ends meanwhile.
    fn capture(&self, found: Found, parts: &mut Parts<'_>) -> Result<Option<Capture>, Failure> {
        let name = text_of(&found.path);
        let capture = fullpipe_analyze::Capture::file(found.path)
            .or_recording()
            .opened_by(self.progress.opener());
        let read = if self.analyze.packets {
            self.packets(capture, &name, parts)
        } else {
            self.connections(capture, &name, parts)
        };
        let (bytes, modified_ns) = (found.bytes, found.modified_ns);
        let stored = |(rows, problem)| Capture { file: name, bytes, modified_ns, rows, problem };
        Ok(read.map_err(not_written)?.map(stored))
    }

    /// Writes the connections of a capture; returns the number of rows, and the problem.
    fn connections(
        &self,
        capture: fullpipe_analyze::Capture,
        name: &str,
        parts: &mut Parts<'_>,
    ) -> Result<Option<(u64, Option<String>)>, PartError> {
        let mut rows = 0;
        let kind = kind_of(self.analyze);
        let mut connections = if kind.needs_findings() {
            capture.connections(&self.options)
        } else {
            capture.connections_without_findings(&self.options)
        };
        while let Some(round) = connections.next_round() {
            if self.ends() {
                return Ok(None);
            }
            for diagnosed in &round {
                let start = diagnosed.connection.start;
                kind.rows(name, diagnosed, |cells| {
                    rows += 1;
                    parts.row(start, cells)
                })?;
            }
        }
        let (counts, errors) = connections.finish();
        Ok(Some((rows, what_is_missing(name, &counts, &errors))))
    }

    /// Writes the packets of a capture; returns the number of rows, and the problem.
    fn packets(
        &self,
        capture: fullpipe_analyze::Capture,
        name: &str,
        parts: &mut Parts<'_>,
    ) -> Result<Option<(u64, Option<String>)>, PartError> {
        let (mut rows, mut errors) = (0_u64, Vec::new());
        for packet in capture.labelled_packets(&self.options) {
            match packet {
                Ok(packet) => {
                    let row = packet.row(name);
                    parts.row(row.at, Layout::cells(PACKETS, &row))?;
                    rows += 1;
                }
                Err(error) => errors.push(error),
            }
            if rows % (1 << 12) == 0 && self.ends() {
                return Ok(None);
            }
        }
        Ok(Some((rows, what_is_missing(name, &Counts::default(), &errors))))
    }

    /// What is to be said when all threads have ended.
    fn end(self) -> Result<u8, Failure> {
        if let Some(failure) = lock(&self.failure).take() {
            return Err(failure);
        }
        let folder = self.folder.display();
        if self.interrupt.is_set() {
            let problem = format!(
                "analyze --parquet {folder}: interrupted; every capture is done with all its rows or not begun; \
                 the same with --resume goes on"
            );
            return Err(Failure::new(Kind::Interrupted, problem));
        }
        let changed = self.groups.into_inner().unwrap_or_else(PoisonError::into_inner);
        let changed = changed.into_changed();
        let mut manifest = self.manifest.into_inner().unwrap_or_else(PoisonError::into_inner);
        let totals = manifest.close().map_err(|error| of_folder(self.folder, &error))?;
        if totals.captures == 0 {
            let problem = format!("analyze --parquet {folder}: nothing that was named has a file");
            return Err(Failure::new(Kind::Input, problem));
        }
        if let Some(file) = &self.analyze.archive.problems {
            let problems = manifest.problems().map_err(|error| of_folder(self.folder, &error))?;
            store_problems(file, problems, &changed)?;
        } else {
            changed.keys().for_each(|name| remark(&format!("fullpipe: {}", has_changed(name))));
        }
        remark(&format!("fullpipe: {folder}: {}", in_words(totals, changed.len())));
        let is_whole = totals.problems == 0 && changed.is_empty();
        Ok(Analyze::code(is_whole))
    }
}

/// A name that leads to no capture, as the manifest has it.
fn unusable(name: Unusable) -> Capture {
    let file = text_of(&name.path);
    let problem = Error::Open { path: name.path, cause: name.cause }.to_string();
    Capture { file, bytes: 0, modified_ns: 0, rows: 0, problem: Some(problem) }
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

fn not_written(error: PartError) -> Failure {
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
