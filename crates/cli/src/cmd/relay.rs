//! `fullpipe relay`: the near end of a relay, and what runs of relays here.

pub mod monitor;
mod status;

use super::peer_keys::{private_key, stops_on_signals, with_port};
use crate::failure::{Failure, Kind};
use crate::sentence::{Sentence, either};
use crate::terminal::remark;
use clap::{Args, Subcommand};
use fullpipe_model::units::{Bytes, Duration};
use fullpipe_peer::relay::{
    CarrierSockets, Carriers, Entry, ProxyKind, Relay as NearEnd, RelayError, RelayOptions,
};
use fullpipe_peer::{Keys, PeerError, PublicKey, Transport};
use monitor::MonitorOptions;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Carry a TCP service over several connections to a far end, where `fullpipe serve --relay` runs.
///
/// Users connect to --listen, and the far end connects to --to for each of them, or to where they
/// ask for by SOCKS5 or HTTP's CONNECT. Their streams are cut into chunks, which any of the
/// connections between the two ends (the carriers) takes when it has room, and put together again
/// in order. So a stream gets what all carriers carry, where one connection is held by its window
/// or by loss. Neither host's kernel is changed, and root is not needed. On any other host than
/// this one it takes keys: carriers are TLS 1.3, and both ends must have the key that the other one
/// was told.
///
/// On SIGTERM or Ctrl-C it listens no more, and lets streams end for --drain; a second Ctrl-C ends
/// it at once, and resets them.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(after_help = "\
Examples:
  fullpipe relay --server 127.0.0.1 --listen 127.0.0.1:8080 --to 127.0.0.1:80
  fullpipe keygen relay.key
  fullpipe relay --server far.example --key relay.key --server-key ed25519:.. \\
    --listen 127.0.0.1:8080 --to www.internal:80 --carriers auto
  curl http://127.0.0.1:8080/large.iso
  fullpipe relay --server 127.0.0.1 --listen 127.0.0.1:1080 --socks5
  curl --proxy socks5h://127.0.0.1:1080 https://example.org/
  fullpipe relay status                            what it does, and what limits each carrier

contrib/systemd has a unit, and the guide a page: two hosts in five minutes.")]
pub struct Relay {
    #[command(subcommand)]
    action: Option<Action>,
    /// The far end, where `fullpipe serve --relay` runs; port 5606 unless it has one.
    #[arg(long, value_name = "HOST[:PORT]", required = true)]
    server: Option<String>,
    /// Where users connect to; with port 0 a free one, which is printed.
    #[arg(long, value_name = "ADDRESS:PORT", required = true)]
    listen: Option<SocketAddr>,
    /// Where the far end connects to for each user; the far end looks up the name.
    #[arg(long, value_name = "HOST:PORT", required_unless_present_any = ["socks5", "http_connect"])]
    to: Option<String>,
    /// Be a SOCKS5 proxy: each user says where to. Names are looked up by the far end.
    #[arg(long, conflicts_with_all = ["to", "http_connect"])]
    socks5: bool,
    /// Be an HTTP proxy for CONNECT: each user says where to.
    #[arg(long, conflicts_with = "to")]
    http_connect: bool,
    /// How many connections carry the streams: 1 to 64, or auto, which begins with one and adds
    /// some, up to 32, while users get more by it. It says on standard error what it tried.
    #[arg(long, value_name = "COUNT|auto", default_value = "8", value_parser = carriers)]
    carriers: Carriers,
    /// The receive buffer of each carrier, instead of the kernel's own tuning; at most
    /// net.core.rmem_max. The far end has the same option for the other direction.
    #[arg(long, value_name = "SIZE")]
    receive_buffer: Option<Bytes>,
    /// The congestion control of what this end sends on carriers: bbr, cubic, reno. The far end has
    /// the same option for the other direction.
    #[arg(long, short = 'C', value_name = "NAME")]
    congestion: Option<String>,
    /// Connect carriers by Multipath TCP, which may use several paths between the hosts. The far
    /// end needs the same option; without it they are TCP.
    #[arg(long)]
    mptcp: bool,
    /// For how long streams wait for a carrier when all are gone, before they are reset.
    #[arg(long, value_name = "TIME", default_value = "10s")]
    resume_for: Duration,
    /// How long streams may take to end when the relay is stopped.
    #[arg(long, value_name = "TIME", default_value = "30s")]
    drain: Duration,
    /// The file with this end's private key, as `fullpipe keygen` makes it.
    #[arg(long, value_name = "FILE", requires = "server_key")]
    key: Option<PathBuf>,
    /// The far end's public key, as `fullpipe serve` prints it.
    #[arg(long, value_name = "KEY", requires = "key")]
    server_key: Option<PublicKey>,
    #[command(flatten)]
    monitor: MonitorOptions,
}

#[derive(Subcommand)]
enum Action {
    Status(status::ShowStatus),
}

impl Relay {
    pub fn run(self) -> Result<u8, Failure> {
        let (server, listen) = match (self.action, self.server, self.listen) {
            (Some(Action::Status(status)), ..) => return status.run(),
            (None, Some(server), Some(listen)) => (server, listen),
            _ => {
                let what = "relay: give --server and --listen";
                let told = Sentence::new(what, "relay：请给出 --server 和 --listen");
                return Err(Failure::new(Kind::Usage, told));
            }
        };
        let keys = match (&self.key, self.server_key) {
            (Some(key), Some(server)) => Some(Keys { own: private_key(key)?, server }),
            _ => None,
        };
        let entry = match self.to {
            Some(to) => Entry::To(to),
            None if self.socks5 => Entry::Proxy(ProxyKind::Socks5),
            None => Entry::Proxy(ProxyKind::HttpConnect),
        };
        let options = RelayOptions {
            server: with_port(&server),
            keys,
            listen,
            entry,
            carriers: self.carriers,
            receive_buffer: self.receive_buffer,
            resume_for: self.resume_for,
            drain: self.drain,
            sockets: sockets("relay", self.congestion, transport(self.mptcp))?,
        };
        let (stop, abort) = stops_on_signals()?;
        let relay = NearEnd::bind(options).map_err(failure)?;
        let _monitor = self.monitor.start("relay", relay.observer())?;
        let address = relay.local_addr();
        remark(&either(format!("listening on {address}"), format!("正在监听 {address}")));
        if !address.ip().is_loopback() {
            remark(either(
                "whoever reaches that address can use the relay: it asks users for nothing",
                "凡能到达该地址者都可使用此中继：它不向用户要求任何凭证",
            ));
        }
        relay.run(&stop, &abort, remark).map_err(failure)?;
        remark(either("stopped", "已停止"));
        Ok(Failure::code(Kind::Interrupted))
    }
}

/// What `--mptcp` stands for.
pub(super) fn transport(is_multipath: bool) -> Transport {
    if is_multipath { Transport::MultipathTcp } else { Transport::Tcp }
}

/// What carriers' sockets are told, tried on a socket first. `command` is for the message.
pub(super) fn sockets(
    command: &str,
    congestion: Option<String>,
    transport: Transport,
) -> Result<CarrierSockets, Failure> {
    transport.check().map_err(|error| {
        let why = Sentence::new(
            format!(
                "{command}: make a socket of Multipath TCP: {error}; it takes a kernel with \
                 CONFIG_MPTCP and net.mptcp.enabled = 1"
            ),
            format!(
                "{command}：创建 Multipath TCP 套接字：{error}；需要带 CONFIG_MPTCP 的内核，且 \
                 net.mptcp.enabled = 1"
            ),
        );
        Failure::new(Kind::Missing, why)
    })?;
    let named = congestion.clone().unwrap_or_default();
    let sockets = CarrierSockets {
        transport,
        congestion,
        set_up: Some(fullpipe_kernel::socket::pacing::pace),
    };
    sockets.check().map_err(|error| {
        let named = named.escape_debug();
        let why = Sentence::new(
            format!(
                "{command}: use congestion control '{named}' on carriers: {error}; \
                 net.ipv4.tcp_available_congestion_control lists them, and an ordinary user may use \
                 those in tcp_allowed_congestion_control"
            ),
            format!(
                "{command}：在承载连接上使用拥塞控制算法 '{named}'：{error}；\
                 net.ipv4.tcp_available_congestion_control 列出可用的，普通用户可用 \
                 tcp_allowed_congestion_control 中的"
            ),
        );
        Failure::new(Kind::Missing, why)
    })?;
    Ok(sockets)
}

fn carriers(text: &str) -> Result<Carriers, Sentence> {
    match text.parse() {
        Ok(count @ 1..=64) => Ok(Carriers::Fixed(count)),
        Err(_) if text == "auto" => Ok(Carriers::Auto),
        _ => Err(Sentence::new(
            format!("'{text}' must be 1 to 64, or auto"),
            format!("'{text}' 须为 1 到 64，或 auto"),
        )),
    }
}

fn failure(error: RelayError) -> Failure {
    let kind = match &error {
        RelayError::Destination(_) | RelayError::Peer(PeerError::NeedsKeys(_)) => Kind::Usage,
        RelayError::Peer(PeerError::Keys(_)) => Kind::Input,
        RelayError::Bind { .. } | RelayError::Peer(_) | RelayError::Runtime(_) => Kind::Run,
    };
    Failure::new(kind, Sentence::from(&error).of("relay"))
}
