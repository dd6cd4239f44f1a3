//! `fullpipe window`: receive windows that follow the readers, for unmodified programs.

mod agent;
pub mod cgroup;
mod control;
mod follow;
mod pin;
mod recording;
mod show;
mod status;

use crate::failure::{Failure, Kind};
use crate::sentence::Sentence;
use clap::{Args, Subcommand};
use fullpipe_agent::{AgentError, AgentOptions};
use fullpipe_kernel::host::sysctl::{self, Name};
use fullpipe_model::tune::window_control::Settings;
use fullpipe_model::units::{Bytes, Duration, Window};
use std::ffi::OsString;
use std::ops::RangeInclusive;
use std::path::PathBuf;

/// Let receive windows follow the rate at which programs read.
///
/// A BPF program on a control group (cgroup v2) sets the window of each of its TCP connections: as
/// large as a fast reader needs on its path, also beyond the largest `tcp_rmem`, and so small that
/// a slow reader's receive queue stays near empty. It needs root and Linux 6.6.
#[derive(Subcommand)]
#[command(after_help = "\
Examples:
  fullpipe window run -- curl -o /dev/null http://example.org/large.iso
  fullpipe window watch --cgroup /sys/fs/cgroup/system.slice/nginx.service
  fullpipe window status                                           agents that run
  fullpipe window pin-cwnd --segments 200 -- iperf3 -c server      for experiments only")]
pub enum WindowCommand {
    Run(Run),
    Watch(Watch),
    PinCwnd(pin::PinCwnd),
    Status(status::ShowStatus),
    Stop(status::Stop),
}

impl WindowCommand {
    pub fn run(self) -> Result<u8, Failure> {
        match self {
            WindowCommand::Run(run) => run.run(),
            WindowCommand::Watch(watch) => watch.run(),
            WindowCommand::PinCwnd(pin) => pin.run(),
            WindowCommand::Status(status) => status.run(),
            WindowCommand::Stop(stop) => stop.run(),
        }
    }
}

/// Control the windows of a program, or of a control group.
///
/// Followed are the connections that exist (from Linux 6.13 on) and those that are established from
/// now on, but not those over loopback and those whose program chose its buffer (SO_RCVBUF). No
/// buffer exceeds what `net.core.rmem_max` or `tcp_rmem` allows. At the end every connection keeps
/// a buffer of at least what `tcp_rmem` allows; if this process is killed, the kernel detaches the
/// BPF program. With a program, the connections are shown on standard error at its end, and the
/// exit code is the program's; with --cgroup it runs until Ctrl-C or `window stop`, and shows them
/// on standard output.
#[derive(Args)]
#[command(after_help = "\
Examples:
  fullpipe window run -- curl -o /dev/null http://example.org/large.iso
  fullpipe window run --dry-run -- ./client                        what it would do
  fullpipe window run --cgroup /sys/fs/cgroup/system.slice/nginx.service --budget 2GiB
  fullpipe window run --cgroup /sys/fs/cgroup/user.slice --interval 10s --json")]
pub struct Run {
    #[command(flatten)]
    target: Target,
    /// Compute and show the windows, and change nothing.
    #[arg(long)]
    dry_run: bool,
    /// Set the buffers of programs that chose them, too.
    #[arg(long)]
    unfreeze: bool,
    /// Keep the receive buffers of all connections together within this, 1MiB to 1TiB: the largest
    /// windows are cut to one size. Each keeps at least 8 KiB, and two segments; where the budget
    /// cannot hold those, it says so.
    #[arg(long, value_name = "SIZE", conflicts_with = "dry_run", value_parser = budget)]
    budget: Option<Bytes>,
    /// Show the connections each such time too, 100ms to 1h.
    #[arg(long, value_name = "TIME", value_parser = interval)]
    interval: Option<Duration>,
}

/// Show window, drain, queue and buffer of each connection over time, and change nothing.
#[derive(Args)]
#[command(after_help = "\
Examples:
  fullpipe window watch -- curl -o /dev/null http://example.org/large.iso
  fullpipe window watch --cgroup /sys/fs/cgroup/user.slice --interval 100ms --json
  fullpipe window watch --record samples.jsonl -- ./client; fullpipe report samples.jsonl")]
pub struct Watch {
    #[command(flatten)]
    target: Target,
    /// Time between two looks, 100ms to 1h.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = interval)]
    interval: Duration,
}

/// Whose connections, and how they are followed and shown.
#[derive(Args)]
struct Target {
    /// A folder of cgroup v2: its processes' connections, and those of all groups below it.
    #[arg(
        long,
        value_name = "PATH",
        conflicts_with = "command",
        required_unless_present = "command"
    )]
    cgroup: Option<PathBuf>,
    /// A receive queue that never falls below this in a round trip stands, 4KiB to 1GiB: the window
    /// becomes what the reader takes. For one that takes little, half of what it takes in a round
    /// trip counts instead, at least 4 KiB.
    #[arg(long, value_name = "SIZE", default_value = "256KiB", value_parser = threshold)]
    threshold: Bytes,
    /// Follow connections over loopback, too.
    #[arg(long)]
    loopback: bool,
    /// Also write samples of the connections' sockets as JSON lines to FILE, every 10 ms, which
    /// `report` and `analyze` read (columns: the guide, "samples"). It gets its name at the end.
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// A JSON document in a line for each look: its connections, and what their slow readers hold.
    #[arg(long)]
    json: bool,
    /// The program and its arguments, in a control group of its own.
    #[arg(value_name = "CMD", last = true)]
    command: Vec<OsString>,
}

fn interval(text: &str) -> Result<Duration, Sentence> {
    let time: Duration = text.parse().map_err(|error| Sentence::from(&error))?;
    if (Duration::from_millis(100)..=Duration::from_secs(3600)).contains(&time) {
        return Ok(time);
    }
    Err(Sentence::new(
        format!("{time} is not within 100ms and 1h"),
        format!("{time} 不在 100ms 与 1h 之间"),
    ))
}

fn threshold(text: &str) -> Result<Bytes, Sentence> {
    size(text, 4 << 10..=1 << 30, ["4KiB", "1GiB"])
}

fn budget(text: &str) -> Result<Bytes, Sentence> {
    size(text, 1 << 20..=1 << 40, ["1MiB", "1TiB"])
}

fn size(
    text: &str,
    allowed: RangeInclusive<u64>,
    [least, most]: [&str; 2],
) -> Result<Bytes, Sentence> {
    let size: Bytes = text.parse().map_err(|error| Sentence::from(&error))?;
    if allowed.contains(&size.get()) {
        return Ok(size);
    }
    Err(Sentence::new(
        format!("{size} is not within {least} and {most}"),
        format!("{size} 不在 {least} 与 {most} 之间"),
    ))
}

impl Run {
    fn run(self) -> Result<u8, Failure> {
        let mut options = self.target.options()?;
        options.control = !self.dry_run;
        options.unfreeze = self.unfreeze;
        self.target.follow(options, self.budget, self.interval)
    }
}

impl Watch {
    fn run(self) -> Result<u8, Failure> {
        let options = self.target.options()?;
        self.target.follow(options, None, Some(self.interval))
    }
}

impl Target {
    /// Nothing is changed by default.
    fn options(&self) -> Result<AgentOptions, Failure> {
        let rmem_max = setting("net.core.rmem_max")?;
        // The kernel doubles what a socket asks for (socket(7), SO_RCVBUF).
        let most_buffer = Bytes::new(rmem_max.get().saturating_mul(2));
        // The kernel grows by itself up to the latter; no payload is larger than its buffer.
        let largest = most_buffer.max(setting("net.ipv4.tcp_rmem")?);
        let law = Settings::default();
        let most = law.most.min(Window::new(largest));
        let settings = Settings { threshold: self.threshold, most, ..law };
        let loopback = self.loopback;
        Ok(AgentOptions { settings, control: false, loopback, unfreeze: false, most_buffer })
    }

    fn follow(
        self,
        options: AgentOptions,
        budget: Option<Bytes>,
        interval: Option<Duration>,
    ) -> Result<u8, Failure> {
        let display = show::Display {
            json: self.json,
            on_error: !self.command.is_empty(),
            control: options.control,
        };
        let work = follow::Work { options, budget, interval, display, record: self.record };
        match self.cgroup {
            Some(cgroup) => work.on_group(&cgroup),
            None => work.around(&self.command),
        }
    }
}

/// The last number of a sysctl: the largest value of a triple.
fn setting(name: &'static str) -> Result<Bytes, Failure> {
    let parsed: Name = name.parse().expect("a name that stands in this file");
    let text = sysctl::read_own(&parsed)
        .map_err(|refused| Failure::new(Kind::Run, Sentence::from(&refused).of("window")))?;
    let number = text.as_deref().and_then(|text| text.split_whitespace().last()?.parse().ok());
    number.map(Bytes::new).ok_or_else(|| {
        let told = Sentence::new(
            format!(
                "window: read {name}: it is not shown here; run it in the machine's own network namespace"
            ),
            format!("window：读取 {name}：这里看不到它；请在机器自己的网络命名空间中运行"),
        );
        Failure::new(Kind::Missing, told)
    })
}

impl From<AgentError> for Failure {
    fn from(error: AgentError) -> Self {
        let kind = match &error {
            AgentError::NoBtf | AgentError::NotPermitted { .. } => Kind::Missing,
            AgentError::Cgroup { .. } => Kind::Input,
            AgentError::Refused { .. } => Kind::Run,
        };
        Failure::new(kind, Sentence::from(&error).of("window"))
    }
}
