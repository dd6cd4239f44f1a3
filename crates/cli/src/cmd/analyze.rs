//! `fullpipe analyze`: what limited the connections of a capture.

mod annotate;
mod archive;
pub mod both;
mod packets;
mod rows;

use super::input::{self, Reading};
use super::report;
use crate::failure::{Failure, Kind};
use crate::sentence::{Sentence, either};
use crate::terminal::{answer_layout, language, layout, remark};
use archive::ArchiveOptions;
use clap::{Args, ValueEnum};
use fullpipe_analyze::{Capture, Error, Options};
use fullpipe_columnar::{RowKind, RowSource};
use fullpipe_flow::connection::Labels;
use fullpipe_flow::diagnosis::{DiagnosedConnection, worst_first};
use fullpipe_flow::schema::{CONNECTIONS, PACKETS, columns_in_short};
use fullpipe_flow::trace::TraceBounds;
use fullpipe_flow::{Analysis, Config};
use fullpipe_model::units::Duration;
use fullpipe_report::Layout;
use fullpipe_report::connection::analysis::{Report, depth, head, remarks, table};
use fullpipe_report::graph::{graphs, plot};
use rows::Rows;
use std::io::{BufWriter, StdoutLock, Write};
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  fullpipe analyze capture.pcapng
  fullpipe analyze capture.pcap.zst --filter 'host 10.0.0.1 and port 443'
  fullpipe analyze capture.pcap --connection 3
  fullpipe analyze capture.pcap --connection 3 --plot
  fullpipe analyze capture.pcap --packets --connection 3 --labels wireshark
  fullpipe analyze --as-one ring_0001.pcap ring_0002.pcap --json
  fullpipe analyze capture.pcap --windows our-programs.toml
  SSLKEYLOGFILE=keys.log curl -o f https://example.net/f; fullpipe analyze capture.pcap --keys keys.log
  fullpipe analyze capture.pcap --annotate commented.pcapng; wireshark commented.pcapng
  fullpipe analyze --both client.pcap server.pcap
  fullpipe analyze --point client=c.pcap --point gate=g1.pcap,g2.pcap --point server=s.pcap
  fullpipe analyze capture.pcap --parquet connections.parquet
  fullpipe analyze captures/ --parquet rows/ --threads 4 --problems problems.parquet
  fullpipe analyze /var/lib/fullpipe/sockets --rows workloads --parquet fleet/host=$HOSTNAME/ --resume
  find /caps -name '*.pcap*' | fullpipe analyze --files-from - --parquet rows/ --resume
  tcpdump -i eth0 -w - tcp | fullpipe analyze -
  fullpipe why --record samples.jsonl; fullpipe analyze samples.jsonl
  while sleep 1; do date +%s.%N; ss -tinm; done > ss.log; fullpipe analyze ss.log
  iperf3 -c server.example --json > result.json; fullpipe analyze result.json

JSON: one object for one FILE (or --as-one), an array for several. JSON lines: one object a connection. CSV: one row for \
each direction of a connection. Times are in us, sizes in bytes, rates in bit/s, as each name says.";

/// The examples, followed by the columns of each kind of row.
fn with_columns() -> String {
    let (rows, packets) = (columns_in_short(CONNECTIONS), columns_in_short(PACKETS));
    format!(
        "{EXAMPLES}\n\nColumns of --csv and --parquet (what each means: docs/src/schema.md): {rows}.\n\nColumns of \
         --packets in JSON lines and Parquet: {packets}."
    )
}

/// Explain every TCP connection of a capture: what limited it, for which share of its time, and
/// what would change it.
///
/// Reads pcap, pcapng and snoop from files or standard input (`-`), plain or compressed with gzip,
/// zstd, xz or lz4. Prints a table that begins with the connections that lost most time, or all
/// details of one connection if it is the only one or --connection names it. Samples that `why
/// --record` or `window watch --record` wrote are read too, and answered as `why` did; so are logs
/// of `ss -tinm` and the JSON of iperf3 and ndt7, as far as their fields go. If a capture ends in
/// the middle of a packet, everything before that is analysed, a message says so, and the exit code
/// is 4.
#[derive(Args)]
#[command(after_help = EXAMPLES, after_long_help = with_columns())]
pub struct Analyze {
    /// Captures, or samples of `why` or `window watch --record`; `-` is standard input. With a
    /// folder for --parquet folders too, with everything below them.
    #[arg(value_name = "FILE", required_unless_present_any = ["files_from", "point"])]
    files: Vec<PathBuf>,
    /// Treat all files as one capture and sort their packets by time: rotated files, or both
    /// directions of a link.
    #[arg(long)]
    as_one: bool,
    /// Compare two captures of the same connections, taken at two places: what held them, where
    /// segments were lost and in which direction, how long each direction waited, what the path
    /// changed in headers. The clocks may differ, and addresses may be translated in between.
    #[arg(long, conflicts_with_all = ["as_one", "jsonl", "csv", "parquet", "html", "connection"])]
    #[arg(conflicts_with_all = ["packets", "plot", "files_from", "interval", "labels"])]
    #[arg(conflicts_with = "capture_point")]
    both: bool,
    /// A place with its capture, or the files of its ring. Name the places in the order in which
    /// packets pass them, either way: each is compared with the next, as by --both.
    #[arg(long, value_name = "NAME=FILES", value_parser = both::named_point)]
    #[arg(conflicts_with_all = ["files", "both", "as_one", "jsonl", "csv", "parquet", "html"])]
    #[arg(conflicts_with_all = ["connection", "packets", "plot", "files_from", "interval"])]
    #[arg(conflicts_with_all = ["labels", "capture_point"])]
    point: Vec<both::NamedPoint>,
    /// Print JSON.
    #[arg(long, group = "format")]
    json: bool,
    /// Print JSON lines: one connection (with --packets one packet) a line.
    #[arg(long, group = "format")]
    jsonl: bool,
    /// Print CSV.
    #[arg(long, group = "format")]
    csv: bool,
    /// Write the rows of --csv to the Parquet file FILE; with --packets one row for each packet. If
    /// FILE is a folder, or ends with `/`, it gets a folder for each day, and a manifest of the
    /// captures that are done.
    #[arg(long, value_name = "FILE", group = "format")]
    parquet: Option<PathBuf>,
    /// What the rows of --parquet are of.
    #[arg(long, value_name = "KIND", value_enum, default_value_t = RowsOf::Connections)]
    #[arg(requires = "parquet", conflicts_with = "packets")]
    rows: RowsOf,
    /// Write a report with graphs, as `report` does, in place of the table: one HTML file.
    #[arg(long, value_name = "FILE", group = "format", conflicts_with_all = ["plot", "top", "connection"])]
    html: Option<PathBuf>,
    /// Write the capture as the pcapng file FILE with comments for Wireshark, in place of the
    /// table: each wait at the packet that ended it, each limit where it begins, and the verdicts
    /// at its head. Packets, times and comments of others stay as they are.
    #[arg(long, value_name = "FILE")]
    #[arg(conflicts_with_all = ["as_one", "both", "point", "jsonl", "csv", "parquet", "html", "top"])]
    #[arg(conflicts_with_all = ["connection", "packets", "plot", "files_from", "interval"])]
    annotate: Option<PathBuf>,
    /// Show the N connections that lost most time [default: 20 in the table, otherwise all in the
    /// order of the capture].
    #[arg(long, value_name = "N")]
    top: Option<usize>,
    /// Show all details of connection N only.
    #[arg(long, value_name = "N")]
    connection: Option<u64>,
    /// Draw the graphs of the connection below its details: sequence numbers, throughput, window
    /// and bytes in flight, round trips. `report` has them as a page.
    #[arg(long, conflicts_with_all = ["json", "jsonl", "csv", "parquet", "packets"])]
    plot: bool,
    /// Print one line for each packet with its labels; --connection and --filter select packets.
    #[arg(long, conflicts_with_all = ["json", "csv", "html", "top"])]
    packets: bool,
    /// Length of the intervals that --connection shows: 100ms [default: one round trip, at least 10
    /// ms]. Limits are decided by round trips in any case.
    #[arg(long, value_name = "TIME", value_parser = input::interval)]
    interval: Option<Duration>,
    /// Whose definitions of the labels to use.
    #[arg(long, value_name = "LABELS", value_enum, default_value_t = Definitions::Sack)]
    labels: Definitions,
    #[command(flatten)]
    archive: ArchiveOptions,
    #[command(flatten)]
    reading: Reading,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum RowsOf {
    /// One direction of a connection.
    Connections,
    /// A span of time of one direction, and what limited it.
    Intervals,
    /// What a limit means, and what would change it.
    Findings,
    /// A stretch of time that one owner had for one cause.
    Spans,
    /// What took the time of each workload of a host, hour by hour: of the folders that `record
    /// --sockets` writes, into a folder.
    Workloads,
}

impl From<RowsOf> for RowSource {
    fn from(rows: RowsOf) -> Self {
        RowSource::Connection(match rows {
            RowsOf::Workloads => return RowSource::Workloads,
            RowsOf::Connections => RowKind::Connections,
            RowsOf::Intervals => RowKind::Intervals,
            RowsOf::Findings => RowKind::Findings,
            RowsOf::Spans => RowKind::Spans,
        })
    }
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Definitions {
    /// Wireshark's, corrected where SACK, timestamps or IP identifications are better evidence;
    /// --packets says where and why.
    Sack,
    /// Wireshark's (TShark 4.0, default preferences).
    Wireshark,
}

/// Connections in a table without --top.
const TOP: usize = 20;
/// Connections that --both explains without --top.
const TOP_OF_BOTH: usize = 5;

impl Analyze {
    pub fn run(self) -> Result<u8, Failure> {
        if let Some(target) = self.parquet.as_ref().filter(|to| self.wants_folder(to)) {
            return archive::run(&self, target);
        }
        if self.both || !self.point.is_empty() {
            return both::run(&self);
        }
        if let Some(output) = &self.annotate {
            return annotate::run(&self, output);
        }
        if self.packets {
            return packets::print(&self);
        }
        if let Some(file) = &self.html {
            return report::on_captures(&self.files, self.as_one, &self.options(), file);
        }
        if self.prints_rows() && self.top.is_none() && self.connection.is_none() {
            return self.stream();
        }
        // One file that ends early must not stop the analysis of the others; the exit code reports
        // it.
        let mut is_whole = true;
        let mut reports = Vec::new();
        for capture in input::captures(&self.files, self.as_one)? {
            let mut report = self.report(capture)?;
            self.tell_of_keys(&report.file, &report.connections);
            is_whole &= report.problem.is_none();
            self.choose(&mut report)?;
            reports.push(report);
        }
        self.print(&reports)?;
        Ok(Self::code(is_whole))
    }

    /// Analyses a capture.
    fn report(&self, capture: Capture) -> Result<Report, Failure> {
        let report = Report::new(capture.name(), Analysis::default()).pinned(self.connection);
        read(capture, report, &self.options(), self.json)
    }

    /// Prints rows as connections finish, so that memory does not grow with their number.
    fn stream(&self) -> Result<u8, Failure> {
        let captures = input::captures(&self.files, self.as_one)?;
        let mut rows = Rows::new(self)?;
        let mut is_whole = true;
        for capture in captures {
            let name = capture.name().to_owned();
            let options = self.options();
            let mut connections = if rows.has_findings() {
                capture.connections(&options)
            } else {
                capture.connections_without_findings(&options)
            };
            while let Some(round) = connections.next_round() {
                rows.write(&name, &round)?;
            }
            let (counts, errors) = connections.finish();
            if counts.untracked > 0 {
                let packets = counts.untracked;
                tell(
                    &name,
                    &either(
                        format!("{packets} packets of connections beyond the limit"),
                        format!("有 {packets} 个数据包属于超出上限的连接"),
                    ),
                );
            }
            if counts.forced_out > 0 {
                let connections = counts.forced_out;
                tell(
                    &name,
                    &either(
                        format!(
                            "{connections} connections were ended early, as too many were open at a time"
                        ),
                        format!("{connections} 个连接因同时打开的太多而提前结束"),
                    ),
                );
            }
            remarks(&counts, language()).iter().for_each(|told| tell(&name, told));
            is_whole &= problem(errors)?.is_none();
        }
        rows.finish()?;
        Ok(Self::code(is_whole))
    }

    /// Whether the output has one line or row for each connection.
    fn prints_rows(&self) -> bool {
        self.jsonl || self.csv || self.parquet.is_some()
    }

    /// The exit code: whether all captures were read to their ends.
    fn code(is_whole: bool) -> u8 {
        if is_whole { 0 } else { Failure::code(Kind::Input) }
    }

    fn options(&self) -> Options {
        Options { config: self.config(), threads: self.reading.threads }
    }

    /// Whether rows go into a folder.
    fn wants_folder(&self, target: &Path) -> bool {
        let is_of_many = RowSource::from(self.rows) == RowSource::Workloads;
        is_of_many || self.archive.wants_folder(target)
    }

    fn config(&self) -> Config {
        Config {
            labels: match self.labels {
                Definitions::Sack => Labels::Sack,
                Definitions::Wireshark => Labels::Wireshark,
            },
            interval: self.interval,
            trace: (self.plot || self.html.is_some()).then(TraceBounds::default),
            spans: self.annotate.is_some()
                || self.parquet.is_some() && RowSource::from(self.rows).needs_spans(),
            prefixes: self.archive.prefixes(),
            ..self.reading.config()
        }
    }

    /// Says so where keys opened none of these connections.
    fn tell_of_keys(&self, file: &str, connections: &[DiagnosedConnection]) {
        let Some(keyed) = self.reading.keyed() else { return };
        if !connections.iter().any(|one| one.connection.has_frames()) {
            tell(file, &input::keys::none_opened(keyed));
        }
    }

    /// Keeps in a report only what the options select.
    fn choose(&self, report: &mut Report) -> Result<(), Failure> {
        if let Some(id) = self.connection {
            let chosen =
                report.connections.iter().position(|explained| explained.connection.id == id);
            let Some(chosen) = chosen else {
                let (file, total) = (&report.file, report.total());
                let problem = Sentence::new(
                    format!(
                        "analyze {file}: there is no connection {id} among its {total}; without --connection the table names them"
                    ),
                    format!(
                        "分析 {file}：其 {total} 个连接中没有编号 {id}；不带 --connection 时表中列出它们"
                    ),
                );
                // In a capture that was not read to its end, the missing connection is the
                // capture's fault.
                let kind = if report.problem.is_some() { Kind::Input } else { Kind::Usage };
                return Err(Failure::new(kind, problem));
            };
            let explained = report.connections.swap_remove(chosen);
            report.connections = vec![explained.with_intervals()];
            report.left_out = 0;
            return Ok(());
        }
        let in_table = !(self.json || self.prints_rows());
        if self.top.is_some() || in_table {
            worst_first(&mut report.connections);
            let top = self.top.unwrap_or(TOP);
            if top <= report.connections.len() {
                // Whoever asks for some of them is not told of the rest.
                report.left_out = 0;
            }
            // The table explains the first even where it shows none.
            report.connections.truncate(if in_table { top.max(1) } else { top });
        }
        if report.left_out > 0 {
            let left_out = report.left_out;
            tell(
                &report.file,
                &either(
                    format!(
                        "{left_out} connections that lost least are left out, as there are too many; --jsonl, --csv \
                     and --parquet without --top have them all"
                    ),
                    format!(
                        "连接太多，略去了损失最少的 {left_out} 个；不带 --top 的 --jsonl、--csv 和 --parquet 有全部"
                    ),
                ),
            );
        }
        Ok(())
    }

    /// The graphs of the direction that carried more, where they are wanted.
    fn plots(&self, connection: &DiagnosedConnection) -> String {
        let graphs = graphs(connection, connection.connection.bulk());
        graphs.iter().map(|graph| format!("\n{}", plot(graph, layout()))).collect()
    }

    fn print(&self, reports: &[Report]) -> Result<(), Failure> {
        if self.prints_rows() {
            let mut rows = Rows::new(self)?;
            reports.iter().try_for_each(|report| rows.write(&report.file, &report.connections))?;
            return rows.finish();
        }
        let mut out = buffered_out();
        if self.json {
            match reports {
                [report] => serde_json::to_writer_pretty(&mut out, report),
                reports => serde_json::to_writer_pretty(&mut out, reports),
            }
            .map_err(std::io::Error::from)?;
            writeln!(out)?;
        } else {
            let layout = answer_layout();
            for (number, report) in reports.iter().enumerate() {
                let space = if number == 0 { "" } else { "\n" };
                write!(out, "{space}{}", text(report, self.top.unwrap_or(TOP), layout))?;
                if let Some(only) = the_only(report) {
                    write!(out, "{}", self.plots(only))?;
                }
            }
        }
        Ok(out.flush()?)
    }
}

/// Says something of a file, beside the result.
fn tell(file: &str, told: &str) {
    remark(&format!("fullpipe: {file}: {told}"));
}

/// Reads a capture into a report. A table needs the findings of one connection only, which are then
/// made as it is printed.
fn read(
    capture: Capture,
    mut report: Report,
    options: &Options,
    has_findings: bool,
) -> Result<Report, Failure> {
    let mut connections = if has_findings {
        capture.connections(options)
    } else {
        capture.connections_without_findings(options)
    };
    while let Some(round) = connections.next_round() {
        round.into_iter().for_each(|explained| report.add(explained));
    }
    let (counts, errors) = connections.finish();
    report.counts += counts;
    report.finish();
    report.problem = problem(errors)?;
    Ok(report)
}

/// Says why a capture was not read to its end, if that happened.
fn problem(errors: Vec<Error>) -> Result<Option<String>, Failure> {
    let problems: Vec<_> = input::problems(errors)?.iter().map(Sentence::from).collect();
    for problem in &problems {
        remark(&format!("fullpipe: {}", problem.here()));
    }
    let told = Sentence::lines(&problems);
    Ok(if problems.is_empty() { None } else { Some(told.english().into()) })
}

/// The connection that is shown with all details: the one that was asked for, or that is alone.
fn the_only(report: &Report) -> Option<&DiagnosedConnection> {
    match &report.connections[..] {
        [only] if report.is_pinned() || report.total() == 1 => Some(only),
        _ => None,
    }
}

/// What a capture says, as text.
fn text(report: &Report, top: usize, layout: Layout) -> String {
    match the_only(report) {
        Some(only) => format!("{}\n{}", head(report, layout), depth(only, layout)),
        None => table(report, top, layout),
    }
}

/// What the files of one capture say, as `analyze --as-one` has it without any other option: for
/// the command that has just made them.
pub struct Answer(Report);

impl Answer {
    /// Reads them, in order of time.
    ///
    /// # Errors
    /// They cannot be read.
    pub fn of(files: &[PathBuf], has_findings: bool) -> Result<Answer, Failure> {
        let capture = Capture::merged(files.to_vec());
        let report = Report::new(capture.name(), Analysis::default());
        read(capture, report, &Options::default(), has_findings).map(Answer)
    }

    /// As text: the connections that lost most time first, or all details of the only one.
    pub fn text(mut self) -> String {
        worst_first(&mut self.0.connections);
        self.0.connections.truncate(TOP);
        text(&self.0, TOP, answer_layout())
    }

    /// As the JSON of `analyze`.
    pub fn document(&self) -> &impl serde::Serialize {
        &self.0
    }
}

/// Standard output for many lines.
fn buffered_out() -> BufWriter<StdoutLock<'static>> {
    BufWriter::new(std::io::stdout().lock())
}
