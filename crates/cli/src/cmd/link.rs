//! `fullpipe link`: any program behind an emulated path.

mod attach;
mod captures;
mod control;
mod live;
mod log;
mod run;
mod shared;
mod show;
mod steer;
mod words;

use super::report;
use crate::failure::{Failure, Kind};
use crate::sentence::Sentence;
use crate::terminal::print;
use clap::{Args, Subcommand};
use fullpipe_flow::Config;
use fullpipe_flow::trace::TraceBounds;
use fullpipe_kernel::host::clock;
use fullpipe_link::{CaptureOptions, EDGES, LinkOptions, LogOptions, Words};
use fullpipe_model::scenario::LinkEngine;
use fullpipe_model::units::{Bytes, Duration};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use words::PathOptions;

/// Bytes captured of each packet; every header fits.
const SNAPLEN: Bytes = Bytes::new(128);

/// Run a program behind an emulated path: rate, delay, loss and everything else apply to that
/// program only.
///
/// The program runs in its own network namespace. What it sends to the outside world passes the
/// link and reaches a gateway, which connects onwards from this machine. It needs no privilege
/// where user namespaces are allowed, changes nothing on this machine, and leaves nothing behind,
/// however it ends. `{server}` in the program's arguments becomes the address of the far end: of
/// the --server, or else of the gateway, where this machine's loopback can be reached.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(after_help = "\
Examples:
  fullpipe link --rate 100mbit --delay 25ms --loss 0.1% -- curl -o /dev/null https://example.com/
  fullpipe link --rtt 80ms -- curl http://{server}:8080/          a service on this machine's 127.0.0.1:8080
  fullpipe link --rate 1gbit --rtt 40ms --server 'iperf3 -s' -- iperf3 -c {server}
  fullpipe link --to 10.0.0.5:443 --rtt 17ms -- ./client           one port of one server, nothing else
  fullpipe link --up-rate 10mbit --down-rate 100mbit --rtt 30ms -- bash

Exit code: the program's (128 + n if signal n ended it); 1 if that is 0 and data of its connections could not be
delivered; 2, 3 and 4 with a message from fullpipe if it did not start.")]
pub struct Link {
    #[command(subcommand)]
    action: Option<Action>,
    #[command(flatten)]
    words: PathOptions,
    #[command(flatten)]
    options: Options,
    /// The program and its arguments.
    #[arg(value_name = "CMD", last = true, required_unless_present = "show")]
    command: Vec<OsString>,
}

#[derive(Subcommand)]
enum Action {
    Attach(attach::Attach),
    Detach(attach::Detach),
    Set(steer::Set),
    Status(steer::ShowStatus),
    List(steer::ListLinks),
    Log(log::Log),
    Clean(steer::CleanLinks),
}

/// How to run the program.
#[derive(Args, Clone, Default)]
pub struct Options {
    /// Print the equivalent tc commands for this device [default: eth0], and do nothing else.
    #[arg(long, value_name = "DEVICE", num_args = 0..=1, default_missing_value = "eth0")]
    show: Option<String>,
    /// Start the other end too, by the shell. CMD starts once CMD2 listens, and reaches nothing
    /// else.
    #[arg(long, value_name = "CMD2")]
    server: Option<String>,
    /// What emulates the path: fullpipe's own link, or the kernel's netem, which has no rules,
    /// disciplines and changes over time.
    #[arg(long, value_name = "ENGINE", value_enum, default_value = "auto")]
    engine: EngineChoice,
    /// Route packets onwards from this machine's address instead of connecting: servers see the
    /// program's own TCP. Needs root and net.ipv4.ip_forward.
    #[arg(long, conflicts_with = "server")]
    nat: bool,
    /// The congestion control of the program's connections and of the far end's, except with --nat
    /// the latter: bbr, cubic, reno. Without it, a program may choose what this machine allows.
    #[arg(long, value_name = "NAME", conflicts_with = "show")]
    congestion: Option<String>,
    /// How long the link continues after the program for connections whose data has not arrived
    /// yet. For closed connections it is the time without progress; for connections of processes
    /// that the program left behind, the total time [default: 10s and 10 round trips]. Ctrl-C ends
    /// the link at once.
    #[arg(long, value_name = "TIME")]
    linger: Option<Duration>,
    /// Name of the link for `fullpipe link set --link` [default: the process id].
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    #[command(flatten)]
    output: Output,
}

/// What emulates a path.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum EngineChoice {
    /// Our own link: it needs nothing from the kernel and reports its own error.
    #[default]
    Auto,
    /// Our own link.
    Own,
    /// The kernel's netem.
    Netem,
}

impl EngineChoice {
    fn link_engine(self) -> LinkEngine {
        match self {
            EngineChoice::Auto | EngineChoice::Own => LinkEngine::Own,
            EngineChoice::Netem => LinkEngine::Netem,
        }
    }
}

/// What to record and report.
#[derive(Args, Clone, Default)]
pub struct Output {
    /// Capture at both ends into this folder: server.edge.pcap and client.edge.pcap, both
    /// directions in each, for `fullpipe analyze`; complete when the link has ended.
    #[arg(long, value_name = "DIR")]
    capture: Option<PathBuf>,
    /// Write a report with graphs of the capture at the program's end: one HTML file, when the link
    /// has ended.
    #[arg(long, value_name = "FILE", requires = "capture")]
    html: Option<PathBuf>,
    /// Log for each packet when it arrived, what happened to it and when it left (binary, one
    /// record for each packet).
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Print the link's report as one line of JSON on standard error at the end; standard output is
    /// the program's.
    #[arg(long)]
    json: bool,
    /// Write the link's report as JSON into this file.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Draw a line of statistics on standard error [default: if that is a terminal and standard
    /// output is not].
    #[arg(long, conflicts_with = "quiet")]
    live: bool,
    /// Print nothing but errors.
    #[arg(long, short, conflicts_with = "json")]
    quiet: bool,
}

/// Prints the path as tc commands.
fn show(words: &Words, device: &str) -> Result<u8, Failure> {
    print(&show::commands(&words.path()?, device))?;
    Ok(0)
}

/// Writes a report on a capture of the link.
fn on_capture(capture: PathBuf, file: &Path) -> Result<(), Failure> {
    let config = Config { trace: Some(TraceBounds::default()), ..Config::default() };
    report::on_captures(&[capture], false, &config.into(), file).map(drop)
}

impl Output {
    /// Completes the captures of an engine that has ended.
    fn complete_captures(&self, engine: LinkEngine) -> Result<(), Failure> {
        let own = self.capture.as_deref().filter(|_| engine == LinkEngine::Own);
        own.map_or(Ok(()), captures::merge)?;
        let [_, client] = EDGES;
        match (&self.html, &self.capture) {
            (Some(file), Some(folder)) => on_capture(folder.join(client), file),
            _ => Ok(()),
        }
    }

    /// What our own link should record.
    fn kept(&self) -> LinkOptions<'_> {
        let epoch = clock::realtime_offset();
        let capture = self.capture.as_deref();
        LinkOptions {
            capture: capture.map(|directory| CaptureOptions { directory, snaplen: SNAPLEN, epoch }),
            log: self.log.as_deref().map(|path| LogOptions { path, epoch }),
            ..LinkOptions::default()
        }
    }
}

/// Makes a path absolute, for a process with another working directory.
fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    std::path::absolute(path).map_err(|error| {
        let path = path.display();
        let what = Sentence::new(format!("find {path}"), format!("查找 {path}"));
        Failure::new(Kind::Usage, what.with(error))
    })
}

impl Link {
    pub fn run(self) -> Result<u8, Failure> {
        match self.action {
            Some(Action::Attach(attach)) => attach.run(),
            Some(Action::Detach(detach)) => detach.run(),
            Some(Action::Set(set)) => set.run(),
            Some(Action::Status(status)) => status.run(),
            Some(Action::List(list)) => list.run(),
            Some(Action::Log(log)) => log.run(),
            Some(Action::Clean(clean)) => clean.run(),
            None => match &self.options.show {
                Some(device) => show(&self.words.0, device),
                None => run::run(&self.words.0, &self.options, &self.command),
            },
        }
    }
}
