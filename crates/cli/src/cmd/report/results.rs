//! A report on results of the lab.

use super::{empty, worst_first};
use crate::failure::{Failure, Kind};
use crate::sentence::{Sentence, either};
use crate::terminal::remark;
use fullpipe_analyze::{Capture, Options};
use fullpipe_flow::Config;
use fullpipe_flow::schema::RunRow;
use fullpipe_flow::trace::{Owner, SocketSeries, TraceBounds};
use fullpipe_link::LogFile;
use fullpipe_model::link::log::Direction;
use fullpipe_model::observe::Sample;
use fullpipe_model::units::Instant;
use fullpipe_report::page::{
    ComparedPart, InputKind as Content, Lab, LinkQueue, Page, Shortlist, ShownConnection, Source,
    curves,
};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

/// Reads folders of results for a report. A folder is that of a sweep, or of one run.
///
/// # Errors
/// A folder has no results, or they cannot be read.
pub fn page(folders: &[PathBuf]) -> Result<Page, Failure> {
    let names: Vec<_> = folders.iter().map(|folder| folder.display().to_string()).collect();
    let mut page = empty(names.join(", "), Content::Lab);
    let mut rows = Vec::new();
    for folder in folders {
        let runs = runs(folder)?;
        if runs.is_empty() {
            return Err(wrong(folder, &Sentence::new("there is no run in it", "其中没有运行")));
        }
        for run in runs {
            add(&mut page, &mut rows, &run)?;
        }
    }
    if page.connections.is_empty() {
        remark(either(
            "fullpipe: there are no captures in these results, so the report has no graphs; \
             `lab run --keep-captures` keeps them",
            "fullpipe: 这些结果中没有抓包，因此报告没有图表；`lab run --keep-captures` 会保留它们",
        ));
    }
    mark_parts(&mut page, &rows);
    worst_first(&mut page.connections);
    let curves = curves(&rows);
    page.lab = Some(Lab { runs: rows, curves, plan: Vec::new() });
    Ok(page)
}

/// The folders of the complete runs in all of these folders.
///
/// # Errors
/// A folder cannot be read.
pub fn runs_of(folders: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut all = Vec::new();
    for folder in folders {
        all.extend(runs(folder)?);
    }
    Ok(all)
}

/// The folders of the complete runs in `folder`, in the order of their numbers.
fn runs(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    if folder.join(ROW).is_file() {
        return Ok(vec![folder.into()]);
    }
    let entries = std::fs::read_dir(folder).map_err(|cause| unreadable(folder, cause))?;
    let mut runs = Vec::new();
    for entry in entries {
        let path = entry.map_err(|cause| unreadable(folder, cause))?.path();
        if path.join(ROW).is_file() {
            runs.push(path);
        } else if path.is_dir() && path.join(ROWS).is_file() {
            // The two halves of `demo --output` and of `lab compare`.
            runs.extend(self::runs(&path)?);
        }
    }
    runs.sort();
    check_rows(folder, runs.len())?;
    Ok(runs)
}

/// Refuses a folder whose rows are damaged, and says where there are more of them than runs.
fn check_rows(folder: &Path, runs: usize) -> Result<(), Failure> {
    let Some(path) = existing(folder.join(ROWS))? else { return Ok(()) };
    let rows: Vec<RunRow> = read_lines(&path)?;
    if rows.len() > runs {
        let (path, count) = (path.display(), rows.len());
        let missing = count - runs;
        remark(&either(
            format!(
                "fullpipe: {path} has {count} runs, of which {missing} have no folder beside it; the report is without them"
            ),
            format!(
                "fullpipe: {path} 有 {count} 次运行，其中 {missing} 次旁边没有文件夹；报告不含它们"
            ),
        ));
    }
    Ok(())
}

/// The file, where there is something of this name.
///
/// # Errors
/// It is no regular file, and reading it might never end.
fn existing(path: PathBuf) -> Result<Option<PathBuf>, Failure> {
    if path.symlink_metadata().is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound) {
        return Ok(None);
    }
    let kind = path.metadata().map_err(|cause| unreadable(&path, cause))?;
    if kind.is_file() { Ok(Some(path)) } else { Err(wrong(&path, &irregular())) }
}

/// The file of a run's row.
const ROW: &str = "row.json";
/// The file of a sweep's rows.
const ROWS: &str = "rows.jsonl";

/// Adds a run: its row, and its connection where its captures were kept.
fn add(page: &mut Page, rows: &mut Vec<RunRow>, folder: &Path) -> Result<(), Failure> {
    let Some(path) = existing(folder.join(ROW))? else { return Ok(()) };
    let bytes = std::fs::read(&path).map_err(|cause| unreadable(&path, cause))?;
    let row: RunRow = serde_json::from_slice(&bytes).map_err(|cause| unreadable(&path, cause))?;
    let number = rows.len();
    let source = page.sources.len();
    page.sources.push(Source { name: row.name.clone(), ..Source::default() });
    let Some(capture) = existing(folder.join("server.pcap"))? else {
        rows.push(row);
        return Ok(());
    };
    // As the lab analysed it and as `analyze` does, so that the report says what the row says.
    let config = Config { trace: Some(TraceBounds::default()), ..Config::default() };
    let row_name = row.name.clone();
    rows.push(row);
    let mut shortlist = Shortlist::default();
    let mut connections = Capture::file(&capture).connections(&Options::from(config));
    while let Some(round) = connections.next_round() {
        shortlist.add(round);
    }
    let (counts, errors) = connections.finish();
    if let Some(error) = errors.into_iter().next() {
        return Err(unreadable(&capture, error));
    }
    page.sources[source] = Source::counted(row_name, &counts, None);
    page.connections_total += shortlist.total();
    for mut shown in shortlist.finish(source) {
        shown.run = Some(number);
        if let Some(start) = start_by_samples(&shown, folder)? {
            add_sockets(&mut shown, folder, start)?;
            shown.link_queue = queue(folder, start)?;
        }
        page.connections.push(shown);
    }
    Ok(())
}

/// The connection's first packet by the clock of samples and of the link's log; `None` in results
/// of a version that did not say how far that is from the captures' clock.
fn start_by_samples(shown: &ShownConnection, folder: &Path) -> Result<Option<Instant>, Failure> {
    #[derive(serde::Deserialize)]
    struct Clock {
        epoch_ns: Option<u64>,
    }
    let Some(path) = existing(folder.join("link.json"))? else { return Ok(None) };
    let link = std::fs::read(&path).map_err(|cause| unreadable(&path, cause))?;
    let clock: Clock = serde_json::from_slice(&link).map_err(|cause| unreadable(&path, cause))?;
    let start = shown.connection.connection.start.as_nanos();
    Ok(clock.epoch_ns.and_then(|epoch| start.checked_sub(epoch)).map(Instant::from_nanos))
}

/// The queue towards the client, by the link's own log; `None` where there is no log.
fn queue(folder: &Path, start: Instant) -> Result<Option<LinkQueue>, Failure> {
    let Some(file) = existing(folder.join("link.log"))? else { return Ok(None) };
    let log = LogFile::read(&file)?;
    let records = log.records.iter().filter(|record| record.direction == Direction::ToClient);
    Ok(Some(LinkQueue::new(records.map(|record| (record.arrival.since(start), record.backlog)))))
}

/// Most samples of a socket in a report.
const SAMPLES: usize = 2_000;

/// Adds the samples of the sockets at both ends.
fn add_sockets(shown: &mut ShownConnection, folder: &Path, start: Instant) -> Result<(), Failure> {
    let connection = &shown.connection.connection;
    let ends = [
        ("server.samples.jsonl", Owner::Server, connection.server, connection.client),
        ("client.samples.jsonl", Owner::Client, connection.client, connection.server),
    ];
    for (file, owner, local, remote) in ends {
        let Some(path) = existing(folder.join(file))? else { continue };
        let mut samples: Vec<Sample> = read_lines(&path)?;
        samples.retain(|sample| (sample.local, sample.remote) == (local, remote));
        if !samples.is_empty() {
            let series = SocketSeries::new(owner, &samples, start, SAMPLES);
            shown.sockets.push(series);
        }
    }
    Ok(())
}

/// What each line of a file says.
fn read_lines<T: serde::de::DeserializeOwned>(file: &Path) -> Result<Vec<T>, Failure> {
    let opened = std::fs::File::open(file).map_err(|cause| unreadable(file, cause))?;
    let mut all = Vec::new();
    for (number, line) in (1..).zip(BufReader::new(opened).lines()) {
        let line = line.map_err(|cause| unreadable(file, cause))?;
        let what = serde_json::from_str(&line)
            .map_err(|cause| wrong(file, &line_of(number).with(cause)))?;
        all.push(what);
    }
    Ok(all)
}

/// Names the two runs of a demo, which are called before and after.
fn mark_parts(page: &mut Page, rows: &[RunRow]) {
    for shown in &mut page.connections {
        shown.part = match shown.run.map(|run| rows[run].name.as_str()) {
            Some("before") => Some(ComparedPart::Before),
            Some("after") => Some(ComparedPart::After),
            _ => None,
        };
    }
}

fn unreadable(path: &Path, cause: impl std::fmt::Display) -> Failure {
    wrong(path, &Sentence::as_is(cause))
}

fn irregular() -> Sentence {
    Sentence::new("it is not a regular file", "它不是普通文件")
}

fn line_of(number: usize) -> Sentence {
    Sentence::new(format!("line {number}"), format!("第 {number} 行"))
}

fn wrong(path: &Path, cause: &Sentence) -> Failure {
    let (path, english, chinese) = (path.display(), cause.english(), cause.chinese());
    let problem = Sentence::new(
        format!(
            "read results {path}: {english}; give captures, or a folder that `lab run --output` wrote"
        ),
        format!("读取结果 {path}：{chinese}；请给出抓包，或 `lab run --output` 写出的文件夹"),
    );
    Failure::new(Kind::Input, problem)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn what_is_damaged_or_never_ends_is_refused_and_what_is_missing_is_not() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path();
        assert!(check_rows(folder, 0).is_ok());
        std::fs::write(folder.join(ROWS), "{}\n{\"name\": 3").unwrap();
        let refused = format!("{:?}", check_rows(folder, 2).unwrap_err());
        assert!(refused.contains("rows.jsonl: line 2:"), "{refused}");
        for (name, leads_to) in [("server.pcap", "/dev/zero"), ("link.json", "nowhere")] {
            symlink(leads_to, folder.join(name)).unwrap();
            let refused = format!("{:?}", existing(folder.join(name)).unwrap_err());
            assert!(refused.contains(name), "{refused}");
        }
        assert!(existing(folder.join("link.log")).unwrap().is_none());
    }
}
