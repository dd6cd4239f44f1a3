//! `fullpipe link attach` and `detach`: the link on a device of this machine.

use super::control::{self, ControlSocket, Request};
use super::live::Line;
use super::run::print_report;
use super::shared::{Shared, Subject};
use super::words::{PathOptions, RequestedPath};
use super::{Output, absolute};
use crate::failure::{Failure, Kind};
use crate::sentence::Sentence;
use clap::Args;
use fullpipe_kernel::network::netns::NetNs;
use fullpipe_kernel::network::redirect::{Hooks, Redirect};
use fullpipe_kernel::run::sandbox::Interrupt;
use fullpipe_kernel::{Refused, host::clock, process::background};
use fullpipe_link::{Carrier, Junction, make_folder};
use fullpipe_model::link::Config;
use fullpipe_model::link::rule::Match;
use fullpipe_model::scenario::LinkEngine;
use fullpipe_model::units::Duration;
use std::io::{PipeWriter, Read, Write};
use std::sync::Arc;

/// How often the link is checked.
const TICK: Duration = Duration::from_millis(250);
/// How long packets on the link may take to arrive when it is detached.
const DRAIN: Duration = Duration::from_secs(2);

/// Put a path on a device of this machine: an interface, a container's bridge or veth.
///
/// IP packets of the device (or only those that match --to, --from and --protocol) pass the link,
/// in both directions; everything else and all other devices are left alone. The link continues in
/// the background until `fullpipe link detach`. The device itself is not changed: if the link is
/// killed, traffic flows as before. Needs root.
#[derive(Args)]
#[command(after_help = "\
Examples:
  fullpipe link attach --dev eth0 --to 10.0.0.5:443 --rtt 17ms      one port of one server; all else is unchanged
  fullpipe link attach --dev br-1a2b3c --down-rate 10mbit --loss 1% a container network's traffic with this machine
  fullpipe link set --link eth0 --loss 5%
  fullpipe link detach --dev eth0")]
pub struct Attach {
    /// The device.
    #[arg(long, value_name = "DEVICE")]
    dev: String,
    #[command(flatten)]
    words: PathOptions,
    /// Name of the link for `fullpipe link set --link` [default: the device].
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Print the equivalent tc commands, and do nothing else.
    #[arg(long)]
    show: bool,
    /// How the programs are attached to the device's hooks; for testing the way that Linux before
    /// 6.6 needs.
    #[arg(long, value_enum, default_value = "auto", hide = true)]
    hooks: HooksChoice,
    /// Stay in the foreground until interrupted, and report what the link did.
    #[arg(long)]
    foreground: bool,
    #[command(flatten)]
    output: Output,
}

impl Attach {
    pub fn run(mut self) -> Result<u8, Failure> {
        self.words.0 = self.words.0.absolute();
        if self.words.0.is_empty() {
            return Err(Failure::new(
                Kind::Usage,
                Sentence::new(
                    "attach link: no path is given; describe one, for example `--delay 100ms`",
                    "挂接链路：没有给出路径；请描述一个，例如 `--delay 100ms`",
                ),
            ));
        }
        if self.show {
            return super::show(&self.words.0, &self.dev);
        }
        let path = self.words.0.path()?;
        let asked = RequestedPath { path, words: self.words.0.clone() };
        self.output.capture = self.output.capture.as_deref().map(absolute).transpose()?;
        self.output.log = self.output.log.as_deref().map(absolute).transpose()?;
        self.output.report = self.output.report.as_deref().map(absolute).transpose()?;
        if let Some(folder) = &self.output.capture {
            make_folder(folder)?;
        }
        let name = self.name.clone().unwrap_or_else(|| self.dev.clone());
        if self.foreground {
            return Running::start(&self, &name, asked)?.until_detached(&self.output, true);
        }
        let mut word = background::start(|word| in_background(&self, &name, asked, word))
            .map_err(attach_failure)?;
        let mut told = String::new();
        word.read_to_string(&mut told)?;
        match told.split_once(' ') {
            Some((code, message)) => {
                Err(Failure::with_code(code.parse().unwrap_or(1), Sentence::as_is(message)))
            }
            None if told == READY => Ok(0),
            None => Err(Failure::new(
                Kind::Run,
                Sentence::new(
                    "attach link: its process exited before it was ready",
                    "挂接链路：其进程在就绪之前退出",
                ),
            )),
        }
    }
}

const READY: &str = "ready";

/// [`Hooks`] as a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum HooksChoice {
    Auto,
    Links,
    Filters,
}

impl From<HooksChoice> for Hooks {
    fn from(choice: HooksChoice) -> Hooks {
        match choice {
            HooksChoice::Auto => Hooks::Auto,
            HooksChoice::Links => Hooks::Links,
            HooksChoice::Filters => Hooks::Filters,
        }
    }
}

/// Runs the background process. It sends the process that started it READY, or an exit code and a
/// message in the language of both.
fn in_background(attach: &Attach, name: &str, asked: RequestedPath, mut word: PipeWriter) -> i32 {
    match Running::start(attach, name, asked) {
        Ok(running) => {
            let told = word.write_all(READY.as_bytes());
            drop(word);
            // If the starter was killed, nobody knows of this link and nobody would detach it.
            let done = told
                .map_err(Failure::from)
                .and_then(|()| running.until_detached(&attach.output, false));
            done.map_or_else(|failure| failure.exit_code().into(), i32::from)
        }
        Err(failure) => {
            let _ = write!(word, "{} {}", failure.exit_code(), failure.message().here());
            failure.exit_code().into()
        }
    }
}

/// A link on a device.
struct Running {
    link: Arc<Shared>,
    redirect: Redirect,
    ended: Interrupt,
    /// The last field, so that the socket file is removed after everything else.
    _control_socket: ControlSocket,
}

impl Running {
    fn start(attach: &Attach, name: &str, asked: RequestedPath) -> Result<Running, Failure> {
        let Attach { dev: device, output, hooks, .. } = attach;
        let control_socket = ControlSocket::open(name)?;
        let ended = Interrupt::on_signals().map_err(attach_failure)?;
        let here = NetNs::current("this machine").map_err(attach_failure)?;
        let redirect = Redirect::start(&here, device, &wanted(&asked), Hooks::from(*hooks))
            .map_err(attach_failure)?;
        let junction = Junction::Ports(Arc::clone(&redirect.ports));
        let carrier = Carrier::start(junction, &asked.path, &output.kept())?;
        let link = Arc::new(Shared::new(
            name,
            Subject::Device(device.clone()),
            control_socket.owner(),
            carrier,
            asked,
        ));
        control_socket.serve(Arc::clone(&link), Some(ended.clone()))?;
        Ok(Running { link, redirect, ended, _control_socket: control_socket })
    }

    fn until_detached(mut self, output: &Output, tells: bool) -> Result<u8, Failure> {
        let mut line = (tells && output.draws_line()).then(Line::default);
        while !self.ended.wait(Some(TICK))? {
            // A link that has ended must not take more packets: the error ends this process, and
            // with it the redirection.
            let now = self.link.statistics()?;
            line.iter_mut().zip(now).for_each(|(line, now)| line.show(&now));
        }
        line.iter_mut().for_each(Line::clear);
        self.redirect.release();
        self.drain()?;
        let (status, report) = self.link.stop()?;
        // In the background nobody reads standard error, but a report file is still wanted.
        let told = if tells {
            output.clone()
        } else {
            Output { quiet: true, json: false, ..output.clone() }
        };
        print_report(&status, &report, LinkEngine::Own, None, &told, None)?;
        output.complete_captures(LinkEngine::Own)?;
        Ok(0)
    }

    /// How many packets are on the link.
    fn inside_packets(&self) -> Result<u64, Failure> {
        let now = self.link.statistics()?;
        Ok(now.map_or(0, |now| now.to_client.inside_packets + now.to_server.inside_packets))
    }

    /// Waits for packets on the link to arrive.
    fn drain(&self) -> Result<(), Failure> {
        let deadline = clock::now() + DRAIN;
        while self.inside_packets()? > 0 && clock::now() < deadline {
            std::thread::park_timeout(Duration::from_millis(1).into());
        }
        Ok(())
    }
}

/// Which packets pass the link: all, unless only some are impaired.
fn wanted(asked: &RequestedPath) -> Vec<Match> {
    let ways = [&asked.path.to_client, &asked.path.to_server];
    if ways.into_iter().any(|config| *config != Config::default()) {
        return Vec::new();
    }
    asked.path.rules.iter().map(|rule| rule.matches).collect()
}

fn attach_failure(refused: Refused) -> Failure {
    let missing =
        [libc_errno::EPERM, libc_errno::EACCES, libc_errno::ENOENT, libc_errno::EOPNOTSUPP];
    let kind = match refused.errno() {
        Some(libc_errno::ENODEV) => Kind::Input,
        Some(errno) if missing.contains(&errno) => Kind::Missing,
        _ => Kind::Run,
    };
    if matches!(refused.errno(), Some(libc_errno::EPERM | libc_errno::EACCES)) {
        let Refused { subject, cause, .. } = &refused;
        let told = Sentence::new(
            format!(
                "attach link: {subject}: {cause}; it needs root's power over this machine's network (CAP_SYS_ADMIN, \
                 CAP_NET_ADMIN, CAP_BPF): run it with sudo, or put the program alone behind a link, \
                 `fullpipe link .. -- CMD`, which takes none"
            ),
            format!(
                "挂接链路：{subject}：{cause}；需要 root 对本机网络的权力（CAP_SYS_ADMIN、CAP_NET_ADMIN、CAP_BPF）：\
                 请用 sudo 运行，或只把程序放到链路之后：`fullpipe link .. -- CMD`，它不需要特权"
            ),
        );
        return Failure::new(kind, told);
    }
    Failure::new(kind, &refused)
}

/// Numbers of errno(3). They are the same on all Linux architectures that Rust supports.
mod libc_errno {
    pub const EPERM: i32 = 1;
    pub const ENOENT: i32 = 2;
    pub const EACCES: i32 = 13;
    pub const ENODEV: i32 = 19;
    pub const EOPNOTSUPP: i32 = 95;
}

/// Take the link off a device again.
///
/// New packets bypass the link at once; those on the link still arrive. When the command returns,
/// everything is as it was before.
#[derive(Args)]
#[command(after_help = "\
Examples:
  fullpipe link detach --dev eth0")]
pub struct Detach {
    /// The device, or the name of its link.
    #[arg(long, value_name = "DEVICE")]
    dev: String,
}

impl Detach {
    pub fn run(self) -> Result<u8, Failure> {
        control::ask_until_gone(&self.dev, &Request::Detach).map(|()| 0)
    }
}
