//! What an operator sees of a running end: its status on a Unix socket, and its metrics over HTTP.
//!
//! Both are served by a thread of their own, so a scraper that hangs holds no stream up. Whoever
//! connects to the socket gets one line of JSON, and the connection closes. By default the socket
//! is in the user's directory of journals, which nobody else may enter.

use super::super::open_metrics::{self, Text};
use crate::failure::{Failure, Kind};
use crate::sentence::{Sentence, either};
use crate::terminal::remark;
use fullpipe_kernel::run::journal;
use fullpipe_kernel::run::names::{NamedSocket, Sockets};
use fullpipe_peer::relay::{Observer, RelayStatus, SessionStatus};
use prometheus_client::encoding::text;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;
use tokio::io::AsyncWriteExt;

/// How names of sockets end.
pub const SUFFIX: &str = ".relay.sock";
/// A client that does not read its line is not waited for.
const PATIENCE: Duration = Duration::from_secs(2);

/// Where an end can be observed.
#[derive(clap::Args)]
pub struct MonitorOptions {
    /// The Unix socket for `fullpipe relay status`; one of this user's by default.
    #[arg(long, value_name = "FILE")]
    control: Option<PathBuf>,
    /// Serve metrics of the relay as OpenMetrics at http://ADDRESS:PORT/metrics. There is neither
    /// TLS nor a password.
    #[arg(long, value_name = "ADDRESS:PORT")]
    metrics: Option<SocketAddr>,
}

impl MonitorOptions {
    /// Whether one was given.
    pub fn are_given(&self) -> bool {
        self.control.is_some() || self.metrics.is_some()
    }

    /// Starts to serve. An address or a socket that was asked for has to be had; without the usual
    /// socket, only `relay status` is missing.
    pub fn start(self, name: &str, observer: Observer) -> Result<Monitor, Failure> {
        let metrics = self.metrics.map(listen).transpose()?;
        let socket = match self.control {
            Some(path) => Some(status_socket(path)?),
            None => match usual(name).and_then(status_socket) {
                Ok(socket) => Some(socket),
                Err(failure) => {
                    let why = failure.message().here();
                    remark(&either(
                        format!("`fullpipe relay status` will not find this: {why}"),
                        format!("`fullpipe relay status` 找不到它：{why}"),
                    ));
                    None
                }
            },
        };
        let listener = socket.as_ref().map(|socket| socket.listener().try_clone()).transpose()?;
        std::thread::Builder::new()
            .name("monitor".into())
            .spawn(move || run(listener, metrics, observer))?;
        Ok(Monitor { _socket: socket })
    }
}

fn listen(addr: SocketAddr) -> Result<TcpListener, Failure> {
    let failed = |error: std::io::Error| {
        let told = Sentence::new(
            format!(
                "serve metrics on {addr}: {error}; choose another with --metrics 127.0.0.1:PORT; port 0 \
                 is any free one"
            ),
            format!(
                "在 {addr} 上提供指标：{error}；请用 --metrics 127.0.0.1:PORT 换一个；端口 0 取任一空闲的"
            ),
        );
        Failure::new(Kind::Run, told)
    };
    let listener = TcpListener::bind(addr).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    remark(&either(
        format!("metrics at http://{address}/metrics"),
        format!("指标在 http://{address}/metrics"),
    ));
    Ok(listener)
}

/// A relay that can be observed. Dropped, its socket is removed.
pub struct Monitor {
    _socket: Option<NamedSocket>,
}

fn status_socket(path: PathBuf) -> Result<NamedSocket, Failure> {
    let name = path.display().to_string();
    let failed = |why: Sentence| {
        let (english, chinese) = (why.english(), why.chinese());
        Failure::new(
            Kind::Run,
            Sentence::new(
                format!("make status socket {name}: {english}; choose another with --control"),
                format!("创建状态套接字 {name}：{chinese}；请用 --control 换一个"),
            ),
        )
    };
    let socket = NamedSocket::bind(path).map_err(|error| failed(Sentence::as_is(error)))?;
    let socket = socket.ok_or_else(|| {
        failed(Sentence::new("another relay answers there", "那里有另一个中继在应答"))
    })?;
    let is_set = socket.listener().set_nonblocking(true);
    is_set.map_err(|error| failed(Sentence::as_is(error)))?;
    Ok(socket)
}

/// This process' socket in the user's directory.
fn usual(name: &str) -> Result<PathBuf, Failure> {
    // What killed ones left goes before there is one more.
    running()?;
    let directory = journal::own_directory().map_err(|error| Failure::new(Kind::Run, &error))?;
    Ok(directory.join(format!("{name}-{}{SUFFIX}", std::process::id())))
}

/// The sockets of this user's relays that answer, in order of their names. Those that nobody
/// answers are removed.
pub fn running() -> Result<Vec<PathBuf>, Failure> {
    let found = Sockets::named("", SUFFIX).map_err(|error| {
        let what = Sentence::new("find relays", "查找中继");
        Failure::new(Kind::Run, what.and(&(&error).into()))
    })?;
    Ok(found.answered)
}

/// Serves until the process ends.
fn run(socket: Option<UnixListener>, metrics: Option<TcpListener>, observer: Observer) {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else {
        return remark("nobody can observe this relay: there is no runtime");
    };
    runtime.block_on(async {
        tokio::join!(
            async {
                if let Some(Ok(socket)) = socket.map(tokio::net::UnixListener::from_std) {
                    serve_status(socket, &observer).await;
                }
            },
            async {
                if let Some(Ok(metrics)) = metrics.map(tokio::net::TcpListener::from_std) {
                    let asked = observer.clone();
                    let text: Text = Rc::new(move || {
                        let asked = asked.clone();
                        Box::pin(async move { exposition(asked.status().await.as_ref()) })
                    });
                    open_metrics::serve(metrics, text, std::future::pending()).await;
                }
            }
        );
    });
}

/// Gives everybody who connects a line.
async fn serve_status(socket: tokio::net::UnixListener, observer: &Observer) {
    loop {
        let Ok((mut stream, _)) = socket.accept().await else {
            // Descriptors ran out: at once it would only fail again.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let Some(status) = observer.status().await else { return };
        let Ok(mut line) = serde_json::to_vec(&status) else { continue };
        line.push(b'\n');
        // A client that went away needs no answer.
        let _ = tokio::time::timeout(PATIENCE, stream.write_all(&line)).await;
    }
}

/// The metrics of a relay; of one that does not run any more there are none.
fn exposition(status: Option<&RelayStatus>) -> String {
    let mut registry = Registry::with_prefix("fullpipe_relay");
    if let Some(status) = status {
        register(&mut registry, status);
    }
    let mut out = String::new();
    // A String takes everything.
    text::encode(&mut out, &registry).expect("a String takes any text");
    out
}

fn register(registry: &mut Registry, status: &RelayStatus) {
    let (sessions, moved) = (&status.sessions, status.moved());
    let sum = |of: fn(&SessionStatus) -> u64| sessions.iter().map(of).sum::<u64>();
    let counters: [(&str, &str, u64); 3] = [
        (
            "delivered",
            "Payload that the other end acknowledged, each byte once",
            moved.delivered.get(),
        ),
        ("received", "Payload that users of this end have read", moved.received.get()),
        ("repeated", "Payload that was sent more than once", moved.repeated.get()),
    ];
    for (name, help, value) in counters {
        let counter = Counter::<u64>::default();
        counter.inc_by(value);
        registry.register_with_unit(name, help, Unit::Bytes, counter);
    }
    let ended = Counter::<u64>::default();
    ended.inc_by(status.over.sessions);
    registry.register("ended_sessions", "Sessions that are over", ended);
    let gauges: [(&str, &str, Option<Unit>, u64); 7] = [
        ("sessions", "Sessions", None, sessions.len() as u64),
        ("streams", "Streams that are not over", None, sum(|one| one.streams as u64)),
        ("carriers", "Connections that carry them", None, sum(|one| one.carriers.len() as u64)),
        (
            "streams_out_of_credit",
            "Streams whose readers at the other end hold them up",
            None,
            sum(|one| one.out_of_credit as u64),
        ),
        (
            "unacknowledged",
            "Sent or waiting, and not acknowledged",
            Some(Unit::Bytes),
            sum(|one| one.unacknowledged.get()),
        ),
        (
            "unread",
            "Received in order, and not read",
            Some(Unit::Bytes),
            sum(|one| one.unread.get()),
        ),
        (
            "behind_gap",
            "In the reassembly buffer, behind a gap",
            Some(Unit::Bytes),
            sum(|one| one.behind_gap.get()),
        ),
    ];
    for (name, help, unit, value) in gauges {
        let gauge = Gauge::<i64>::default();
        gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
        match unit {
            Some(unit) => registry.register_with_unit(name, help, unit, gauge),
            None => registry.register(name, help, gauge),
        }
    }
}
