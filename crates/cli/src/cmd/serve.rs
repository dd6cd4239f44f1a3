//! `fullpipe serve`: the far end of tests.

use super::peer_keys::{HostSampler, stops_on_signals};
use super::relay::monitor::MonitorOptions;
use super::relay::transport;
mod admission;
mod packets;

use crate::failure::{Failure, Kind};
use crate::sentence::{Sentence, either};
use crate::terminal::{OwnTerminal, remark};
use admission::{Destinations, KeyFiles, Reload};
use clap::Args;
use fullpipe_kernel::run::sandbox::Interrupt;
use fullpipe_model::units::{Bytes, Duration};
use fullpipe_peer::path_test::{Responder, ResponderLimits};
use fullpipe_peer::record::{RecordLimits, RecordService};
use fullpipe_peer::relay::{FarEnd, FarEndOptions};
use fullpipe_peer::{AcceptError, DEFAULT_PORT, Daemon, Limits, PublicKey, Services};
use packets::HostPackets;
use std::net::{Ipv4Addr, SocketAddr};

/// Be the far end of `fullpipe test`, `fullpipe record` and `fullpipe relay`: one daemon, one port.
///
/// Without keys it listens on loopback alone. On any other address it needs --key and --allow-key:
/// control connections and the relay's carriers are TLS 1.3, and both ends must have the key that
/// the other one was told. Test data itself is not encrypted, so that a test measures the path and
/// the kernel. On SIGTERM or Ctrl-C it lets running tests and streams end, for 30 s at most; a
/// second Ctrl-C ends it at once.
#[derive(Args)]
#[command(after_help = "\
Examples:
  fullpipe serve
  fullpipe keygen serve.key
  fullpipe serve --listen 0.0.0.0:5606 --key serve.key --allow-key clients.keys
  fullpipe serve --listen 127.0.0.1:0 --tests 2
  fullpipe serve --listen 0.0.0.0:5606 --key serve.key --allow-key clients.keys --allow-record
  fullpipe serve --listen 0.0.0.0:5606 --key serve.key --allow-key clients.keys \\
    --relay --allow www.internal:80 --allow 10.0.0.0/8:5432

contrib/systemd has units.")]
pub struct Serve {
    /// Address and port to listen on; with port 0 a free one, which is printed.
    #[arg(long, value_name = "ADDRESS:PORT", default_value_t = default_address())]
    listen: SocketAddr,
    #[command(flatten)]
    keys: KeyFiles,
    /// How many tests may run at once; more than one measure each other.
    #[arg(long, value_name = "COUNT", default_value_t = 1,
        value_parser = clap::value_parser!(u16).range(1..=64))]
    tests: u16,
    /// The longest run that a client may ask for.
    #[arg(long, value_name = "TIME", default_value = "1h")]
    longest: Duration,
    /// Let peers record the headers of TCP packets between their own address and this one, for
    /// `fullpipe record HOST`: one at a time, for ten minutes and 64 MB at most. Needs root, or
    /// CAP_NET_RAW.
    #[arg(long)]
    allow_record: bool,
    /// Be the far end of relays, too, to the destinations of --allow and --allow-from.
    #[arg(long)]
    relay: bool,
    #[command(flatten)]
    destinations: Destinations,
    /// For how long a relay's streams wait for a carrier when all are gone, before they are reset.
    #[arg(long, value_name = "TIME", default_value = "10s", requires = "relay")]
    resume_for: Duration,
    /// The receive buffer of each accepted connection, instead of the kernel's own tuning; at most
    /// net.core.rmem_max.
    #[arg(long, value_name = "SIZE", requires = "relay")]
    receive_buffer: Option<Bytes>,
    /// The congestion control of what this end sends on carriers: bbr, cubic, reno.
    #[arg(long, short = 'C', value_name = "NAME", requires = "relay")]
    congestion: Option<String>,
    /// Accept carriers by Multipath TCP, too, which may use several paths between the hosts.
    #[arg(long, requires = "relay")]
    mptcp: bool,
    #[command(flatten)]
    monitor: MonitorOptions,
}

fn default_address() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, DEFAULT_PORT).into()
}

impl Serve {
    pub fn run(self) -> Result<u8, Failure> {
        let keys = self.keys.read()?;
        self.check()?;
        let terminal = OwnTerminal::find();
        let (stop, abort) = stops_on_signals()?;
        let sampler = HostSampler::new()?;
        let packets = self.allow_record.then(HostPackets::new).transpose()?;
        let pair = keys.as_ref().map(|(own, allowed)| (own, allowed.clone()));
        let far_end = self.relay.then(|| self.far_end()).transpose()?;
        let transport = transport(self.mptcp);
        let mut daemon = Daemon::bind(self.listen, transport, pair, Limits::default(), remark)
            .map_err(failed)?;
        if let Some(far_end) = &far_end {
            daemon = daemon.with_carriers(far_end.sink(), self.receive_buffer).map_err(failed)?;
        }
        let monitor = self.monitor;
        let _monitor = far_end
            .as_ref()
            .map(|far_end| monitor.start("serve", far_end.observer()))
            .transpose()?;
        let key = keys.and_then(|(own, _)| own.public());
        announce(&daemon, packets.is_some(), far_end.is_some(), key);
        let reload =
            Reload { keys: self.keys, keyring: daemon.keyring(), destinations: self.destinations };
        let hangup = reload.has_files().then(Interrupt::on_hangup).transpose();
        let hangup = hangup.map_err(Failure::of_kernel)?;
        let end = Interrupt::new().map_err(Failure::of_kernel)?;
        let limits = ResponderLimits { runs: self.tests.into(), longest: self.longest };
        let tests = Responder::new(sampler, limits);
        let recordings = RecordService::new(packets, RecordLimits::default());
        let services = Services { tests: &tests, recordings: &recordings };
        std::thread::scope(|scope| {
            if let Some(hangup) = hangup {
                let closing = (terminal, &stop);
                let (reload, end, far_end) = (&reload, &end, far_end.as_ref());
                scope.spawn(move || reload.on_hangup(hangup, end, far_end, closing));
            }
            let relaying = far_end.as_ref().map(|far_end| {
                scope.spawn(|| {
                    let ended = far_end.run(&stop, &abort, remark);
                    // A daemon without its relay is not what was asked for.
                    stop.stop();
                    ended
                })
            });
            let served = daemon.run(&services, &stop, &abort).map_err(failed);
            stop.stop();
            end.set();
            let relayed = relaying.map_or(Ok(()), |thread| thread.join().unwrap_or(Ok(())));
            served.and(relayed.map_err(|error| {
                let why = Sentence::new(
                    format!("serve relays: {error}; is there a limit on descriptors?"),
                    format!("提供中继：{error}；描述符是否有上限？"),
                );
                Failure::new(Kind::Run, why)
            }))
        })?;
        remark(either("stopped", "已停止"));
        Ok(Failure::code(Kind::Interrupted))
    }

    /// Refuses options that make no sense together.
    fn check(&self) -> Result<(), Failure> {
        if self.relay && self.destinations.are_missing() {
            let message = Sentence::new(
                "serve: --relay needs to know where relays may connect to; add --allow \
                 HOST:PORT, or --allow-from FILE",
                "serve：--relay 需要知道中继可以连接到哪里；请加上 --allow HOST:PORT 或 --allow-from FILE",
            );
            return Err(Failure::new(Kind::Usage, message));
        }
        if self.monitor.are_given() && !self.relay {
            let message = Sentence::new(
                "serve: --control and --metrics are about relays; add --relay",
                "serve：--control 和 --metrics 用于中继；请加上 --relay",
            );
            return Err(Failure::new(Kind::Usage, message));
        }
        Ok(())
    }

    fn far_end(&self) -> Result<FarEnd, Failure> {
        let allow = self.destinations.read()?;
        let (resume_for, drain) = (self.resume_for, Limits::default().drain);
        let transport = transport(self.mptcp);
        let sockets = super::relay::sockets("serve", self.congestion.clone(), transport)?;
        Ok(FarEnd::new(FarEndOptions { allow, resume_for, drain, sockets }))
    }
}

/// Says what is served, and what clients need.
fn announce(daemon: &Daemon, records: bool, relays: bool, key: Option<PublicKey>) {
    let address = daemon.local_addr();
    remark(&either(format!("serving tests on {address}"), format!("正在 {address} 上提供测试")));
    if records {
        remark(either("and recordings", "以及抓包记录"));
    }
    if relays {
        remark(either("and relays", "以及中继"));
    }
    if let Some(public) = key {
        remark(&either(
            format!("clients need --server-key {public}"),
            format!("客户端需要 --server-key {public}"),
        ));
    }
}

fn failed(error: AcceptError) -> Failure {
    let kind = match error {
        AcceptError::NeedsKeys(_) => Kind::Usage,
        AcceptError::Keys(_) => Kind::Input,
        AcceptError::Bind { .. } | AcceptError::Wait { .. } => Kind::Run,
    };
    Failure::new(kind, Sentence::from(&error).of("serve"))
}
