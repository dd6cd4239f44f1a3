//! One run of one scenario: hosts, link, server, client, captures, samples; and what came of it.
//!
//! Order matters. The link and the server stand before the client starts; readiness is a handshake,
//! never a wait. The client's end is the end of the transfer; then samplers, server and link are
//! stopped, and only then is anything analysed, so that the analysis takes no CPU from the run.

use crate::carrier::{self, SetupError};
use crate::hog::Hog;
use crate::hosts::HostsError;
use crate::merge_capture::{self, MergeError};
use crate::path_for::path_for;
use crate::program::{
    ProgramError, Received, RunningServer, data_connection, data_direction, placement_refused,
    port, receive,
};
use crate::receive_queue::{ReceiveQueue, has_many_connections};
use crate::sampler::{Counts, Sampler};
use crate::truth::{self, Carried};
use fullpipe_flow::capture::Packet;
use fullpipe_flow::connection::{Connection, Direction, Labels};
use fullpipe_flow::diagnosis::{DiagnosedConnection, Diagnosis, Sockets};
use fullpipe_flow::limit::PathHint;
use fullpipe_flow::limit::truth::TruthInterval;
use fullpipe_flow::{Analyzer, Config};
use fullpipe_kernel::run::sandbox::Interrupt;
use fullpipe_kernel::{Refused, host::clock};
use fullpipe_link::{CaptureOptions, CarrierError, LinkEnds, LinkReport};
use fullpipe_model::observe::Sample;
use fullpipe_model::scenario::{LinkEngine, Scenario};
use fullpipe_model::units::{Bytes, Duration};
use fullpipe_transfer::{Resource, Stop};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// How often progress is told.
const TICK: Duration = Duration::from_millis(100);
/// A client that has not ended this long after its time is stopped.
const GRACE: Duration = Duration::from_secs(10);
/// Shortest interval of a verdict.
const INTERVAL_MIN: Duration = Duration::from_millis(10);

/// The link's truth log among the results.
const LOG: &str = "link.log";

/// Why a run gave no result.
#[derive(Debug, thiserror::Error)]
pub enum ExperimentError {
    /// The hosts.
    #[error(transparent)]
    Hosts(#[from] HostsError),
    /// The link.
    #[error(transparent)]
    Carrier(#[from] CarrierError),
    /// Server or client.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// A capture.
    #[error(transparent)]
    Merge(#[from] MergeError),
    /// A request to the kernel.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// Nothing was transferred.
    #[error("analyse run: no connection from client to server in the capture")]
    NoConnection,
    /// The user wants it to end.
    #[error("interrupted")]
    Interrupted,
}

impl From<SetupError> for ExperimentError {
    fn from(error: SetupError) -> Self {
        match error {
            SetupError::Hosts(cause) => cause.into(),
            SetupError::Carrier(cause) => cause.into(),
        }
    }
}

/// Everything that one run showed.
#[derive(Debug)]
pub struct Outcome {
    /// How the client saw it.
    pub received: Received,
    /// What carried the packets.
    pub link_engine: LinkEngine,
    /// What the link did.
    pub link: LinkReport,
    /// The direction of the data in its connection.
    pub direction: Direction,
    /// The connection as the capture at the server's edge has it.
    pub at_server: DiagnosedConnection,
    /// The same at the client's edge.
    pub at_client: Connection,
    /// What limited it, by the sockets.
    pub by_sockets: Option<Diagnosis>,
    /// Samples of the server's socket.
    pub server_samples: Vec<Sample>,
    /// Samples of the client's.
    pub client_samples: Vec<Sample>,
    /// What the receiving sockets held.
    pub receive_queue: Option<ReceiveQueue>,
    /// What limited it, as its kernel knew it; empty where the kernel does not count that.
    pub truth: Vec<TruthInterval>,
    /// How long the data's writer and its reader waited for a CPU, where that is known and nobody
    /// asked for it.
    pub waited_for_cpu: [Option<Duration>; 2],
    /// What a reader must know.
    pub notes: Vec<String>,
    /// What a capture's time has beyond the clock of samples and of the link's log.
    pub epoch: Duration,
}

impl Outcome {
    /// What limited it, by the capture at the sender's edge; `None` where no data was sent.
    pub fn by_capture(&self) -> Option<&Diagnosis> {
        self.at_server.diagnosis(self.direction)
    }
}

/// How far a run is: time and body bytes.
pub type Progress<'a> = &'a mut dyn FnMut(Duration, Bytes);

/// Runs `scenario` once. `scratch` is an empty folder for its files; captures at both edges and the
/// link's log go to `keep` if named; `virtual_time` says that time passes only while everything
/// waits.
pub fn run(
    scenario: &Scenario,
    scratch: &Path,
    keep: Option<&Path>,
    virtual_time: bool,
    interrupt: &Interrupt,
    progress: Progress<'_>,
) -> Result<Outcome, ExperimentError> {
    let epoch = clock::realtime_offset();
    let mut notes = Vec::new();
    let capture = CaptureOptions { directory: scratch, snaplen: scenario.capture.snaplen, epoch };
    let log = keep.map(|folder| folder.join(LOG));
    let link_start = clock::now() + epoch;
    let (hosts, carrier) =
        carrier::start(scenario, capture, log.as_deref(), virtual_time, &mut notes)?;
    let transferred =
        transfer(scenario, &hosts, scratch, virtual_time, interrupt, progress, &mut notes);
    // Stopped also when the transfer failed: its threads must not outlive the run.
    let edges = carrier.edges(scratch);
    let link = carrier.stop()?;
    let transferred = transferred?;
    let [server_pcap, client_pcap] =
        ["server.pcap", "client.pcap"].map(|name| keep.map(|folder| folder.join(name)));
    let is_counted = transferred.server_samples.iter().any(|sample| sample.reasons.is_some());
    let mut carried = Carried::new(scenario, link_start, epoch).filter(|_| is_counted);
    let at_server = connection_at(&edges.server, scenario, server_pcap, &mut |_| {})?;
    let at_client = connection_at(&edges.client, scenario, client_pcap, &mut |packet| {
        if let Some(carried) = &mut carried {
            carried.see(packet);
        }
    })?;
    let at_client = at_client.connection;
    let (path, hint) = (path_for(scenario), hint(scenario));
    let interval = path.rtt().max(INTERVAL_MIN);
    let Transferred { received, server_samples, client_samples, receive_queue, waited_for_cpu } =
        transferred;
    let sockets = Sockets { sender: &server_samples, receiver: &client_samples, interval };
    let by_sockets = Diagnosis::from_samples(sockets, hint);
    let link_engine = carrier::engine(scenario, virtual_time);
    let truth = truth::of_run(scenario, &server_samples, &client_samples, carried.as_ref(), epoch);
    Ok(Outcome {
        received,
        link_engine,
        link,
        direction: data_direction(scenario),
        at_server,
        at_client,
        by_sockets,
        server_samples,
        client_samples,
        receive_queue,
        truth,
        waited_for_cpu,
        notes,
        epoch,
    })
}

/// What is known of the path of `scenario` beforehand.
fn hint(scenario: &Scenario) -> PathHint {
    let path = path_for(scenario);
    PathHint { rate: path.to_client.mean_rate(), rtt: Some(path.rtt()) }
}

/// The transfer's connection as the capture at one edge has it, merged from its streams; every
/// packet goes to `observer` and, if named, to the file `keep`.
fn connection_at(
    edge: &[PathBuf],
    scenario: &Scenario,
    keep: Option<PathBuf>,
    observer: &mut dyn FnMut(&Packet<'_>),
) -> Result<DiagnosedConnection, ExperimentError> {
    // Rows count by Wireshark's definitions, so that anybody can check them with tshark. Beside
    // that, the capture is analysed as `analyze` does it by default, so that both give the same
    // answer. That a rate was asked for does not say that the transfer reached it.
    let config = Config { labels: Labels::Wireshark, ..Config::default() };
    let keep = keep.as_deref().map(|path| (path, scenario.capture.snaplen));
    let analysis = merge_capture::analyse(edge, keep, Analyzer::new(config), observer)?;
    let server_port = port(scenario);
    let bulk = analysis
        .connections
        .into_iter()
        .filter(|diagnosed| diagnosed.connection.server.port() == server_port);
    let way = data_direction(scenario);
    bulk.max_by_key(|diagnosed| diagnosed.connection.facts(way).payload)
        .ok_or(ExperimentError::NoConnection)
}

/// What a transfer showed beside its packets.
struct Transferred {
    received: Received,
    server_samples: Vec<Sample>,
    client_samples: Vec<Sample>,
    receive_queue: Option<ReceiveQueue>,
    waited_for_cpu: [Option<Duration>; 2],
}

/// The transfer itself, while the link runs.
fn transfer(
    scenario: &Scenario,
    hosts: &LinkEnds,
    scratch: &Path,
    virtual_time: bool,
    interrupt: &Interrupt,
    progress: Progress<'_>,
    notes: &mut Vec<String>,
) -> Result<Transferred, ExperimentError> {
    let _hogs = start_hogs(scenario, notes)?;
    let interval = scenario.sample_interval;
    let (server, resource) = RunningServer::start(scenario, hosts, scratch)?;
    let [server_end, client_end] = data_connection(scenario);
    let counts = if has_many_connections(scenario) { Counts::All } else { Counts::Followed };
    let at_server = Sampler::start(&hosts.server.ns, server_end, interval, Counts::Followed)?;
    let at_client = Sampler::start(&hosts.client.ns, client_end, interval, counts)?;
    let received = drive_client(scenario, hosts, &resource, virtual_time, interrupt, progress);
    let samples = (at_server.stop(), at_client.stop());
    let server_waited = server.stop()?;
    let (server_side, client_side) = (samples.0?, samples.1?);
    if server_side.interval > interval {
        notes.push(format!(
            "sockets sampled every {} in place of {interval}: the run was long",
            server_side.interval
        ));
    }
    let received = received?;
    // Whoever listens is the server here; of an upload, it reads.
    let client_waited = received.waited_for_cpu;
    let waited = match scenario.transfer.upload {
        false => [server_waited, client_waited],
        true => [client_waited, server_waited],
    };
    let ends = [&scenario.hosts.server, &scenario.hosts.client];
    let waited_for_cpu = [0, 1].map(|at| waited[at].filter(|_| ends[at].cpu_hog_nice.is_none()));
    Ok(Transferred {
        received,
        waited_for_cpu,
        server_samples: server_side.samples,
        receive_queue: ReceiveQueue::of(&client_side.held),
        client_samples: client_side.samples,
    })
}

/// The client on its own thread; this one tells progress and watches for the interrupt.
fn drive_client(
    scenario: &Scenario,
    hosts: &LinkEnds,
    resource: &Resource,
    virtual_time: bool,
    interrupt: &Interrupt,
    progress: Progress<'_>,
) -> Result<Received, ExperimentError> {
    let (stop, bytes, start) = (Stop::new(), AtomicU64::new(0), clock::now());
    let deadline =
        start + scenario.transfer.duration + GRACE + path_for(scenario).rtt().saturating_mul(10);
    let received = std::thread::scope(|scope| {
        let client = std::thread::Builder::new()
            .name("client".into())
            .spawn_scoped(scope, || receive(scenario, hosts, resource, virtual_time, &stop, &bytes))
            .map_err(|cause| Refused::new("start thread", "client", cause))?;
        while !client.is_finished() {
            let interrupted = interrupt.wait(Some(TICK)).unwrap_or(false);
            let now = clock::now();
            if interrupted || now >= deadline {
                stop.stop();
                break;
            }
            progress(now.since(start), Bytes::new(bytes.load(Ordering::Relaxed)));
        }
        client
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            .map_err(ExperimentError::from)
    });
    if interrupt.is_set() { Err(ExperimentError::Interrupted) } else { received }
}

fn start_hogs(scenario: &Scenario, notes: &mut Vec<String>) -> Result<Vec<Hog>, ExperimentError> {
    let mut hogs = Vec::new();
    for (name, host) in [("server", &scenario.hosts.server), ("client", &scenario.hosts.client)] {
        if let Some(why) = placement_refused(host) {
            notes.push(format!("the {name}'s application does not run as asked ({why})"));
        }
        if let (Some(cpu), Some(nice)) = (host.cpu, host.cpu_hog_nice) {
            let hog = Hog::start(cpu, nice)?;
            if let Some(why) = &hog.not_nice {
                notes.push(format!(
                    "the CPU hog of the {name} runs at niceness 0, not {nice} ({why})"
                ));
            }
            hogs.push(hog);
        }
    }
    Ok(hogs)
}
