//! The programs of a transfer: our own server and client on threads inside the hosts, or real
//! programs as processes.

mod curl;
mod get;
mod iperf3;
mod pv;
mod readers;
mod relay;
mod wget;

use crate::hosts::{CLIENT_ADDRESS, SERVER_ADDRESS};
use crate::window_agent::{self, WindowAgentError};
use fullpipe_flow::connection::Direction;
use fullpipe_kernel::network::netns::NetNs;
use fullpipe_kernel::process::sched::{self, Placement};
use fullpipe_kernel::socket::sock_diag::{Filter, SockDiag};
use fullpipe_kernel::{Refused, host::clock};
use fullpipe_link::{LinkEnds, READY_WITHIN};
use fullpipe_model::scenario::{Client, Host, Scenario, Server, Transfer};
use fullpipe_model::units::{Bytes, Duration, column};
use fullpipe_peer::AcceptError;
use fullpipe_peer::relay::RelayError;
use fullpipe_transfer::{
    Download, DownloadError, DownloadEvent, DownloadOptions, DownloadOutcome, DownloadRequest,
    GetError, Limits, ReadPauses, Resource, ServerError, ServerOptions, Stop, Timing, UploadServer,
    Uploaded, download, upload,
};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

/// The server's port if the scenario names none.
const PORT: u16 = 8080;
/// What a server of files has.
const FILE: &str = "file";

/// The port of the scenario's server.
pub fn port(scenario: &Scenario) -> u16 {
    scenario.transfer.port.unwrap_or(PORT)
}

/// The address to which the connection is opened: the receiver of the data listens for an upload.
pub(crate) fn listener(scenario: &Scenario) -> SocketAddr {
    let address = if scenario.transfer.upload { CLIENT_ADDRESS } else { SERVER_ADDRESS };
    SocketAddr::new(address, port(scenario))
}

/// Where the server listens: behind a relay, which has the scenario's address, at loopback.
fn served_at(scenario: &Scenario) -> SocketAddr {
    match scenario.transfer.client {
        Client::Relay => relay::behind(listener(scenario)),
        _ => listener(scenario),
    }
}

/// The direction of the data in its connection.
pub(crate) fn data_direction(scenario: &Scenario) -> Direction {
    if scenario.transfer.upload { Direction::ClientToServer } else { Direction::ServerToClient }
}

/// The connection with the data, as the sender of the data and as its receiver see it; iperf3 has a
/// second connection.
pub(crate) fn data_connection(scenario: &Scenario) -> [Filter; 2] {
    let opens = (scenario.transfer.client == Client::Iperf3).then_some(iperf3::DATA_PORT);
    let listens = Some(port(scenario));
    let mut ends = [
        Filter { local_port: listens, remote_port: opens },
        Filter { local_port: opens, remote_port: listens },
    ];
    if scenario.transfer.upload {
        ends.reverse();
    }
    ends
}

/// Why a program of the transfer failed.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// It is not installed.
    #[error(
        "start {program}: it is not installed; install it (on Debian: apt-get install {package}) or use \"builtin\""
    )]
    Missing {
        /// The program.
        program: &'static str,
        /// Its Debian package.
        package: &'static str,
    },
    /// It could not be started or waited for.
    #[error("{operation} {program}: {cause}")]
    Process {
        /// What was tried.
        operation: &'static str,
        /// The program.
        program: &'static str,
        /// The kernel's answer.
        cause: std::io::Error,
    },
    /// It ended before it was ready, or failed.
    #[error("run {program}: {status}: {output}")]
    Failed {
        /// The program.
        program: &'static str,
        /// How it ended.
        status: String,
        /// The end of what it printed.
        output: String,
    },
    /// A file that it needs could not be made.
    #[error("prepare {path} for the server: {cause}; free some space, or use a smaller transfer.size", path = path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The kernel's answer.
        cause: std::io::Error,
    },
    /// The built-in server failed.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// The built-in client failed.
    #[error(transparent)]
    Client(#[from] DownloadError),
    /// Our downloader failed.
    #[error(transparent)]
    Get(#[from] GetError),
    /// The relay's far end failed.
    #[error(transparent)]
    FarEnd(#[from] AcceptError),
    /// The relay's near end failed.
    #[error(transparent)]
    NearEnd(#[from] RelayError),
    /// The window agent's group cannot be entered.
    #[error(transparent)]
    WindowAgent(#[from] WindowAgentError),
    /// The kernel refused a request.
    #[error(transparent)]
    Refused(#[from] Refused),
}

/// A server that accepts connections.
pub enum RunningServer {
    /// On a thread.
    Builtin {
        /// Ends it.
        stop: Stop,
        /// Its thread, which tells in the end how long it waited for a CPU.
        thread: std::thread::JoinHandle<Result<Option<Duration>, ServerError>>,
    },
    /// A process.
    Process(Child, &'static str),
}

/// The result of a transfer, from any client.
#[derive(Debug, Clone, serde::Serialize)]
pub struct Received {
    /// Body bytes.
    #[serde(rename = "body_bytes")]
    pub body: u64,
    /// Whether the whole body arrived; otherwise the duration ended.
    pub complete: bool,
    /// Time from its first byte to its last.
    #[serde(rename = "duration_us", serialize_with = "column::micros::serialize")]
    pub duration: Duration,
    /// curl's time breakdown; iperf3 has none.
    pub timing: Option<Timing>,
    /// The details from the built-in client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub download: Option<Download>,
    /// How long the client waited for a CPU, if it is known.
    #[serde(skip)]
    pub waited_for_cpu: Option<Duration>,
}

impl Received {
    /// For a client that tells no more than how much arrived in which time.
    fn untimed(body: Bytes, complete: bool, duration: Duration) -> Received {
        Received {
            body: body.get(),
            complete,
            duration,
            timing: None,
            download: None,
            waited_for_cpu: None,
        }
    }

    /// For a client with a time breakdown.
    fn timed(body: Bytes, complete: bool, timing: Timing, download: Option<Download>) -> Received {
        let duration = timing.total.saturating_sub(timing.starttransfer);
        let timing = Some(timing);
        Received { timing, download, ..Received::untimed(body, complete, duration) }
    }
}

impl RunningServer {
    /// Starts the scenario's server inside its host; returns once it accepts connections, with what
    /// is to be fetched from it.
    pub fn start(
        scenario: &Scenario,
        hosts: &LinkEnds,
        scratch: &Path,
    ) -> Result<(RunningServer, Resource), ProgramError> {
        let address = served_at(scenario);
        let path = match scenario.transfer.server {
            Server::Builtin => format!("/bytes/{}", scenario.transfer.size.get()),
            _ => format!("/{FILE}"),
        };
        let resource = Resource { server: address, path };
        Ok((RunningServer::start_at(scenario, hosts, scratch, address)?, resource))
    }

    fn start_at(
        scenario: &Scenario,
        hosts: &LinkEnds,
        scratch: &Path,
        address: SocketAddr,
    ) -> Result<RunningServer, ProgramError> {
        if scenario.transfer.upload {
            return upload_server(scenario, &hosts.client.ns, address);
        }
        let ns = &hosts.server.ns;
        match scenario.transfer.server {
            Server::Builtin => builtin_server(scenario, ns, address),
            Server::Nginx => {
                process_server(scenario, ns, scratch, address, "nginx", nginx(scratch, address)?)
            }
            Server::Iperf3 => process_server(
                scenario,
                ns,
                scratch,
                address,
                iperf3::PROGRAM,
                iperf3::server(address),
            ),
            Server::Python => {
                let mut command = Command::new("python3");
                command.args([
                    "-m",
                    "http.server",
                    &address.port().to_string(),
                    "--bind",
                    &SERVER_ADDRESS.to_string(),
                ]);
                command.arg("--directory").arg(scratch);
                process_server(scenario, ns, scratch, address, "python3", command)
            }
        }
    }

    /// Ends it, and tells how long it waited for a CPU, if that is known.
    pub fn stop(self) -> Result<Option<Duration>, ProgramError> {
        match self {
            RunningServer::Builtin { stop, thread } => {
                stop.stop();
                Ok(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?)
            }
            RunningServer::Process(mut child, program) => {
                let waited = sched::waited_for_cpu_of(child.id());
                let ended = child.kill().and_then(|()| child.wait());
                ended.map(|_| waited).map_err(|cause| ProgramError::Process {
                    operation: "end",
                    program,
                    cause,
                })
            }
        }
    }
}

fn placement(host: &Host) -> Placement {
    let cpus = host.cpu.map(|cpu| cpu as usize).into_iter().collect();
    Placement { cpus, nice: (host.nice != 0).then_some(host.nice) }
}

/// Why a host's application cannot have the requested CPU or niceness; tried on a temporary thread.
pub(crate) fn placement_refused(host: &Host) -> Option<Refused> {
    let place = placement(host);
    std::thread::scope(|scope| scope.spawn(|| place.apply().err()).join().unwrap_or_default())
}

/// Gives a program the placement of its host's application, as far as permitted; the notes mention
/// a refusal.
fn place(host: &Host, command: &mut Command) -> Result<(), Refused> {
    if placement_refused(host).is_some() { Ok(()) } else { placement(host).apply_to(command) }
}

fn builtin_server(
    scenario: &Scenario,
    ns: &NetNs,
    bind: SocketAddr,
) -> Result<RunningServer, ProgramError> {
    let many: u32 = scenario.transfer.readers.iter().map(|one| one.connections).sum();
    let mut limits = Limits::default();
    limits.connections = limits.connections.max(many as usize);
    let options = ServerOptions {
        bind,
        limits,
        write_rate: scenario.transfer.write_rate,
        write_rate_after: scenario.transfer.write_rate_after,
        write_block: scenario.transfer.write_block,
        answer_after: scenario.transfer.answer_after.unwrap_or_default(),
        sndbuf: scenario.transfer.send_buffer,
        ..ServerOptions::default()
    };
    // A listening socket, and every connection that it accepts, stays in the namespace in which it
    // was opened.
    let server = ns.run(|| fullpipe_transfer::Server::bind(options))??;
    let (stop, place) = (Stop::new(), placement(&scenario.hosts.server));
    let thread = std::thread::Builder::new()
        .name("server".into())
        .spawn({
            let stop = stop.clone();
            move || {
                // An impossible CPU was already refused with the hosts; a lower niceness needs
                // privilege.
                let _ = place.apply();
                server.run(&stop).map(|_| sched::waited_for_cpu())
            }
        })
        .map_err(|cause| ProgramError::Process { operation: "start", program: "server", cause })?;
    Ok(RunningServer::Builtin { stop, thread })
}

/// The receiving end of an upload, in the client's host.
fn upload_server(
    scenario: &Scenario,
    ns: &NetNs,
    bind: SocketAddr,
) -> Result<RunningServer, ProgramError> {
    let server = ns.run(|| UploadServer::bind(bind, scenario.transfer.granted()))??;
    let (stop, place) = (Stop::new(), placement(&scenario.hosts.client));
    let thread = std::thread::Builder::new()
        .name("upload server".into())
        .spawn({
            let stop = stop.clone();
            move || {
                let _ = place.apply();
                server.run(&stop).map(|_| sched::waited_for_cpu())
            }
        })
        .map_err(|cause| ProgramError::Process { operation: "start", program: "server", cause })?;
    Ok(RunningServer::Builtin { stop, thread })
}

fn process_server(
    scenario: &Scenario,
    ns: &NetNs,
    scratch: &Path,
    address: SocketAddr,
    program: &'static str,
    mut command: Command,
) -> Result<RunningServer, ProgramError> {
    // Sparse: takes no room on disk, and reads as zeros.
    let path = scratch.join(FILE);
    let made =
        std::fs::File::create(&path).and_then(|file| file.set_len(scenario.transfer.size.get()));
    made.map_err(|cause| ProgramError::File { path, cause })?;
    let log = scratch.join("server.log");
    let output = std::fs::File::create(&log).and_then(|file| Ok((file.try_clone()?, file)));
    let (out, err) = output.map_err(|cause| ProgramError::File { path: log.clone(), cause })?;
    command.stdin(Stdio::null()).stdout(out).stderr(err);
    ns.start_in(&mut command)?;
    place(&scenario.hosts.server, &mut command)?;
    let child = spawn(&mut command, program)?;
    let mut server = RunningServer::Process(child, program);
    let RunningServer::Process(child, _) = &mut server else {
        return Err(not_ready(program, &log));
    };
    let deadline = clock::now() + READY_WITHIN;
    // A listener is ready. A test connection would be served by the program: iperf3 then refuses
    // others for a moment.
    let mut diag = SockDiag::open_in(ns)?;
    while !diag.listeners()?.iter().any(|listener| listener.port() == address.port()) {
        let ended = child.try_wait().map_err(|cause| ProgramError::Process {
            operation: "wait for",
            program,
            cause,
        })?;
        if let Some(status) = ended {
            return Err(ProgramError::Failed {
                program,
                status: status.to_string(),
                output: tail(&log),
            });
        }
        if clock::now() >= deadline {
            let _ = server.stop();
            return Err(not_ready(program, &log));
        }
        std::thread::park_timeout(Duration::from_millis(5).into());
    }
    Ok(server)
}

fn not_ready(program: &'static str, log: &Path) -> ProgramError {
    ProgramError::Failed {
        program,
        status: format!("not ready within {READY_WITHIN}"),
        output: tail(log),
    }
}

/// nginx in the foreground; everything it writes is below `scratch`.
fn nginx(scratch: &Path, address: SocketAddr) -> Result<Command, ProgramError> {
    let here = scratch.display();
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|name| format!("{name}_temp_path {here}/nginx-{name};\n"))
        .concat();
    let text = format!(
        "daemon off;\nmaster_process off;\npid {here}/nginx.pid;\nerror_log stderr;\nevents {{}}\n\
         http {{\naccess_log off;\nsendfile on;\n{temporary}server {{ listen {address}; root {here}; }}\n}}\n"
    );
    let path = scratch.join("nginx.conf");
    std::fs::write(&path, text)
        .map_err(|cause| ProgramError::File { path: path.clone(), cause })?;
    let mut command = Command::new("nginx");
    command.arg("-c").arg(path).args(["-e", "stderr", "-p"]).arg(scratch);
    // Debian installs it in a directory that is not in an ordinary user's PATH.
    command.env("PATH", search_path());
    Ok(command)
}

fn search_path() -> String {
    let path = std::env::var("PATH").unwrap_or_default();
    format!("{path}:/usr/sbin:/sbin")
}

fn spawn(command: &mut Command, program: &'static str) -> Result<Child, ProgramError> {
    command.spawn().map_err(|cause| match (cause.kind(), program) {
        (std::io::ErrorKind::NotFound, "nginx") => {
            ProgramError::Missing { program, package: "nginx-light" }
        }
        (std::io::ErrorKind::NotFound, _) => ProgramError::Missing { program, package: program },
        _ => ProgramError::Process { operation: "start", program, cause },
    })
}

fn tail(log: &Path) -> String {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<_> = text.trim_end().lines().rev().take(3).collect();
    lines.into_iter().rev().collect::<Vec<_>>().join("; ")
}

/// Uploads from the server's host, on the calling thread, which must be there for this alone.
fn send(scenario: &Scenario, hosts: &LinkEnds, stop: &Stop) -> Result<Received, ProgramError> {
    hosts.server.ns.enter()?;
    // A refusal is in the run's notes: see `placement_refused`.
    let _ = placement(&scenario.hosts.server).apply();
    let Transfer { size, duration, .. } = scenario.transfer;
    let granted = scenario.transfer.granted();
    let uploaded = upload(listener(scenario), size, duration, granted, stop).map_err(|cause| {
        ProgramError::Process { operation: "upload from", program: "server", cause }
    })?;
    let Uploaded { body, duration, complete } = uploaded;
    Ok(Received::untimed(body, complete, duration))
}

/// Fetches `resource` inside the client's host as the scenario requires, or uploads from the
/// server's, on the calling thread, which must be there for this alone. `progress` gets the body
/// bytes as they arrive (built-in client only).
pub fn receive(
    scenario: &Scenario,
    hosts: &LinkEnds,
    resource: &Resource,
    virtual_time: bool,
    stop: &Stop,
    progress: &AtomicU64,
) -> Result<Received, ProgramError> {
    let received = receive_by(scenario, hosts, resource, virtual_time, stop, progress)?;
    let waited_for_cpu = received.waited_for_cpu.or_else(sched::waited_for_cpu);
    Ok(Received { waited_for_cpu, ..received })
}

fn receive_by(
    scenario: &Scenario,
    hosts: &LinkEnds,
    resource: &Resource,
    virtual_time: bool,
    stop: &Stop,
    progress: &AtomicU64,
) -> Result<Received, ProgramError> {
    if scenario.transfer.upload {
        return send(scenario, hosts, stop);
    }
    hosts.client.ns.enter()?;
    if scenario.hosts.client.window_agent {
        window_agent::enter()?;
    }
    match scenario.transfer.client {
        Client::Builtin => {
            // A refusal is in the run's notes: see `placement_refused`.
            let _ = placement(&scenario.hosts.client).apply();
            if !scenario.transfer.readers.is_empty() {
                return readers::receive(scenario, resource, stop);
            }
            let pauses = scenario.transfer.read_pause_every.zip(scenario.transfer.read_pause);
            let requests = scenario.transfer.requests.unwrap_or(1);
            let options = DownloadOptions {
                max_duration: Some(scenario.transfer.duration),
                requests,
                ask_after: scenario.transfer.ask_after.unwrap_or_default(),
                read_rate: scenario.transfer.read_rate,
                read_block: scenario.transfer.read_block,
                read_pauses: pauses.map(|(every, pause)| ReadPauses { every, pause }),
                rcvbuf: scenario.transfer.receive_buffer,
                // In virtual time entering a program costs more than a packet.
                wait_all: virtual_time && requests == 1,
                ..DownloadOptions::default()
            };
            downloaded(&DownloadRequest { resource: resource.clone(), options }, stop, progress)
        }
        Client::Get => get::receive(scenario, &resource.url(), stop),
        Client::Relay => relay::receive(scenario, &hosts.server.ns, resource, stop, progress),
        Client::Curl => curl::receive(scenario, &resource.url(), stop),
        Client::Wget => wget::receive(scenario, &resource.url(), stop),
        Client::Pv => pv::receive(scenario, &resource.url(), stop),
        Client::Iperf3 => iperf3::receive(scenario, listener(scenario), stop),
    }
}

/// Fetches with our own client.
fn downloaded(
    request: &DownloadRequest,
    stop: &Stop,
    progress: &AtomicU64,
) -> Result<Received, ProgramError> {
    let got = download(request, stop, &mut |event| {
        if let DownloadEvent::Interval(interval) = event {
            progress.fetch_add(interval.body.get(), Ordering::Relaxed);
        }
    })?;
    let complete = matches!(got.outcome, DownloadOutcome::Complete);
    Ok(Received::timed(Bytes::new(got.body.get()), complete, got.timing, Some(got)))
}

/// How a client process ended.
struct ClientExit {
    output: Output,
    /// How long it waited for a CPU, if that is known.
    waited_for_cpu: Option<Duration>,
}

impl ClientExit {
    /// What it received, with what is known of the process.
    fn received(&self, received: Received) -> Received {
        Received { waited_for_cpu: self.waited_for_cpu, ..received }
    }
}

/// Runs a client to its end; returns its exit status and output.
fn run_client(
    scenario: &Scenario,
    mut command: Command,
    program: &'static str,
    stop: &Stop,
) -> Result<ClientExit, ProgramError> {
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    run_connected(scenario, command, program, stop)
}

/// The same where the caller has set what the client reads and where it writes.
fn run_connected(
    scenario: &Scenario,
    mut command: Command,
    program: &'static str,
    stop: &Stop,
) -> Result<ClientExit, ProgramError> {
    command.stderr(Stdio::piped());
    place(&scenario.hosts.client, &mut command)?;
    wait_for(spawn(&mut command, program)?, stop).map_err(|cause| ProgramError::Process {
        operation: "wait for",
        program,
        cause,
    })
}

fn wait_for(mut child: Child, stop: &Stop) -> std::io::Result<ClientExit> {
    let mut waited_for_cpu = None;
    while child.try_wait()?.is_none() {
        waited_for_cpu = sched::waited_for_cpu_of(child.id()).or(waited_for_cpu);
        if stop.is_stopped() {
            child.kill()?;
        }
        std::thread::park_timeout(Duration::from_millis(20).into());
    }
    Ok(ClientExit { output: child.wait_with_output()?, waited_for_cpu })
}

/// The error for a client without a result.
fn client_failed(program: &'static str, output: &Output) -> ProgramError {
    let said = String::from_utf8_lossy(&output.stderr).trim().into();
    ProgramError::Failed { program, status: output.status.to_string(), output: said }
}
