//! `fullpipe export`: time and bytes by limit for Prometheus and OpenTelemetry.

mod exemplars;
mod exposition;
mod otlp;
mod push;

use super::open_metrics::{self, Text};
use super::prefixes;
use crate::failure::{Failure, Kind};
use crate::sentence::{Sentence, either};
use crate::terminal::{print, remark};
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use exposition::{Exposition, FIXED_SERIES};
use fullpipe_host::history::HistoryError;
use fullpipe_host::totals::{GroupLabel, Totals};
use fullpipe_host::watch::{Namespaces, Watch};
use fullpipe_kernel::file::folder::Folder;
use fullpipe_kernel::host::clock;
use fullpipe_kernel::run::sandbox::Interrupt;
use fullpipe_model::observe::Prefixes;
use fullpipe_model::units::Duration;
use push::{Collector, Protocol};
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use tokio::net::TcpListener;

/// The port by default: the one beside `serve`'s, which neither IANA nor the list of Prometheus'
/// exporters gives to anybody.
const DEFAULT_PORT: u16 = 5607;

/// Serve what limits the host's TCP connections as OpenMetrics, or push it by OTLP.
///
/// Time and bytes by limit are counted by process, control group and low port, or by what --labels
/// names, and summed as "other" beyond --series-max. Reads only; as root it counts the connections
/// of all users and namespaces. The files in contrib/ have alerts, a dashboard for Grafana and a
/// systemd unit.
#[derive(Args)]
#[command(after_help = "\
Examples:
  fullpipe export                                  http://127.0.0.1:5607/metrics
  fullpipe export --listen 127.0.0.1:9999 --interval 5s
  fullpipe export --otlp http://127.0.0.1:4318     push to a collector of OpenTelemetry
  fullpipe export --labels workload,runtime        by pod, container or systemd unit
  fullpipe export --labels namespace,pod-name      by pod, as the kubelet calls it
  fullpipe export --labels workload,site --prefixes sites.csv
  fullpipe export --ring /var/lib/fullpipe/sockets  lost time with its recording, as exemplars
  fullpipe export --once                           look three times, print the metrics, and end")]
pub struct Export {
    /// Address and port to listen on; with port 0 a free one, which is printed.
    /// 127.0.0.1:5607 without this and --otlp.
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<SocketAddr>,
    /// Push the metrics each --interval to this collector, by OTLP over HTTP; a URL without a path
    /// means /v1/metrics. Serves nothing then, unless --listen is there, too.
    #[arg(long, value_name = "URL")]
    otlp: Option<Collector>,
    /// How to encode what --otlp pushes.
    #[arg(long, value_name = "PROTOCOL", default_value = "http/protobuf", requires = "otlp")]
    otlp_protocol: Protocol,
    /// Allow an address that other machines reach: the metrics name processes and control groups,
    /// and there is neither TLS nor a password.
    #[arg(long)]
    expose: bool,
    /// Time between two looks, 100ms to 60s.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = super::top::interval)]
    interval: Duration,
    /// The most series; what does not fit is summed as "other".
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = series)]
    series_max: usize,
    /// What connections are told apart by.
    #[arg(long, value_name = "LABEL,..", value_delimiter = ',', value_parser = group_label())]
    #[arg(default_values = ["process", "cgroup", "port"])]
    labels: Vec<GroupLabel>,
    /// Where peers are, for the labels site, provider and region: a CSV file with a line
    /// `prefix,site[,provider,region]` for each prefix; the longest one counts.
    #[arg(long, value_name = "FILE", value_parser = prefixes::read)]
    prefixes: Option<Arc<Prefixes>>,
    /// The folder of a recording that `record --sockets` keeps on this host: what lost time is told
    /// with the part that has it, as exemplars.
    #[arg(long, value_name = "DIR")]
    ring: Option<PathBuf>,
    /// Look three times, print the metrics, and end.
    #[arg(long, conflicts_with_all = ["listen", "expose", "otlp"])]
    once: bool,
}

/// The labels of --labels, with what each tells of a connection.
const LABELS: [(&str, GroupLabel, &str); 15] = [
    ("process", GroupLabel::Process, "The name of the process"),
    ("cgroup", GroupLabel::Cgroup, "Its control group"),
    ("port", GroupLabel::Port, "The lower one of both ports, if it is below those of clients"),
    (
        "workload",
        GroupLabel::Workload,
        "The pod's id, or else the container's, or else the systemd unit; `host` of what is in none",
    ),
    ("unit", GroupLabel::Unit, "The systemd unit"),
    ("container", GroupLabel::Container, "The container's id"),
    ("runtime", GroupLabel::Runtime, "What runs the container: containerd, crio, docker or podman"),
    ("pod", GroupLabel::Pod, "The pod's id"),
    ("namespace", GroupLabel::Namespace, "The namespace of Kubernetes that the pod is in"),
    ("pod-name", GroupLabel::PodName, "The pod's name"),
    (
        "controller",
        GroupLabel::Controller,
        "What made the pod, by the pod's name, or else the pod's name; the workload where that is not known",
    ),
    ("qos", GroupLabel::Qos, "The pod's quality of service: guaranteed, burstable or best_effort"),
    ("site", GroupLabel::Site, "Where the other end is, by --prefixes"),
    ("provider", GroupLabel::Provider, "Whose that site is, by --prefixes"),
    ("region", GroupLabel::Region, "In which region that site is, by --prefixes"),
];

fn group_label() -> impl TypedValueParser<Value = GroupLabel> {
    let names = LABELS.map(|(name, _, says)| PossibleValue::new(name).help(says));
    PossibleValuesParser::new(names).try_map(|text| {
        let label = LABELS.iter().find(|(name, ..)| *name == text);
        label.map(|(_, label, _)| *label).ok_or("no label")
    })
}

/// Below this there is no room for a group beside the rest.
const SERIES_MIN: usize = FIXED_SERIES + 2 * Totals::OTHER_SERIES;

fn series(text: &str) -> Result<usize, Sentence> {
    match text.parse() {
        Ok(count) if (SERIES_MIN..=1_000_000).contains(&count) => Ok(count),
        _ => Err(Sentence::new(
            format!("'{text}' must be a whole number between {SERIES_MIN} and 1000000"),
            format!("'{text}' 须为 {SERIES_MIN} 与 1000000 之间的整数"),
        )),
    }
}

/// Why site, provider and region say nothing.
fn no_prefixes() -> Sentence {
    Sentence::new(
        "export: the labels site, provider and region are told by a file of prefixes; name it with \
         --prefixes FILE",
        "export：site、provider 和 region 标签由前缀文件给出；请用 --prefixes FILE 指定它",
    )
}

impl Export {
    pub fn run(self) -> Result<u8, Failure> {
        let listen = self.address()?;
        let interrupt = Interrupt::on_signals().map_err(run_failed)?;
        let watch = Watch::open(Namespaces::All).map_err(|refused| {
            Failure::new(Kind::Missing, Sentence::from(&refused).of("export"))
        })?;
        let mut labels: Vec<GroupLabel> = Vec::new();
        for label in self.labels.iter().copied() {
            // Twice the same label would be no metric.
            labels.extend((!labels.contains(&label)).then_some(label));
        }
        let prefixes = self.prefixes.clone();
        if prefixes.is_none() && labels.iter().any(|label| label.is_of_peer()) {
            return Err(Failure::new(Kind::Usage, no_prefixes()));
        }
        let prefixes = prefixes.unwrap_or_default();
        let ring = self.recording()?;
        let exposition = Rc::new(Exposition::new(self.series_max, &labels, prefixes, ring));
        let mut sampler = Sampler { watch, exposition };
        sampler.look()?;
        if self.once {
            // The second look says which connections are busy, the third what they do.
            for _ in 0..2 {
                if interrupt.wait(Some(self.interval))? {
                    return Ok(Failure::code(Kind::Interrupted));
                }
                sampler.look()?;
            }
            print(&sampler.exposition.text())?;
            return Ok(0);
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(self.serve(listen, sampler, &interrupt))
    }

    /// The folder of the recording, if one is named. The recorder may make it later.
    fn recording(&self) -> Result<Option<PathBuf>, Failure> {
        let Some(ring) = &self.ring else { return Ok(None) };
        match Folder::open(ring).and_then(|folder| folder.names()) {
            Ok(_) => {}
            Err(cause) if cause.kind() == ErrorKind::NotFound => {
                let place = ring.display();
                remark(&either(
                    format!(
                        "{place}: nothing is recorded there yet; \
                         `fullpipe record --sockets --ring {place}` does"
                    ),
                    format!(
                        "{place}：那里尚无记录；请运行 `fullpipe record --sockets --ring {place}`"
                    ),
                ));
            }
            Err(cause) => {
                let place = ring.display().to_string();
                let error = HistoryError::Unreadable { place, cause };
                return Err(Failure::new(Kind::Missing, Sentence::from(&error).of("export")));
            }
        }
        Ok(Some(ring.clone()))
    }

    /// Where to listen, if it shall.
    fn address(&self) -> Result<Option<SocketAddr>, Failure> {
        let default = SocketAddr::from(([127, 0, 0, 1], DEFAULT_PORT));
        let listen = self.listen.or(self.otlp.is_none().then_some(default));
        match listen {
            Some(address) if !address.ip().to_canonical().is_loopback() && !self.expose => {
                Err(Failure::new(
                    Kind::Usage,
                    Sentence::new(
                        format!(
                            "export: other machines may reach {address}, and the metrics name \
                             processes; listen on 127.0.0.1, or add --expose"
                        ),
                        format!(
                            "export：其他机器可能到达 {address}，而指标会给出进程名；请监听 127.0.0.1，或加上 --expose"
                        ),
                    ),
                ))
            }
            listen => Ok(listen),
        }
    }

    async fn serve(
        &self,
        listen: Option<SocketAddr>,
        mut sampler: Sampler,
        interrupt: &Interrupt,
    ) -> Result<u8, Failure> {
        let listener = match listen {
            Some(address) => Some(bind(address).await?),
            None => None,
        };
        let signal = interrupt.clone();
        let ended = tokio::task::spawn_blocking(move || signal.wait(None));
        let ended = async {
            // An error would mean that the descriptor is gone, and we hold it.
            let _ = ended.await;
        };
        let exposition = Rc::clone(&sampler.exposition);
        let looking = async {
            let mut ticks = tokio::time::interval(self.interval.into());
            ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
            loop {
                ticks.tick().await;
                if let Err(failure) = sampler.look() {
                    return failure;
                }
            }
        };
        let pushing = async {
            match &self.otlp {
                Some(collector) => {
                    push::push((collector, self.otlp_protocol), self.interval, || {
                        exposition.text()
                    })
                    .await;
                }
                None => std::future::pending().await,
            }
        };
        let served = Rc::clone(&exposition);
        let text: Text = Rc::new(move || {
            let exposition = Rc::clone(&served);
            Box::pin(async move { exposition.text() })
        });
        let serving = async {
            match listener {
                Some(listener) => open_metrics::serve(listener, text, ended).await,
                None => ended.await,
            }
        };
        tokio::select! {
            failure = looking => {
                // The thread that waits for a signal ends, too.
                interrupt.set();
                Err(failure)
            }
            () = pushing => unreachable!("it pushes for ever"),
            () = serving => Ok(Failure::code(Kind::Interrupted)),
        }
    }
}

async fn bind(address: SocketAddr) -> Result<TcpListener, Failure> {
    let listener = TcpListener::bind(address).await.map_err(|error| {
        let problem = Sentence::new(
            format!(
                "export: listen on {address}: {error}; choose another with --listen 127.0.0.1:PORT; \
                 port 0 is any free one"
            ),
            format!(
                "export：监听 {address}：{error}；请用 --listen 127.0.0.1:PORT 换一个；端口 0 取任一空闲的"
            ),
        );
        Failure::new(Kind::Run, problem)
    })?;
    let address = listener.local_addr()?;
    remark(&either(
        format!("serving http://{address}/metrics"),
        format!("正在提供 http://{address}/metrics"),
    ));
    Ok(listener)
}

/// Looks, and counts what it finds.
struct Sampler {
    watch: Watch,
    exposition: Rc<Exposition>,
}

impl Sampler {
    fn look(&mut self) -> Result<(), Failure> {
        let before = clock::now();
        self.watch.look().map_err(run_failed)?;
        let now = clock::now();
        let watch = &self.watch;
        let took = now.since(before);
        self.exposition.note(watch.connections(), (took, now), |totals| totals.look(watch, now));
        Ok(())
    }
}

fn run_failed(refused: fullpipe_kernel::Refused) -> Failure {
    Failure::new(Kind::Run, Sentence::from(&refused).of("export"))
}
