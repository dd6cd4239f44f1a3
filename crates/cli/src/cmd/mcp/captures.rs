//! The tools that read files: `analyze`, `explain` and `compare`.

use super::files::Files;
use super::refusal::ToolRefusal;
use super::work::{ToolCall, Watched};
use crate::cmd::input::records::each_record;
use crate::cmd::input::twice::{CopyError, reopened};
use fullpipe_analyze::{Capture, Options};
use fullpipe_flow::connection::filter::Filter;
use fullpipe_flow::diagnosis::DiagnosedConnection;
use fullpipe_flow::{Analysis, Config, Intake};
use fullpipe_report::agent::{self, Asked};
use fullpipe_report::connection::analysis::Report;
use fullpipe_report::connection::comments::{CommentPlan, PlacedComments};
use fullpipe_report::runs::compare::{ComparedRows, Comparison, rows};
use serde::Deserialize;
use serde_json::Value;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;

/// Connections that are open at a time at most: some 300 MB.
const MAX_OPEN: usize = 1 << 16;
/// Samples and results of tests are in memory at once.
const TEXT_MAX: u64 = 256 << 20;
/// Results of the lab, too.
const RESULTS_MAX: u64 = 64 << 20;
/// How a capture can be looked at that has no answer here.
const SEE_FILE: &str = "name a capture (pcap, pcapng, snoop, also compressed), samples of `fullpipe why --record`, a \
     log of `ss -tin`, or the JSON of iperf3 or ndt7";

/// What `analyze` is asked.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Analyze {
    file: String,
    filter: Option<String>,
    connection: Option<u64>,
    #[serde(default)]
    skip: usize,
}

/// What `explain` is asked.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Explain {
    file: String,
    filter: Option<String>,
    connection: Option<u64>,
    finding: Option<String>,
    #[serde(default)]
    skip: usize,
}

/// What `compare` is asked.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Compare {
    a: String,
    b: String,
    filter: Option<String>,
    connection_a: Option<u64>,
    connection_b: Option<u64>,
}

/// A file that one call reads, perhaps more than once.
struct AskedFile<'a> {
    operation: &'static str,
    name: &'a str,
    file: File,
    work: &'a ToolCall,
}

impl Analyze {
    pub fn run(self, files: &Files, work: &ToolCall) -> Result<Value, ToolRefusal> {
        let source = AskedFile::open("analyze", &self.file, files, work)?;
        let report = source.report(&config("analyze", self.filter.as_deref())?, self.connection)?;
        let asked = Asked { connection: self.connection, skip: self.skip };
        agent::analysis(&report, asked).ok_or_else(|| source.no_connection())
    }
}

impl Explain {
    pub fn run(self, files: &Files, work: &ToolCall) -> Result<Value, ToolRefusal> {
        let source = AskedFile::open("explain", &self.file, files, work)?;
        let config = Config { spans: true, ..config("explain", self.filter.as_deref())? };
        let explained = source.one(&config, self.connection)?;
        if explained.account().is_none() {
            let hint = "explain needs packets; analyze says what samples and results of tests show";
            return Err(ToolRefusal::new(
                "explain",
                &self.file,
                "there are no packets in it",
                hint,
            ));
        }
        let mut plan = CommentPlan::default();
        plan.add(&explained);
        let placed = source.place(plan, &config)?;
        Ok(agent::explanation(&explained, &placed, self.finding.as_deref(), self.skip))
    }
}

impl Compare {
    pub fn run(self, files: &Files, work: &ToolCall) -> Result<Value, ToolRefusal> {
        let a = AskedFile::open("compare", &self.a, files, work)?;
        let b = AskedFile::open("compare", &self.b, files, work)?;
        if let (Some(of_a), Some(of_b)) = (a.rows()?, b.rows()?) {
            let [of_a, of_b] = [&of_a, &of_b].map(|rows| ComparedRows { source: "", rows });
            let comparison = Comparison::new(of_a, of_b, &[]);
            if comparison.compared() > 0 {
                return Ok(agent::results(&comparison));
            }
            let cause = "they have no successful row of the same name";
            let hint = "name two results of the same scenario, or two captures";
            return Err(ToolRefusal::new("compare", self.a + " and " + &self.b, cause, hint));
        }
        let config = config("compare", self.filter.as_deref())?;
        let of_a = a.report(&config, self.connection_a)?;
        let of_b = b.report(&config, self.connection_b)?;
        agent::captures([(&of_a, self.connection_a), (&of_b, self.connection_b)])
            .ok_or_else(|| a.no_connection())
    }
}

fn config(operation: &'static str, filter: Option<&str>) -> Result<Config, ToolRefusal> {
    let filter = filter.map(str::parse::<Filter>).transpose().map_err(|cause| {
        let hint = "write for example `host 10.0.0.1 and port 443`: host, net, port, portrange, \
                    and, or, not, ( )";
        ToolRefusal::new(operation, filter.unwrap_or_default(), cause, hint)
    })?;
    Ok(Config { filter, max_open: MAX_OPEN, ..Config::default() })
}

impl<'a> AskedFile<'a> {
    fn open(
        operation: &'static str,
        name: &'a str,
        files: &Files,
        work: &'a ToolCall,
    ) -> Result<AskedFile<'a>, ToolRefusal> {
        let source = AskedFile { operation, name, file: files.open(operation, name)?, work };
        if source.size() > TEXT_MAX && source.is_text() {
            let hint = "`fullpipe analyze` reads larger ones in a terminal";
            let cause = "it is a text of more than 256 MiB, which is all in memory at once";
            return Err(ToolRefusal::new(operation, name, cause, hint));
        }
        Ok(source)
    }

    fn size(&self) -> u64 {
        self.file.metadata().map_or(0, |metadata| metadata.len())
    }

    /// Whether it begins as samples and results do, and no capture does.
    fn is_text(&self) -> bool {
        let mut opening = [0; 8];
        let is_read = self.file.read_at(&mut opening, 0).is_ok();
        is_read && opening.iter().all(|byte| byte.is_ascii_graphic() || byte.is_ascii_whitespace())
    }

    /// Its bytes from the beginning.
    fn reader(&self) -> Result<Watched<File>, ToolRefusal> {
        let file = reopened(&self.file)
            .map_err(|cause| ToolRefusal::new(self.operation, self.name, cause, SEE_FILE))?;
        self.work.add_total(self.size());
        Ok(self.work.watched(file))
    }

    fn capture(&self) -> Result<Capture, ToolRefusal> {
        Ok(Capture::reader(self.name, self.reader()?).or_recording())
    }

    /// All of it.
    fn report(&self, config: &Config, pinned: Option<u64>) -> Result<Report, ToolRefusal> {
        let mut report = Report::new(self.name, Analysis::default()).pinned(pinned);
        let mut connections =
            self.capture()?.connections_without_findings(&Options::from(config.clone()));
        while let Some(round) = connections.next_round() {
            round.into_iter().for_each(|explained| report.add(explained));
        }
        let (counts, errors) = connections.finish();
        report.counts += counts;
        report.finish();
        let problems: Vec<_> = errors.iter().map(ToString::to_string).collect();
        if counts.packets == 0 && counts.samples == 0 && !problems.is_empty() {
            let cause = problems.join("; ");
            return Err(ToolRefusal::of_file(self.operation, self.name, cause, SEE_FILE));
        }
        report.problem = Some(problems.join("; ")).filter(|text| !text.is_empty());
        Ok(report)
    }

    /// The connection of this number, or the one that lost most.
    fn one(&self, config: &Config, id: Option<u64>) -> Result<DiagnosedConnection, ToolRefusal> {
        let mut connections =
            self.capture()?.connections_without_findings(&Options::from(config.clone()));
        let mut best: Option<DiagnosedConnection> = None;
        while let Some(round) = connections.next_round() {
            for explained in round {
                let place = (explained.rank(), explained.connection.id);
                let is_best = match (id, &best) {
                    (Some(id), _) => explained.connection.id == id,
                    (None, Some(best)) => place < (best.rank(), best.connection.id),
                    (None, None) => true,
                };
                if is_best {
                    best = Some(explained);
                }
            }
        }
        let (_, errors) = connections.finish();
        match (best, errors.first()) {
            (Some(best), _) => Ok(best),
            (None, Some(error)) => {
                Err(ToolRefusal::of_file(self.operation, self.name, error, SEE_FILE))
            }
            (None, None) => Err(self.no_connection()),
        }
    }

    /// Finds the packets of what is to be said.
    fn place(&self, plan: CommentPlan, config: &Config) -> Result<PlacedComments, ToolRefusal> {
        let (mut placer, mut intake) = (plan.placer(), Intake::new(config));
        let read = each_record(self.reader()?, |number, record| {
            if let Some(packet) = &record.packet
                && let Some((arrival, _)) = intake.open(packet)
            {
                placer.see(number, arrival.at, &arrival.segment);
            }
            Ok(())
        });
        let cause = match read {
            Ok(_) => return Ok(placer.finish()),
            Err(CopyError::Read(cause)) => cause.to_string(),
            Err(CopyError::Write(cause)) => cause.to_string(),
        };
        Err(ToolRefusal::of_file(self.operation, self.name, cause, SEE_FILE))
    }

    /// Rows of the lab's, if that is what it has.
    fn rows(&self) -> Result<Option<Vec<fullpipe_flow::schema::RunRow>>, ToolRefusal> {
        if !self.is_text() || self.size() > RESULTS_MAX {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        let read = self.reader()?.take(RESULTS_MAX).read_to_end(&mut bytes);
        Ok(read.ok().and_then(|_| rows(&bytes).ok()))
    }

    fn no_connection(&self) -> ToolRefusal {
        let hint = "analyze without connection names those that there are";
        ToolRefusal::new(self.operation, self.name, "there is no such TCP connection in it", hint)
    }
}
