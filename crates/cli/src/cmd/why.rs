//! `fullpipe why`: what limits the connections of this host, now.

mod files;
mod past;
mod url;

use crate::cmd::past::{PastTime, span};
use crate::cmd::{prefixes, waits};
use crate::failure::{Failure, Kind};
use crate::sentence::{Sentence, either};
use crate::terminal::{answer_layout, print, print_json, remark};
use clap::{Args, ValueEnum};
use files::Files;
use fullpipe_flow::Language;
use fullpipe_flow::connection::filter::LiveFilter;
use fullpipe_flow::diagnosis::live::LiveConnection;
use fullpipe_flow::diagnosis::{DiagnosedConnection, Explanation};
use fullpipe_flow::limit::Limit;
use fullpipe_flow::schema::Version;
use fullpipe_host::history::PastGround;
use fullpipe_host::watch::{Namespaces, Watch};
use fullpipe_host::{Found, WhyOptions};
use fullpipe_kernel::host::clock;
use fullpipe_kernel::run::sandbox::Interrupt;
use fullpipe_model::observe::Prefixes;
use fullpipe_model::units::{Duration, Instant, column};
use fullpipe_report::connection::{account, live};
use fullpipe_transfer::Timing;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use url::Looked;

/// Say why this host's connections are slow: what limits each, since when, and which end must act.
///
/// Follows the busiest TCP connections for some seconds by the kernel's own counters, and names
/// for each the limit, the process, the cause and the remedy: this host's, the peer's, or nobody's.
/// Changes nothing. With --at it answers for a time that is past, from what `fullpipe record
/// --sockets` kept. As root it sees every network namespace and every process; as an ordinary user
/// all connections of its own namespace, and its own processes.
#[derive(Args)]
#[command(after_help = "\
Examples:
  fullpipe why
  fullpipe why https://example.org/large.iso
  fullpipe why --port 443 --for 10s
  fullpipe why --filter 'process nginx and not net 10.0.0.0/8'
  fullpipe why --pid 4711 --json | jq '.connections[0].acts'
  fullpipe why --peer 192.0.2.7 --record samples.jsonl
  fullpipe why --watch --parquet connections.parquet
  fullpipe why --at 03:00 --for 10m
  fullpipe why --at -1h --for 5m --cgroup nginx.service
  fullpipe why --prefixes sites.csv
  fullpipe why --watch")]
pub struct Why {
    /// Download this for some seconds, as `get` does, and say what limits that: http:// or
    /// https://, through the proxies that the environment names.
    #[arg(value_name = "URL", conflicts_with_all = ["filter", "pid", "port", "peer", "cgroup", "watch", "at"])]
    url: Option<String>,
    /// Trust the certificates in FILE (PEM) instead of this machine's.
    #[arg(long, value_name = "FILE", requires = "url")]
    cacert: Option<PathBuf>,
    /// Trust any certificate.
    #[arg(short = 'k', long, requires = "url")]
    insecure: bool,
    /// Only these connections: peer ADDRESS, host ADDRESS, net ADDRESS/LENGTH, port N, portrange
    /// N-M, pid N, process TEXT, cgroup TEXT, pod NAMESPACE/NAME, and, or, not, ( ).
    #[arg(long, value_name = "FILTER")]
    filter: Option<LiveFilter>,
    /// Only connections of this process.
    #[arg(long, value_name = "PID")]
    pid: Option<u32>,
    /// Only connections with this port at either end.
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
    /// Only connections with this address at the other end.
    #[arg(long, value_name = "ADDRESS")]
    peer: Option<IpAddr>,
    /// Only connections of processes whose control group's path contains TEXT: a service, a pod or
    /// a container's id.
    #[arg(long, value_name = "TEXT")]
    cgroup: Option<String>,
    /// Connections within this host as well.
    #[arg(long)]
    loopback: bool,
    #[command(flatten)]
    past: PastTime,
    /// How long to follow the connections, or how much of a recording to tell [default: 3s, with
    /// --at 10m].
    #[arg(long = "for", value_name = "TIME", value_parser = span)]
    span: Option<Duration>,
    /// How many connections to follow at most, the busiest first.
    #[arg(long, value_name = "COUNT", default_value_t = 32, value_parser = most())]
    most: u16,
    /// Which network namespaces to look into.
    #[arg(long, value_name = "WHICH", value_enum, default_value_t = Which::All, conflicts_with = "at")]
    namespaces: Which,
    /// Look again and again, until Ctrl-C.
    #[arg(long, conflicts_with = "at")]
    watch: bool,
    /// Also write the samples as JSON lines to FILE, which `report` and `analyze` read (columns:
    /// the guide, "samples").
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Also write a row for each connection, of each look, to the Parquet file FILE (columns: the
    /// guide, "a live connection").
    #[arg(long, value_name = "FILE")]
    parquet: Option<PathBuf>,
    /// Where peers are, to be shown beside their addresses: a CSV file with a line
    /// `prefix,site[,provider,region]` for each prefix; the longest one counts.
    #[arg(long, value_name = "FILE", value_parser = prefixes::read)]
    prefixes: Option<Arc<Prefixes>>,
    /// Print JSON; with --watch one document a line.
    #[arg(long)]
    json: bool,
}

/// Bounds of --most: each connection costs some 2 us for each sample of 10 ms.
fn most() -> clap::builder::RangedI64ValueParser<u16> {
    clap::value_parser!(u16).range(1..=1000)
}

/// The network namespaces to look into.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Which {
    /// Those of all processes, as far as they may be entered.
    All,
    /// The one that this command runs in.
    Own,
}

/// The JSON of `fullpipe why`.
#[derive(Serialize)]
struct WhyDocument<'a> {
    schema: Version,
    /// When the look ended, since 1970.
    #[serde(rename = "looked_ns", with = "column::instant")]
    looked: Instant,
    /// How many connections the host has.
    total: usize,
    /// How many of the selected ones were busy.
    busy: usize,
    connections: Vec<&'a LiveConnection>,
    /// When each step of a URL's download was done, with curl's names.
    #[serde(skip_serializing_if = "Option::is_none")]
    timing: Option<&'a Timing>,
    /// What the packets of a URL's connection say of it, as `analyze --json` has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    packets: Option<&'a DiagnosedConnection>,
    /// What the machine itself dropped or held back meanwhile.
    host: &'a [Explanation],
    /// What a recording's answer rests on, and what it lacks.
    #[serde(skip_serializing_if = "Option::is_none")]
    recorded: Option<&'a PastGround>,
}

/// The most of what is followed: a recording has a hundredth of its samples.
const FOLLOWED_MOST: Duration = Duration::from_secs(600);
/// How long connections are followed without --for.
const FOLLOWED: Duration = Duration::from_secs(3);

impl Why {
    pub fn run(self) -> Result<u8, Failure> {
        if let Some(at) = self.past.at {
            return past::run(&self, at);
        }
        if self.followed_for() > FOLLOWED_MOST {
            let told = Sentence::new(
                format!("why: more than {FOLLOWED_MOST} takes --at; use --watch to go on"),
                format!("why：超过 {FOLLOWED_MOST} 需要 --at；请用 --watch 持续查看"),
            );
            return Err(Failure::new(Kind::Usage, told));
        }
        let interrupt = Interrupt::on_signals().map_err(Failure::of_kernel)?;
        // A file that cannot be written is told before anything is watched.
        let mut files = Files::begin(self.record.as_deref(), self.parquet.as_deref())?;
        let namespaces = match self.namespaces {
            Which::All => Namespaces::All,
            Which::Own => Namespaces::Own,
        };
        let mut watch = Watch::open(namespaces).map_err(Failure::of_kernel)?;
        loop {
            let mut look = self.look(&mut watch, &interrupt)?;
            self.name_sites(&mut look.found);
            let looked = clock::now() + clock::realtime_offset();
            // A download that failed before anything could be seen is told by its error alone.
            if look.failure.is_none() || !look.is_empty() {
                self.show(&look, looked, None)?;
                if !self.json {
                    tell_hidden(&watch);
                }
            }
            files.add(&look.found.followed, looked)?;
            if let Some(failure) = look.failure.take() {
                files.finish()?;
                return Err(failure);
            }
            if interrupt.is_set() || !self.watch {
                break;
            }
        }
        files.finish()?;
        // A user who ends --watch has what was asked for.
        if interrupt.is_set() && !self.watch {
            return Err(Failure::new(
                Kind::Interrupted,
                Sentence::new(
                    "interrupted: the answer is of what was seen until then",
                    "已中断：回答基于此前看到的内容",
                ),
            ));
        }
        Ok(0)
    }

    /// What was found; of a URL by its times and packets, too.
    fn look(&self, watch: &mut Watch, interrupt: &Interrupt) -> Result<Looked, Failure> {
        if let Some(url) = &self.url {
            let bar = bar(self.followed_for());
            let trust = url::Trust { cacert: self.cacert.clone(), insecure: self.insecure };
            let looked =
                url::why(url, trust, self.followed_for(), watch, interrupt, &mut |passed| {
                    bar.set_position(passed.as_micros());
                });
            bar.finish_and_clear();
            let looked = looked?;
            tell_of_packets(&looked);
            return Ok(looked);
        }
        let filter = self.filter();
        let options = WhyOptions {
            loopback: self.has_loopback(),
            span: self.followed_for(),
            most: self.most.into(),
        };
        let bar = bar(self.followed_for());
        let found = fullpipe_host::why(watch, &filter, options, interrupt, &mut |passed| {
            bar.set_position(passed.as_micros());
        });
        bar.finish_and_clear();
        Ok(Looked { found: found.map_err(Failure::of_kernel)?, ..Looked::default() })
    }

    /// Says where peers are.
    fn name_sites(&self, found: &mut Found) {
        let Some(prefixes) = &self.prefixes else { return };
        for connection in found.followed.iter_mut().map(|one| &mut one.connection) {
            connection.peer_site = prefixes.site(connection.answer.remote.ip()).cloned();
        }
    }

    fn followed_for(&self) -> Duration {
        self.span.unwrap_or(FOLLOWED)
    }

    /// Which connections are meant: all that is given must hold.
    fn filter(&self) -> LiveFilter {
        LiveFilter::all([
            self.filter.clone(),
            self.pid.map(LiveFilter::pid),
            self.port.map(LiveFilter::port),
            self.peer.map(LiveFilter::peer),
            self.cgroup.as_deref().map(LiveFilter::cgroup),
        ])
    }

    /// Whether connections within this host count. Somebody who names a connection means it,
    /// wherever it leads.
    fn has_loopback(&self) -> bool {
        self.loopback || self.filter().names_connections()
    }

    fn show(
        &self,
        look: &Looked,
        looked: Instant,
        recorded: Option<&PastGround>,
    ) -> Result<(), Failure> {
        let Looked { found, timing, .. } = look;
        let packets = look.packets.as_ref().map(|captured| &captured.connection);
        let connections: Vec<&LiveConnection> =
            found.followed.iter().map(|one| &one.connection).collect();
        if self.json {
            let document = WhyDocument {
                schema: Version::default(),
                looked,
                total: found.connections,
                busy: found.selected,
                connections,
                timing: timing.as_ref(),
                packets,
                host: &found.machine,
                recorded,
            };
            if self.watch {
                let line = serde_json::to_string(&document).map_err(std::io::Error::from)?;
                return Ok(print(&format!("{line}\n"))?);
            }
            return Ok(print_json(&document)?);
        }
        print(&self.text(look))?;
        let is_bounded = recorded.is_none() && found.selected > found.followed.len();
        if is_bounded && found.followed.len() == usize::from(self.most) {
            let more = found.selected - found.followed.len();
            remark(&either(
                format!("{more} more busy connections: --most follows more"),
                format!("还有 {more} 个繁忙的连接：--most 跟踪更多"),
            ));
        }
        Ok(())
    }

    /// What was waited for, then what limits each connection. Where its data was not what took the
    /// time, a socket that says nothing adds nothing.
    fn text(&self, look: &Looked) -> String {
        let layout = answer_layout();
        let packets = look.packets.as_ref().map(|captured| &captured.connection);
        let (mut text, is_wait) = match (packets, &look.timing) {
            (Some(packets), _) => (account::of(packets, layout), account::is_wait(packets)),
            (None, Some(timing)) => waits_by_times(timing, layout.language),
            (None, None) => (String::new(), false),
        };
        let followed = look.found.followed.iter().map(|one| &one.connection);
        let connections: Vec<LiveConnection> = followed
            .filter(|one| {
                packets
                    .is_none_or(|packets| !is_glimpse(one.answer.time, packets.connection.duration))
            })
            .cloned()
            .collect();
        let by_socket = connections.first().map(|one| one.answer.limit);
        if is_wait && by_socket.is_none_or(|limit| limit == Limit::Unknown) {
            return text;
        }
        if !connections.is_empty() {
            text += &live::render(&connections, &look.found.machine, layout);
        } else if self.past.at.is_some() {
            text += &nothing_then(&look.found, layout.language);
        } else if self.url.is_none() {
            text += &format!("{}\n", nothing(&look.found, self.has_loopback(), layout.language));
        } else if look.failure.is_none() && look.found.followed.is_empty() {
            text += match layout.language {
                Language::English => {
                    "It was over too soon to follow its socket: name a larger file.\n"
                }
                Language::Chinese => "下载结束得太快，无法跟踪其套接字：请换一个更大的文件。\n",
            };
        }
        if let Some(packets) = packets {
            text += &live::render_packets(packets, by_socket, layout);
        }
        text
    }
}

/// Whether a socket was followed for too little of its connection to say what held it, beside the
/// packets, which show all of it: a short download is half over when its first byte is there.
fn is_glimpse(followed: Duration, seen: Duration) -> bool {
    followed.saturating_add(followed) < seen
}

/// What was waited for by the times of a download, and the times; whether that took half of the
/// time.
fn waits_by_times(timing: &Timing, language: Language) -> (String, bool) {
    let wait = waits::longest_wait(timing, language);
    let first = wait.as_ref().map_or_else(String::new, |wait| format!("{wait}\n"));
    let since = match language {
        Language::English => "since the start: ",
        Language::Chinese => "自开始以来：",
    };
    (format!("{first}{since}{}\n\n", waits::times(timing, language)), wait.is_some())
}

/// Says what could not be seen of a URL's packets.
fn tell_of_packets(looked: &Looked) {
    if let Some(missed @ 1..) = looked.packets.as_ref().map(|captured| captured.missed) {
        remark(&either(
            format!("{missed} packets of this host passed too fast to be looked at"),
            format!("本机有 {missed} 个数据包通过太快，未能查看"),
        ));
    }
    if let Some(refused) = &looked.refused {
        let why = Sentence::from(refused);
        remark(&either(
            format!(
                "its packets were not looked at, and the answer rests on its socket and its times: {}; run as root",
                why.english()
            ),
            format!(
                "没有查看其数据包，回答基于其套接字和各段时间：{}；请以 root 运行",
                why.chinese()
            ),
        ));
    }
}

/// What to say where no connection was busy.
fn nothing(found: &Found, has_loopback: bool, language: Language) -> String {
    let all = found.connections;
    match language {
        Language::English => {
            let within =
                if has_loopback { "" } else { "; connections within this host need --loopback" };
            format!(
                "No busy connection: of {all} on this host none moved data or waited to. Start the \
                 transfer first{within}."
            )
        }
        Language::Chinese => {
            let within =
                if has_loopback { "" } else { "；本机内部的连接需要 --loopback" };
            format!(
                "没有繁忙的连接：本机的 {all} 个连接都没有传输数据，也没有等待传输。请先开始传输\
                 {within}。"
            )
        }
    }
}

/// What to say where a recording has no connection that is meant.
fn nothing_then(found: &Found, language: Language) -> String {
    let all = found.connections;
    match language {
        Language::English => format!(
            "No connection that was asked about lost or moved most in that time; there were up to \
             {all}.\n"
        ),
        Language::Chinese => {
            format!(
                "在那段时间里，所问的连接都不在损失或传输最多的连接之中；当时最多有 {all} 个连接。\n"
            )
        }
    }
}

/// Says what another user would see.
fn tell_hidden(watch: &Watch) {
    let (_, hidden) = watch.namespaces();
    if hidden > 0 {
        remark(&either(
            format!(
                "{hidden} network namespaces (containers) may not be entered: run as root to see them"
            ),
            format!("有 {hidden} 个网络命名空间（容器）不可进入：以 root 运行才能看到"),
        ));
    }
    if watch.has_hidden_processes() {
        remark(either(
            "other users' processes are not named, nor what they asked of their sockets: run as root",
            "看不到其他用户的进程名，也看不到它们对套接字的设置：请以 root 运行",
        ));
    }
}

fn bar(span: Duration) -> ProgressBar {
    let template = either(
        "following connections {wide_bar} {elapsed:>4}",
        "正在跟踪连接 {wide_bar} {elapsed:>4}",
    );
    let style =
        ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(span.as_micros()).with_style(style.progress_chars("=> "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_speaks_beside_packets_if_it_was_followed_for_half_of_them() {
        let ms = Duration::from_millis;
        assert!(is_glimpse(ms(20), ms(828)) && is_glimpse(ms(413), ms(828)));
        assert!(!is_glimpse(ms(414), ms(828)) && !is_glimpse(ms(3000), ms(3010)));
    }
}
