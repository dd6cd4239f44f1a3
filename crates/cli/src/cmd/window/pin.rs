//! `fullpipe window pin-cwnd`: a congestion window that stays the same.

use super::cgroup::Group;
use crate::cmd::program::Started;
use crate::failure::{Failure, Kind};
use crate::sentence::{Sentence, either};
use crate::terminal::{remark, remark_json};
use clap::Args;
use fullpipe_kernel::Refused;
use fullpipe_kernel::bpf::constant_window::{ConstantWindow, Segments};
use fullpipe_kernel::run::sandbox::Interrupt;
use serde::Serialize;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Keep the congestion window of a program's connections at one number of segments: for the
/// laboratory only.
///
/// It takes congestion control out of an experiment: what the connections send is limited by N
/// segments a round trip, whatever is lost, and by nothing else that the sender does. Do not use it
/// on a path that you share: it does not give way to anybody.
///
/// A BPF congestion control is registered with a name of its own, and given to each TCP connection
/// when it is established, before any data. It counts for what these connections send: so start the
/// server with it to pin a download. The machine's settings are not changed, and when the program
/// ends, or this process is killed, the kernel takes the congestion control away; a connection that
/// goes on keeps it to its end. The exit code is the program's. It needs root and Linux 6.4.
#[derive(Args)]
#[command(after_help = "\
Examples:
  fullpipe window pin-cwnd --segments 200 -- iperf3 -c server
  fullpipe link --rtt 80ms --loss 1% --server 'iperf3 -s' -- \\
    fullpipe window pin-cwnd --segments 200 -- iperf3 -c {server}
  fullpipe window pin-cwnd --segments 10 -- nginx -g 'daemon off;'")]
pub struct PinCwnd {
    /// The congestion window in segments, 1 to 1000000: 1,000,000 of 1,448 bytes are more than the
    /// largest window of TCP, 1 GiB.
    #[arg(long, value_name = "N")]
    segments: Segments,
    /// A folder of cgroup v2: the connections that its processes, and those of all groups below it,
    /// establish until Ctrl-C.
    #[arg(
        long,
        value_name = "PATH",
        conflicts_with = "command",
        required_unless_present = "command"
    )]
    cgroup: Option<PathBuf>,
    /// A JSON document on standard error at the end.
    #[arg(long)]
    json: bool,
    /// The program and its arguments, in a control group of its own.
    #[arg(value_name = "CMD", last = true)]
    command: Vec<OsString>,
}

/// What was done.
#[derive(Serialize)]
struct PinOutcome {
    congestion_control: String,
    segments: u32,
    /// Connections that got it.
    connections: u64,
    /// Those that the kernel refused it.
    refusals: u64,
}

impl PinCwnd {
    pub fn run(self) -> Result<u8, Failure> {
        let (code, done) = match &self.cgroup {
            Some(cgroup) => {
                let end = Interrupt::on_signals().map_err(failed)?;
                let window = self.attach(cgroup)?;
                while !end.wait(None)? {}
                (Failure::code(Kind::Interrupted), self.done(&window)?)
            }
            None => {
                let group = Group::new()?;
                let end = Interrupt::on_signals().map_err(failed)?;
                let window = self.attach(group.path())?;
                let program = Started::of(group.start(&self.command)?);
                let code = program.until_it_ends(&end, || Ok(None))?;
                (code, self.done(&window)?)
            }
        };
        if self.json {
            remark_json(&serde_json::to_string(&done).map_err(std::io::Error::from)?);
        } else {
            remark(&done.in_words());
        }
        Ok(code)
    }

    fn attach(&self, cgroup: &Path) -> Result<ConstantWindow, Failure> {
        ConstantWindow::attach(cgroup, self.segments).map_err(failed)
    }

    fn done(&self, window: &ConstantWindow) -> Result<PinOutcome, Failure> {
        let taken = window.taken().map_err(failed)?;
        Ok(PinOutcome {
            congestion_control: window.name().into(),
            segments: self.segments.get(),
            connections: taken.taken,
            refusals: taken.refused,
        })
    }
}

impl PinOutcome {
    fn in_words(&self) -> String {
        either(self.english(), self.chinese())
    }

    fn chinese(&self) -> String {
        let PinOutcome { congestion_control, segments, connections, refusals } = self;
        let mut text = match connections {
            0 => format!("没有建立 TCP 连接，因此没有连接使用 {segments} 个报文段的拥塞窗口。"),
            many => format!(
                "{many} 个连接使用了 {segments} 个报文段的拥塞窗口（{congestion_control}）。"
            ),
        };
        if *refusals > 0 {
            text += &format!("内核拒绝了其中 {refusals} 个：它们保持原有的。");
        }
        text
    }

    fn english(&self) -> String {
        let window = format!("a congestion window of {} segments", self.segments);
        let mut text = match self.connections {
            0 => format!("No TCP connection was established, so none had {window}."),
            1 => format!("1 connection had {window} ({}).", self.congestion_control),
            many => format!("{many} connections had {window} ({}).", self.congestion_control),
        };
        if self.refusals > 0 {
            text += &format!(" The kernel refused it to {}: they kept theirs.", self.refusals);
        }
        text
    }
}

/// What the kernel refuses here is a privilege, or a part of it that is not there.
fn failed(refused: Refused) -> Failure {
    let kind = if refused.operation == "open control group" { Kind::Input } else { Kind::Missing };
    Failure::new(kind, Sentence::from(&refused).of("window"))
}
