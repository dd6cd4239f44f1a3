//! `fullpipe relay status`: what running relays do, and what limits each of their carriers.

use super::monitor;
use crate::failure::{Failure, Kind};
use crate::sentence::{Sentence, either};
use crate::terminal::{answer_layout, language, print, print_json};
use clap::Args;
use fullpipe_flow::diagnosis::live::{Answer, HostFacts, Observed, role};
use fullpipe_flow::limit::Limit;
use fullpipe_host::SocketSampler;
use fullpipe_kernel::run::sandbox::Interrupt;
use fullpipe_model::observe::Sample;
use fullpipe_model::units::{Bytes, Duration, Rate, column};
use fullpipe_peer::relay::{CarrierStatus, RelayStatus, SessionStatus};
use fullpipe_report::{Column, Table, table::paragraph};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

/// No status is longer: 64 carriers of each of a thousand sessions.
const LINE_MAX: u64 = 64 << 20;
/// A relay that runs answers at once.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(5);

/// Show what running relays do: streams, carriers, their rates, and what limits each.
///
/// Each end tells what it has in memory. The sockets of its carriers are sampled for a moment, as
/// `fullpipe why` does, so the limit of each carrier is what its socket shows at this end. Nothing
/// is changed. It shows the relays of the user who calls it; a relay with --control is named by
/// that file.
#[derive(Args)]
#[command(after_help = "\
Examples:
  fullpipe relay status
  fullpipe relay status --for 500ms --json | jq '.[].carriers[][].answer'
  fullpipe relay status --control /run/fullpipe-relay/status.sock")]
pub struct ShowStatus {
    /// The relay's status socket, as its --control has it; all of this user's by default.
    #[arg(long, value_name = "FILE")]
    control: Option<PathBuf>,
    /// How long to watch the carriers, 100ms to 60s.
    #[arg(long = "for", value_name = "TIME", default_value = "2s",
        value_parser = super::super::top::interval)]
    watch: Duration,
    /// Print JSON: an array of relays.
    #[arg(long)]
    json: bool,
}

/// A relay that runs.
#[derive(serde::Serialize)]
struct ShownRelay {
    /// Its status socket.
    control: PathBuf,
    #[serde(flatten)]
    status: RelayStatus,
    /// What the sockets of its carriers showed, session by session.
    carriers: Vec<Vec<Watched>>,
}

/// A carrier while it was watched.
#[derive(serde::Serialize)]
struct Watched {
    #[serde(flatten)]
    carrier: CarrierStatus,
    /// Goodput both ways; `None`: its socket cannot be seen from here.
    #[serde(rename = "goodput_bps", with = "column::rate_optional")]
    goodput: Option<Rate>,
    /// What its socket shows; `None` where nothing moved, or it cannot be seen from here.
    answer: Option<Answer>,
}

impl ShowStatus {
    pub fn run(self) -> Result<u8, Failure> {
        let interrupt = Interrupt::on_signals().map_err(Failure::of_kernel)?;
        let controls = match self.control {
            Some(control) => vec![control],
            None => monitor::running()?,
        };
        let before: Vec<RelayStatus> =
            controls.iter().map(|control| ask(control)).collect::<Result<_, _>>()?;
        let ends = before.iter().flat_map(|relay| &relay.sessions).flat_map(|one| &one.carriers);
        let sampler = SocketSampler::start(ends.map(|one| (one.local, one.remote)).collect())
            .map_err(|refused| {
                Failure::new(Kind::Missing, Sentence::from(&refused).of("relay status"))
            })?;
        if !before.is_empty() && interrupt.wait(Some(self.watch))? {
            return Ok(Failure::code(Kind::Interrupted));
        }
        let mut samples = sampler.stop().into_iter();
        let shown: Vec<ShownRelay> = controls
            .into_iter()
            .zip(before)
            .map(|(control, status)| {
                let mut watched = |carrier: &CarrierStatus| {
                    watched(*carrier, &samples.next().unwrap_or_default())
                };
                let sessions = status.sessions.iter();
                let carriers = sessions
                    .map(|session| session.carriers.iter().map(&mut watched).collect())
                    .collect();
                ShownRelay { control, status, carriers }
            })
            .collect();
        if self.json {
            print_json(&shown)?;
        } else if shown.is_empty() {
            let none = either(
                "no relay of this user runs; name another one's socket with --control",
                "当前用户没有正在运行的中继；请用 --control 给出另一个中继的套接字",
            );
            print(&format!("{}\n", paragraph::fill("", none, answer_layout().width)))?;
        } else {
            print(&shown.iter().map(in_words).collect::<String>())?;
        }
        Ok(0)
    }
}

/// Asks the relay at a socket.
fn ask(control: &Path) -> Result<RelayStatus, Failure> {
    let name = control.display();
    let failed = |why: Sentence| {
        let (english, chinese) = (why.english(), why.chinese());
        Failure::new(
            Kind::Run,
            Sentence::new(
                format!("ask relay at {name}: {english}; does it run, and with that --control?"),
                format!("询问 {name} 的中继：{chinese}；它在运行吗，用的是这个 --control 吗？"),
            ),
        )
    };
    let line = read_line(control).map_err(|error| failed(Sentence::as_is(error)))?;
    if line.is_empty() {
        return Err(failed(Sentence::new(
            "it said nothing, so it is ending",
            "它没有回答，说明正在结束",
        )));
    }
    serde_json::from_str(&line).map_err(|error| failed(Sentence::as_is(error)))
}

fn read_line(control: &Path) -> std::io::Result<String> {
    let stream = UnixStream::connect(control)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut line = String::new();
    BufReader::new(stream).take(LINE_MAX).read_line(&mut line)?;
    Ok(line)
}

/// What passed in both directions until then.
fn moved(sample: &Sample) -> Option<Bytes> {
    let info = sample.info.as_ref()?;
    Some(info.bytes_acked? + info.bytes_received?)
}

fn watched(carrier: CarrierStatus, samples: &[Sample]) -> Watched {
    let ends = samples.first().zip(samples.last());
    let goodput = ends.and_then(|(first, last)| {
        let bytes = moved(last)?.saturating_sub(moved(first)?);
        bytes.per(last.at.since(first.at))
    });
    let observed = Observed {
        role: role(samples),
        samples,
        other: &[],
        asked: None,
        settings: None,
        host: HostFacts::default(),
    };
    let answer = observed.answer().filter(|_| goodput.is_some_and(|rate| rate > Rate::ZERO));
    Watched { carrier, goodput, answer }
}

/// A relay as text: a line for each session, and a table of its carriers.
fn in_words(shown: &ShownRelay) -> String {
    let mut out = format!("{}\n", shown.control.display());
    if shown.status.sessions.is_empty() {
        out += either(
            "  no session: no far end is connected, or no near end\n",
            "  没有会话：没有连接远端，或没有连接近端\n",
        );
    }
    for (session, carriers) in shown.status.sessions.iter().zip(&shown.carriers) {
        let SessionStatus { streams, unacknowledged, unread, behind_gap, out_of_credit, .. } =
            session;
        let (sent, received) = (session.moved.delivered, session.moved.received);
        out += &either(
            format!(
                "  streams: {streams}; sent {sent}, received {received}\n  waiting: {unacknowledged} to be \
                 acknowledged, {unread} to be read, {behind_gap} behind gaps\n"
            ),
            format!(
                "  流：{streams}；已发送 {sent}，已接收 {received}\n  等待：{unacknowledged} 待确认，{unread} \
                 待读取，{behind_gap} 在缺口之后\n"
            ),
        );
        if *out_of_credit > 0 {
            out += &either(
                format!(
                    "  streams that wait for their readers at the other end: {out_of_credit}\n"
                ),
                format!("  等待另一端读取方的流：{out_of_credit}\n"),
            );
        }
        out += &table(carriers).render(answer_layout());
    }
    out
}

fn table(carriers: &[Watched]) -> Table<5> {
    let mut table = Table::new([
        Column::count(either("carrier", "承载连接")),
        Column::text(either("other end", "另一端")),
        Column::figure("goodput", "Mbit/s"),
        Column::figure(either("round trip", "往返"), "ms"),
        Column::text("limited by"),
    ]);
    for Watched { carrier, goodput, answer } in carriers {
        let limit = match (answer, goodput) {
            (Some(answer), _) => match answer.limit {
                Limit::Unknown => either("unknown", "未知").to_owned(),
                limit => format!("{} {:.0} %", language().limit(limit), answer.share * 100.0),
            },
            (None, Some(_)) => either("idle", "空闲").into(),
            (None, None) => {
                either("its socket is not to be seen from here", "从这里看不到它的套接字").into()
            }
        };
        let rtt = carrier.round_trip.map(|rtt| format!("{:.1}", rtt.as_secs_f64() * 1e3));
        table.row([
            carrier.carrier.to_string(),
            carrier.remote.to_string(),
            goodput.map(|rate| format!("{:.1}", rate.as_f64() / 1e6)).unwrap_or_default(),
            rtt.unwrap_or_default(),
            limit,
        ]);
    }
    table
}
