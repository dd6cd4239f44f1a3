//! `fullpipe link .. -- CMD`.

use super::control::ControlSocket;
use super::live::{Line, gateway_losses, summary};
use super::shared::{Shared, Status, Subject};
use super::words::RequestedPath;
use super::{Options, Output};
use crate::failure::{Failure, Kind};
use crate::sentence::{Sentence, either};
use crate::terminal::{remark, remark_json};
use fullpipe_kernel::file::folder;
use fullpipe_kernel::run::sandbox::{self, Inside, Privilege, Signals};
use fullpipe_link::{
    Carrier, CommandLink, CommandLinkError, FarEnd, Junction, Lateness, LinkEnds, LinkReport,
    MachineNetwork, NatError, PendingData, ProgramEvent, Words, make_folder,
};
use fullpipe_model::scenario::{LinkEngine, Path, Rule};
use fullpipe_model::units::Duration;
use serde::Serialize;
use std::ffi::OsString;
use std::io::IsTerminal;
use std::sync::Arc;

/// How often the link is checked.
const TICK: Duration = Duration::from_millis(250);
/// How long connections may make no progress after the command's end. A segment that was lost
/// several times in a row is retransmitted 6 s after the time before.
const LINGER: Duration = Duration::from_secs(10);
/// Added for long paths: a lost segment, its retransmission and the FIN take three round trips.
const LINGER_ROUND_TRIPS: u64 = 10;

/// Runs `command` behind the path that `words` describe, and returns its exit code.
pub fn run(words: &Words, options: &Options, command: &[OsString]) -> Result<u8, Failure> {
    let asked = RequestedPath { path: words.path()?, words: words.clone() };
    let far_end = match (&options.server, options.nat) {
        (Some(_), _) => FarEnd::Server,
        (None, true) => FarEnd::Machine,
        (None, false) => FarEnd::Gateway,
    };
    if let Some(folder) = &options.output.capture {
        make_folder(folder)?;
    }
    let name = options.name.clone().unwrap_or_else(|| std::process::id().to_string());
    let control_socket = ControlSocket::open(&name)?;
    let network =
        MachineNetwork::inspect(far_end).map_err(|error| Failure::new(Kind::Run, &error))?;
    let choices =
        sandbox::SandboxOptions { signals: Signals::Forward, ..sandbox::SandboxOptions::default() };
    let exit = sandbox::run(&choices, |inside| {
        let done =
            run_in_sandbox(inside, &network, &name, &control_socket, &asked, options, command);
        i32::from(done.unwrap_or_else(|failure| failure.report()))
    })?;
    Ok(u8::try_from(exit.code()).unwrap_or(1))
}

/// Everything between making the namespaces and the end of the program.
fn run_in_sandbox(
    inside: &Inside,
    network: &MachineNetwork,
    name: &str,
    control_socket: &ControlSocket,
    asked: &RequestedPath,
    options: &Options,
    command: &[OsString],
) -> Result<u8, Failure> {
    if options.nat && inside.privilege() == Privilege::UserNamespace {
        return Err(CommandLinkError::from(NatError::NoRoot).into());
    }
    let mut command_link = CommandLink::make(network, inside)?;
    let (carrier, not_tun) = start(&command_link.ends, &asked.path, options)?;
    let engine = carrier.engine();
    let shown = command.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ");
    let link =
        Shared::new(name, Subject::Command(shown), control_socket.owner(), carrier, asked.clone());
    let link = Arc::new(link.with_gateway(command_link.gateway_counters()));
    command_link.set_routes(network, options.congestion.as_deref())?;
    let mut server =
        options.server.as_deref().map(|line| command_link.start_server(line)).transpose()?;
    control_socket.serve(Arc::clone(&link), None)?;
    let mut program = command_link.start(command)?;
    let mut line = options.output.draws_line().then(Line::default);
    let mut full = FullGateway::default();
    let code = loop {
        match program.wait(inside, TICK)? {
            ProgramEvent::Ended(code) => break code,
            ProgramEvent::Timeout => {}
        }
        network.check()?;
        full.tell_once(&link, &options.output);
        // If the link has ended, the program behind it would wait forever.
        let now = link.statistics()?;
        line.iter_mut().zip(now).for_each(|(line, now)| line.show(&now));
    };
    let linger = options.linger.unwrap_or_else(|| default_linger(&asked.path));
    let owed = command_link
        .delivery()?
        .wait(inside, linger, || packets_to_server(&link))
        .map_err(CommandLinkError::from)?;
    let ended = server
        .as_mut()
        .map(|server| command_link.end_server(server, inside, linger))
        .transpose()?;
    line.iter_mut().for_each(Line::clear);
    tell_undelivered(&owed, ended);
    let code = if code == 0 && owed.undelivered() > 0 { 1 } else { code };
    let stopped = link.stop().and_then(|(status, report)| {
        print_report(&status, &report, engine, not_tun, &options.output, Some(code))?;
        options.output.complete_captures(engine)
    });
    // A full disk is reported, but the command's own exit code says more.
    let own = stopped.map_or_else(|failure| failure.report(), |()| 0);
    Ok(if code == 0 { own } else { code })
}

/// Whether the user was told that the gateway takes no more connections. They are told once, while
/// the command may still fail for that reason.
#[derive(Default)]
struct FullGateway {
    told: bool,
}

impl FullGateway {
    fn tell_once(&mut self, link: &Shared, options: &Output) {
        if self.told || options.quiet || link.gateway_counts().refused_connections == 0 {
            return;
        }
        self.told = true;
        remark(either(
            "fullpipe: link: the gateway has as many connections as it takes at once, and refuses more until some end; \
             a higher hard limit of open files (ulimit -Hn) allows up to 2048",
            "fullpipe: link: 网关同时的连接已达上限，在有连接结束之前拒绝更多；提高打开文件数的硬上限（ulimit -Hn）\
             可达 2048",
        ));
    }
}

fn default_linger(path: &Path) -> Duration {
    let longest = path.rules.iter().map(Rule::rtt).fold(path.rtt(), Duration::max);
    LINGER.saturating_add(longest.saturating_mul(LINGER_ROUND_TRIPS))
}

/// Packets on their way to the far end.
fn packets_to_server(link: &Shared) -> u64 {
    let statistics = link.statistics().ok().flatten();
    statistics.map_or(0, |statistics| statistics.to_server.inside_packets)
}

/// Reports what the end of the link has cut off.
fn tell_undelivered(owed: &PendingData, server_ended: Option<bool>) {
    if owed.undelivered() > 0 {
        let (count, bytes) = (owed.undelivered(), owed.bytes);
        remark(&either(
            format!(
                "fullpipe: link: {count} connections ended before their data had arrived, with at least {bytes} on the way; \
                 give them more time with --linger"
            ),
            format!(
                "fullpipe: link: {count} 个连接在数据到达之前结束，至少还有 {bytes} 在途；请用 --linger 给更多时间"
            ),
        ));
    }
    let idle = owed.open - owed.open_with_data;
    if idle > 0 {
        remark(&either(
            format!(
                "fullpipe: link: {idle} connections of processes that the command left behind were cut"
            ),
            format!("fullpipe: link: 命令遗留的进程的 {idle} 个连接被切断"),
        ));
    }
    if server_ended == Some(false) {
        remark(either(
            "fullpipe: link: the server had not ended, and was killed",
            "fullpipe: link: 服务器没有结束，已被终止",
        ));
    }
}

/// Starts the link between both ends; also returns why TUN devices do not carry it.
fn start(
    ends: &LinkEnds,
    path: &Path,
    options: &Options,
) -> Result<(Carrier, Option<String>), Failure> {
    let kept = options.output.kept();
    let engine = options.engine.link_engine();
    if engine == LinkEngine::Netem && kept.log.is_some() {
        return Err(Failure::new(
            Kind::Usage,
            Sentence::new(
                "log packets: netem does not report their fates; use --engine own",
                "记录数据包：netem 不报告它们的去向；请用 --engine own",
            ),
        ));
    }
    let junction = ends.join(engine, path)?;
    let not_tun = match &junction {
        Junction::Ports(ports) => ports.not_tun.as_ref().map(ToString::to_string),
        Junction::Wire { .. } => None,
    };
    Ok((Carrier::start(junction, path, &kept)?, not_tun))
}

impl Output {
    /// Whether to draw the line: on request, or where it cannot mix with the program's output.
    pub fn draws_line(&self) -> bool {
        let aside = std::io::stderr().is_terminal() && !std::io::stdout().is_terminal();
        !self.quiet && (self.live || aside && !self.json)
    }
}

/// What the link did, as JSON.
#[derive(Serialize)]
struct Report<'a> {
    #[serde(flatten)]
    status: &'a Status,
    exit_code: Option<u8>,
    engine: &'static str,
    ports: &'a str,
    not_tun: Option<String>,
    real_time: bool,
    capture_dropped: u64,
    port_drops: u64,
    coalesce_us: u64,
    memory_bytes: u64,
    quiet: bool,
}

/// Reports what the link did: as JSON on request, as text for people, and always if it was too
/// late.
pub fn print_report(
    status: &Status,
    report: &LinkReport,
    engine: LinkEngine,
    not_tun: Option<String>,
    options: &Output,
    exit_code: Option<u8>,
) -> Result<(), Failure> {
    let late = report.lateness().quantile(0.99);
    if options.json || options.report.is_some() {
        let report = Report {
            status,
            exit_code,
            engine: engine.name(),
            ports: &report.port_kind,
            not_tun,
            real_time: report.real_time(),
            capture_dropped: report.capture_dropped,
            port_drops: report.port_drops,
            coalesce_us: report.coalesce.as_nanos() / 1000,
            memory_bytes: report.memory.get(),
            quiet: late <= Lateness::QUIET_MAX,
        };
        let text = serde_json::to_string(&report).map_err(std::io::Error::from)?;
        if let Some(path) = &options.report {
            folder::write_into(path, format!("{text}\n").as_bytes()).map_err(|error| {
                let path = path.display();
                Failure::new(
                    Kind::Run,
                    Sentence::new(
                        format!("write report {path}: {error}; choose another place"),
                        format!("写入报告 {path}：{error}；请换一个位置"),
                    ),
                )
            })?;
        }
        if options.json {
            remark_json(&text);
        }
        return Ok(());
    }
    if !options.quiet
        && (std::io::stderr().is_terminal() || late > Lateness::QUIET_MAX || report.port_drops > 0)
    {
        remark(&format!("fullpipe: link: {}", summary(status)));
    }
    for lost in gateway_losses(status).into_iter().filter(|_| !options.quiet) {
        remark(&format!("fullpipe: link: {lost}"));
    }
    if !options.quiet && report.port_drops > 0 {
        let count = report.port_drops;
        remark(&either(
            format!(
                "fullpipe: link: {count} packets were lost between the program and the link, not by the emulated path"
            ),
            format!("fullpipe: link: {count} 个数据包丢失在程序与链路之间，而不是被模拟的路径丢弃"),
        ));
    }
    Ok(())
}
