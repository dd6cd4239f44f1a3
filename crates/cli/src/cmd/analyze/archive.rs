//! `fullpipe analyze --parquet FOLDER`: an archive of captures becomes a folder of rows, by
//! [`fullpipe_archive`].

mod progress;

use super::Analyze;
use crate::cmd::prefixes;
use crate::cmd::stored::Stored;
use crate::failure::{Failure, Kind};
use crate::sentence::{Sentence, either};
use crate::terminal::remark;
use clap::{Args, ValueEnum};
use fullpipe_archive::{
    Archive, ArchiveError, CaptureOpener, Finished, FolderError, ManifestError, Observer,
    RowSettings, Sources, TableError, Totals,
};
use fullpipe_columnar::{Layout, RowSource};
use fullpipe_flow::schema::{CAPTURE_PROBLEMS, CaptureProblem, SCHEMA_VERSION};
use fullpipe_kernel::run::sandbox::Interrupt;
use fullpipe_model::observe::Prefixes;
use progress::ArchiveProgress;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

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
    /// Where peers are, for the rows of --rows workloads: a CSV file with a line
    /// `prefix,site[,provider,region]` for each prefix; the longest one counts.
    #[arg(long, value_name = "FILE", requires = "parquet", value_parser = prefixes::read)]
    prefixes: Option<Arc<Prefixes>>,
}

impl ArchiveOptions {
    /// Where peers are.
    pub fn prefixes(&self) -> Arc<Prefixes> {
        self.prefixes.clone().unwrap_or_default()
    }

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
        interrupt: Interrupt::on_first_ctrl_c().map_err(|error| Failure::new(Kind::Run, &error))?,
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
    let usage = |english: &str, chinese: &str| {
        let told = Sentence::new(english, chinese);
        let place = format!("analyze --parquet {}", folder.display());
        Err(Failure::new(Kind::Usage, told.of(place)))
    };
    if analyze.as_one || analyze.connection.is_some() || analyze.top.is_some() {
        return usage(
            "a folder takes all rows of many captures, so --as-one, --connection and --top do not apply; \
             give --parquet a file",
            "文件夹收取多个抓包的所有行，因此 --as-one、--connection 和 --top 不适用；请给 --parquet 一个文件",
        );
    }
    if analyze.files.iter().any(|file| file.as_os_str() == "-") {
        return usage(
            "a folder does not take a capture from standard input; --files-from - takes a list of names",
            "写入文件夹时不从标准输入读取抓包；--files-from - 从中读取文件名列表",
        );
    }
    if folder.exists() && !folder.is_dir() {
        return usage(
            "it is a file; --files-from, --resume, --problems and --rows workloads need a folder",
            "它是文件；--files-from、--resume、--problems 和 --rows workloads 需要文件夹",
        );
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
    if analyze.packets { RowSource::Packets } else { analyze.rows.into() }
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
        let problem = Sentence::new(
            format!(
                "analyze --parquet {shown}: interrupted; every capture is done with all its rows or not begun; \
                 the same with --resume goes on"
            ),
            format!(
                "analyze --parquet {shown}：已中断；每个抓包要么连同所有行都已完成，要么尚未开始；同一命令加 --resume 继续"
            ),
        );
        return Err(Failure::new(Kind::Interrupted, problem));
    }
    let failed = |error: ManifestError| of_folder(folder, &error.into());
    let totals = finished.close().map_err(failed)?;
    if totals.captures == 0 {
        let problem = Sentence::new(
            format!("analyze --parquet {shown}: nothing that was named has a file"),
            format!("analyze --parquet {shown}：给出的名字之下没有文件"),
        );
        return Err(Failure::new(Kind::Input, problem));
    }
    let changed = std::mem::take(&mut finished.changed);
    if let Some(file) = &analyze.archive.problems {
        store_problems(file, finished.problems().map_err(failed)?, &changed)?;
    } else {
        for name in changed.keys() {
            let told = either(
                has_changed(name),
                format!("{name}：它在分析之后改变了；其行属于原来的内容"),
            );
            remark(&format!("fullpipe: {told}"));
        }
    }
    let words = either(in_words(totals, changed.len()), in_words_zh(totals, changed.len()));
    remark(&format!("fullpipe: {shown}: {words}"));
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

fn in_words_zh(totals: Totals, changed: usize) -> String {
    let Totals { captures, problems, rows } = totals;
    let mut words = format!("{captures} 个抓包的 {rows} 行");
    if problems > 0 {
        words += &format!("；其中 {problems} 个未读到末尾");
    }
    if changed > 0 {
        words += &format!("；{changed} 个在分析之后改变了");
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
    let told = Sentence::from(error);
    let into = Sentence::new(format!("write rows into {shown}"), format!("向 {shown} 写入行"));
    let (kind, place, advice) = match error {
        FolderError::HoldsSomethingElse => {
            return Failure::new(
                Kind::Usage,
                Sentence::new(
                    format!(
                        "write rows into {shown}: it holds something else; --parquet takes a new or empty folder, or with \
                         --resume one of earlier rows"
                    ),
                    format!(
                        "向 {shown} 写入行：其中是别的东西；--parquet 需要新的或空的文件夹，或配合 --resume 用早先的"
                    ),
                ),
            );
        }
        FolderError::PartMissing(_) => {
            let place = Sentence::new(
                format!("resume the rows in {shown}"),
                format!("续写 {shown} 中的行"),
            );
            (Kind::Input, place, None)
        }
        FolderError::Folder(_) | FolderError::Manifest(ManifestError::File(_)) => {
            let advice = Sentence::new(
                "give --parquet a folder that can be written, on a disk with free space; --resume goes on",
                "请给 --parquet 一个可写的文件夹，且磁盘有空间；--resume 继续",
            );
            (Kind::Run, into, Some(advice))
        }
        FolderError::Manifest(ManifestError::Damaged { .. }) => (Kind::Input, into, None),
        FolderError::Manifest(ManifestError::Exists) => {
            let advice = Sentence::new("--resume goes on with that run", "--resume 继续那次运行");
            (Kind::Usage, into, Some(advice))
        }
        FolderError::Manifest(ManifestError::Busy | ManifestError::Other(_)) => {
            (Kind::Usage, into, None)
        }
    };
    let problem = place.and(&told);
    Failure::new(
        kind,
        match advice {
            Some(advice) => Sentence::joined(&[problem, advice]),
            None => problem,
        },
    )
}

fn not_written(error: &TableError) -> Failure {
    let problem = Sentence::new(
        format!(
            "write {error}; give --parquet a folder that can be written, on a disk with free space; --resume goes on"
        ),
        format!("写入 {error}；请给 --parquet 一个可写的文件夹，且磁盘有空间；--resume 继续"),
    );
    Failure::new(Kind::Run, problem)
}

fn not_listed(analyze: &Analyze, error: &std::io::Error) -> Failure {
    let list = analyze.archive.files_from.as_deref().unwrap_or(Path::new("-")).display();
    let problem = Sentence::new(
        format!("read the list of --files-from {list}: {error}; it has a name a line"),
        format!("读取 --files-from {list} 的列表：{error}；每行一个文件名"),
    );
    Failure::new(Kind::Input, problem)
}
