//! The files of a run: scenario, transfer, link, verdicts, samples.

use super::error::ResultsError;
use crate::experiment::Outcome;
use fullpipe_flow::limit::Verdict;
use fullpipe_flow::schema::Versioned;
use fullpipe_kernel::file::folder::Folder;
use fullpipe_link::{DirectionReport, DriverCounters, LinkReport};
use fullpipe_model::link::Counters;
use fullpipe_model::scenario::Scenario;
use fullpipe_model::units::Duration;
use serde::Serialize;
use std::io::{BufWriter, Write};

/// Writes everything that a run showed, except its row.
pub(super) fn write_run(
    folder: &Folder,
    scenario: &Scenario,
    outcome: &Outcome,
) -> Result<(), ResultsError> {
    write_json(folder, "scenario.json", scenario)?;
    write_json(folder, "transfer.json", &outcome.received)?;
    write_json(folder, "link.json", &LinkFile::new(&outcome.link, outcome.epoch))?;
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
    Ok(())
}

/// `verdict.json`
#[derive(Serialize)]
struct VerdictFile<'a> {
    capture: Option<&'a Verdict>,
    sockets: Option<&'a Verdict>,
}

/// `link.json`
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
    epoch_ns: u64,
}

/// One direction in `link.json`.
#[derive(Serialize)]
struct DirectionFile {
    #[serde(flatten)]
    link: Counters,
    #[serde(flatten)]
    driver: DriverCounters,
    late_p50_us: u64,
    late_p99_us: u64,
    late_max_us: u64,
    real_time: bool,
}

impl DirectionFile {
    fn new(report: &DirectionReport) -> Self {
        DirectionFile {
            link: report.link,
            driver: report.driver,
            late_p50_us: report.lateness.quantile(0.5).as_micros(),
            late_p99_us: report.lateness.quantile(0.99).as_micros(),
            late_max_us: report.lateness.max().as_micros(),
            real_time: report.real_time,
        }
    }
}

impl LinkFile {
    fn new(link: &LinkReport, epoch: Duration) -> Self {
        LinkFile {
            to_client: DirectionFile::new(&link.to_client),
            to_server: DirectionFile::new(&link.to_server),
            capture_dropped: link.capture_dropped,
            log_dropped: link.log_dropped,
            port_drops: link.port_drops,
            coalesce_us: link.coalesce.as_micros(),
            memory_bytes: link.memory.get(),
            ports: link.port_kind.clone(),
            epoch_ns: epoch.as_nanos(),
        }
    }
}

/// Writes a value as the file `name` of `folder`, complete or not at all.
pub(super) fn write_json(
    folder: &Folder,
    name: &str,
    value: &impl Serialize,
) -> Result<(), ResultsError> {
    let written =
        serde_json::to_vec_pretty(value).map_err(std::io::Error::from).and_then(|mut text| {
            text.push(b'\n');
            folder.write_whole(name, &text)
        });
    written.map_err(|cause| ResultsError::file("write", &folder.path().join(name), cause))
}

/// Writes values as lines of JSON, each with the version of its schema.
fn write_lines(folder: &Folder, name: &str, lines: &[impl Serialize]) -> Result<(), ResultsError> {
    let written = folder.create(name).and_then(|file| write_lines_to(BufWriter::new(file), lines));
    written.map_err(|cause| ResultsError::file("write", &folder.path().join(name), cause))
}

fn write_lines_to(mut file: impl Write, lines: &[impl Serialize]) -> std::io::Result<()> {
    for line in lines {
        serde_json::to_writer(&mut file, &Versioned::new(line))?;
        file.write_all(b"\n")?;
    }
    file.flush()
}
