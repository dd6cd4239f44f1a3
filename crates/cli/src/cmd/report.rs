//! `fullpipe report`: captures and lab results as one HTML file with graphs.

mod captures;
mod past;
mod pictures;
pub mod results;

use super::analyze::both;
use super::input::Reading;
use super::past::PastView;
use crate::failure::{Failure, Kind};
use crate::sentence::{Sentence, either};
use crate::terminal::{print, remark};
use clap::{Args, ValueEnum};
use fullpipe_analyze::Options;
use fullpipe_flow::Config;
use fullpipe_flow::schema::Version;
use fullpipe_flow::trace::TraceBounds;
use fullpipe_kernel::file::folder::write_into;
use fullpipe_report::graph::Theme;
use fullpipe_report::page::{self, InputKind as Content, Page, ShownConnection};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Write a report with graphs: one HTML file that opens in any browser, offline.
///
/// It begins with what limited the worst connection and what would change it, lists the
/// connections, and shows for each its time-sequence graph, throughput, round trips, window and
/// bytes in flight, with the limits and the stalls on the same time axis. Reads captures as
/// `analyze` does, samples of `--record`, and results of `lab run --output`. Nothing in the file
/// is loaded from anywhere.
#[derive(Args)]
#[command(after_help = "\
Examples:
  fullpipe report capture.pcapng
  fullpipe report capture.pcap.zst --filter 'port 443' -o slow.html --open
  fullpipe report before.pcap after.pcap -o compare.html
  fullpipe report fullpipe-results/2026-11-22T10-00-00Z -o lab.html
  fullpipe report --both client.pcap server.pcap -o both.html
  fullpipe report --point client=c.pcap --point gate=g1.pcap,g2.pcap --point server=s.pcap
  fullpipe report capture.pcap --svg pictures/
  fullpipe why --record samples.jsonl; fullpipe report samples.jsonl
  fullpipe report --at 03:00 --for 10m -o night.html
  fullpipe report capture.pcap --data | jq '.connections[0].trace.server_to_client.stalls'

Results of the lab have graphs where `lab run` was given --keep-captures.")]
pub struct Report {
    /// Captures or samples (`-` is standard input), or folders of results of `lab run`.
    #[arg(value_name = "INPUT", required_unless_present_any = ["point", "at"], conflicts_with = "at")]
    inputs: Vec<PathBuf>,
    /// The file to write; one that exists is replaced.
    #[arg(short, long, value_name = "FILE", default_value = "report.html")]
    output: PathBuf,
    /// Open it in the browser when it is written.
    #[arg(long, conflicts_with = "data")]
    open: bool,
    /// Print what the report shows as JSON, in place of the file.
    #[arg(long, conflicts_with = "output")]
    data: bool,
    /// Draw each graph of the worst connection as an SVG picture in the folder DIR, in place of the
    /// file.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["output", "data", "open"])]
    svg: Option<PathBuf>,
    /// The same as PNG pictures, by rsvg-convert with the fonts of this machine.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["output", "data", "open"])]
    png: Option<PathBuf>,
    /// The pictures of --svg and --png: dark lines on white, or light lines on black.
    #[arg(long, value_name = "THEME", value_enum, default_value_t = Paper::Light)]
    theme: Paper,
    /// Treat all captures as one and sort their packets by time.
    #[arg(long, conflicts_with = "at")]
    as_one: bool,
    /// Compare two captures of the same connections, taken at two places, as `analyze --both` does:
    /// one page with what held them, and both places' packets over one clock.
    #[arg(long, conflicts_with_all = ["as_one", "data", "svg", "png", "at"])]
    both: bool,
    /// A place with its capture, or the files of its ring, of two and more that packets pass one
    /// after another, either way, as `analyze --point` does: one page in which each is compared
    /// with the next.
    #[arg(long, value_name = "NAME=FILES", value_parser = both::named_point)]
    #[arg(conflicts_with_all = ["inputs", "both", "as_one", "data", "svg", "png", "at"])]
    point: Vec<both::NamedPoint>,
    #[command(flatten)]
    past: PastView,
    #[command(flatten)]
    reading: Reading,
}

/// The background of a picture.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Paper {
    /// Dark lines on white.
    Light,
    /// Light lines on black.
    Dark,
}

impl From<Paper> for Theme {
    fn from(paper: Paper) -> Self {
        match paper {
            Paper::Light => Theme::Light,
            Paper::Dark => Theme::Dark,
        }
    }
}

impl Report {
    pub fn run(self) -> Result<u8, Failure> {
        if self.both || !self.point.is_empty() {
            let config = self.reading.config();
            let (html, code) = both::page(&self.inputs, &self.point, &config)?;
            let Some(html) = html else { return Ok(code) };
            write_html(&html, &self.output)?;
            if self.open {
                open(&self.output)?;
            }
            return Ok(code);
        }
        let mut page = self.page()?;
        let code = code(&page);
        if self.data {
            let (json, _) = page::data(&mut page);
            print(&json)?;
            print("\n")?;
            return Ok(code);
        }
        if self.svg.is_some() || self.png.is_some() {
            let folders = pictures::Folders { svg: self.svg.as_deref(), png: self.png.as_deref() };
            pictures::draw(&page, folders, self.theme.into())?;
            return Ok(code);
        }
        write(&mut page, &self.output)?;
        if self.open {
            open(&self.output)?;
        }
        Ok(code)
    }

    /// What the report shows.
    fn page(&self) -> Result<Page, Failure> {
        if let Some(at) = self.past.time.at {
            return past::page(&self.past, at, &self.options());
        }
        let (folders, files): (Vec<_>, Vec<_>) =
            self.inputs.iter().cloned().partition(|input| input.is_dir());
        match (&folders[..], &files[..]) {
            (folders, []) => results::page(folders),
            ([], files) => captures::page(files, self.as_one, &self.options()),
            _ => {
                let problem = Sentence::new(
                    "report: some inputs are captures and some are folders of results; \
                     make one report for each kind",
                    "report：输入中既有抓包又有结果文件夹；请各做一份报告",
                );
                Err(Failure::new(Kind::Usage, problem))
            }
        }
    }

    fn options(&self) -> Options {
        let trace = Some(TraceBounds::default());
        let config = Config { trace, ..self.reading.config() };
        Options { config, threads: self.reading.threads }
    }
}

/// Writes a report on captures; returns the exit code. The options must ask for traces.
///
/// # Errors
/// The captures cannot be opened, or the file cannot be written.
pub fn on_captures(
    files: &[PathBuf],
    as_one: bool,
    options: &Options,
    file: &Path,
) -> Result<u8, Failure> {
    let mut page = captures::page(files, as_one, options)?;
    write(&mut page, file)?;
    Ok(code(&page))
}

/// A page without content.
pub fn empty(title: String, kind: Content) -> Page {
    Page {
        schema: Version::default(),
        program: concat!("fullpipe ", env!("CARGO_PKG_VERSION")).into(),
        title,
        kind,
        sources: Vec::new(),
        connections_total: 0,
        connections: Vec::new(),
        lab: None,
    }
}

/// Sorts connections of several inputs as the table of `analyze` does.
fn worst_first(connections: &mut [ShownConnection]) {
    connections.sort_by_cached_key(|shown| shown.connection.rank());
}

/// Writes a report, complete or not at all, and says where it is.
///
/// # Errors
/// The file cannot be written.
pub fn write(page: &mut Page, file: &Path) -> Result<(), Failure> {
    let (html, left_out) = page::html(page);
    write_html(&html, file)?;
    if let Some(left_out) = left_out {
        remark(&either(
            format!("fullpipe: {left_out}; --filter selects those that you mean"),
            format!("fullpipe: {left_out}；--filter 可选出您要的"),
        ));
    }
    Ok(())
}

/// Writes a page, complete or not at all, and says where it is.
///
/// # Errors
/// The file cannot be written.
fn write_html(html: &str, file: &Path) -> Result<(), Failure> {
    write_into(file, html.as_bytes())
        .map_err(|cause| Failure::new(Kind::Run, not_written(file, &cause)))?;
    remark(&format!("{}{}", either("Report: ", "报告："), file.display()));
    Ok(())
}

/// That -o names no file that can be written.
pub fn not_written(file: &Path, cause: &std::io::Error) -> Sentence {
    let file = file.display();
    Sentence::new(
        format!(
            "write {file}: {cause}; give -o a file that can be written, on a disk with free space"
        ),
        format!("写入 {file}：{cause}；请给 -o 一个可写的文件，且磁盘有空间"),
    )
}

/// The exit code: whether every input was read to its end.
fn code(page: &Page) -> u8 {
    let is_whole = page.sources.iter().all(|source| source.problem.is_none());
    if is_whole { 0 } else { Failure::code(Kind::Input) }
}

/// Opens a file in the user's browser, as the desktop does.
fn open(file: &Path) -> Result<(), Failure> {
    let mut command = Command::new("xdg-open");
    command.arg(file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let why = match command.status() {
        Ok(status) if status.success() => return Ok(()),
        Ok(status) => status.to_string(),
        Err(cause) => cause.to_string(),
    };
    let file = file.display();
    let problem = Sentence::new(
        format!(
            "open {file} with xdg-open: {why}; the report is written: open {file} in any browser"
        ),
        format!("用 xdg-open 打开 {file}：{why}；报告已写出：请用任何浏览器打开 {file}"),
    );
    Err(Failure::new(Kind::Missing, problem))
}
